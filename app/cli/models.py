"""`normalcy models`: list, show, verify and activate published versions."""

import errno
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli.common import DEFAULT_STORE, JsonOption, ModelsOption, principal, run, say, show

group = typer.Typer(help="List, show, verify and activate published models.", no_args_is_help=True)

DIGEST_LENGTH = 16  # characters shown in the table; enough to tell versions apart


@group.command("list")
def list_versions(models: ModelsOption = DEFAULT_STORE, json: JsonOption = False) -> None:
    """List every published version with its cohort and digest."""
    from app.store import load, verify

    if not models.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(models))
    rows: list[dict[str, str | int]] = []
    for found in verify(models):
        row: dict[str, str | int] = {"site": found.site, "version": found.version}
        if found.error:
            rows.append(row | {"cohort": "", "people": "", "created_at": "", "sha256": f"refused: {found.error}"})
            continue
        card = load(models, found.site, found.version).card
        rows.append(row | {"cohort": card.cohort.name, "people": card.cohort.size, "created_at": card.created_at,
                           "sha256": found.sha256 or ""})  # fmt: skip

    def print_text() -> None:
        if not rows:
            say(f"No version is published in {models}.")
            return
        table = Table(*rows[0])
        for row in rows:
            day, digest = str(row["created_at"])[:10], str(row["sha256"])
            short = digest if digest.startswith("refused") else digest[:DIGEST_LENGTH]
            table.add_row(*map(str, (row | {"created_at": day, "sha256": short}).values()))
        Console().print(table)

    show(rows, json, print_text)


@group.command("show")
def show_card(
    site: Annotated[str, typer.Argument(help="The site, for example SoV.")],
    version: Annotated[str | None, typer.Argument(help="The version. Default: the highest.")] = None,
    models: ModelsOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Show the model card of a version."""
    from rich.markdown import Markdown  # brings a highlighter for every language

    from app.formats.card_markdown import card_markdown
    from app.store import highest_version, load
    from app.training.calibration import calibration_gates

    model = load(models, site, version or highest_version(models, site))
    text = card_markdown(model.card, calibration_gates(model.card.calibration))
    show({"sha256": model.ref.sha256, "card": model.card}, json, lambda: Console().print(Markdown(text)))


@group.command()
def verify(
    site: Annotated[str | None, typer.Argument(help="The site. Default: every site.")] = None,
    version: Annotated[str | None, typer.Argument(help="The version. Default: every version.")] = None,
    models: ModelsOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Check the files of each version against their digests and run its golden cases.

    Exit code 1 if a version is damaged or none is published.
    """
    from app.services.manage_models import verify_models

    results = verify_models(models, site, version)

    def print_text() -> None:
        for result in results:
            say(f"{result.site} {result.version}: {result.finding}")
        if not results:
            say(f"No version is published in {models}.")

    show(results, json, print_text)
    if not results or not all(result.intact for result in results):
        raise typer.Exit(1)


@group.command()
def activate(
    site: Annotated[str, typer.Argument(help="The site, for example SoV.")],
    version: Annotated[str, typer.Argument(help="The published version, for example 1.1.0.")],
    json: JsonOption = False,
) -> None:
    """Verify a version and make it the current one. The activation is recorded in the audit.

    Running services switch to it within two seconds.
    """
    from app.services.manage_models import activate_from_command

    activation = run(lambda settings: activate_from_command(settings, site, version, principal()))

    def print_text() -> None:
        say(f"{site} {version} is now the current version, since {activation.activated_at}.")
        say(f"Digest {activation.sha256}")
        say("Running services switch to it within two seconds. If one cannot, its /health/ready says why.")

    names = ("site", "version", "sha256", "activated_at", "activated_by")
    show({name: getattr(activation, name) for name in names}, json, print_text)
