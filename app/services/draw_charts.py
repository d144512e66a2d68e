"""Draw a patient among reference people. A response with a score leaves only after its records are committed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from app.charts.axes import ChartStyle
from app.charts.density import DensityData, draw_density, draw_no_density
from app.charts.reference import ReferenceData, draw_reference
from app.charts.visits import VisitPoint, VisitsData, draw_visits
from app.domain.score import Finding, deciding_finding
from app.errors import InvalidInput
from app.formats.response import BODY, patient_input, provenance, score_response
from app.formats.rounding import significant
from app.inference.answer_columns import ScoredAnswer
from app.inference.executor import LoadedModel
from app.inference.reference_curves import assess_context, reference_curves, score_density
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.answers import Provenance, Reliability, ScoreResponse
from app.schemas.charts import (
    ChartInput,
    ChartMeasurement,
    ChartResponse,
    Curves,
    HdiMm,
    Pictures,
    ScoreDensity,
    VisitResult,
    Visits,
)
from app.schemas.requests import ChartRequest, SiteRequest
from app.schemas.validation import field_error
from app.services.score_measurements import (
    ResolvedRequest,
    count_score,
    find_model,
    make_result,
    new_record,
    write_records,
)

PictureName = Literal["reference", "density", "visits"]

NOTE = (
    "Exploratory: differences between visits include errors of measurement, and the scores of one patient share the "
    "errors of the model."
)


@dataclass(frozen=True, slots=True)
class MeasurementResult:
    """One measurement of the request, scored, with the response that it alone would get."""

    item: int | None  # index of the visit; None: the measurement of the request itself
    resolved: ResolvedRequest
    scored: ScoredAnswer
    response: ScoreResponse

    @property
    def drawn_reliability(self) -> Reliability:
        return _deciding_first(self.response.reliability, self.scored.findings)

    @property
    def hdi_mm(self) -> HdiMm | None:
        """The ends of the interval on the axis of diameters."""
        score, reference = self.response.score, self.response.reference
        if score is None or reference is None:
            return None
        expected, sd = reference.expected_diameter_mm, reference.aleatoric_sd_mm
        return HdiMm(significant(expected + score.hdi.low * sd), significant(expected + score.hdi.high * sd))


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart request with its scores: everything that drawing needs."""

    request_id: str
    model: LoadedModel
    request: ChartRequest
    results: tuple[MeasurementResult, ...]
    provenance: Provenance

    @property
    def main(self) -> MeasurementResult | None:
        return next((each for each in self.results if each.item is None), None)

    @property
    def visits(self) -> list[MeasurementResult]:
        return [each for each in self.results if each.item is not None]


async def draw_chart(
    runtime: Runtime, caller: Caller, site: str, request: ChartRequest, style: ChartStyle
) -> ChartResponse:
    """All data, with all pictures."""
    now = runtime.clock()
    chart = await _score(runtime, caller, site, request, now)
    response = await runtime.drawing.run(caller.principal, lambda: _response(chart, style), caller.deadline)
    await _record(runtime, caller, chart, now)
    return response


async def draw_picture(
    runtime: Runtime,
    caller: Caller,
    site: str,
    request: ChartRequest,
    picture: PictureName,
    style: ChartStyle,
    scale: int | None = None,
) -> bytes:
    """One picture: SVG, or PNG with so many pixels for each unit of length. Raises InvalidInput without its data."""
    _check_drawable(request, picture)
    now = runtime.clock()
    chart = await _score(runtime, caller, site, request, now)
    svg = await runtime.drawing.run(caller.principal, lambda: _picture(chart, picture, style), caller.deadline)
    if scale is None:
        drawn = svg.encode()
    else:
        drawn = await runtime.rasteriser.png(caller.principal, svg, scale, caller.deadline)
    await _record(runtime, caller, chart, now)
    return drawn


def _check_drawable(request: ChartRequest, picture: PictureName) -> None:
    if picture == "density" and not request.has_diameter:
        raise InvalidInput([field_error("missing", "diameter_mm", "diameter_mm is required for the picture density.")])
    if picture == "visits" and not request.visits:
        raise InvalidInput([field_error("missing", "visits", "visits is required for the picture visits.")])


async def _score(runtime: Runtime, caller: Caller, site: str, request: ChartRequest, now: datetime) -> Chart:
    """Every measurement, by the same model, exactly as it would be scored alone."""
    model = await find_model(runtime, caller, site, request.model_version)
    main = request.site_request(site)
    asked: list[tuple[int | None, SiteRequest]] = [(None, main)] if main else []
    asked += enumerate(request.visit_requests(site))
    scored = await asyncio.gather(*(runtime.batcher.submit(model, each.query) for _, each in asked))
    measured = []
    for (item, each), found in zip(asked, scored, strict=True):
        resolved = ResolvedRequest(model, each)
        response = score_response(caller.request_id, make_result(runtime, resolved, found, now))
        measured.append(MeasurementResult(item, resolved, found, response))
    made_by = provenance(model.provenance, runtime.service_info, now)
    return Chart(caller.request_id, model, request, tuple(measured), made_by)


