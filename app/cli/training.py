"""`normalcy cohort`, `train` and `evaluate`: from a table of people to a measured model.

cohort     simulated people, to try everything before a hospital has a table of its own
train      train a model on a table of healthy people and publish it
evaluate   measure a version on labelled people
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table as RichTable

from app.cli.common import DEFAULT_STORE, JsonOption, ModelsOption, progress_bar, say, show, warn
from app.clock import utc_now
from app.domain.card import NOT_GAUSSIAN
from app.domain.query import Convention, Edge, Modality, Phase
from app.errors import GateFailed, NotInstalled
from app.files import new_file

KernelName = Literal["rational_quadratic", "rbf", "matern52"]

cohort_group = typer.Typer(help="Simulate people whose true z is known.", no_args_is_help=True)


@cohort_group.callback()
def _group() -> None:
    """Simulate people whose true z is known."""


@cohort_group.command()
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


def train(
    table: Annotated[
        Path, typer.Argument(help="CSV of healthy people: age_years, sex, height_cm, weight_kg and a diameter.")
    ],
    site: Annotated[str, typer.Option(help="What was measured: SoV, AA, or a name of your own.")],
    version: Annotated[
        str, typer.Option(help="The new version, such as 1.0.0. Published versions are never overwritten.")
    ],
    cohort: Annotated[
        str,
        typer.Option(
            help="A short name for the cohort, shown in every response. Use `simulated` for simulated people: only "
            "this name marks the model as not for care."
        ),
    ],
    description: Annotated[str, typer.Option(help="Who they are: inclusion criteria, place, years.")] = "",
    diameter_column: Annotated[str, typer.Option(help="The column with the diameters, in mm.")] = "diameter_mm",
    edge: Annotated[Edge | None, typer.Option(help="The edges that were measured between.")] = None,
    phase: Annotated[Phase | None, typer.Option(help="The phase of the cardiac cycle.")] = None,
    modality: Annotated[Modality | None, typer.Option(help="The imaging modality.")] = None,
    kernel: Annotated[
        KernelName, typer.Option(help="The covariance function of both processes.")
    ] = "rational_quadratic",
    inducing_share: Annotated[float, typer.Option(min=0.001, max=1.0, help="Inducing points per person.")] = 0.05,
    homoscedastic: Annotated[bool, typer.Option("--homoscedastic", help="One constant spread for everybody.")] = False,
    robust: Annotated[bool, typer.Option("--robust", hidden=True, help="Not available; says why.")] = False,
    paper: Annotated[
        bool, typer.Option("--paper-optimiser", help="Natural gradient and Adam, as in the paper; slow.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for folds and inducing points.")] = 1,
    folds: Annotated[int, typer.Option(min=2, max=20, help="Number of held-out folds for calibration.")] = 5,
    models: ModelsOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Check a table, fit a model, calibrate it on held-out folds, check the gates and publish it."""
    from app.store import check_new_version
    from app.training.recipe import Recipe
    from app.training.table_checks import accepted_table

    if robust:
        raise GateFailed([NOT_GAUSSIAN, "Train without --robust, and correct the rows named by the table checks."])
    check_new_version(models, site, version)  # before minutes of work, not after
    people, warnings = accepted_table(table, diameter_column)
    for warning in warnings:
        warn(f"Warning: {warning}")
    recipe = Recipe(
        kernel=kernel,
        inducing_share=inducing_share,
        heteroscedastic=not homoscedastic,
        optimiser="paper" if paper else "lbfgs",
    )
    with progress_bar("loading the libraries") as report:
        try:
            from app.services import train as service
        except ModuleNotFoundError as error:
            raise NotInstalled(error.name or "GPflow") from error
        convention = Convention(edge, phase, modality)
        plan = service.TrainingPlan(site, version, cohort, description, convention, recipe, seed, folds)
        candidate = service.train(people, plan, utc_now(), report)
        report("publishing", 1.0)
        reference = service.publish(models, candidate)

    def print_text() -> None:
        say(f"Published {site} {version}, trained on {len(people)} people ({cohort}).")
        say(f"Digest {reference.sha256}")
        elsewhere = "" if models == DEFAULT_STORE else f" --models {models}"
        say(f"To read its card: normalcy models show {site} {version}{elsewhere}")

    show({"model": reference, "warnings": warnings, "gates": candidate.card.gates}, json, print_text)


if TYPE_CHECKING:
    from app.services.evaluate import Evaluation


def evaluate(
    table: Annotated[Path, typer.Argument(help="CSV: age_years, sex, height_cm, weight_kg, a diameter and a label.")],
    site: Annotated[str, typer.Option(help="The site of the model.")],
    version: Annotated[str | None, typer.Option(help="The version; by default the highest.")] = None,
    diameter_column: Annotated[str, typer.Option(help="The column with the diameters, in mm.")] = "diameter_mm",
    label_column: Annotated[
        str, typer.Option(help="The column with 1 for people who should score high and 0 for the others.")
    ] = "label",
    truth_column: Annotated[
        str | None, typer.Option(help="The column with the true z (mm scale) of simulated people.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="A folder for the plots, as PNG and SVG.")] = None,
    models: ModelsOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Score labelled people with a version: ROC and PR AUC, calibration, the share of each verdict, plots."""
    from app.formats import figures
    from app.inference.executor import load_on_numpy
    from app.services import evaluate as service
    from app.store import highest_version, load
    from app.training.table_checks import read_labelled

    people = read_labelled(table, diameter_column, label_column, truth_column)
    model = load_on_numpy(load(models, site, version or highest_version(models, site)))
    evaluated = service.evaluate(model, people.table, people.label, people.true_z)
    if plots:
        plots.mkdir(parents=True, exist_ok=True)
        try:
            drawn = service.plots(evaluated)
        except ModuleNotFoundError as error:
            raise NotInstalled(error.name or "matplotlib") from error
        for name, figure in drawn.items():
            for kind in ("png", "svg"):
                (plots / f"{name}.{kind}").write_bytes(figures.render(figure, kind))

    show(evaluated.evaluation, json, lambda: _print_text(evaluated.evaluation, plots))


def _print_text(found: "Evaluation", plots: Path | None) -> None:
    model = f"{found.model.site} {found.model.version} ({found.cohort})"
    say(f"{model}: {found.people} people, {found.labelled_1} labelled 1.")
    if found.discrimination:
        table = RichTable("score", "ROC AUC", "PR AUC")
        for row in found.discrimination:
            table.add_row(row.method, f"{row.roc_auc:.3f}", f"{row.pr_auc:.3f}")
        Console().print(table)
    if found.calibration:
        tails = found.calibration
        outside = f"{tails.below:.1%} lie below and {tails.above:.1%} above their 95% predictive interval"
        say(f"Of the {tails.people} people labelled 0, {outside} (ideal for healthy people: 2.5% each).")
    if found.true_z_covered is not None:
        say(f"The 95% HDI contains the true z of {found.true_z_covered:.1%} of the people.")
    for name, shares in (("Verdicts", found.verdicts), ("Positions", found.positions)):
        say(f"{name}: " + ", ".join(f"{key} {share:.1%}" for key, share in shares.items()) + ".")
    if plots:
        say(f"Plots are in {plots}.")
