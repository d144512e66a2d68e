"""Draw how sure a model is over age and body size. No patient is involved, so nothing is recorded."""

from app.charts.axes import Look
from app.charts.reliability_map import MapData, draw_reliability_map
from app.domain.patient import Sex
from app.errors import InvalidInput
from app.formats.response import provenance
from app.formats.rounding import significant
from app.inference.executor import LoadedModel
from app.inference.reliability_map import reliability_map
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.charts import ReliabilityMap
from app.schemas.validation import field_error
from app.services.score_measurements import find_model

NOBODY = "sex must be one of which people were in the training cohort."


async def draw_map(
    runtime: Runtime, caller: Caller, site: str, version: str, sex: Sex, diameter_mm: float | None, look: Look
) -> ReliabilityMap:
    """The data with the picture."""
    model = await find_model(runtime, caller, site, version)
    data = await runtime.drawing.run(lambda: map_data(model, sex, diameter_mm), caller.deadline)
    picture = await runtime.drawing.run(lambda: draw_reliability_map(data, look), caller.deadline)
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
    look: Look,
    scale: int | None = None,
) -> bytes:
    """The picture alone: SVG, or PNG with so many pixels for each unit of length."""
    model = await find_model(runtime, caller, site, version)
    svg = await runtime.drawing.run(
        lambda: draw_reliability_map(map_data(model, sex, diameter_mm), look), caller.deadline
    )
    return svg.encode() if scale is None else await runtime.rasteriser.png(svg, scale, caller.deadline)


def map_data(model: LoadedModel, sex: Sex, diameter_mm: float | None = None) -> MapData:
    """Raises InvalidInput if nobody of this sex was in the training cohort."""
    if sex.value not in model.card.ranges.height_cm:
        raise InvalidInput([field_error("not_a_choice", "sex", NOBODY)])
    rounded = None if diameter_mm is None else significant(diameter_mm)
    return MapData(model.ref.site, sex.value, rounded, reliability_map(model, sex, diameter_mm), model.provenance)
