"""`normalcy models`: what is in the model store, and whether it is what it says."""

import errno
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from app.cli.output import JsonOption, say, show

group = typer.Typer(help="List, show, verify and activate the published models.", no_args_is_help=True)

ModelsOption = Annotated[Path, typer.Option("--models", envvar="NORMALCY_MODELS_DIR", help="The model store.")]
DEFAULT_STORE = Path("models_store")


@group.command("list")
def list_versions(models: ModelsOption = DEFAULT_STORE, json: JsonOption = False) -> None:
    """Every published version, the cohort that it was trained on, and its digest."""
    from app.store import load, verify

    if not models.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(models))
    rows: list[dict[str, str | int]] = []
    for found in verify(models):
        row: dict[str, str | int] = {"site": found.site, "version": found.version}
        if found.refused:
            rows.append(row | {"cohort": "", "people": "", "created_at": "", "sha256": f"refused: {found.refused}"})
            continue
        card = load(models, found.site, found.version).card
        rows.append(row | {"cohort": card.cohort.name, "people": card.cohort.size, "created_at": card.created_at,
                           "sha256": found.sha256 or ""})  # fmt: skip

    def people() -> None:
        if not rows:
            say(f"No version is published in {models}.")
            return
        table = Table(*rows[0])
        for row in rows:
            day, digest = str(row["created_at"])[:10], str(row["sha256"])
            short = digest if digest.startswith("refused") else digest[:16]  # enough to tell versions apart
            table.add_row(*map(str, (row | {"created_at": day, "sha256": short}).values()))
        Console().print(table)

    show(rows, json, people)


@group.command("show")
def show_card(
    site: Annotated[str, typer.Argument(help="The site, as SoV.")],
    version: Annotated[str | None, typer.Argument(help="The version; the highest if left out.")] = None,
    models: ModelsOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """The model card of a version."""
    from app.formats.card_markdown import card_markdown
    from app.store import highest_version, load
    from app.training.gates import calibration_gates

    model = load(models, site, version or highest_version(models, site))
    answer = {"sha256": model.ref.sha256, "card": model.card}
    text = card_markdown(model.card, calibration_gates(model.card.calibration))
    show(answer, json, lambda: Console().print(Markdown(text)))


@group.command()
def verify(
    site: Annotated[str | None, typer.Argument(help="The site; every site if left out.")] = None,
    version: Annotated[str | None, typer.Argument(help="The version; every version if left out.")] = None,
    models: ModelsOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Check every byte against its digest and run the golden cases. Exit 1 if a version is refused or none is there."""
    from app.services.verify_models import verify_models

    results = verify_models(models, site, version)

    def people() -> None:
        for result in results:
            say(f"{result.site} {result.version}: {result.finding}")
        if not results:
            say(f"No version is published in {models}.")

    show(results, json, people)
    if not results or not all(result.intact for result in results):
        raise typer.Exit(1)
