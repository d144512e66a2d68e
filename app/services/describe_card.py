"""The card of a version for people: its text, its pictures, and the history of its site.

One of the pictures, how sure the model is over age and body size, is also drawn by itself. No patient is involved, so
nothing is recorded.
"""

from dataclasses import dataclass

from app.charts import card as card_charts
from app.charts.axes import ChartStyle
from app.domain.patient import Sex
from app.errors import DatabaseUnavailable, InvalidInput
from app.formats.card_markdown import card_markdown, history_markdown
from app.formats.response import provenance
from app.formats.rounding import significant
from app.inference.executor import LoadedModel
from app.inference.reference_curves import reliability_map
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.charts import ReliabilityMap
from app.schemas.lookups import ModelHistory
from app.schemas.validation import field_error
from app.services.manage_models import activation_history
from app.services.score_measurements import find_model
from app.training.calibration import calibration_gates

NOBODY = "sex must be one of which people were in the training cohort."


@dataclass(frozen=True, slots=True)
class CardForPeople:
    markdown: str
    pictures: dict[str, str]  # SVG by the name in the text


async def describe_card(runtime: Runtime, caller: Caller, model: LoadedModel, style: ChartStyle) -> CardForPeople:
    pictures = await runtime.drawing.run(caller.principal, lambda: card_pictures(model, style), caller.deadline)
    gates = calibration_gates(model.card.calibration)
    text = card_markdown(model.card, gates, pictures)
    history = history_markdown(model.ref.version, await _history(runtime, caller.request_id, model.ref.site))
    return CardForPeople(f"{text}\n{history}", pictures)


def card_pictures(model: LoadedModel, style: ChartStyle) -> dict[str, str]:
    """Everything that the stored version allows to draw."""
    card, scaling = model.card, model.stored.posterior.scaling
    averages = map(card_charts.Average, scaling.x_mean.tolist(), scaling.x_sd.tolist())
    maps = {f"map-{sex}": map_data(model, sex) for sex in Sex if sex in card.ranges.height_cm}
    data = card_charts.CohortData(card, dict(zip(card.covariates, averages, strict=True)))
    return {
        "counts": card_charts.draw_counts(data, style),
        "ranges": card_charts.draw_ranges(data, style),
        "widths": card_charts.draw_widths(data, style),
        **{name: card_charts.draw_reliability_map(one, style) for name, one in maps.items()},
        "pit": card_charts.draw_pit(card, style),
        "tails": card_charts.draw_tails(card, calibration_gates(card.calibration), style),
    }


async def _history(runtime: Runtime, request_id: str, site: str) -> ModelHistory | None:
    """A card can be read while the database cannot."""
    try:
        return await activation_history(runtime, request_id, site)
    except DatabaseUnavailable:
        return None


async def draw_map(
    runtime: Runtime, caller: Caller, site: str, version: str, sex: Sex, diameter_mm: float | None, style: ChartStyle
) -> ReliabilityMap:
    """The data with the picture."""
    model = await find_model(runtime, caller, site, version)
    name, deadline = caller.principal, caller.deadline
    data = await runtime.drawing.run(name, lambda: map_data(model, sex, diameter_mm), deadline)
    picture = await runtime.drawing.run(name, lambda: card_charts.draw_reliability_map(data, style), deadline)
    return ReliabilityMap(
        request_id=caller.request_id,
        site=model.ref.site,
        sex=sex.value,
        diameter_mm=data.diameter_mm,
        quantity="context_hdi_width" if diameter_mm is None else "hdi_width",
        grid=data.grid,
        picture=picture,
        provenance=provenance(model.provenance, runtime.service_info, runtime.clock()),
    )


async def draw_map_picture(
    runtime: Runtime,
    caller: Caller,
    site: str,
    version: str,
    sex: Sex,
    diameter_mm: float | None,
    style: ChartStyle,
    scale: int | None = None,
) -> bytes:
    """The picture alone: SVG, or PNG with so many pixels for each unit of length."""
    model = await find_model(runtime, caller, site, version)
    name, deadline = caller.principal, caller.deadline
    svg = await runtime.drawing.run(
        name, lambda: card_charts.draw_reliability_map(map_data(model, sex, diameter_mm), style), deadline
    )
    return svg.encode() if scale is None else await runtime.rasteriser.png(name, svg, scale, deadline)


def map_data(model: LoadedModel, sex: Sex, diameter_mm: float | None = None) -> card_charts.MapData:
    """Raises InvalidInput if nobody of this sex was in the training cohort."""
    if sex.value not in model.card.ranges.height_cm:
        raise InvalidInput([field_error("not_a_choice", "sex", NOBODY)])
    rounded = None if diameter_mm is None else significant(diameter_mm)
    return card_charts.MapData(
        model.ref.site, sex.value, rounded, reliability_map(model, sex, diameter_mm), model.provenance
    )
