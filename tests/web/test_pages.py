"""The pages work in a real browser, under their own policy, with the network cut."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.schemas.problem import MEDIA_TYPE
from app.web.error_handlers import DEEPEST
from tests.web.browsing import OpenPage, opened
from tests.web.serving import Running

PAGES = ("/", "/guide", "/models/SoV/1.0.0", "/docs", "/redoc")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.req("REQ-045")
def test_a_page_runs_no_script_of_its_own_text_and_loads_nothing_from_elsewhere(shared: Running, path: str) -> None:
    page = shared.client.get(path)
    policy = page.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\s(?:on\w+|style)=|javascript:", page.text)
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", page.text)
    for name in re.findall(r"(?<=[\"/])assets/[\w.-]+", page.text):
        assert shared.client.get(f"/{name}").status_code == 200, name


def test_everything_else_may_load_nothing(shared: Running) -> None:
    for path in ("/v1/sites", "/openapi.json", "/assets/page.css", "/nothing"):
        headers = shared.client.get(path).headers
        assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.fixture
def visited(browser: Any, shared: Running) -> Iterator[OpenPage]:
    with opened(browser, shared) as one:
        yield one


def test_the_example_can_be_tried_out_as_it_is(visited: OpenPage, shared: Running) -> None:
    page = visited.page
    page.goto(f"{shared.url}/docs")
    operation = page.locator(".opblock", has=page.locator('[data-path="/v1/sites/{site}/score"]'))
    operation.locator(".opblock-summary-control").click()
    operation.locator("button.execute").click()
    live = operation.locator(".live-responses-table .response")
    live.wait_for()
    assert live.locator(".response-col_status").inner_text().strip() == "200"
    assert "expected_ns" in live.inner_text()


def test_the_reference_is_drawn(visited: OpenPage, shared: Running) -> None:
    page = visited.page
    page.goto(f"{shared.url}/redoc")
    page.get_by_role("heading", name="Score one measurement").first.wait_for()
    assert "Is this aorta wider" in page.inner_text("body")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["/guide", "/models/SoV/1.0.0"])
def test_a_page_to_read_fits_its_screen(visited: OpenPage, shared: Running, path: str, width: int) -> None:
    page = visited.page
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(shared.url + path)
    page.locator("main .wide").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.querySelector('.wide')).overflowX") == "auto"  # its style is there
    beside = page.locator("main").bounding_box()["x"] >= page.locator("nav ul").bounding_box()["width"]
    assert beside == (width > 1000)


def test_the_type_of_a_problem_opens_at_its_explanation(visited: OpenPage, shared: Running) -> None:
    page = visited.page
    kind = shared.client.get("/v1/models/none/history").json()["type"]
    page.goto(shared.url + kind)
    shown = page.locator(":target")
    assert shown.inner_text() == "Problem: unknown-site"
    assert 0 <= shown.bounding_box()["y"] < page.viewport_size["height"]


def test_the_pages_lead_to_each_other(visited: OpenPage, shared: Running) -> None:
    page = visited.page
    page.goto(shared.url)
    page.get_by_role("link", name="API").click()
    page.wait_for_selector(".swagger-ui .info")
    assert page.url == f"{shared.url}/docs"
    page.goto(shared.url)
    page.get_by_role("link", name="Guide").click()
    page.get_by_role("navigation").get_by_role("link", name="Kinds of problems").click()
    assert page.url == f"{shared.url}/guide#kinds-of-problems"
    page.get_by_role("link", name="For clinicians").first.click()
    assert page.url == f"{shared.url}/guide/clinicians"
    page.goto(f"{shared.url}/models/SoV/1.0.0")
    page.get_by_role("link", name="Normalcy").click()
    assert page.url == f"{shared.url}/"


def test_a_person_at_a_wrong_address_gets_a_page_and_a_program_a_problem(shared: Running) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    for path, root in {"/nothing": "./", "/guide/nothing": "../"}.items():
        page = shared.client.get(path, headers=browser)
        assert page.status_code == 404
        assert page.headers["content-type"].startswith("text/html")
        assert f'href="{root}guide"' in page.text
        assert "nothing" not in page.text
        assert shared.client.get(path).headers["content-type"] == "application/problem+json"
    for path in ("/models/SoV/9.9.9", "/models/nothing/1.0.0", "/models/SoV/nothing", "/models/..%5CSoV/1.0.0"):
        page = shared.client.get(path, headers=browser)
        assert page.status_code == 404
        assert page.headers["content-type"].startswith("text/html")
        assert 'href="../../guide"' in page.text
        assert "nothing" not in page.text
        assert shared.client.get(path).headers["content-type"] == "application/problem+json"
    for path in ("/models/SoV/1.0.0", "/models/SoV/1.1.0", "/models/SoV/current"):
        assert shared.client.get(path, headers=browser).status_code == 200, path
    api = shared.client.get("/v1/nothing", headers=browser)
    assert api.headers["content-type"] == "application/problem+json"


@pytest.mark.req("REQ-095")
def test_an_address_of_many_slashes_gets_no_page(shared: Running) -> None:
    """Anybody may send it, and its page would have some 200 kB, because every link leads back up from there."""
    for slashes, media_type in ((DEEPEST, "text/html"), (DEEPEST + 1, MEDIA_TYPE), (7000, MEDIA_TYPE)):
        answer = shared.client.get("/a" * slashes, headers={"Accept": "text/html"})
        assert (answer.status_code, len(answer.content) < 1500) == (404, True), slashes
        assert answer.headers["content-type"].startswith(media_type)
