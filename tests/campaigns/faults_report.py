"""The fault campaign as a document: the faults, what was lost, and how sure that makes us."""

import textwrap
from collections.abc import Sequence
from statistics import median

from app.formats.markdown import table
from tests.campaigns.faults_load import CLIENTS
from tests.campaigns.faults_run import Result

PROCEDURE = (
    f"{CLIENTS} clients request scores from `normalcy serve`, with the shipped models, without pause, over keep-alive "
    "connections, each request with its own id and its own patient. At an instant drawn from the seed the fault is "
    "injected; the clients go on. When scores come again, every answer with status 200 is looked up in the audit: it "
    "must be there once, with the whole request and the whole answer. Each row has a database of its own that all its "
    "cycles share; at the end `normalcy audit verify` checks every chain."
)
REFUSAL_SECONDS = 2.5  # every refusal within
ANSWER_SECONDS = 3.0  # every answer within
RETURN_SECONDS = 5.0  # back within, once the fault is over
HEAD = (
    "fault", "database", "cycles", "acknowledged", "missing", "duplicated", "different", "broken chains",
    "refused (503)", "other status", "unanswered", "slowest refusal", "slowest answer", "median return",
    "slowest return", "per cycle",
)  # fmt: skip


def unmet(found: Result) -> list[str]:
    """The requirements that one fault broke, each with its figure."""
    t = found.tally
    unanswered = 0 if found.part.drops_connections else t.unanswered
    counts = {
        "missing": t.missing, "duplicated": t.duplicated, "different": t.different, "other status": t.unexpected,
        "broken chains": found.verdict.broken, "exit of verify": found.verdict.code, "unanswered": unanswered,
    }  # fmt: skip
    times = (
        ("slowest refusal", t.slowest_refusal, REFUSAL_SECONDS),
        ("slowest answer", t.slowest_answer, ANSWER_SECONDS),
        ("slowest return", t.slowest_return, RETURN_SECONDS),
    )
    lost = [f"{name} {count:,}" for name, count in counts.items() if count]
    late = [f"{name} {seconds:.2f} s" for name, seconds, bound in times if seconds > bound]
    return lost + late + ([] if t.acknowledged else ["nothing acknowledged"])


def holds(found: Result) -> bool:
    return not unmet(found)


def report(real: Sequence[Result], mutants: Sequence[Result], header: Sequence[str]) -> list[str]:
    """Lines of Markdown."""
    return [
        "# Faults under load",
        "",
        *header,
        "",
        *_wrapped(PROCEDURE),
        "",
        *table(HEAD, map(_cells, real), numeric_from=2),
        *_conclusions(real),
        "",
        *_negative_control(mutants),
    ]


def _cells(found: Result) -> list[str]:
    t, part = found.tally, found.part
    lost = t.missing + t.duplicated + t.different + found.verdict.broken
    audited = (t.cycles, t.acknowledged, t.missing, t.duplicated, t.different, found.verdict.broken)
    counts = (*audited, t.refused, t.unexpected, t.unanswered)
    times = [f"{t.slowest_refusal:.2f} s" if t.refused else "–"]
    times += [f"{seconds:.2f} s" for seconds in (t.slowest_answer, median(t.returns or [0.0]), t.slowest_return)]
    bound = "–" if lost else f"≤ {100 * rule_of_three(t.cycles):.1f}%"
    return [part.name, part.database, *(f"{count:,}" for count in counts), *times, bound]


def rule_of_three(trials: int) -> float:
    """The 95% upper bound on the chance of an event that did not happen in so many trials."""
    return min(3.0 / trials, 1.0)


def _conclusions(found: Sequence[Result]) -> list[str]:
    cycles = sum(one.tally.cycles for one in found)
    acknowledged = sum(one.tally.acknowledged for one in found)
    extra = sum(one.tally.unacknowledged for one in found)
    verdict = "; ".join(
        f"{one.part.name} on {one.part.database}: {', '.join(unmet(one))}" for one in found if not holds(one)
    )
    verdict = f"Not held: {verdict}." if verdict else "All of it held."
    loads = sorted(one.load for one in found)
    points = (
        f"Together {cycles:,} cycles and {acknowledged:,} acknowledged scores, in {_chains(found)} chains.",
        f"{extra:,} scores are on record whose client got no answer, or a refusal because the commit came too late to "
        "be known: allowed, the audit is a superset of what clients got.",
        "A client of a process that is killed gets no answer to a request in flight; for every other fault "
        "*unanswered* must be 0.",
        f"Required: every refusal within {REFUSAL_SECONDS} s, every answer within {ANSWER_SECONDS:.0f} s, scores "
        f"again within {RETURN_SECONDS:.0f} s of the restart, or of the end of the fault. **{verdict}**",
        f"The machine was shared: its load average was between {loads[0]:.1f} and {loads[-1]:.1f}, clients and "
        "database included, on the cores named above.",
        "*per cycle*: nothing lost in N cycles leaves a loss in at most 3/N of them, with 95% confidence (rule of "
        "three).",
    )
    return [line for point in points for line in _wrapped(point, "- ", "  ")]


def _chains(found: Sequence[Result]) -> str:
    return f"{sum(one.verdict.chains for one in found):,}"


def _negative_control(mutants: Sequence[Result]) -> list[str]:
    head = ("fault", "database", "cycles", "acknowledged", "missing")
    rows = (
        (one.part.name, one.part.database, *(f"{n:,}" for n in (t.cycles, t.acknowledged, t.missing)))
        for one in mutants
        for t in [one.tally]
    )
    explanation = (
        "The same campaign against a build that acknowledges a score just before its commit instead of just after it "
        "(`tests/campaigns/faults_mutant.py`). A kill has to fall between the two to show it; a fault that lasts shows "
        "it at once:"
    )
    title = "## Would a lost record have been noticed?"
    return [title, "", *_wrapped(explanation), "", *table(head, rows, numeric_from=2)]


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(text, 119, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
