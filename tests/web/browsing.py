"""Pages in a real headless Chromium that can reach the service alone, and what went wrong on them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings, load_settings
from tests.web.serving import Running

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
]
AXE = Path(__file__).parents[2] / ".venv/browser/node_modules/axe-core/axe.min.js"
# The rules of WCAG 2.2 A and AA, and what axe-core recommends beyond them.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PATIENCE_MS = 120_000  # for anything on a page, however busy the machine


def patient_settings(folder: Path) -> Settings:
    """Of a service for tests in a browser. On a busy machine, drawing may take longer than a response may in use, and
    the page would show a 503."""
    return replace(load_settings({"NORMALCY_DATA_DIR": str(folder)}), audit_budget_seconds=60.0)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser. While it is open, `asyncio.run` does not work in this thread (Playwright's loop runs in it)."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        not_installed("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield launched
        launched.close()


def not_installed(reason: str) -> None:
    """Skips the test, but fails in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class OpenPage:
    """A page that records everything that goes wrong on it, and from which only the service can be reached."""

    def __init__(self, browser: Any, running: Running, **context: Any) -> None:
        self.running = running
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.route(lambda url: not url.startswith((running.url, "data:", "blob:")), self._cut)

    def open(self, path: str = "/", until: str = "#cards a") -> Any:
        """Goes to a page of the service and waits for an element; that of the calculator is there when the service has
        listed its models and limits."""
        self.page.goto(self.running.url + path)
        self.page.wait_for_selector(until)
        return self.page

    def open_and_weigh(self) -> int:
        """Opens the calculator, and returns what came over the wire until it was ready, in bytes with headers."""
        network = self.context.new_cdp_session(self.page)
        network.send("Network.enable")
        sizes: list[int] = []
        network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        self.open()
        assert len(sizes) > 10
        return sum(sizes)

    def axe_violations(self) -> list[str]:
        """What axe-core finds on the page as it is now: rule, first element, and why."""
        if not AXE.exists():
            not_installed("axe-core is not installed: run `make browser-tools` (needs npm)")
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
        assert found["passes"]
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary', '')}"
            for one in found["violations"]
        ]

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the icon of a page that is left before it has arrived
            self.errors.append(f"failed: {request.url}")

    def _cut(self, route: Any) -> None:
        self.errors.append(f"requested {route.request.url}")
        route.abort()


@contextmanager
def opened(browser: Any, running: Running, **context: Any) -> Iterator[OpenPage]:
    """Afterwards nothing may have gone wrong; a test that causes an error clears `errors`."""
    one = OpenPage(browser, running, **context)
    yield one
    one.context.close()
    assert one.errors == []
