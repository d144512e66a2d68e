"""`normalcy evaluate`: measure a version on labelled people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from app.cli.common import DEFAULT_STORE, JsonOption, ModelsOption, say, show
from app.errors import NotInstalled

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
