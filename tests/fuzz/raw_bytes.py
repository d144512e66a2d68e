"""The raw-bytes fuzzer: so many requests over a few connections at once, each answer judged."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.fuzz.http_texts import Attempt, attempt
from tests.fuzz.judge import describe, faults
from tests.fuzz.wire import Answer, Wire

CONNECTIONS = 2  # as many batches as one caller may have in progress: more would be 503
TRIES = 10  # on a busy machine a record may take too long: a response that says so is followed by another try
SHOWN = 20


@dataclass(slots=True)
class Judged:
    statuses: Counter[int] = field(default_factory=Counter)  # 0: no answer
    faults: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    retried: int = 0  # answers that said "later": each was followed by another try

    @property
    def asked(self) -> int:
        return self.statuses.total()

    def add(self, other: "Judged") -> None:
        self.statuses += other.statuses
        self.faults += other.faults
        self.examples = (self.examples + other.examples)[:SHOWN]
        self.retried += other.retried

    def note(self, one: Attempt, answer: Answer | None, kinds: Iterable[str]) -> None:
        for kind in kinds:
            self.faults[kind] += 1
            if len(self.examples) < SHOWN:
                self.examples.append(describe(kind, one, answer))


async def fuzz(port: int, credential: str, seed: int, numbers: range) -> Judged:
    judged, waiting = Judged(), iter(numbers)
    await asyncio.gather(*(_ask_on(port, credential, seed, waiting, judged) for _ in range(CONNECTIONS)))
    return judged


async def _ask_on(port: int, credential: str, seed: int, waiting: Iterator[int], judged: Judged) -> None:
    wire, host = Wire(port), f"127.0.0.1:{port}".encode()
    for number in waiting:
        one = attempt(seed, number, host, f"Authorization: Bearer {credential}".encode())
        answer = await _answered(wire, one, judged)
        judged.statuses[answer.status if answer else 0] += 1
        judged.note(one, answer, faults(one, answer))
    wire.close()


async def _answered(wire: Wire, one: Attempt, judged: Judged) -> Answer | None:
    """The last answer, not yet judged; those that said "later" are, because they may not repeat the input either."""
    for _ in range(TRIES - 1):
        answer = await wire.ask(one)
        if answer is None or answer.status != 503 or "retry-after" not in answer.headers:
            return answer
        judged.retried += 1
        judged.note(one, answer, (kind for kind in faults(one, answer) if kind != "server error"))
        await asyncio.sleep(float(answer.headers["retry-after"]))
    return await wire.ask(one)
