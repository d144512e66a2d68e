"""axe-core finds nothing on any page, in any state, light and dark, wide and narrow, and nothing is cut off.

/docs and /redoc are the viewers of other projects, for developers, completed by viewers.css and viewers.js: they are
checked as they open, and /docs with one operation opened, but not in every state of theirs.
"""

from typing import Any

import pytest

from tests.web.browsing import opened
from tests.web.calculator import STATES
from tests.web.serving import Running

SCREENS = [
    pytest.param({"width": 1280, "height": 900}, "light", id="desktop-light"),
    pytest.param({"width": 390, "height": 800}, "dark", id="phone-dark"),
]
# ReDoc writes all operations at once, all alike, and axe-core would look at them for half a minute.
KEEP_ONE_OPERATION = """() => {
    for (const one of [...document.querySelectorAll("[id^='operation/']")].slice(1)) one.remove();
}"""
NARROWEST = 320  # a screen of 1280 px at 400%


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
@pytest.mark.parametrize("state", [state for state in STATES if state != "one site"])
def test_every_state_of_the_calculator(
    browser: Any, shipped: Running, state: str, viewport: dict[str, int], scheme: str
) -> None:
    with opened(browser, shipped, viewport=viewport, color_scheme=scheme) as one:
        page = one.open()
        STATES[state](page)
        assert one.axe_violations() == []
        page.set_viewport_size({"width": NARROWEST, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("path", "until"),
    [
        ("/guide", "main table"),
        ("/models/SoV/1.0.0", "main table"),
        ("/models/SoV/9.0.0", "#state:has-text('nknown')"),
    ],
)
def test_the_pages_to_read(browser: Any, shipped: Running, path: str, until: str, scheme: str) -> None:
    with opened(browser, shipped, color_scheme=scheme) as one:
        one.open(path, until)
        assert one.axe_violations() == []
        one.errors.clear()  # the card that is not there: 404


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_viewers_of_the_interface(browser: Any, shipped: Running, scheme: str) -> None:
    with opened(browser, shipped, color_scheme=scheme) as one:
        page = one.open("/docs", ".opblock-summary-control")
        page.locator(".opblock-summary-control").first.click()
        page.wait_for_selector("textarea[aria-label]")
        assert one.axe_violations() == []
        page = one.open("/redoc", "#redoc h5[aria-level]")
        page.evaluate(KEEP_ONE_OPERATION)
        assert one.axe_violations() == []


def test_a_violation_is_found(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped) as one:
        page = one.open()
        page.evaluate("document.querySelector('label[for=weight]').remove()")
        assert "label" in [found.partition(":")[0] for found in one.axe_violations()]
