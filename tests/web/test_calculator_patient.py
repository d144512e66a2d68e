"""What the calculator says to a patient, on the screen and on paper: plain words, and none of the method's terms."""

import re
from typing import Any

import pytest

from tests.web.browsing import OpenPage
from tests.web.calculator import ONE_SITE, add_visits, calculate, choose, fill

TERMS = re.compile(r"\bNS\b|HDI|Normalcy score|Probability|Classic Z|modality|eading-edge|training cohort")
ANSWERS = {
    "35": "In the range of about 95 in 100 people of the same age, sex and size",
    "41": "Near the edge of the range of about 95 in 100 people of the same age, sex and size",
    "60": "Wider than in almost all people of the same age, sex and size",
    "20": "Narrower than in almost all people of the same age, sex and size",
}
# Every text of the site that can be seen, also in its pictures, where a part may lie outside of the view.
SEEN = """() => [...document.querySelectorAll("[data-site=SoV] *")].filter((one) => {
    const [at, picture] = [one.getBoundingClientRect(), one.closest("svg")?.getBoundingClientRect()];
    const isInView = !picture || (at.top >= picture.top - 1 && at.bottom <= picture.bottom + 1);
    return at.height && isInView && !one.matches("svg, svg title, svg desc");
}).flatMap((one) => [...one.childNodes]).filter((node) => node.nodeType === Node.TEXT_NODE)
  .map((node) => node.data)"""


def opened_for_a_patient(calculator: OpenPage) -> Any:
    calculator.page.goto("about:blank")  # another fragment alone would not load the page again
    return calculator.open("/#wording=patient")


@pytest.mark.parametrize("diameter", ANSWERS)
def test_a_plain_answer(calculator: OpenPage, diameter: str) -> None:
    page = opened_for_a_patient(calculator)
    fill(page, diameter_SoV=diameter)
    calculate(page)
    assert page.inner_text(".headline.for-patient") == ANSWERS[diameter]
    assert ANSWERS[diameter] in page.inner_text("#status")
    assert page.locator(".figures dt:visible").all_inner_texts() == ["Measured", "Expected"]


@pytest.mark.parametrize("medium", ["screen", "print"])
@pytest.mark.parametrize("age", ["55", "79"])  # the older one with caution
def test_no_term_of_the_method_is_shown(calculator: OpenPage, age: str, medium: str) -> None:
    page = calculator.page
    fill(page, age=age, **ONE_SITE)
    calculate(page)
    assert {"Normalcy score", "Probability", "HDI", "NS", "modality"} <= set(
        TERMS.findall(" ".join(page.evaluate(SEEN)))
    )
    choose(page, "wording", "patient")
    page.emulate_media(media=medium)
    page.evaluate("dispatchEvent(new Event('beforeprint'))" if medium == "print" else "0")
    seen = page.evaluate(SEEN)
    assert "41 mm" in seen
    assert [text for text in seen if text.startswith("The dot is this measurement.")]
    assert [text for text in seen if TERMS.search(text)] == []
    assert page.locator("[data-picture=density]").is_hidden()
    assert page.get_attribute("[data-picture=reference] svg", "aria-hidden") == "true"


def test_a_withheld_score_in_plain_words(calculator: OpenPage) -> None:
    page = opened_for_a_patient(calculator)
    fill(page, "female", age="3", height="95", weight="14", diameter_SoV="19")
    calculate(page)
    assert page.inner_text(".verdict") == "No score: it would not be reliable"
    assert "Your child is younger than everyone in the comparison group" in page.inner_text("[data-site=SoV]")


def test_the_visits_have_a_plain_caption(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, **ONE_SITE)
    add_visits(page, 1)
    calculate(page)
    caption = page.locator("[data-picture=visits] figcaption")
    assert "0 is as expected" not in caption.inner_text()
    choose(page, "wording", "patient")
    assert "0 is as expected" in caption.inner_text()
