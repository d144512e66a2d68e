"""The findings of the attacks as a document: what was asked for beside what was found, then every round as it was."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from app.benchmark.stamp import stamp
from tests.campaigns.http_load_report import QUIET

EXPLAINED = """\
64 honest connections score with a key, one request after the other; every one of their answers was a 200. Beside them:

- *pipelined*: 20 connections without a key send 20 MB each of `GET /` without waiting for answers, every second one the
  bare form without a Host. A connection that is closed is opened anew at once.
- *refused*: 64 connections without a key score for 15 s, each again as soon as it is refused.

The server has one processor, the honest clients and the attackers share another one. The attackers are one process that
sends prepared bytes on plain sockets, because what they take of that processor the honest clients lack: a ratio is what
the attack costs both together, and so not better than what the server alone would show. Memory is the largest resident
size during the attack less that of the honest load before any attack; `/health/live` is asked on a new connection ten
times a second."""
DISTURBED = """\
**The machine was busy with other work** while this was measured. The rates and ratios cannot be relied on: measure
again on a quiet machine. Rows and memory hardly depend on it."""
MOST_ROWS, MOST_MB, LIVE_SECONDS = 100, 30.0, 1.0
LEAST_SHARE = {"pipelined": 0.8, "refused": 0.7}


def render(found: Any, command: str) -> str:
    before, after = found.load_average
    lines = [
        "# Honest callers beside an attack",
        "",
        *stamp(command),
        f"Load average of the machine before and after: {before:.1f} and {after:.1f}.",
        "",
        *([DISTURBED, ""] if before > QUIET else []),
        EXPLAINED,
        "",
        *_summary_lines(found),
        "",
        *_attack_lines(found.rounds),
        "",
        *_round_lines(found.rounds),
    ]
    return "\n".join(lines) + "\n"


def _groups(rounds: Sequence[Any]) -> Mapping[tuple[str, str], list[Any]]:
    groups: dict[tuple[str, str], list[Any]] = {}
    for each in rounds:
        groups.setdefault((each.attack, each.database), []).append(each)
    return groups


def _summary_lines(found: Any) -> list[str]:
    lines = [
        "## What was asked for, and what was found",
        "",
        "| attack | database | honest throughput: median (lowest to highest) | asked for | memory, MB | asked for "
        "| slowest `/health/live`, s | asked for | most rows of one attack | asked for | all held |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (attack, database), rounds in _groups(found.rounds).items():
        ratios = [each.beside.rate / each.quiet.rate for each in rounds]
        grown = max(each.beside.peak_mb for each in rounds) - found.baseline_mb[database]
        live, rows = max(each.beside.live_seconds for each in rounds), max(each.rows for each in rounds)
        least = LEAST_SHARE[attack]
        held = median(ratios) >= least and grown <= MOST_MB and live <= LIVE_SECONDS and rows <= MOST_ROWS
        cells = [
            attack,
            database,
            f"{median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})",
            f"{least:.0%}",
            f"{grown:+.0f}",
            f"+{MOST_MB:.0f}",
            f"{live:.2f}",
            f"{LIVE_SECONDS:.0f}",
            str(rows),
            str(MOST_ROWS),
            "yes" if held else "no",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _attack_lines(rounds: Sequence[Any]) -> list[str]:
    lines = [
        "## What the attackers did, and what it cost: medians",
        "",
        "The cost is the server's processor time for one honest answer, µs; on a busy machine it says more than rates.",
        "",
        "| attack | database | connections opened | MB sent | answers that they got | cost alone | cost beside |",
        "|---|---|---|---|---|---|---|",
    ]
    for (attack, database), alike in _groups(rounds).items():
        opened, sent, answers = (
            median(each.beside.attacker[name] for each in alike) for name in ("opened", "sent_mb", "answers")
        )
        alone, beside = (
            median(each.processor / each.rate * 1e6 for each in side)
            for side in ([each.quiet for each in alike], [each.beside for each in alike])
        )
        did = f"{opened:,.0f} | {sent:,.1f} | {answers:,.0f}"
        lines.append(f"| {attack} | {database} | {did} | {alone:,.0f} | {beside:,.0f} |")
    return lines


def _round_lines(rounds: Sequence[Any]) -> list[str]:
    lines = [
        "## All rounds",
        "",
        "Honest answers a second, the server's share of its processor, its largest resident size in MB, and rows.",
        "",
        "| attack | database | alone | beside | processor alone | beside | MB alone | beside | rows |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in rounds:
        alone, beside = each.quiet, each.beside
        lines.append(
            f"| {each.attack} | {each.database} | {alone.rate:,.0f} | {beside.rate:,.0f} | {alone.processor:.0%} "
            f"| {beside.processor:.0%} | {alone.peak_mb:.0f} | {beside.peak_mb:.0f} | {each.rows} |"
        )
    return lines
