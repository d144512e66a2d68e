"""`normalcy conformance`: check a deployment with the published cases."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.common import JsonOption, counted, progress_bar, say, show, warn
from app.errors import NormalcyError

if TYPE_CHECKING:
    from app.services.conformance.run import Conformance

DOES_NOT_CONFORM, COULD_NOT_CHECK = 1, 2  # exit codes


def conformance(
    url: Annotated[str | None, typer.Option(help="The address of the service, such as https://aorta.example.")] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="A file with an API key that has the scopes score and model:read.")
    ] = None,
    cases: Annotated[
        bool, typer.Option("--cases", help="Print the cases as JSON instead, for other programs.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check over HTTP that a service keeps the contract: numbers, refusals and their order, headers, problems.

    The scores that it asks for are recorded in the audit of the service, with request ids that begin with
    `conformance-`. Exit code 0: conforms; 1: does not; 2: could not check.
    """
    from app.services.conformance.cases import cases_text, read_cases
    from app.services.conformance.run import check_conformance

    if cases:
        typer.echo(cases_text(), nl=False)
        return
    if url is None:
        raise typer.BadParameter("Give the address of the service, or --cases.", param_hint="--url")
    try:
        key = _read_key(key_file) if key_file else None
        with progress_bar("checking") as report:
            found = check_conformance(url, key, read_cases(), report)
    except NormalcyError as error:
        warn(f"normalcy: {error}")
        raise typer.Exit(COULD_NOT_CHECK) from error
    show(found, json, lambda: _print_text(found))
    if not found.conforms:
        raise typer.Exit(DOES_NOT_CONFORM)


def _read_key(file: Path) -> str:
    try:
        key = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise NormalcyError(f"{file} cannot be read.") from None
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise NormalcyError(f"{file} must contain one API key and nothing else.")
    return key


def _print_text(found: "Conformance") -> None:
    for case in found.cases:
        if case.outcome == "failed":
            say(f"Failed: {case.name}: {case.about}")
            for mistake in case.mistakes:
                say(f"  {mistake}")
    reasons = [case.reason for case in found.cases if case.outcome == "skipped"]
    for reason in dict.fromkeys(reasons):
        say(f"Skipped: {counted(reasons.count(reason), 'case')}, because {reason}.")
    for what, why in found.not_tried.items():
        say(f"Not tried: {what}: {why}")
    verdict = "conforms" if found.conforms else "does not conform"
    count = f"{found.passed} passed, {found.failed} failed, {found.skipped} skipped"
    say(f"{found.url} {verdict}: {counted(len(found.cases), 'case')}, {count}.")
