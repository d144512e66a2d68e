"""The answers that clients got, compared with the audit. Pure: no IO, no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.campaigns.faults.load import HANGS, NO_ANSWER, Outcome

Json = dict[str, Any]
COMPARED = (
    "score", "score_with_measurement_error", "reference", "comparators", "reliability", "advisories", "summary",
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """Of one fault, over all its cycles."""

    cycles: int = 0
    acknowledged: int = 0  # answered with 200
    missing: int = 0  # of these, without a record
    different: int = 0  # of these, with a record that says something else
    duplicated: int = 0  # requests with more than one record, acknowledged or not
    refused: int = 0  # answered with 503
    unexpected: int = 0  # answered with any other status
    unanswered: int = 0  # the connection ended first, or nothing came
    hung: int = 0  # of these, nothing came in TIMEOUT_SECONDS
    unacknowledged: int = 0  # recorded although the client got no score: allowed
    slowest_refusal: float = 0.0
    slowest_answer: float = 0.0
    returns: list[float] = field(default_factory=list)  # of each cycle: from the restart, or the end of the fault

    @property
    def slowest_return(self) -> float:
        return max(self.returns, default=0.0)

    def add(self, outcomes: Sequence[Outcome], records: Mapping[str, Sequence[Json]]) -> None:
        """`records` holds the payloads of the scores of these requests, by request id."""
        self.cycles += 1
        self.duplicated += sum(len(found) > 1 for found in records.values())
        acknowledged = {outcome.request_id for outcome in outcomes if outcome.status == 200}
        self.unacknowledged += len(records.keys() - acknowledged)
        for outcome in outcomes:
            self._add(outcome, records.get(outcome.request_id, ()))

    def _add(self, outcome: Outcome, found: Sequence[Json]) -> None:
        if outcome.status in (NO_ANSWER, HANGS):
            self.unanswered += 1
            self.hung += outcome.status == HANGS
            return
        self.slowest_answer = max(self.slowest_answer, outcome.seconds)
        if outcome.status == 200:
            self.acknowledged += 1
            self.missing += not found
            self.different += any(not agrees(outcome, record) for record in found)
            return
        self.slowest_refusal = max(self.slowest_refusal, outcome.seconds)
        self.refused += outcome.status == 503
        self.unexpected += outcome.status != 503


def agrees(outcome: Outcome, record: Json) -> bool:
    """Whether the record holds the request and everything in the answer."""
    answer: Json = msgspec.json.decode(outcome.answer)
    provenance, output = answer["provenance"], record["output"]
    model = {name: provenance["model"][name] for name in ("site", "version", "sha256")}
    return (
        answer["request_id"] == record["request_id"] == outcome.request_id
        and all(record["input"][name] == value for name, value in outcome.body_sent.items())
        and all(output[name] == answer[name] for name in COMPARED)
        and (record["model"], output["service"], record["at"])
        == (model, provenance["service"], provenance["computed_at"])
    )
