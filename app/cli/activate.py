"""`normalcy models activate`: make a version current."""

from typing import Annotated

import typer

from app.cli.command import principal, run
from app.cli.output import JsonOption, say, show


def activate(
    site: Annotated[str, typer.Argument(help="The site, as SoV.")],
    version: Annotated[str, typer.Argument(help="The published version, as 1.1.0.")],
    json: JsonOption = False,
) -> None:
    """Verify a version, run its golden cases, and put it on record as current. Services follow within two seconds."""
    from app.services.activate_model import activate_from_command

    made = run(lambda settings: activate_from_command(settings, site, version, principal()))

    def people() -> None:
        say(f"{site} {version} is current from {made['activated_at']} on ({made['sha256']}).")
        say("Running services take it up within two seconds; /health/ready of each says if it cannot.")

    show(made, json, people)
