"""The form of the calculator in a real browser: what is typed, checked and sent."""

import json
from typing import Any

import pytest

from tests.web.browsing import OpenPage, opened
from tests.web.calculator import RESULT, calculate, choose, fill, sent
from tests.web.serving import Running


def test_limits_are_checked_on_leaving_a_field(calculator: OpenPage) -> None:
    page = calculator.page
    page.fill("#height", "1.76")
    assert page.inner_text("#height-error") == ""
    page.focus("#weight")
    assert page.inner_text("#height-error") == "Height must be 40 to 250 cm."
    assert page.get_attribute("#height", "aria-invalid") == "true"
    assert "height-error" in page.get_attribute("#height", "aria-describedby")
    page.fill("#height", "176")
    page.focus("#weight")
    assert page.inner_text("#height-error") == ""
    page.fill("#age", "30")
    page.fill("#diameter-SoV", "4,1")
    page.focus("#weight")
    assert page.inner_text("#diameter-SoV-error") == "Diameter of the sinus of Valsalva must be 10 to 120 mm."


def test_an_empty_form_lists_what_is_missing_and_leads_there(calculator: OpenPage) -> None:
    page, bodies = calculator.page, sent(calculator)
    page.click("#calculate")
    assert page.evaluate("document.activeElement.id") == "errors"
    links = page.locator("#errors a")
    assert links.all_inner_texts() == [
        "Choose the sex of the reference group.",
        "Enter the age.",
        "Enter the height.",
        "Enter the weight.",
        "Enter at least one diameter.",
    ]
    links.nth(1).click()
    assert page.evaluate("document.activeElement.id") == "age"
    assert bodies == []
    assert page.locator(RESULT).count() == 0


def test_errors_of_the_service_stand_at_their_fields(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, height="69")  # an adult's height in inches: only the service sees that
    page.click("#calculate")
    page.wait_for_selector("#errors:not([hidden])")
    assert "Was the height given in inches?" in page.inner_text("#height-error")
    assert page.inner_text("#height-error").startswith("Height ")
    assert page.evaluate("document.activeElement.id") == "errors"
    assert [error for error in calculator.errors if "422" not in error] == []
    calculator.errors.clear()
    page.fill("#height", "176")
    calculate(page)
    assert page.locator("#errors").is_hidden()


def test_a_listed_error_stays_until_the_field_is_corrected(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, age="")
    page.focus("#age")
    page.keyboard.press("Enter")
    assert page.inner_text("#age-error") == "Enter the age."
    page.focus("#age")
    page.focus("#height")
    assert page.inner_text("#age-error") == "Enter the age."
    page.fill("#age", "55")
    page.focus("#height")
    assert page.inner_text("#age-error") == ""


def test_a_unit_mistake_is_named(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, height="1.76", diameter_SoV="4.1")
    page.click("#calculate")
    page.wait_for_selector("#errors:not([hidden])")
    assert "Was the height given in m?" in page.inner_text("#height-error")
    assert page.inner_text("#diameter-SoV-error").startswith("Diameter of the sinus of Valsalva must be ")
    assert page.inner_text("#diameter-SoV-error").endswith("Was it given in cm?")
    calculator.errors.clear()


def test_the_hint_about_a_unit_comes_beside_other_errors(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, None, height="1.76", weight="", diameter_SoV="4.1")
    page.click("#calculate")
    page.wait_for_selector("#errors:not([hidden])")
    assert page.locator("#errors li").all_inner_texts() == [
        "Choose the sex of the reference group.",
        "Height must be a number from 40 to 250 (cm). Was the height given in m?",
        "Enter the weight.",
        "Diameter of the sinus of Valsalva must be a number from 10 to 120 (mm) from age 5 on. Was it given in cm?",
    ]
    assert page.locator(RESULT).count() == 0
    calculator.errors.clear()
    calculator.context.set_offline(True)  # without the service: what the page knows itself
    page.click("#calculate")
    page.wait_for_selector("#errors a:has-text('Height must be 40 to 250 cm.')")
    calculator.errors.clear()


def test_a_missing_date_is_named(calculator: OpenPage) -> None:
    page = calculator.page
    choose(page, "age-by", "dates")
    choose(page, "sex", "male")
    for name, value in {"height": "176", "weight": "84", "diameter-SoV": "41"}.items():
        page.fill(f"#{name}", value)
    page.click("#visits summary")
    page.click("#add-visit")
    page.fill("#visit-1-date", "2020-01-01")
    page.fill("#visit-1-SoV", "40")
    page.click("#calculate")
    assert page.locator("#errors li").all_inner_texts() == ["Enter the date of birth."]
    page.fill("#birth", "1971-03-04")
    page.fill("#study", "")
    page.fill("#visit-1-date", "")
    page.click("#calculate")
    assert page.locator("#errors li").all_inner_texts() == ["Enter the date of study.", "Enter the date of visit 1."]


