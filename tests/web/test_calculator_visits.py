"""Several visits of one patient on the calculator, in a real browser."""

import re

from tests.web.browsing import OpenPage
from tests.web.calculator import add_visits, calculate, choose, fill, sent


def test_what_the_service_says_has_the_labels_of_the_form(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, diameter_SoV="41")
    add_visits(page, 1)
    page.fill("#visit-1-weight", "350")
    page.fill("#visit-1-height", "100")
    page.click("#calculate")
    page.wait_for_selector("#errors:not([hidden])")
    assert page.inner_text("#errors li").startswith("Height and weight of visit 1 must give a body mass index")
    assert "_" not in page.inner_text("#errors")
    calculator.errors.clear()


def test_a_visit_that_would_not_be_drawn_is_an_error(calculator: OpenPage) -> None:
    page, bodies = calculator.page, sent(calculator)
    fill(page, diameter_SoV="41")
    add_visits(page, 1)
    page.fill("#visit-1-SoV", "")
    page.click("#calculate")
    assert page.inner_text("#visit-1-SoV-error") == "Enter a diameter of visit 1, or remove the visit."
    page.fill("#visit-1-AA", "35")
    page.click("#calculate")
    assert page.inner_text("#visit-1-AA-error").startswith("Visit 1 has a diameter of the ascending aorta")
    assert bodies == []
    page.fill("#diameter-AA", "37")
    calculate(page)
    assert [len(body.get("visits", [])) for path, body in bodies if "/chart" in path] == [0, 1]


def test_other_visits_are_drawn_with_the_same_model(calculator: OpenPage) -> None:
    page, bodies = calculator.page, sent(calculator)
    fill(page, diameter_SoV="41")
    add_visits(page)
    page.fill("#visit-2-weight", "80")
    calculate(page)
    body = bodies[1][1]
    assert [visit["age_years"] for visit in body["visits"]] == [43, 46, 49]
    assert [visit["weight_kg"] for visit in body["visits"]] == [84, 80, 84]
    assert body["model_version"] == "1.0.0"
    assert page.locator("[data-picture=visits] svg").count() == 1
    assert "exploratory" in page.inner_text("#visits-title")
    assert "Exploratory" in page.locator("[data-picture=visits] desc").text_content()
    assert page.locator("#visits-result th[scope=row]").all_inner_texts() == ["43", "46", "49", "55"]
    assert page.locator("#visits-result tr").last.locator("td").all_inner_texts() == ["41", "1.94 (1.71 to 2.17)"]
    page.fill("#visit-2-SoV", "4")
    page.click("#calculate")
    assert page.inner_text("#errors a") == "Diameter of visit 2 must be 10 to 120 mm."
    page.locator("#visit-2-row").get_by_role("button", name="Remove").click()
    page.wait_for_selector("#visit-2-row", state="detached")
    calculate(page)
    assert [visit["age_years"] for visit in bodies[-1][1]["visits"]] == [43, 49]


def test_both_sites_with_the_most_visits_are_joined_and_print_on_one_page(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, age="70")
    add_visits(page, 9)
    assert page.locator("#add-visit").is_hidden()
    for number in range(1, 10):
        page.fill(f"#visit-{number}-AA", str(33 + number / 2))
    calculate(page)
    figures = page.locator("#visits-result [data-picture=visits]")
    assert figures.count() == 2
    rows = page.locator("#visits-result tbody tr")
    assert rows.count() == 10
    assert rows.last.locator("td").all_inner_texts()[::2] == ["41", "38.5"]  # each with its score behind it
    whole = page.locator("[data-site=SoV] svg").first.get_attribute("viewBox")
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert page.locator("[data-site=SoV] svg").first.get_attribute("viewBox") == whole
    assert figures.count() == 2  # back from the rows of their sites
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("[data-site=SoV] svg").first.get_attribute("viewBox") != whole
    assert page.locator("[data-site=AA] [data-picture=visits]").count() == 1
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.get_by_role("button", name="Clear").click()
    page.wait_for_selector("#result", state="hidden")
    assert "Valsalva" not in page.locator("#result").text_content()


def test_what_is_typed_for_a_visit_is_shown_in_the_units_of_the_service(calculator: OpenPage) -> None:
    page = calculator.page
    page.click("#visits summary")
    page.click("#add-visit")
    assert page.inner_text("#visit-1-height-hint") == "Empty: as above"
    for name, value in {"units": "imperial", "diameter-unit": "cm", "age-by": "dates"}.items():
        choose(page, name, value)
    page.fill("#birth", "1971-03-04")
    for name, value in {"date": "2020-03-04", "SoV": "3.9", "height": "69", "weight": "180"}.items():
        page.fill(f"#visit-1-{name}", value)
    hints = [page.inner_text(f"#visit-1-{name}-hint") for name in ("date", "SoV", "height", "weight")]
    assert hints == ["= 49 years", "= 39 mm", "= 175.3 cm", "= 81.6 kg"]
