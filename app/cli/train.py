"""`normalcy train`: train a model on a table of healthy people and publish it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.common import DEFAULT_STORE, JsonOption, ModelsOption, progress_bar, say, show, warn
from app.domain.card import NOT_GAUSSIAN
from app.domain.convention import Convention, Edge, Modality, Phase
from app.errors import GateFailed, NotInstalled

KernelName = Literal["rational_quadratic", "rbf", "matern52"]


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
        candidate = service.train(people, plan, datetime.now(UTC), report)
        report("publishing", 1.0)
        reference = service.publish(models, candidate)

    def print_text() -> None:
        say(f"Published {site} {version}, trained on {len(people)} people ({cohort}).")
        say(f"Digest {reference.sha256}")
        elsewhere = "" if models == DEFAULT_STORE else f" --models {models}"
        say(f"To read its card: normalcy models show {site} {version}{elsewhere}")

    show({"model": reference, "warnings": warnings, "gates": candidate.card.gates}, json, print_text)
