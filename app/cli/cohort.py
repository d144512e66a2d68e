"""`normalcy cohort`: simulated people, to try everything before a hospital has a table of its own."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.common import JsonOption, say, show
from app.files import new_file

group = typer.Typer(help="Simulate people whose true z is known.", no_args_is_help=True)


@group.callback()
def _group() -> None:
    """Simulate people whose true z is known."""


@group.command()
def simulate(
    out: Annotated[Path, typer.Option(help="The CSV file to write. An existing file is never overwritten.")],
    n: Annotated[int, typer.Option(min=2, max=1_000_000, help="How many people.")] = 1110,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same people.")] = 1,
    bicuspid: Annotated[
        bool, typer.Option("--bicuspid", help="Patients with a bicuspid aortic valve, with labels.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write a table of simulated people, with the true z of each diameter."""
    from app.training.cohort import simulate_bicuspid, simulate_cohort, to_csv

    people = simulate_bicuspid(n, seed) if bicuspid else simulate_cohort(n, seed)
    with new_file(out) as file:
        file.write(to_csv(people).encode())
    group_name = "bicuspid patients" if bicuspid else "healthy people"
    report = {"file": str(out), "people": n, "seed": seed, "bicuspid": bicuspid}
    show(report, json, lambda: say(f"Wrote {n} simulated {group_name} to {out}."))
