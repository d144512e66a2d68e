"""The worked examples of the documents: invented people, scored and drawn by a real service with the shipped models."""

import re
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.charts.theme import COLOURS, FONT
from app.formats.markdown import table
from app.settings import load_settings
from app.store import highest_version, load
from tests.web.serving import STATED, serving

STORE = Path(__file__).parent.parent / "models_store"


@dataclass(frozen=True)
class Example:
    site: str
    age_years: float
    sex: str
    height_cm: float
    weight_kg: float
    diameter_mm: float
    measurement_sd_mm: float = 0.0

    @property
    def body(self) -> dict[str, Any]:
        fields = {name: value for name, value in vars(self).items() if name != "site" and value}
        return {**fields, "convention": STATED}


EXAMPLES = {
    "within": Example("AA", 34, "female", 168, 61, 29.5),
    "uncertain": Example("SoV", 55, "male", 176, 84, 41),
    "above": Example("SoV", 55, "male", 176, 84, 46),
    "large-man": Example("SoV", 62, "male", 196, 104, 41),
    "small-woman": Example("SoV", 30, "female", 155, 50, 36),
    "caution": Example("SoV", 48, "female", 163, 86, 35),
    "withheld": Example("SoV", 3, "male", 96, 14.5, 18),
    "observer": Example("SoV", 55, "male", 176, 84, 41, 1.5),
}


# Which pictures of the service an example shows.
DRAWN = {
    "within": ("density",),
    "uncertain": ("reference", "density"),
    "above": ("density",),
    "small-woman": ("reference",),
    "large-man": ("reference",),
    "caution": ("reference",),
    "observer": ("density",),
}
# As the page words them; the names in the response stand behind them in brackets.
POSITIONS = {
    "within": "between −2 and 2",
    "above_2": "above 2",
    "below_minus_2": "below −2",
    "uncertain": "near the limit",
}
VERDICTS = {"ok": "no caution", "caution": "caution", "not_reliable": "no score, not reliable"}
REASONS = {
    "wide_interval": "wide interval",
    "sparse_context": "few people like this one",
    "outside_training_range": "outside the range of the training people",
}
ADVISORIES = {"absolute_diameter": "40 mm or more"}
# The sketch of the page without its style sheet: the colours of light pictures as attributes.
SKETCH = re.compile(r'<svg viewBox="0 0 360 264".*?</svg>', re.DOTALL)
LINE = f'fill="none" stroke="{COLOURS["light"].line}"'
SKETCH_LOOK = {
    "lumen": f'fill="{COLOURS["light"].wide_band}"',
    "wall": f'{LINE} stroke-width="8"',
    "valve": f'{LINE} stroke-width="2.5" stroke-linecap="round"',
    "measure": f'fill="none" stroke="{COLOURS["light"].threshold}" stroke-width="2.5"',
    "dash": f'fill="none" stroke="{COLOURS["light"].threshold}" stroke-width="1.5" stroke-dasharray="4 3"',
    "ecg": f'fill="none" stroke="{COLOURS["light"].muted}" stroke-width="1.5"',
    "name": f'fill="{COLOURS["light"].text}" font-weight="600"',
    "small": f'fill="{COLOURS["light"].muted}" text-anchor="middle"',
}
DESCRIPTION = re.compile(r"<desc>(.*?)</desc>")
WIDTH = 480  # readable on a phone too


@dataclass(frozen=True)
class Answered:
    scores: dict[str, dict[str, Any]]  # by example
    pictures: dict[str, str]  # SVG, by the name of the file


@lru_cache
def answered() -> Answered:
    with TemporaryDirectory() as folder:
        settings = load_settings({"NORMALCY_DATA_DIR": folder})
        with serving(settings, STORE) as running:
            scores = {name: running.score(one.body, f"/v1/sites/{one.site}/score") for name, one in EXAMPLES.items()}
            drawn = {
                picture_file(name, picture): running.score(
                    EXAMPLES[name].body,
                    f"/v1/sites/{EXAMPLES[name].site}/chart?picture={picture}&width={WIDTH}",
                    headers={"Accept": "image/svg+xml"},
                )
                for name, pictures in DRAWN.items()
                for picture in pictures
            }
    return Answered(
        {name: answer.raise_for_status().json() for name, answer in scores.items()},
        {name: answer.raise_for_status().text for name, answer in drawn.items()},
    )


def document_pictures() -> dict[str, str]:
    """Every file of docs/pictures."""
    return {**answered().pictures, "measuring.svg": _measuring_sketch()}


