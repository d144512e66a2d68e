"""`normalcy bench`: the measurements of this project, each a report that says how it was made."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.cli.models import DEFAULT_STORE, ModelsOption
from app.cli.output import progress_bar, say

group = typer.Typer(
    help="Measure accuracy, speed, training, optimiser, coverage and gates, and do the paper again.",
    no_args_is_help=True,
)

REFERENCE = Path("tests/maths/reference_hdi.csv")
OutOption = Annotated[Path | None, typer.Option(help="Write the report here as Markdown; else print it.")]


@group.command()
def accuracy(
    reference: Annotated[Path, typer.Option(help="The table of cases solved in mpmath.")] = REFERENCE,
    make_reference: Annotated[bool, typer.Option("--make-reference", help="Solve its cases anew; minutes.")] = False,
    cases: Annotated[int, typer.Option(min=1, help="Random cases of the self-check.")] = 100_000,
    draws: Annotated[int, typer.Option(min=1000, help="Of the Monte Carlo comparison.")] = 10_000_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: OutOption = None,
) -> None:
    """The interval and the probabilities against mpmath, against themselves, and against draws."""
    from app.benchmark import accuracy as measurement
    from app.benchmark import reference as solved

    if make_reference:
        with progress_bar("mpmath") as report:
            solved.make_reference(reference, report)
    lines = measurement.render(
        measurement.check_reference(reference),
        measurement.self_check(cases, seed),
        measurement.compare_with_draws(draws, seed),
    )
    _publish("Accuracy of the interval and of the probabilities", lines, seed, out)


@group.command()
def speed(
    people: Annotated[int, typer.Option(min=1, help="In the batch.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Interleaved rounds.")] = 7,
    site: Annotated[str, typer.Option(help="The site whose model predicts.")] = "SoV",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    models: ModelsOption = DEFAULT_STORE,
    out: OutOption = None,
) -> None:
    """What a score costs, prediction included, against sampling."""
    from app.benchmark import speed as measurement
    from app.store import highest_version, load
    from app.training.cohort import simulate_cohort

    stored = load(models, site, highest_version(models, site))
    x = simulate_cohort(people, seed).covariates(stored.card.age_transform)
    report = measurement.measure(rounds, people, stored.posterior, x, seed)
    _publish("Speed of a score", measurement.render(report), seed, out)


@group.command()
def training(
    table: Annotated[Path, typer.Argument(help="CSV of healthy people, as for `normalcy train`.")],
    diameter_column: Annotated[str, typer.Option(help="The column of diameters in mm.")] = "SoV_mm",
    seed: Annotated[int, typer.Option(min=0)] = 1,
    out: OutOption = None,
) -> None:
    """How long one fit takes, and the whole training with its folds."""
    with progress_bar("loading the libraries") as report:
        from app.benchmark import training_time as measurement

        found = measurement.measure(table, diameter_column, seed, report)
    _publish("Time to train", measurement.render(found), seed, out)


@group.command()
def optimiser(
    table: Annotated[Path, typer.Argument(help="CSV of numbers: an index column, contexts, and last the target.")],
    steps: Annotated[int, typer.Option(min=1, help="Of natural gradient and Adam.")] = 40_000,
    share: Annotated[float, typer.Option(min=0.01, max=1.0, help="Of the rows, drawn at random.")] = 0.8,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    out: OutOption = None,
) -> None:
    """The time that the staged L-BFGS takes to the ELBO at which the paper's optimiser ends."""
    import numpy as np

    from app.benchmark import optimisers as measurement

    rows = np.loadtxt(table, delimiter=",", skiprows=1)[:, 1:]
    kept = np.random.default_rng(seed).permutation(len(rows))[: int(share * len(rows))]
    race = measurement.measure(rows[kept, :-1], rows[kept, -1], steps, seed)
    _publish("The optimiser against the paper's", measurement.render(race), seed, out)


@group.command()
def coverage(
    cohorts: Annotated[int, typer.Option(min=2, help="How many cohorts.")] = 40,
    size: Annotated[int, typer.Option(min=100, help="People in each.")] = 1110,
    seed: Annotated[int, typer.Option(min=0, help="Of the first cohort; the others follow.")] = 1000,
    site: Annotated[list[str] | None, typer.Option(help="SoV, AA; both if left out.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Fits at a time.")] = os.cpu_count() or 1,
    out: OutOption = None,
) -> None:
    """How often the 95% HDI holds the true z of simulated people, over many cohorts."""
    from app.benchmark import coverage as measurement
    from app.training.recipe import Recipe

    seeds = range(seed, seed + cohorts)
    rounds = {}
    for name in site or ["SoV", "AA"]:
        with progress_bar(name) as report:
            rounds[name] = measurement.run(seeds, name, size, Recipe(), "log", processes, report)
    _publish("Coverage of the true z", measurement.render(rounds), seed, out)


@group.command()
def gates(
    draws: Annotated[int, typer.Option(min=100, help="Of held-out people, for each model and size.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    models: ModelsOption = DEFAULT_STORE,
    out: OutOption = None,
) -> None:
    """How often the gates of publication refuse good and wrong models, and what they say of the published ones."""
    from app.benchmark import gates as measurement
    from app.store import load, versions

    cards = [load(models, site, version).card for site, known in versions(models).items() for version in known]
    lines = measurement.render(measurement.measure(draws, seed), draws, cards)
    _publish("The gates of publication", lines, seed, out)


def _publish(title: str, lines: Sequence[str], seed: int | None, out: Path | None) -> None:
    """The report with the stamp of how it was made, to a file or to the screen."""
    from app.benchmark.report_header import report_header

    text = "\n".join([f"# {title}", "", *report_header(as_typed(sys.argv[1:]), seed), "", *lines]).rstrip() + "\n"
    if out is None:
        say(text)
    else:
        out.write_text(text, encoding="utf-8")
        say(f"Wrote {out}.")


def as_typed(words: Sequence[str]) -> str:
    """The command, with files by name alone: where they lie on this machine is nobody's business."""
    return " ".join(["normalcy", *(word if word.startswith("-") else Path(word).name for word in words)])
