"""The card of a version for people: its text, its pictures, and the history of its site."""

import asyncio
from dataclasses import dataclass

from app.charts import card_calibration, card_cohort
from app.charts.axes import Look
from app.charts.reliability_map import draw_reliability_map
from app.domain.patient import Sex
from app.errors import DatabaseUnavailable
from app.formats.card_markdown import card_markdown, history_markdown
from app.inference.executor import LoadedModel
from app.runtime.runtime import Runtime
from app.schemas.lookups import ModelHistory
from app.services.draw_reliability_map import map_data
from app.services.manage_models import activation_history
from app.training.gates import calibration_gates


@dataclass(frozen=True, slots=True)
class CardForPeople:
    markdown: str
    pictures: dict[str, str]  # SVG by the name in the text


async def describe_card(runtime: Runtime, request_id: str, model: LoadedModel, look: Look) -> CardForPeople:
    deadline = asyncio.get_running_loop().time() + runtime.settings.audit_budget_seconds
    pictures = await runtime.drawing.run(lambda: card_pictures(model, look), deadline)
    gates = calibration_gates(model.card.calibration)
    text = card_markdown(model.card, gates, pictures)
    history = history_markdown(model.ref.version, await _history(runtime, request_id, model.ref.site))
    return CardForPeople(f"{text}\n{history}", pictures)


def card_pictures(model: LoadedModel, look: Look) -> dict[str, str]:
    """Everything that the stored version allows to draw."""
    card, scaling = model.card, model.stored.posterior.scaling
    averages = map(card_cohort.Average, scaling.x_mean.tolist(), scaling.x_sd.tolist())
    maps = {f"map-{sex}": map_data(model, sex) for sex in Sex if sex in card.ranges.height_cm}
    data = card_cohort.CohortData(card, dict(zip(card.covariates, averages, strict=True)))
    return {
        "counts": card_cohort.draw_counts(data, look),
        "ranges": card_cohort.draw_ranges(data, look),
        "widths": card_cohort.draw_widths(data, look),
        **{name: draw_reliability_map(one, look) for name, one in maps.items()},
        "pit": card_calibration.draw_pit(card, look),
        "tails": card_calibration.draw_tails(card, calibration_gates(card.calibration), look),
    }


async def _history(runtime: Runtime, request_id: str, site: str) -> ModelHistory | None:
    """A card can be read while the database cannot."""
    try:
        return await activation_history(runtime, request_id, site)
    except DatabaseUnavailable:
        return None
