"""The result of the calculator in a real browser: what is shown, and that nothing is stored."""

import re
from typing import Any

import pytest

from tests.web.browsing import OpenPage, opened
from tests.web.calculator import RESULT, calculate, fill, sent
from tests.web.serving import Running

FIRST_VIEW_BYTES = 50_000
HEADLINE = ".headline.for-clinician"


def test_both_sites_are_scored_and_drawn(calculator: OpenPage) -> None:
    page, bodies = calculator.page, sent(calculator)
    fill(page)
    calculate(page)
    paths = [re.sub(r"width=\d+", "", path) for path, _ in bodies]
    assert paths == ["/v1/studies/score", "/v1/sites/SoV/chart?", "/v1/sites/AA/chart?"]
    answer = calculator.running.client.post("/v1/studies/score", json=bodies[0][1]).json()
    for result in answer["results"]:
        card = page.locator(f"[data-site={result['site']}]")
        shown = card.inner_text()
        expected = result["reference"]["expected_diameter_mm"], result["score"]["expected_ns"]
        assert f"{expected[0]:.1f}" in shown
        assert f"{expected[1]:.2f}" in shown
        assert result["summary"]["clinician"] in shown.replace("\u00a0", " ")
        assert result["advisories"][0]["message"] in shown.replace("\u00a0", " ")
        pictures = card.locator("svg[role=img]")
        assert [pictures.nth(k).get_attribute("class") for k in range(2)] == [
            "nc-chart nc-density",
            "nc-chart nc-reference",
        ]
        assert pictures.first.locator("desc").text_content().startswith("Density of the normalcy score")
    assert page.evaluate("document.activeElement.id") == "result-title"
    assert "Sinus of Valsalva: Near the limit: 30% probability that the score exceeds 2" in page.inner_text("#status")
    assert "simulated people: sinus of Valsalva (SoV), ascending aorta (AA)" in page.inner_text("#simulated")


def test_what_matters_comes_first(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, age="79", diameter_SoV="46")
    calculate(page)
    parts = (".verdict", HEADLINE, ".figures", ".pictures", ".details", ".advisories", ".sentence.for-clinician")
    heights = [page.locator(f"[data-site=SoV] {part}").bounding_box()["y"] for part in parts]
    assert heights == sorted(heights)
    labels = page.locator(".figures dt").all_inner_texts()
    assert labels == ["Measured", "Expected", "Normalcy score", "Probability above 2"]
    details = page.locator(".details dt").all_inner_texts()
    assert details[:2] == ["Diameter at a score of 2", "Classic Z-score, linear regression"]
    assert "Caution" in page.inner_text(".verdict")


def test_a_withheld_score_can_be_shown_on_request(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, "female", age="3", height="95", weight="14", diameter_SoV="19")
    calculate(page)
    assert "No score: it would not be reliable" in page.inner_text(".verdict")
    assert "younger than the youngest person" in page.inner_text(".verdict")
    assert page.locator(".figures").count() == 0
    page.get_by_role("button", name="Show the numbers anyway").click()
    page.wait_for_selector(".figures")
    assert "Not reliable" in page.inner_text(".verdict")
    assert page.inner_text(HEADLINE).startswith("Not reliable. ")
    assert page.inner_text("#status").startswith("Sinus of Valsalva: Not reliable. ")
    assert page.inner_text(".details").count("Why a Z-score is missing") <= 1


