"""`normalcy bench paper`: the paper's experiments, with tables and figures next to the published ones."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from app.cli.bench import as_typed
from app.cli.output import Report, errors, progress_bar, say

BUILD = Path("build/paper")
WHOLE = Path("docs/paper.md")
PART = BUILD / "part.md"  # a part of the experiments does not overwrite the report of all
QUIET_SECONDS = 30.0  # between two lines of progress where no terminal listens


def paper(
    data: Annotated[
        Path | None, typer.Option(help="A folder with the five UCI files; else they are downloaded.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The report, docs/paper.md if left out; figures go into a folder beside it.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Yacht and one injection: does it run?")] = False,
    only: Annotated[list[str] | None, typer.Option(help="One experiment by name; may be repeated.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Fits at a time.")] = os.cpu_count() or 1,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, for a cluster.")] = None,
) -> None:
    """Run the paper's experiments; what is finished already is not run again."""
    from app.benchmark.paper import report as reporting
    from app.benchmark.paper.run import ALL, Order, run
    from app.benchmark.report_header import report_header

    if unknown := [name for name in only or () if name not in ALL]:
        raise typer.BadParameter(f"unknown experiment {unknown[0]}; known are {', '.join(ALL)}.")
    order = Order(data, BUILD, quick, tuple(only or ()), processes, scheduler)
    out = out or (PART if quick or only else WHOLE)
    with _progress() as report:
        outcome = run(order, report)
    out.parent.mkdir(parents=True, exist_ok=True)
    text = reporting.render(
        outcome.measured,
        outcome.chapters,
        outcome.origins,
        report_header(as_typed(sys.argv[1:])),
        order.scope,
        out.parent / reporting.FIGURES,
    )
    out.write_text(text, encoding="utf-8")
    say(f"Wrote {out}.")


@contextmanager
def _progress() -> Iterator[Report]:
    """A bar on a terminal, else a line now and then."""
    if errors.is_terminal:
        with progress_bar("loading the libraries") as report:
            yield report
    else:
        last = -QUIET_SECONDS

        def line(what: str, share: float) -> None:
            nonlocal last
            if time.monotonic() - last >= QUIET_SECONDS:
                last = time.monotonic()
                errors.print(f"{share:4.0%} {what}", markup=False)

        yield line
