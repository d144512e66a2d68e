"""`normalcy bench`: the measurements of this project. Each writes a report that says how it was made."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from app.cli.common import DEFAULT_STORE, ModelsOption, Report, errors, progress_bar, say, warn
from app.errors import NormalcyError

group = typer.Typer(
    help="Measure accuracy, speed, training, optimiser, coverage and gates, rerun the paper experiments, and compute "
    "the conformance cases.",
    no_args_is_help=True,
)

REFERENCE = Path("tests/maths/reference_hdi.csv")
CASES = Path("app/services/conformance/cases.json")
BUILD = Path("build/paper")
PAPER_REPORT = Path("docs/paper.md")
PARTIAL_REPORT = BUILD / "part.md"  # a run of some experiments does not overwrite the report of all
PROGRESS_SECONDS = 30.0  # between two lines of progress if standard error is not a terminal
OutOption = Annotated[Path | None, typer.Option(help="Write the report to this Markdown file. Default: print it.")]


@group.callback()
def require_source_tree() -> None:
    if find_spec("app.benchmark") is None:
        raise NormalcyError(
            "The benchmarks are not part of the installed package: run `normalcy bench` in a source tree of Normalcy, "
            "in the environment of `make test` or `make paper`."
        )


@group.command()
def accuracy(
    reference: Annotated[Path, typer.Option(help="The table of cases solved with mpmath.")] = REFERENCE,
    make_reference: Annotated[
        bool, typer.Option("--make-reference", help="Solve the cases again first; takes minutes.")
    ] = False,
    cases: Annotated[int, typer.Option(min=1, help="Random cases for the self-check.")] = 100_000,
    draws: Annotated[int, typer.Option(min=1000, help="Draws for the Monte Carlo comparison.")] = 10_000_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: OutOption = None,
) -> None:
    """Compare intervals and probabilities with mpmath, with a self-check, and with Monte Carlo draws."""
    from app.benchmark import accuracy as measurement
    from app.benchmark import reference as solved

    if make_reference:
        with progress_bar("mpmath") as report:
            solved.make_reference(reference, report)
    lines = measurement.render(
        measurement.check_reference(reference),
        measurement.self_check(cases, seed),
        measurement.compare_with_draws(draws, seed),
        measurement.check_table(seed=seed),
    )
    _publish("Accuracy of the interval and of the probabilities", lines, seed, out)


@group.command()
def speed(
    people: Annotated[int, typer.Option(min=1, help="People in a batch.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Interleaved rounds.")] = 7,
    site: Annotated[str, typer.Option(help="The site whose model predicts.")] = "SoV",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    models: ModelsOption = DEFAULT_STORE,
    out: OutOption = None,
) -> None:
    """Measure the time of a score, prediction included, and compare it with sampling."""
    from app.benchmark import speed as measurement
    from app.inference.executor import load_on_numpy
    from app.store import highest_version, load
    from app.training.cohort import simulate_cohort

    model = load_on_numpy(load(models, site, highest_version(models, site)))
    x = simulate_cohort(people, seed).covariates(model.card.age_transform)
    report = measurement.measure(rounds, people, model.executor, x, seed)
    answers = measurement.measure_answers(model, x, rounds, seed)
    _publish("Speed of a score", [*measurement.render(report), "", *measurement.render_answers(answers)], seed, out)


@group.command()
def training(
    table: Annotated[Path, typer.Argument(help="CSV of healthy people, as for `normalcy train`.")],
    diameter_column: Annotated[str, typer.Option(help="The column of diameters in mm.")] = "SoV_mm",
    seed: Annotated[int, typer.Option(min=0)] = 1,
    out: OutOption = None,
) -> None:
    """Measure the time of one fit, and of a whole training with cross-validation."""
    with progress_bar("loading the libraries") as report:
        from app.benchmark import training as measurement

        found = measurement.measure_training(table, diameter_column, seed, report)
    _publish("Time to train", measurement.render_training(found), seed, out)


@group.command()
def optimiser(
    table: Annotated[Path, typer.Argument(help="CSV of numbers: an index column, contexts, and last the target.")],
    steps: Annotated[int, typer.Option(min=1, help="Steps of natural gradient and Adam.")] = 40_000,
    share: Annotated[float, typer.Option(min=0.01, max=1.0, help="Share of the rows to use, drawn at random.")] = 0.8,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    out: OutOption = None,
) -> None:
    """Measure how long the staged L-BFGS takes to reach the final ELBO of the paper's optimiser."""
    import numpy as np

    from app.benchmark import training as measurement

    rows = np.loadtxt(table, delimiter=",", skiprows=1)[:, 1:]
    chosen = np.random.default_rng(seed).permutation(len(rows))[: int(share * len(rows))]
    race = measurement.measure_optimisers(rows[chosen, :-1], rows[chosen, -1], steps, seed)
    _publish("The optimiser against the paper's", measurement.render_optimisers(race), seed, out)


