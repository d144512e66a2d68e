"""What leaves the calculator by hand: copies, downloads and paper."""

import json
import re
from pathlib import Path
from typing import Any

from tests.web.browsing import OpenPage, opened
from tests.web.calculator import add_visits, calculate, choose, fill
from tests.web.serving import Running


def test_text_for_the_report(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped, permissions=["clipboard-read", "clipboard-write"]) as one:
        page = one.open()
        fill(page)
        calculate(page)
        page.click("#copy")
        page.wait_for_selector("#copy:has-text('Copied')")
        text = page.evaluate("navigator.clipboard.readText()")
        assert "Sinus of Valsalva (SoV)\nEvaluation model, not for care: in this 55-year-old man" in text
        assert "Diameter at a score of 2: 41.2 mm (95% interval 40.5 to 41.9 mm)." in text
        assert "Model AA 1.0.0, cohort simulated (n = 1110)." in text
        choose(page, "wording", "patient")
        assert "your aorta" in page.locator("[data-site=SoV] .sentence.for-patient").inner_text()
        assert page.locator("[data-site=SoV] .for-clinician").first.is_hidden()
        page.click("#copy-link")
        page.wait_for_selector("#copy-link:has-text('Copied')")
        link = page.evaluate("navigator.clipboard.readText()")
        assert link == f"{shipped.url}/#units=metric&diameter-unit=mm&age-by=years&wording=patient"
        page.goto("about:blank")
        page.goto(link)
        page.wait_for_selector("#cards a")
        assert page.locator("input[name=wording][value=patient]").is_checked()


def test_the_visits_are_in_the_text_and_in_the_file(browser: Any, shipped: Running, tmp_path: Path) -> None:
    with opened(browser, shipped, permissions=["clipboard-read", "clipboard-write"]) as one:
        page = one.open()
        fill(page)
        add_visits(page, 2)
        calculate(page)

        def copied() -> str:
            page.evaluate("navigator.clipboard.writeText('')")
            page.click("#copy")
            page.wait_for_function("navigator.clipboard.readText().then((text) => text !== '')")
            return str(page.evaluate("navigator.clipboard.readText()"))

        text = copied()
        assert "Sinus of Valsalva (SoV), all visits, exploratory\nAt 43 years: 37 mm, score 0.98 (95% interval " in text
        assert "\nAt 55 years: 41 mm, score 1.94 (95% interval 1.71 to 2.17).\nExploratory: " in text
        assert "Ascending aorta (AA), all visits" not in text
        choose(page, "wording", "patient")
        assert "Sinus of Valsalva (SoV), all measurements\nAt 43 years: 37 mm.\nAt 46 years: 38 mm." in copied()
        with page.expect_download() as event:
            page.click("#json")
        event.value.save_as(tmp_path / "study.json")
        study = json.loads((tmp_path / "study.json").read_text("utf-8"))
        [visits] = study["exploratory_visits"]
        assert (visits["site"], visits["note"][:11]) == ("SoV", "Exploratory")
        assert [each["input"]["age_years"] for each in visits["measured"]] == [43, 46, 55]
        assert [each["input"]["diameter_mm"] for each in visits["measured"]] == [37, 38, 41]
        assert visits["measured"][-1]["score"] == study["results"][0]["score"] | {
            "exceedance": visits["measured"][-1]["score"]["exceedance"]
        }


def test_where_the_browser_forbids_copying_the_text_is_selected(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped, permissions=[]) as one:
        page = one.open()
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
        fill(page)
        calculate(page)
        page.click("#copy")
        assert page.input_value("textarea").startswith("Sinus of Valsalva (SoV)")
        assert page.evaluate("document.activeElement.selectionEnd") > 100


def test_downloads(calculator: OpenPage, tmp_path: Path) -> None:
    page = calculator.page
    fill(page)
    calculate(page)

    def download(button: Any) -> bytes:
        with page.expect_download() as event:
            button.click()
        path = tmp_path / event.value.suggested_filename
        event.value.save_as(path)
        content: bytes = path.read_bytes()
        return content

    figure = page.locator("[data-site=AA] [data-picture=reference]")
    assert download(figure.get_by_role("button", name="SVG")).startswith(b"<svg ")
    assert download(figure.get_by_role("button", name="PNG")).startswith(b"\x89PNG")
    study = json.loads(download(page.locator("#json")))
    assert [result["site"] for result in study["results"]] == ["SoV", "AA"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "normalcy-AA-reference.svg",
        "normalcy-AA-reference.png",
        "normalcy.json",
    }


def test_a_download_that_fails_says_so(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, diameter_SoV="41")
    calculate(page)
    calculator.context.set_offline(True)
    figure = page.get_by_role("figure", name="How sure the score is")
    figure.get_by_role("button", name="PNG").click()
    page.wait_for_selector("figure .error:has-text('cannot be reached')")
    calculator.errors.clear()


def test_a_frame_without_a_plot_is_not_printed_and_units_stay_with_their_numbers(calculator: OpenPage) -> None:
    page = calculator.page
    fill(page, "female", age="3", height="95", weight="14", diameter_SoV="19")
    calculate(page)
    assert page.locator("figure").is_visible()
    assert "the 19\u00a0mm measured" in page.inner_text(".sentence.for-clinician")
    page.emulate_media(media="print")
    assert page.locator("figure").is_hidden()
    page.emulate_media(media="screen")
    page.click("#more summary")
    fill(page, sd="1.5")
    with page.expect_response("**/chart*"):
        calculate(page)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1047})
    heights = page.locator(".figure .number, .figure .of, .figure .more").evaluate_all(
        "all => all.filter((one) => one.getClientRects().length > 1 || one.scrollWidth > one.parentElement.clientWidth)"
    )
    assert heights == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 718


def test_both_sites_print_on_one_light_page_also_from_a_dark_screen(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped, color_scheme="dark") as one:
        page = one.open()
        fill(page)
        calculate(page)
        printed = page.pdf(prefer_css_page_size=True)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
        page.emulate_media(media="print", color_scheme="dark")
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.site')).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert page.locator("#calculator").is_hidden()
        assert page.locator("[data-site=AA] .sentence.for-clinician").is_visible()
