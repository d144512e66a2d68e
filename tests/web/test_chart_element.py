"""`<normalcy-chart>` in a real browser: the example page shows the service's own pictures."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.web.browsing import OpenPage, opened, patient_settings
from tests.web.serving import Running, create_key, serving

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = (DOCS / "normalcy-chart.html").read_text(encoding="utf-8")
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"
DRAWN = "normalcy-chart svg"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Running]:
    settings = patient_settings(tmp_path_factory.mktemp("data"))
    with serving(settings, models_dir) as running:
        yield running


def open_example(one: OpenPage) -> Any:
    """The page as another server of the same origin would deliver it, under a strict policy."""
    address = f"{one.running.url}/report.html"
    headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY}
    one.page.route(address, lambda route: route.fulfill(body=EXAMPLE, headers=headers))
    one.page.goto(address)
    return one.page


def test_the_guide_shows_the_example_in_full() -> None:
    assert f"```html\n{EXAMPLE}```\n" in (DOCS / "integrators.md").read_text(encoding="utf-8")


def test_the_example_shows_the_pictures_of_the_api(browser: Any, service: Running) -> None:
    with opened(browser, service) as one:
        sent: list[str] = []
        one.page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
        page = open_example(one)
        page.locator(DRAWN).nth(1).wait_for()
        titles = page.locator(DRAWN).evaluate_all("all => all.map(svg => svg.querySelector('title').textContent)")
        assert titles == ["Sinus of Valsalva: diameter for age", "Sinus of Valsalva: normalcy score"]
        assert page.get_by_role("img", name="Sinus of Valsalva: diameter for age").count() == 1
        assert len(sent) == 2  # one for each, however many attributes: each is recorded as a score
        width = page.locator("normalcy-chart").first.bounding_box()["width"]
        assert page.locator(DRAWN).first.get_attribute("width") == str(min(round(width), 1200))


def test_a_changed_attribute_draws_again_and_an_error_is_said(browser: Any, service: Running) -> None:
    with opened(browser, service) as one:
        page = open_example(one)
        page.locator(DRAWN).nth(1).wait_for()
        page.evaluate("document.querySelector('normalcy-chart').setAttribute('diameter-mm', '30')")
        page.get_by_text("30 mm", exact=True).wait_for()
        page.evaluate("document.querySelector('normalcy-chart').setAttribute('diameter-mm', '4.1')")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert "Was it given in cm?" in alert.inner_text()
        assert any("422" in error for error in one.errors)
        one.errors.clear()


def test_the_colours_follow_the_reader(browser: Any, service: Running) -> None:
    with opened(browser, service, color_scheme="dark", viewport={"width": 390, "height": 800}) as one:
        page = open_example(one)
        page.locator(DRAWN).nth(1).wait_for()
        assert page.locator(f"{DRAWN} .nc-background").first.get_attribute("fill") == "#14191f"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_key_is_a_property_and_never_stands_in_the_document(browser: Any, tmp_path: Path, models_dir: Path) -> None:
    settings = patient_settings(tmp_path)
    with serving(settings, models_dir) as guarded, ThreadPoolExecutor(1) as thread:
        key = thread.submit(create_key, guarded.settings, ["score"]).result()  # Playwright's loop runs in this thread
        guarded.inside(guarded.runtime.poller.refresh())
        with opened(browser, guarded) as one:
            page = open_example(one)
            page.get_by_role("alert").nth(1).wait_for()
            assert "Authentication required" in page.get_by_role("alert").first.inner_text()
            page.evaluate("key => document.querySelectorAll('normalcy-chart').forEach(each => { each.key = key })", key)
            page.locator(DRAWN).nth(1).wait_for()
            assert key not in page.content()
            assert all("401" in error for error in one.errors)
            one.errors.clear()


def test_what_was_set_before_the_script_and_every_field_reach_the_service(browser: Any, service: Running) -> None:
    with opened(browser, service) as one:
        sent: list[Any] = []
        one.page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
        one.page.goto(f"{service.url}/guide")
        one.page.evaluate(
            """async () => {
              const chart = document.createElement("normalcy-chart");
              const given = {
                site: "SoV", sex: "male", "age-years": 55, "height-cm": 176, "weight-kg": 84, "diameter-mm": 41,
                picture: "density", edge: "leading", phase: "end-diastole", modality: "CT",
                thresholds: "2, 3 -1", "include-unreliable": "", "hdi-probability": "0.9", subject: "MRN 1",
              };
              for (const [name, value] of Object.entries(given)) chart.setAttribute(name, value);
              chart.key = "set-early";
              document.body.append(chart);
              await import("/assets/normalcy-chart.js");
            }"""
        )
        one.page.locator("normalcy-chart svg, normalcy-chart [role=alert]").first.wait_for()
        [request] = sent
        assert request.headers["authorization"] == "Bearer set-early"
        body = request.post_data_json
        assert body["convention"] == {"edge": "leading", "phase": "end-diastole", "modality": "CT"}
        assert body["thresholds"] == [2, 3, -1]
        assert body["include_unreliable"] is True
        assert (body["hdi_probability"], body["subject"]) == (0.9, "MRN 1")
        one.errors.clear()
