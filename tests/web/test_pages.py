"""The pages work in a real browser, under their own policy, with the network cut."""

import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.serving import Running

PAGES = ("/", "/guide", "/models/SoV/1.0.0", "/docs", "/redoc")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_runs_no_script_of_its_own_text_and_loads_nothing_from_elsewhere(shared: Running, path: str) -> None:
    page = shared.client.get(path)
    policy = page.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|javascript:", page.text)
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", page.text)
    for name in re.findall(r"(?<=[\"/])assets/[\w.-]+", page.text):
        assert shared.client.get(f"/{name}").status_code == 200, name


def test_everything_else_may_load_nothing(shared: Running) -> None:
    for path in ("/v1/sites", "/openapi.json", "/assets/page.css", "/nothing"):
        headers = shared.client.get(path).headers
        assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have a browser")
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield launched
        launched.close()


class Visit:
    """A page of which everything that goes wrong is remembered, and from which only this machine can be reached."""

    def __init__(self, browser: Any, running: Running) -> None:
        self.page = browser.new_page()
        self.troubles: list[str] = []
        self.page.on("console", lambda m: self.troubles.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.route(lambda url: not url.startswith((running.url, "data:")), self._cut)

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the icon of a page that is left before it has arrived
            self.troubles.append(f"failed: {request.url}")

    def _cut(self, route: Any) -> None:
        self.troubles.append(f"asked for {route.request.url}")
        route.abort()


@pytest.fixture
def visit(browser: Any, shared: Running) -> Iterator[Visit]:
    opened = Visit(browser, shared)
    yield opened
    opened.page.close()
    assert opened.troubles == []


def test_the_example_can_be_tried_out_as_it_is(visit: Visit, shared: Running) -> None:
    page = visit.page
    page.goto(f"{shared.url}/docs")
    operation = page.locator(".opblock", has=page.locator('[data-path="/v1/sites/{site}/score"]'))
    operation.locator(".opblock-summary-control").click()
    operation.locator("button.execute").click()
    live = operation.locator(".live-responses-table .response")
    live.wait_for()
    assert live.locator(".response-col_status").inner_text().strip() == "200"
    assert "expected_ns" in live.inner_text()


def test_the_reference_is_drawn(visit: Visit, shared: Running) -> None:
    page = visit.page
    page.goto(f"{shared.url}/redoc")
    page.get_by_role("heading", name="Score one measurement").first.wait_for()
    assert "Is this aorta wider" in page.inner_text("body")


def test_the_first_page_leads_to_the_others(visit: Visit, shared: Running) -> None:
    page = visit.page
    page.goto(shared.url)
    assert "simulated" in page.inner_text("main")
    page.get_by_role("link", name="Try the service").click()
    page.wait_for_selector(".swagger-ui .info")
    assert page.url == f"{shared.url}/docs"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["/guide", "/models/SoV/1.0.0"])
def test_a_page_to_read_fits_its_screen(visit: Visit, shared: Running, path: str, width: int) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(shared.url + path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.querySelector('.wide')).overflowX") == "auto"  # its style is there
    beside = page.locator("main").bounding_box()["x"] >= page.locator("nav ul").bounding_box()["width"]
    assert beside == (width > 1000)


def test_the_type_of_a_problem_opens_at_its_explanation(visit: Visit, shared: Running) -> None:
    page = visit.page
    kind = shared.client.get("/v1/models/none/history").json()["type"]
    page.goto(shared.url + kind)
    shown = page.locator(":target")
    assert shown.inner_text() == "Unknown site"
    assert 0 <= shown.bounding_box()["y"] < page.viewport_size["height"]


def test_the_first_page_leads_to_the_guide_and_back(visit: Visit, shared: Running) -> None:
    page = visit.page
    page.goto(shared.url)
    page.get_by_role("link", name="Read the guide").click()
    page.get_by_role("navigation").get_by_role("link", name="Keys and scopes").click()
    assert page.url == f"{shared.url}/guide#keys"
    page.goto(f"{shared.url}/models/SoV/1.0.0")
    page.get_by_role("link", name="Normalcy").click()
    assert page.url == f"{shared.url}/"
