"""The results of the attacks as a document: what was required beside what was measured, then all rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from app.formats.markdown import table
from tests.campaigns.reports import opening, spread

EXPLANATION = """\
64 honest connections score with a key, one request after the other; every one of their answers was a 200. Beside them:

- *pipelined*: 20 connections without a key send 20 MB each of `GET /` without waiting for answers, every second one the
  bare form without a Host. A connection that is closed is opened again at once.
- *refused*: 64 connections without a key score for 15 s, each again as soon as it is refused.

The server has one processor; the honest clients and the attackers share another. The attackers are one process that
sends prepared bytes on plain sockets, because the honest clients lack whatever they take of that processor: a ratio is
what the attack costs both together, and so no better than what the server alone would show. Memory is the largest
resident size during the attack less that of the honest load before any attack; `/health/live` is requested on a new
connection ten times a second."""
BUSY = """\
**The machine was busy with other work** while this was measured. The rates and ratios are not reliable: measure again
on a quiet machine. Rows and memory hardly depend on it."""
MAX_ROWS, MAX_MB, LIVE_SECONDS = 100, 30.0, 1.0
LEAST_SHARE = {"pipelined": 0.8, "refused": 0.7}


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    connections: int
    seconds: float  # of the honest load beside it; the attack itself lasts two seconds longer


@dataclass(frozen=True, slots=True)
class Measured:
    rate: float  # honest answers a second
    processor: float  # share of one that the server took
    peak_mb: float  # resident
    live_seconds: float  # slowest answer of /health/live
    attacker: dict[str, float] | None  # what the attackers say they did

    @property
    def cost(self) -> float:
        """The server's processor time for one honest answer, µs."""
        return self.processor / self.rate * 1e6


@dataclass(frozen=True, slots=True)
class Round:
    attack: str
    database: str
    quiet: Measured
    beside: Measured
    rows: int  # refusals on record that the attack left


@dataclass(frozen=True, slots=True)
class Results:
    attacks: Sequence[Attack]
    rounds: Sequence[Round]
    baseline_mb: dict[str, float]  # resident after honest load alone, before any attack, by database
    load_average: tuple[float, float]


def render(results: Results, command: str) -> list[str]:
    return [
        *opening("Honest callers beside an attack", command, results.load_average, BUSY),
        EXPLANATION,
        "",
        *_summary_lines(results),
        *_attack_lines(results.rounds),
        *_round_lines(results.rounds),
    ]


def _groups(rounds: Sequence[Round]) -> Mapping[tuple[str, str], list[Round]]:
    groups: dict[tuple[str, str], list[Round]] = {}
    for each in rounds:
        groups.setdefault((each.attack, each.database), []).append(each)
    return groups


def _summary_lines(results: Results) -> list[str]:
    head = (
        "attack", "database", "honest throughput: median (lowest to highest)", "required", "memory, MB", "required",
        "slowest `/health/live`, s", "required", "most rows of one attack", "required", "all held",
    )  # fmt: skip
    rows = []
    for (attack, database), rounds in _groups(results.rounds).items():
        ratios = [each.beside.rate / each.quiet.rate for each in rounds]
        grown = max(each.beside.peak_mb for each in rounds) - results.baseline_mb[database]
        live, left = max(each.beside.live_seconds for each in rounds), max(each.rows for each in rounds)
        least = LEAST_SHARE[attack]
        held = median(ratios) >= least and grown <= MAX_MB and live <= LIVE_SECONDS and left <= MAX_ROWS
        throughput = (spread(ratios, ".0%"), f"{least:.0%}")
        memory = (f"{grown:+.0f}", f"+{MAX_MB:.0f}")
        rest = (f"{live:.2f}", f"{LIVE_SECONDS:.0f}", str(left), str(MAX_ROWS), "yes" if held else "no")
        rows.append((attack, database, *throughput, *memory, *rest))
    return ["## What was required, and what was measured", "", *table(head, rows)]


def _attack_lines(rounds: Sequence[Round]) -> list[str]:
    head = (
        "attack", "database", "connections opened", "MB sent", "answers that they got", "cost alone", "cost beside"
    )  # fmt: skip
    rows = []
    for (attack, database), alike in _groups(rounds).items():
        attackers = [each.beside.attacker or {} for each in alike]
        opened, sent, answers = (median(each[name] for each in attackers) for name in ("opened", "sent_mb", "answers"))
        alone, beside = median(each.quiet.cost for each in alike), median(each.beside.cost for each in alike)
        did = (f"{opened:,.0f}", f"{sent:,.1f}", f"{answers:,.0f}")
        rows.append((attack, database, *did, f"{alone:,.0f}", f"{beside:,.0f}"))
    return [
        "## What the attackers did, and what it cost: medians",
        "",
        "The cost is the server's processor time for one honest answer, µs; on a busy machine it says more than rates.",
        "",
        *table(head, rows),
    ]


def _round_lines(rounds: Sequence[Round]) -> list[str]:
    head = (
        "attack", "database", "alone", "beside", "processor alone", "beside", "MB alone", "beside", "rows"
    )  # fmt: skip
    rows = (
        (
            each.attack,
            each.database,
            *(f"{side.rate:,.0f}" for side in (each.quiet, each.beside)),
            *(f"{side.processor:.0%}" for side in (each.quiet, each.beside)),
            *(f"{side.peak_mb:.0f}" for side in (each.quiet, each.beside)),
            str(each.rows),
        )
        for each in rounds
    )
    return [
        "## All rounds",
        "",
        "Honest answers a second, the server's share of its processor, its largest resident size in MB, and rows.",
        "",
        *table(head, rows),
    ]
