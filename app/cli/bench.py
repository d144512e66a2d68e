"""`normalcy bench`: the measurements of this project, each a report that says how it was made."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.cli.output import progress_bar, say

group = typer.Typer(help="Measure accuracy, speed, coverage and training.", no_args_is_help=True)

OutOption = Annotated[Path | None, typer.Option(help="Write the report here as Markdown; else print it.")]


@group.command()
def coverage(
    cohorts: Annotated[int, typer.Option(min=2, help="How many cohorts.")] = 40,
    size: Annotated[int, typer.Option(min=100, help="People in each.")] = 1110,
    seed: Annotated[int, typer.Option(min=0, help="Of the first cohort; the others follow.")] = 1000,
    site: Annotated[list[str] | None, typer.Option(help="SoV, AA; both if left out.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Fits at a time.")] = os.cpu_count() or 1,
    out: OutOption = None,
) -> None:
    """How often the 95 % HDI holds the true z of simulated people, over many cohorts."""
    from app.benchmark import coverage as measurement
    from app.training.recipe import Recipe

    seeds = range(seed, seed + cohorts)
    rounds = {}
    for name in site or ["SoV", "AA"]:
        with progress_bar(name) as report:
            rounds[name] = measurement.run(seeds, name, size, Recipe(), "log", processes, report)
    _publish("Coverage of the true z", measurement.render(rounds), seed, out)


def _publish(title: str, lines: Sequence[str], seed: int | None, out: Path | None) -> None:
    """The report with the stamp of how it was made, to a file or to the screen."""
    from app.benchmark.stamp import stamp

    command = "normalcy " + " ".join(sys.argv[1:])
    text = "\n".join([f"# {title}", "", *stamp(command, seed), "", *lines]).rstrip() + "\n"
    if out is None:
        say(text)
    else:
        out.write_text(text, encoding="utf-8")
        say(f"Wrote {out}.")
