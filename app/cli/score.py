"""`normalcy score`: one patient by options, or a file of many. Both are recorded before a number is shown.

The options of one patient are derived from the fields of the request.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.common import JsonOption, caller, counted, row_progress_bar, run, say, show, warn
from app.files import decimal_number, has_decimal_comma
from app.schemas.fields import FieldSpec, leaves, nested, spec
from app.schemas.requests import ScoreRequest
from app.schemas.validation import COMMA_HINT
from app.settings import Settings

if TYPE_CHECKING:
    from app.services.score_file.run import FileOrder, FileRun

TEMPLATE = Path("measurements.csv")


def number(text: str) -> float:
    value = decimal_number(text)
    if value is None:
        raise typer.BadParameter(f"A number is needed here.{COMMA_HINT if has_decimal_comma(text) else ''}")
    return value


def parameter_name(path: str, field: FieldSpec) -> str:
    """--edge for convention.edge; --threshold, which can be repeated, for thresholds."""
    name = path.rpartition(".")[2]
    return name.removesuffix("s") if field.kind == "array" else name


FIELDS = dict(leaves(spec(ScoreRequest).fields.values()))  # by their paths in the request
PATHS = {parameter_name(path, field): path for path, field in FIELDS.items()}


def help_text(field: FieldSpec) -> str:
    """The description, the range or the choices, and the default."""
    parts = [field.description.removesuffix(".")]
    if field.kind == "number":
        parts.append(f"{field.low:g} to {field.high:g}")
    if field.choices:
        parts.append(" or ".join(field.choices))
    if field.element is not None:
        parts.append("repeat for several")
    default = field.element.default if field.element is not None else field.default
    if default is not None and field.kind != "flag":
        parts.append(f"{default if isinstance(default, str) else f'{default:g}'} if left out")
    return "; ".join(parts) + "."


def parameter(name: str, field: FieldSpec) -> inspect.Parameter:
    """One field of the request as a parameter that typer understands. Not given: None, or False for a flag."""
    kind: Any = bool if field.kind == "flag" else str | None
    details: dict[str, Any] = {}
    if (field.element or field).kind == "number":
        kind = list[float] | None if field.element else float | None
        details = {"parser": number, "metavar": "NUMBER"}
    annotation = Annotated[kind, typer.Option(f"--{name.replace('_', '-')}", help=help_text(field), **details)]
    default = False if field.kind == "flag" else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_request_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command, which takes **fields, an option for every field of the request."""
    own = [one for one in inspect.signature(command).parameters.values() if one.kind is not one.VAR_KEYWORD]
    options = [parameter(name, FIELDS[path]) for name, path in PATHS.items()]
    parameters = [own[0], *options, *own[1:]]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


@with_request_options
def score(
    *,
    site: Annotated[
        str | None,
        typer.Option(help="The site of the measurement, for example SoV; with --in, for rows without a site."),
    ] = None,
    source: Annotated[Path | None, typer.Option("--in", help="A table of measurements, .csv or .parquet.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where its scores go, .csv or .parquet; never overwritten.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="With --in: how many processes score.")] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --in: the scheduler of a Dask cluster, such as tcp://10.0.0.5:8786, whose workers score.",
        ),
    ] = None,
    part_rows: Annotated[
        int | None, typer.Option(min=1, help="With --in: rows of a part, which is scored and saved as a whole.")
    ] = None,
    template: Annotated[
        bool,
        typer.Option(
            "--template", help=f"Write an example of a table of measurements to --out, or to {TEMPLATE}, and stop."
        ),
    ] = False,
    json: JsonOption = False,
    **fields: Any,
) -> None:
    """Score one measurement, given by options, or every row of --in into --out.

    A run of a file that was stopped goes on where it stopped when the same command is given again.
    """
    body = nested({PATHS[name]: value for name, value in fields.items() if _is_given(value)})
    if template:
        _write_template(out or TEMPLATE)
    elif source is None and out is None:
        _score_one(site, body, json)
    elif source is None or out is None or body:
        raise typer.BadParameter(
            "To score a file, give both --in and --out; options of a single measurement are not allowed beside them."
        )
    elif scheduler is not None and workers > 1:
        raise typer.BadParameter("Give --workers or --scheduler, not both: a cluster has its own workers.")
    else:
        from app.services.score_file.run import PART_ROWS, FileOrder

        _score_file(FileOrder(source, out, site, part_rows or PART_ROWS, workers, scheduler), json)


def _is_given(value: object) -> bool:
    """Zero is given: an age of 0 is a newborn's."""
    return value is not None and value is not False and value != []


def _score_one(site: str | None, body: dict[str, Any], json: bool) -> None:
    if site is None:
        raise typer.BadParameter("Give the site of the measurement, for example SoV.", param_hint="--site")
    from app.runtime.command import command_runtime
    from app.schemas.answers import ScoreResponse
    from app.schemas.validation import parse
    from app.services.score_measurements import score_measurement

    request = parse(ScoreRequest, body).for_site(site)

    async def work(settings: Settings) -> ScoreResponse:
        async with command_runtime(settings, "score") as service:
            await service.poller.start()
            return await score_measurement(service, caller("score"), request)

    answer = run(work)

    def people() -> None:
        say(answer.summary.clinician)
        reasons, advisories = answer.reliability.reasons, answer.advisories
        for message in (*(reason.message for reason in reasons), *(advisory.message for advisory in advisories)):
            say(f"- {message}")
        model = answer.provenance.model
        say(f"{model.site} {model.version}; recorded as request {answer.request_id}.")

    show(answer, json, people)


def _score_file(order: "FileOrder", json: bool) -> None:
    from app.runtime.command import command_runtime
    from app.services.score_file.run import score_file

    async def work(settings: Settings, report: Callable[[int, int], None]) -> "FileRun":
        async with command_runtime(settings, "score") as service:
            await service.poller.start()
            return await score_file(service, caller("score"), order, report)

    try:
        with row_progress_bar("scoring") as report:
            done = run(lambda settings: work(settings, report))
    except KeyboardInterrupt:
        warn("normalcy: Stopped. Parts that are finished are saved: run the same command again to go on from there.")
        raise

    def people() -> None:
        say(f"Scored {done.succeeded} of {counted(done.rows, 'measurement')} into {order.out}.")
        if done.failed:
            say(f"{counted(done.failed, 'row')} without a score: {order.errors_out} says why.")
        say(f"Recorded as request {done.request_id}.")

    show(done, json, people)


def _write_template(out: Path) -> None:
    from app.files import new_file
    from app.formats.score_template import EXAMPLE, write_template
    from app.formats.table_files import check_suffixes

    check_suffixes(out)
    with new_file(out) as file:
        write_template(out, file)
    say(f"Wrote an example of {counted(len(EXAMPLE), 'measurement')} to {out}.")
    say(f"To score it: normalcy score --in {out} --out scores{out.suffix}")