@group.command()
def coverage(
    cohorts: Annotated[int, typer.Option(min=2, help="How many cohorts.")] = 40,
    size: Annotated[int, typer.Option(min=100, help="People in each cohort.")] = 1110,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the first cohort; each further cohort uses the next one.")
    ] = 1000,
    site: Annotated[list[str] | None, typer.Option(help="SoV or AA. Default: both.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Fits to run in parallel.")] = os.cpu_count() or 1,
    out: OutOption = None,
) -> None:
    """Measure how often the 95% HDI contains the true z of simulated people, over many cohorts."""
    from app.benchmark import training as measurement
    from app.training.recipe import Recipe

    seeds = range(seed, seed + cohorts)
    rounds = {}
    for name in site or ["SoV", "AA"]:
        with progress_bar(name) as report:
            rounds[name] = measurement.measure_coverage(seeds, name, size, Recipe(), "log", processes, report)
    _publish("Coverage of the true z", measurement.render_coverage(rounds), seed, out)


@group.command()
def gates(
    draws: Annotated[int, typer.Option(min=100, help="Draws of held-out people, for each model and size.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    models: ModelsOption = DEFAULT_STORE,
    out: OutOption = None,
) -> None:
    """Measure how often the publication gates reject good and wrong models, and check the published ones."""
    from app.benchmark import gates as measurement
    from app.store import load, versions

    cards = [load(models, site, version).card for site, known in versions(models).items() for version in known]
    lines = measurement.render(measurement.measure(draws, seed), draws, cards)
    _publish("The gates of publication", lines, seed, out)


@group.command()
def conformance(
    models: ModelsOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The file of cases.")] = CASES,
) -> None:
    """Compute the published cases of `normalcy conformance` again, with mpmath; takes minutes."""
    from app.benchmark.conformance import make_cases
    from app.services.conformance.cases import encode_cases

    with progress_bar("mpmath") as report:
        file = make_cases(models, report)
    out.write_bytes(encode_cases(file))
    say(f"Wrote {len(file.cases)} cases to {out}.")


@group.command()
def paper(
    data: Annotated[Path | None, typer.Option(help="A folder with the five UCI files. Default: download them.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The report. Default: docs/paper.md. Figures go to a folder next to it.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only Yacht and one injection, to see that it runs.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Run only this experiment. Repeat for several.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Fits to run in parallel.")] = os.cpu_count() or 1,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, for a cluster.")] = None,
) -> None:
    """Run the paper's experiments. Experiments that are already finished are not run again."""
    from app.benchmark.paper import report as reporting
    from app.benchmark.paper.run import ALL, Order, run
    from app.benchmark.report_header import report_header

    if unknown := [name for name in only or () if name not in ALL]:
        raise typer.BadParameter(f"unknown experiment {unknown[0]}; known are {', '.join(ALL)}.")
    order = Order(data, BUILD, quick, tuple(only or ()), processes, scheduler)
    out = out or (PARTIAL_REPORT if quick or only else PAPER_REPORT)
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


def _publish(title: str, lines: Sequence[str], seed: int | None, out: Path | None) -> None:
    """Write or print the report, with a header that says how it was made."""
    from app.benchmark.report_header import report_header

    text = "\n".join([f"# {title}", "", *report_header(as_typed(sys.argv[1:]), seed), "", *lines]).rstrip() + "\n"
    if out is None:
        typer.echo(text)
    else:
        out.write_text(text, encoding="utf-8")
        say(f"Wrote {out}.")


def as_typed(words: Sequence[str]) -> str:
    """The command as typed, with file names instead of paths, so that a report contains no local paths."""
    return " ".join(["normalcy", *(word if word.startswith("-") else Path(word).name for word in words)])


@contextmanager
def _progress() -> Iterator[Report]:
    """A bar on a terminal, otherwise a line every half minute."""
    if errors.is_terminal:
        with progress_bar("loading the libraries") as report:
            yield report
    else:
        last = -PROGRESS_SECONDS

        def print_line(step: str, share: float) -> None:
            nonlocal last
            if time.monotonic() - last >= PROGRESS_SECONDS:
                last = time.monotonic()
                warn(f"{share:4.0%} {step}")

        yield print_line
