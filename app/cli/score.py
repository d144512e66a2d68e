"""`normalcy score`: one patient by options, or a file of many. Both are on record before a number is shown."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.command import caller, counted, run
from app.cli.output import JsonOption, Report, progress_bar, say, show
from app.settings import Settings

if TYPE_CHECKING:
    from app.services.score_file import FileRun

CONVENTION = ("edge", "phase", "modality")


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        hint = " Write a decimal point, not a comma." if "," in text else ""
        raise typer.BadParameter(f"A number is needed here.{hint}") from None


def score(
    site: Annotated[str | None, typer.Option(help="SoV, AA; in a file, for rows that name none.")] = None,
    age_years: Annotated[float | None, typer.Option(parser=number, metavar="NUMBER", help="0 to 120.")] = None,
    sex: Annotated[str | None, typer.Option(help="The reference sex: male or female.")] = None,
    height_cm: Annotated[float | None, typer.Option(parser=number, metavar="NUMBER", help="40 to 250.")] = None,
    weight_kg: Annotated[float | None, typer.Option(parser=number, metavar="NUMBER", help="1.5 to 350.")] = None,
    diameter_mm: Annotated[
        float | None, typer.Option(parser=number, metavar="NUMBER", help="3 to 120; from age 5 on at least 10.")
    ] = None,
    threshold: Annotated[
        list[float] | None, typer.Option(parser=number, metavar="NUMBER", help="2 if left out; repeat for several.")
    ] = None,
    hdi_probability: Annotated[
        float | None, typer.Option(parser=number, metavar="NUMBER", help="0.5 to 0.99; 0.95 if left out.")
    ] = None,
    measurement_sd_mm: Annotated[
        float | None, typer.Option(parser=number, metavar="NUMBER", help="Observer error of this reading, 0 to 5.")
    ] = None,
    edge: Annotated[str | None, typer.Option(help="leading, inner or outer.")] = None,
    phase: Annotated[str | None, typer.Option(help="end-diastole or mid-systole.")] = None,
    modality: Annotated[str | None, typer.Option(help="TTE, CT or MR.")] = None,
    model_version: Annotated[str | None, typer.Option(help="The current one if left out.")] = None,
    include_unreliable: Annotated[
        bool, typer.Option("--include-unreliable", help="Numbers even where unreliable.")
    ] = False,
    subject: Annotated[str | None, typer.Option(help="Your own patient reference; recorded as a keyed hash.")] = None,
    source: Annotated[Path | None, typer.Option("--in", help="A table of readings, .csv or .parquet.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where its scores go, .csv or .parquet; never overwritten.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Score one reading, given by options, or every row of --in into --out."""
    given: dict[str, Any] = {
        "age_years": age_years,
        "sex": sex,
        "height_cm": height_cm,
        "weight_kg": weight_kg,
        "diameter_mm": diameter_mm,
        "thresholds": threshold or None,
        "hdi_probability": hdi_probability,
        "measurement_sd_mm": measurement_sd_mm,
        "convention": _stated(edge, phase, modality),
        "model_version": model_version,
        "include_unreliable": include_unreliable or None,
        "subject": subject,
    }
    body = {name: value for name, value in given.items() if value is not None}
    if source is None and out is None:
        _score_one(site, body, json)
    elif source is None or out is None or body:
        raise typer.BadParameter("a file takes --in and --out, and of the other options --site alone")
    else:
        _score_file(source, out, site, json)


def _stated(*parts: str | None) -> dict[str, str] | None:
    return {name: part for name, part in zip(CONVENTION, parts, strict=True) if part is not None} or None


def _score_one(site: str | None, body: dict[str, Any], json: bool) -> None:
    if site is None:
        raise typer.BadParameter("the site of the reading, as SoV", param_hint="--site")
    from app.runtime.command import command_runtime
    from app.schemas.answers import ScoreResponse
    from app.schemas.errors import parse
    from app.schemas.requests import ScoreRequest
    from app.services.score_measurements import score_measurement

    request = parse(ScoreRequest, body).for_site(site)

    async def work(settings: Settings) -> ScoreResponse:
        async with command_runtime(settings, "score") as service:
            await service.poller.start()
            return await score_measurement(service, caller(settings, "score"), request)

    answer = run(work)

    def people() -> None:
        say(answer.summary.clinician)
        reasons, advisories = answer.reliability.reasons, answer.advisories
        for message in (*(reason.message for reason in reasons), *(advisory.message for advisory in advisories)):
            say(f"- {message}")
        model = answer.provenance.model
        say(f"{model.site} {model.version}; on record as request {answer.request_id}.")

    show(answer, json, people)


def _score_file(source: Path, out: Path, site: str | None, json: bool) -> None:
    from app.runtime.command import command_runtime
    from app.services.score_file import score_file

    async def work(settings: Settings, report: Report) -> "FileRun":
        async with command_runtime(settings, "score") as service:
            await service.poller.start()
            return await score_file(service, caller(settings, "score"), source, out, site, report)

    with progress_bar("reading") as report:
        done = run(lambda settings: work(settings, report))

    def people() -> None:
        say(f"Scored {done.succeeded} of {counted(done.rows, 'reading')} into {out}.")
        say(f"On record as request {done.request_id}.")
        if done.failed:
            say(f"{counted(done.failed, 'row')} without an answer: the column `errors` says why.")

    show(done, json, people)