def _measuring_sketch() -> str:
    page = (files("app.web") / "static" / "index.html").read_text("utf-8")
    [sketch] = SKETCH.findall(page)
    drawn = re.sub(r'class="(\w+)"', lambda found: SKETCH_LOOK[found[1]], sketch)
    drawn = drawn.replace(' aria-labelledby="sketch-title"', "").replace(' id="sketch-title"', "")
    white = f'<rect width="360" height="264" fill="{COLOURS["light"].background}"/>'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" width="480" height="352" font-family="{FONT}" font-size="13"'
    return re.sub(r"\n {8,}", "\n", drawn.replace("<svg", opening, 1).replace("</title>", f"</title>{white}", 1)) + "\n"


def picture_file(example: str, picture: str) -> str:
    return f"{example}-{picture}.svg"


def worked_example(name: str) -> str:
    """What the service says about one of them: a table, its sentence, and pictures with their own
    alternative texts."""
    answer = answered().scores[name]
    sentence = f"> {answer['summary']['clinician']}"
    files = [picture_file(name, picture) for picture in DRAWN.get(name, ())]
    shown = [f"\n![{_description(answered().pictures[file])}](pictures/{file})" for file in files]
    return "\n".join([*table(("what", "value"), _rows(answer)), sentence, *shown])


def _description(svg: str) -> str:
    found = DESCRIPTION.search(svg)
    assert found
    return unescape(found[1])


def _rows(answer: dict[str, Any]) -> list[tuple[str, str]]:
    person = answer["input"]
    rows = [
        ("reference sex, age", f"{person['reference_sex']}, {person['age_years']:g} years"),
        ("height, weight, body mass index", _body(person)),
        (f"measured, {answer['site']}", f"{person['diameter_mm']:g} mm"),
    ]
    score, reference = answer["score"], answer["reference"]
    if score is not None:
        interval, limits = score["hdi"], reference["interval_mm"]
        expected = f"{reference['expected_diameter_mm']:.1f} mm"
        rows += [
            ("expected, and 95% reference range", f"{expected}, {limits['low']:.1f} to {limits['high']:.1f} mm"),
            ("score", f"{score['expected_ns']:.2f}"),
            ("95% interval of the score", f"{interval['low']:.2f} to {interval['high']:.2f}"),
            ("probability of exceeding 2", _percent(score["exceedance"][0]["probability"])),
            ("position", f"{POSITIONS[score['position']]} (`{score['position']}`)"),
            ("diameter at a score of 2", f"{reference['diameter_at_threshold_mm'][0]['median']:.1f} mm"),
        ]
    with_error = answer["score_with_measurement_error"]
    if with_error is not None:
        interval = with_error["hdi"]
        rows += [
            ("interval with the observer error", f"{interval['low']:.2f} to {interval['high']:.2f}"),
            ("probability with it", _percent(with_error["exceedance"][0]["probability"])),
        ]
    verdict = answer["reliability"]["verdict"]
    reasons = dict.fromkeys(reason["code"] for reason in answer["reliability"]["reasons"])
    because = ": " + ", ".join(f"{REASONS[code]} (`{code}`)" for code in reasons) if reasons else ""
    rows.append(("reliability", f"{VERDICTS[verdict]} (`{verdict}`){because}"))
    if answer["advisories"]:
        codes = (advisory["code"] for advisory in answer["advisories"])
        rows.append(("notes", ", ".join(f"{ADVISORIES[code]} (`{code}`)" for code in codes)))
    return rows


def _body(person: dict[str, Any]) -> str:
    return f"{person['height_cm']:g} cm, {person['weight_kg']:g} kg, {person['bmi_kg_m2']:.1f} kg/m²"


def _percent(probability: float) -> str:
    """As the sentences say it: never 0 or 100."""
    if probability < 0.01:
        return "<1%"
    return ">99%" if probability > 0.99 else f"{100 * probability:.0f}%"


def covered() -> str:
    """Whom the shipped models cover, from their cards."""
    rows = []
    for site in ("SoV", "AA"):
        card = load(STORE, site, highest_version(STORE, site)).card
        ranges = card.ranges
        sexes = [
            (f"{sex}: height", f"{ranges.height_cm[sex].low:g} to {ranges.height_cm[sex].high:g} cm, "
             f"weight {ranges.weight_kg[sex].low:g} to {ranges.weight_kg[sex].high:g} kg")
            for sex in sorted(ranges.height_cm)
        ]  # fmt: skip
        bmi = f"{ranges.bmi_kg_m2.low:.1f} to {ranges.bmi_kg_m2.high:.2f} kg/m²"
        rows.append((f"{site} {card.version}", f"{ranges.age_years.low:g} to {ranges.age_years.high:g} years", bmi,
                     "; ".join(f"{who} {what}" for who, what in sexes)))  # fmt: skip
    return "\n".join(table(("model", "ages", "body mass index", "body size"), rows)).rstrip()