async def _record(runtime: Runtime, caller: Caller, chart: Chart, now: datetime) -> None:
    """As many records as measurements; without any there is nothing to record."""
    if not chart.results:
        return
    records = [new_record(runtime, caller, each.resolved, each.response, now, each.item) for each in chart.results]
    await write_records(runtime, caller, records)
    for each in chart.results:
        count_score(runtime, each.resolved, each.scored)


def _response(chart: Chart, style: ChartStyle) -> ChartResponse:
    reference, density, main = _reference_data(chart), _density(chart), chart.main
    return ChartResponse(
        request_id=chart.request_id,
        site=chart.model.ref.site,
        input=reference.patient,
        reliability=_reliability(chart)[0],
        measurement=reference.measurement,
        curves=reference.curves,
        density=density,
        visits=Visits(NOTE, tuple(map(_visit, chart.visits))) if chart.visits else None,
        pictures=Pictures(
            draw_reference(reference, style),
            draw_density(_density_data(chart, main, density), style) if main and density else None,
            draw_visits(_visits_data(chart), style) if chart.visits else None,
        ),
        provenance=chart.provenance,
    )


def _picture(chart: Chart, picture: PictureName, style: ChartStyle) -> str:
    if picture == "reference":
        return draw_reference(_reference_data(chart), style)
    if picture == "visits":
        return draw_visits(_visits_data(chart), style)
    density, main = _density(chart), chart.main
    if main is None or density is None:
        reliability = _deciding_first(*_reliability(chart))
        return draw_no_density(chart.model.ref.site, reliability, chart.model.provenance, style)
    return draw_density(_density_data(chart, main, density), style)


def _reference_data(chart: Chart) -> ReferenceData:
    main, model = chart.main, chart.model
    patient = chart.request.to_patient()
    return ReferenceData(
        site=model.ref.site,
        patient=ChartInput(
            **patient_input(patient), diameter_mm=main.response.input.diameter_mm if main is not None else None
        ),
        curves=_curves(chart),
        measurement=_measurement(main) if main is not None else None,
        reliability=_deciding_first(*_reliability(chart)),
        model=model.provenance,
    )


def _deciding_first(reliability: Reliability, findings: Sequence[Finding]) -> Reliability:
    """For pictures, which have room for one reason: the one that the sentences give comes first."""
    deciding = deciding_finding(findings)
    if deciding is None:
        return reliability
    reasons = sorted(reliability.reasons, key=lambda reason: reason.message != deciding.message)
    return replace(reliability, reasons=tuple(reasons))


def _reliability(chart: Chart) -> tuple[Reliability, tuple[Finding, ...]]:
    """Of the request's own context, also without a diameter, and what led to it."""
    if chart.main is not None:
        return chart.main.response.reliability, chart.main.scored.findings
    request = chart.request
    return assess_context(chart.model, request.to_patient(), request.convention.to_convention())


def _curves(chart: Chart) -> Curves | None:
    request = chart.request
    return reference_curves(
        chart.model, request.to_patient(), request.convention.to_convention(), tuple(request.thresholds)
    )


def _measurement(measured: MeasurementResult) -> ChartMeasurement:
    return ChartMeasurement(**_answer(measured), summary=measured.response.summary, hdi_mm=measured.hdi_mm)


def _visit(measured: MeasurementResult) -> VisitResult:
    response = measured.response
    return VisitResult(input=response.input, **_answer(measured), summary=response.summary, hdi_mm=measured.hdi_mm)


def _answer(measured: MeasurementResult) -> dict[str, Any]:
    return {name: getattr(measured.response, name) for name in BODY}


def _density(chart: Chart) -> ScoreDensity | None:
    """None without a score: none was requested, or it is withheld."""
    main = chart.main
    if main is None:
        return None
    answer, with_error = main.scored.answer, main.scored.answer.score_with_measurement_error
    if answer.score is None or answer.reference is None:
        return None
    blurred = with_error.hdi if with_error is not None else None
    return score_density(main.resolved.request.query, answer.reference, answer.score.hdi, blurred)


def _density_data(chart: Chart, main: MeasurementResult, density: ScoreDensity) -> DensityData:
    response = main.response
    with_error = response.score_with_measurement_error
    if response.score is None:
        raise AssertionError("There is a density, so there is a score.")
    blurred = with_error.hdi if with_error is not None else None
    return DensityData(
        chart.model.ref.site, response.score, density, blurred, main.drawn_reliability, chart.model.provenance
    )


def _visits_data(chart: Chart) -> VisitsData:
    points = [
        VisitPoint(
            each.response.input.age_years,
            each.response.input.diameter_mm,
            each.response.score,
            each.item is None,
            each.drawn_reliability,
        )
        for each in chart.results
    ]
    return VisitsData(chart.model.ref.site, points, NOTE, chart.model.provenance)
