"""Every command of `normalcy`; each failure is reported as one sentence."""

import sys
from typing import Annotated, NoReturn

import typer

import app
from app.cli import audit, bench, conformance, keys, models, score, serve, training
from app.cli.common import say, warn
from app.errors import NormalcyError, NotInstalled

cli = typer.Typer(name="normalcy", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
cli.command("serve")(serve.serve)
cli.command("score")(score.score)
cli.command("train")(training.train)
cli.command("evaluate")(training.evaluate)
cli.command("conformance")(conformance.conformance)
cli.add_typer(models.group, name="models")
cli.add_typer(audit.group, name="audit")
cli.add_typer(keys.group, name="keys")
cli.add_typer(serve.db_group, name="db")
cli.add_typer(training.cohort_group, name="cohort")
cli.add_typer(bench.group, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        say(f"normalcy {app.__version__}")
        raise typer.Exit


@cli.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Is this aorta wider than it should be for this person, and how sure can we be?"""


def run() -> None:
    try:
        cli()
    except NormalcyError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", app.__name__):
            raise
        _fail(str(NotInstalled(library, "paper" if sys.argv[1:2] == ["bench"] else "train")))
    except OSError as error:  # a file or folder that is missing, exists already, or is not accessible
        _fail(f"{error.filename} cannot be used: {error.strerror}." if error.filename else str(error))


def _fail(sentence: str) -> NoReturn:
    warn(f"normalcy: {sentence}")
    sys.exit(1)
