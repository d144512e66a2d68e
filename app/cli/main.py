"""The root of the command line: every group in one place, every failure as one sentence."""

import os
import sys
from typing import Annotated, NoReturn

import typer

import app
from app.cli import activate, audit, bench, bench_paper, cohort, db, evaluate, keys, models, score, serve, train
from app.cli.output import errors, say
from app.errors import NormalcyError, NotInstalled

cli = typer.Typer(name="normalcy", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
cli.command("serve")(serve.serve)
cli.command("score")(score.score)
cli.command("train")(train.train)
cli.command("evaluate")(evaluate.evaluate)
models.group.command("activate")(activate.activate)
cli.add_typer(models.group, name="models")
cli.add_typer(audit.group, name="audit")
cli.add_typer(keys.group, name="keys")
cli.add_typer(db.group, name="db")
cli.add_typer(cohort.group, name="cohort")
bench.group.command("paper")(bench_paper.paper)
cli.add_typer(bench.group, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        say(f"normalcy {app.__version__}")
        raise typer.Exit


@cli.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    """Is this aorta wider than it should be for this person, and how sure can we be?"""


def main() -> None:
    # Before NumPy is loaded: a second BLAS thread costs time at these sizes (15 against 9 µs a patient), and one thread
    # gives the same digits everywhere.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        cli()
    except NormalcyError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == app.__name__:
            raise
        _fail(str(NotInstalled(error.name)))
    except OSError as error:  # a file or folder that is missing, in the way, or not ours
        _fail(f"{error.filename} cannot be used: {error.strerror}." if error.filename else str(error))


def _fail(sentence: str) -> NoReturn:
    errors.print(f"normalcy: {sentence}", markup=False)
    sys.exit(1)