def test_dates_give_the_age_and_are_never_sent(calculator: OpenPage) -> None:
    page, bodies = calculator.page, sent(calculator)
    choose(page, "age-by", "dates")
    page.fill("#birth", "1971-03-04")
    page.fill("#study", "2026-11-01")
    assert page.inner_text("#age-hint").startswith("55.6 years")
    choose(page, "sex", "male")
    for name, value in {"height": "176", "weight": "84", "diameter-SoV": "41"}.items():
        page.fill(f"#{name}", value)
    calculate(page)
    assert {body["age_years"] for _, body in bodies} == {55.6}
    assert "1971" not in json.dumps(bodies)
    page.fill("#birth", "2027-01-01")
    page.click("#calculate")
    assert "must not be before the date of birth" in page.inner_text("#age-error")
    page.fill("#birth", "1971-03-04")
    page.fill("#study", "2999-01-01")
    page.click("#calculate")
    assert page.inner_text("#age-error") == "The date of study must not be in the future."


def test_imperial_and_cm_are_converted_shown_and_sent_in_metric(calculator: OpenPage) -> None:
    page, bodies = calculator.page, sent(calculator)
    choose(page, "units", "imperial")
    choose(page, "diameter-unit", "cm")
    choose(page, "sex", "female")
    for name, value in {
        "age": "41",
        "height-ft": "5",
        "height-in": "9",
        "weight": "150",
        "diameter-SoV": "3.2",
    }.items():
        page.fill(f"#{name}", value)
    assert [page.inner_text(f"#{name}-hint") for name in ("height", "weight", "diameter-SoV")] == [
        "= 175.3 cm",
        "= 68 kg",
        "= 32 mm",
    ]
    calculate(page)
    body = bodies[0][1]
    assert (body["height_cm"], body["weight_kg"], body["measurements"][0]["diameter_mm"]) == (175.3, 68, 32)
    page.fill("#height-in", "13")
    page.focus("#age")
    assert page.inner_text("#height-error") == "Inches must be less than 12 where feet are given."
    page.fill("#weight", "1500")
    page.focus("#age")
    assert page.inner_text("#weight-error") == "Weight must be 1.5 to 350 kg (3 lb to 772 lb)."


def test_error_and_convention_are_sent(calculator: OpenPage) -> None:
    page, bodies = calculator.page, sent(calculator)
    page.click("#more summary")
    for name, value in {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}.items():
        page.select_option(f"#{name}", value)
    fill(page, sd="1.5", diameter_SoV="41")
    calculate(page)
    [measurement] = bodies[0][1]["measurements"]
    assert measurement["measurement_sd_mm"] == 1.5
    assert measurement["convention"] == {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}
    assert "with measurement error: " in page.inner_text(".figures")


def test_with_the_keyboard_alone(calculator: OpenPage) -> None:
    page = calculator.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # units, one stop for both
    assert page.evaluate("document.activeElement.name") == "units"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.locator("input[name=sex][value=male]").is_checked()
    page.keyboard.press("Tab")  # years or dates
    for text in ("55", "176", "84"):
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    page.keyboard.press("Tab")  # mm or cm
    page.keyboard.press("Tab")  # how to measure
    page.keyboard.press("Tab")
    page.keyboard.type("41")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-site=SoV] svg")
    assert page.evaluate("document.activeElement.id") == "result-title"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "wording"
    outline = page.evaluate("getComputedStyle(document.activeElement.nextElementSibling).outlineStyle")
    assert outline == "solid"


def test_without_scripts_no_form_is_shown(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped, java_script_enabled=False) as one:
        page = one.open(until="main h1")
        assert page.locator("#calculator").is_hidden()
        one.errors.clear()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("parseNumber(' 4,1 ')", 4.1),
        ("parseNumber('')", None),
        ("Number.isNaN(parseNumber('1e3'))", True),
        ("Number.isNaN(parseNumber('12 mm'))", True),
        ("cmFromFeet(5, 9)", 175.3),
        ("kgFromPounds(185)", 83.9),
        ("mmFromCm(4.1)", 41),
        ("ageBetween('1971-03-04', '2026-03-03')", 54.9),
        ("ageBetween('1971-03-04', '2026-03-04')", 55),
        ("ageBetween('2024-02-29', '2026-02-28')", 1.99),
        ("ageBetween('2026-01-01', '2026-01-01')", 0),
        ("Number.isNaN(ageBetween('2026-01-02', '2026-01-01'))", True),
        ("percent(0.004)", "<1%"),
        ("percent(0.999)", ">99%"),
        ("percent(0.295)", "30%"),
        ("score(-0.001)", "0.00"),
    ],
)
def test_units(calculator_module: Any, call: str, expected: object) -> None:
    assert calculator_module(call) == expected


@pytest.fixture(scope="module")
def calculator_module(browser: Any, shipped: Running) -> Any:
    """Evaluates a call of a function of units.js."""
    with opened(browser, shipped, bypass_csp=True) as one:
        page = one.open()
        page.evaluate("import('./assets/units.js').then(module => Object.assign(window, module))")
        yield page.evaluate