def test_the_answer_is_a_fact_in_one_colour(calculator: OpenPage) -> None:
    page = calculator.page
    answers, colours = [], set()
    for diameter in ("35", "41", "60", "20"):
        fill(page, diameter_SoV=diameter)
        with page.expect_response("**/chart*"):  # the last result stays until the next one has come
            calculate(page)
        page.wait_for_selector("#calculate:not([aria-busy])")
        answers.append((page.inner_text(HEADLINE), page.locator(".figures dt").last.inner_text()))
        colours.add(page.evaluate("getComputedStyle(document.querySelector('.headline')).color"))
        assert page.locator(".headline *").count() == 0
    assert answers == [
        ("Score between −2 and 2, like about 95 in 100 reference people", "Probability above 2"),
        ("Near the limit: 30% probability that the score exceeds 2", "Probability above 2"),
        ("Score above 2: wider than almost all reference people of this age, sex and size", "Probability above 2"),
        ("Score below −2: narrower than almost all reference people of this age, sex and size", "Probability below −2"),
    ]
    assert len(colours) == 1


@pytest.mark.req("REQ-044")
def test_clear_ends_a_calculation(calculator: OpenPage) -> None:
    page, held = calculator.page, list[Any]()
    page.route("**/v1/studies/score", lambda route: held.append(route))
    fill(page)
    page.click("#calculate")
    page.wait_for_selector("#calculate[aria-busy]")
    with page.expect_event("requestfailed") as ended:  # the browser drops it, so no answer can arrive
        page.get_by_role("button", name="Clear").click()
    assert ended.value is held[0].request
    page.wait_for_selector("#calculate:not([aria-busy])")
    page.unroute("**/v1/studies/score")
    assert page.locator(RESULT).count() == 0
    assert page.locator("#errors").is_hidden()
    fill(page)
    calculate(page)


@pytest.mark.req("REQ-043")
def test_a_change_of_the_form_marks_the_result(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page)
    calculate(page)
    assert page.locator("#stale").is_hidden()
    page.fill("#weight", "90")
    assert page.locator("#stale").is_visible()
    calculate(page)
    assert page.locator("#stale").is_hidden()
    page.get_by_role("button", name="Clear").click()
    page.wait_for_selector("#result", state="hidden")
    assert page.input_value("#weight") == ""


def test_dark_follows_the_system(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped, color_scheme="dark") as one:
        page = one.open()
        fill(page)
        calculate(page)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 20, 26)"
        assert page.evaluate("getComputedStyle(document.querySelector('.nc-title')).fill") == "rgb(231, 237, 243)"


def test_without_a_network_the_page_says_so(calculator: OpenPage) -> None:
    page = calculator.page
    calculator.context.set_offline(True)
    fill(page)
    page.click("#calculate")
    page.wait_for_selector("#errors:not([hidden])")
    assert page.inner_text("#errors h2") == "The service cannot be reached"
    calculator.errors.clear()
    calculator.context.set_offline(False)
    calculate(page)
    assert page.locator("#errors").is_hidden()


@pytest.mark.req("REQ-044")
def test_nothing_is_stored_and_only_the_service_is_reached(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page)
    calculate(page)
    assert calculator.context.cookies() == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert page.evaluate("indexedDB.databases()") == []
    assert page.evaluate("caches.keys()") == []
    assert page.url == f"{calculator.running.url}/"
    hosts = page.evaluate("performance.getEntriesByType('resource').map(entry => new URL(entry.name).origin)")
    assert set(hosts) == {calculator.running.url}


def test_the_first_view_is_small(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped) as one:
        assert one.open_and_weigh() <= FIRST_VIEW_BYTES


def test_the_reason_that_decides_comes_first_in_words_and_picture(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, "female", age="97", height="150", weight="45", diameter_SoV="33")
    calculate(page)
    reasons = page.locator(".verdict li").all_inner_texts()
    assert [reason.split()[1] for reason in reasons] == ["patient", "patients"]  # older than anyone; a wide interval
    assert f"Not reliable: {reasons[0]}" in page.text_content("figure svg")


def test_sentences_have_true_minus_signs(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, diameter_SoV="24")
    calculate(page)
    for wording in ("clinician", "patient"):
        shown = page.text_content(f".sentence.for-{wording}")
        assert " −3." in shown
        assert not re.search(r"-\d", shown), shown
    assert "55-year-old man" in page.text_content(".sentence.for-clinician")
