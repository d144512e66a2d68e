"""Forty varied patients in words. After a change of the words:

    python -m tests.formats.texts --update

writes texts.md again; then read every text aloud, as a cardiologist, as a patient and as a parent, before it is
committed.
"""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from app.formats.summaries import ScoredMeasurement, summarise
from app.inference.executor import LoadedModel, load_on_numpy
from app.inference.scoring import score_with_tails
from app.schemas.answers import Summary
from app.schemas.requests import ScoreRequest
from app.schemas.validation import parse
from app.store import load

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("texts.md")
VERSION = "1.0.0"  # pinned: a published version never changes
TAKEN_ALIKE = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}


class Case(NamedTuple):
    title: str
    site: str
    request: dict[str, Any]
    simulated: bool = True


def _case(
    title: str, who: str, height_cm: float, weight_kg: float, diameter_mm: float, *, site: str = "SoV",
    simulated: bool = True, **more: Any,
) -> Case:  # fmt: skip
    """`who` as "male 55"."""
    sex, age = who.split()
    request = {"age_years": float(age), "sex": sex, "height_cm": height_cm, "weight_kg": weight_kg}
    return Case(title, site, request | {"diameter_mm": diameter_mm, "convention": TAKEN_ALIKE} | more, simulated)


CASES = (
    _case("the README's man: uncertain whether above 2", "male 55", 176, 84, 41),
    _case("the same by a hospital's own model", "male 55", 176, 84, 41, simulated=False),
    _case("the same with a measurement error", "male 55", 176, 84, 41, measurement_sd_mm=1.0),
    _case("the same, convention not stated", "male 55", 176, 84, 41, convention={}),
    _case("the same, another modality", "male 55", 176, 84, 41, convention=TAKEN_ALIKE | {"modality": "CT"}),
    _case("the same, two parts differ: withheld", "male 55", 176, 84, 41,
          convention={"edge": "inner", "phase": "end-diastole", "modality": "MR"}),
    _case("the same, two parts differ, asked for all the same", "male 55", 176, 84, 41,
          convention={"edge": "inner", "phase": "end-diastole", "modality": "MR"}, include_unreliable=True),
    _case("an 80% interval and other thresholds", "male 55", 176, 84, 41, hdi_probability=0.8, thresholds=[1.0, 3.0]),
    _case("the same with a measurement error", "male 55", 176, 84, 41, hdi_probability=0.8, thresholds=[1.0, 3.0],
          measurement_sd_mm=1.5),
    _case("a woman in the middle", "female 42.9", 166, 62, 31),
    _case("a woman in the middle, ascending aorta", "female 42.9", 166, 62, 30.5, site="AA", simulated=False),
    _case("clearly above 2", "female 61", 160, 60, 43),
    _case("an aneurysm of 48 mm: far out", "female 34", 165, 58, 48, simulated=False),
    _case("an aneurysm of 55 mm with a measurement error", "male 68", 178, 80, 55, site="AA", measurement_sd_mm=2.0),
    _case("110 mm: beyond most aneurysms", "male 50", 180, 80, 110),
    _case("clearly below -2", "male 30", 185, 80, 22, simulated=False),
    _case("uncertain whether below -2", "male 30", 185, 80, 26.6),
    _case("far below -6", "male 30", 185, 80, 11),
    _case("within, at the upper end", "female 25", 170, 60, 29.2, site="AA"),
    _case("a man of 79: few are as old", "male 79.5", 172, 75, 39),
    _case("the same with a measurement error", "male 79.5", 172, 75, 39, measurement_sd_mm=1.2, simulated=False),
    _case("81, and older than the oldest by weeks", "male 81.7", 172, 75, 39),
    _case("94, withheld", "female 94", 155, 50, 38, simulated=False),
    _case("94, asked for all the same", "female 94", 155, 50, 38, include_unreliable=True),
    _case("a girl of 7", "female 7.4", 124, 24, 20),
    _case("a boy of 8, above 2", "male 8", 130, 27, 30, simulated=False),
    _case("a boy of 11, uncertain, with a measurement error", "male 11.2", 146, 38, 28, measurement_sd_mm=1.0),
    _case("a boy of 5, among the youngest", "male 5.5", 112, 19, 19),
    _case("a girl of 4: younger than the youngest, withheld", "female 4", 102, 16, 16, simulated=False),
    _case("a boy of 18 months, asked for all the same", "male 1.5", 82, 11, 14, include_unreliable=True),
    _case("a newborn girl, withheld", "female 0", 50, 3.4, 9),
    _case("a girl of 17, ascending aorta", "female 17.9", 168, 58, 27, site="AA", simulated=False),
    _case("a very tall young man", "male 22", 214, 95, 40),
    _case("taller than the model covers, withheld", "male 22", 225, 110, 40, simulated=False),
    _case("a heavy man: body mass index just outside", "male 48", 175, 96, 40, simulated=False),
    _case("a body mass index of 41, withheld", "female 48", 160, 105, 36),
    _case("a body mass index of 52, asked for all the same", "male 48", 175, 160, 43, include_unreliable=True),
    _case("a very light woman", "female 19", 172, 38, 26, simulated=False),
    _case("a small boy of 16 with a large diameter", "male 16", 150, 40, 41),
    _case("old, light and measured in another way: all reasons at once", "female 90", 140, 30, 45,
          convention={"edge": "outer", "phase": "mid-systole", "modality": "CT"}),
)  # fmt: skip


class Text(NamedTuple):
    case: Case
    verdict: str
    position: str
    summary: Summary
    reasons: tuple[str, ...]
    advisories: tuple[str, ...]


@cache
def model(site: str) -> LoadedModel:
    return load_on_numpy(load(ROOT / "models_store", site, VERSION))


def text_of(case: Case) -> Text:
    query = parse(ScoreRequest, case.request).to_query()
    (scored,) = score_with_tails(model(case.site), [query])
    answer = scored.answer
    return Text(
        case,
        answer.reliability.verdict,
        answer.position,
        summarise(ScoredMeasurement(case.site, query, *scored[:-1]), simulated=case.simulated),
        tuple(f"`{reason.code}` {reason.message}" for reason in answer.reliability.reasons),
        tuple(f"`{advisory.code}` {advisory.message}" for advisory in answer.advisories),
    )


def document() -> str:
    head = "# Forty patients in words\n\nMade by `python -m tests.formats.texts --update`, then read aloud."
    return "\n\n".join([head, *(_written(number, text_of(case)) for number, case in enumerate(CASES, 1))]) + "\n"


def _written(number: int, text: Text) -> str:
    return "\n".join(_lines(number, text))


def _lines(number: int, text: Text) -> Iterator[str]:
    asked = {name: value for name, value in text.case.request.items() if value != TAKEN_ALIKE}
    yield f"## {number}. {text.case.site}, {text.case.title}"
    yield f"\n{', '.join(f'{name} {value}' for name, value in asked.items())}: {text.verdict}, {text.position}"
    yield f"\n> {text.summary.clinician}\n>\n> {text.summary.patient}"
    notes = [f"- {note}" for note in (*text.reasons, *text.advisories)]
    if notes:
        yield "\n" + "\n".join(notes)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        GOLDEN.write_text(document(), encoding="utf-8")
    else:
        sys.stdout.write(document())
