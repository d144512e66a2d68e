"""The pages work in a real browser, under their own policy, with the network cut."""

import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.serving import Running

PAGES = ("/", "/docs", "/redoc")
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
    for name in re.findall(r"assets/[\w.-]+", page.text):
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
        self.page.on("requestfailed", lambda request: self.troubles.append(f"failed: {request.url}"))
        self.page.route(lambda url: not url.startswith((running.url, "data:")), self._cut)

    def _cut(self, route: Any) -> None:
        self.troubles.append(f"asked for {route.request.url}")
        route.abort()


@pytest.fixture
def visit(browser: Any, shared: Running) -> Iterator[Visit]:
    visiting = Visit(browser, shared)
    yield visiting
    visiting.page.close()
    assert visiting.troubles == []


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
