"""docs/performance.md from the saved results, with its plots in a folder of the same name."""

from collections.abc import Sequence
from pathlib import Path

from app.benchmark.report_header import report_header
from app.formats.markdown import table
from tests.campaigns.performance.plots import svg
from tests.campaigns.performance.section import Saved
from tests.campaigns.reports import BUSY_LOAD, wrapped

BUSY = (
    "**The machine was busy with other work**: the times are too long, and the ratios less certain than on a quiet one."
)

WHY = (
    "Where an aim is not reached, this is why, as far as we know. *Shares of the FastAPI route*: that route "
    "computes and records nothing. The record of a score is encoded, deflated, hashed and inserted by the same "
    "process on the same processor, which costs about half as much as the whole route; *audit off* shows what is "
    "left without it. With one connection nothing is shared: an answer waits for its own synchronisation of the "
    "disk ([the audit's commits apart](http-redesign.md#the-audits-commits-apart)), and a single score is "
    "computed with small arrays, whose cost is in the calls. *Streams*: lines arrive in pieces of 256 KiB, which "
    "probably make blocks of 1,000 and of some hundred lines in turn, while a batch has full blocks only; that every "
    "line is read by itself costs little. *Two workers*: the parts are put together by a third process, which on two "
    "processors takes time from them, and the command starts and ends alone."
)


def write_report(out: Path, results: Sequence[Saved]) -> None:
    folder = out.with_suffix("")
    folder.mkdir(exist_ok=True)
    goals = [goal for saved in results for goal in saved.section.goals]
    lines = [
        "# Performance",
        "",
        *report_header("make bench"),
        "",
        "Each section was measured by the command below its title. Read ratios rather than times.",
        *(
            ["Commands with `--quick` measure less: those figures are less certain."]
            if any(s.quick for s in results)
            else []
        ),
        "",
        "## Aims",
        "",
        *table(
            ("", "aim", "measured", "reached"),
            ((goal.what, goal.goal, goal.measured, "yes" if goal.reached else "**no**") for goal in goals),
        ),
        *([] if all(goal.reached for goal in goals) else [*wrapped(WHY), ""]),
    ]
    for saved in results:
        lines += _section(saved, folder)
    out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _section(saved: Saved, folder: Path) -> list[str]:
    section, (before, after) = saved.section, saved.load_average
    lines = [
        f"## {section.title}",
        "",
        f"`{saved.command}`, {saved.day}, commit {saved.commit}. Load average: {before:.1f} before, {after:.1f} after.",
        "",
        *([BUSY, ""] if before > BUSY_LOAD else []),
        section.text,
        "",
    ]  # fmt: skip
    for one in section.tables:
        lines += table(one.head, one.rows)
    for plot in section.plots:
        (folder / f"{plot.name}.svg").write_text(svg(plot), encoding="utf-8")
        lines += [f"![{plot.title}]({folder.name}/{plot.name}.svg)", ""]
    return lines
