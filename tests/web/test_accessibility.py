"""axe-core finds nothing on any page, in any state, light and dark, wide and narrow, and nothing is cut off.

/docs and /redoc are the viewers of other projects, for developers, completed by viewers.css and viewers.js: they are
checked as they open, and /docs with one operation opened, but not in every state of theirs.
"""

from typing import Any

import pytest

from tests.web.browsing import opened
from tests.web.calculator import STATES, WITH_A_FAILED_REQUEST
from tests.web.conftest import Keyed
from tests.web.serving import Running
from tests.web.test_chart_element import DRAWN, open_example
from tests.web.test_guide import PAGES

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
        if state in WITH_A_FAILED_REQUEST:
            one.errors.clear()
        assert one.axe_violations() == []
        page.set_viewport_size({"width": NARROWEST, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
@pytest.mark.parametrize(
    ("path", "until"),
    [
        ("/guide", "main table"),
        ("/models/SoV/1.0.0", "main table"),
        ("/nothing", "main a"),
    ],
)
def test_the_pages_to_read(
    browser: Any, shipped: Running, path: str, until: str, viewport: dict[str, int], scheme: str
) -> None:
    with opened(browser, shipped, viewport=viewport, color_scheme=scheme) as one:
        one.open(path, until)
        assert one.axe_violations() == []
        one.errors.clear()  # what is not there: 404


def test_every_page_of_the_guide(browser: Any, shipped: Running) -> None:
    """Each on one of the screens: they share their style."""
    for k, screen in enumerate(SCREENS):
        viewport, scheme = screen.values
        with opened(browser, shipped, viewport=viewport, color_scheme=scheme) as one:
            for path in PAGES[k :: len(SCREENS)]:
                one.open(path, "main h1")
                assert (path, one.axe_violations(), one.errors) == (path, [], [])


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
@pytest.mark.parametrize("path", ["/", "/models/SoV/1.0.0"])
def test_where_a_key_is_needed(browser: Any, keyed: Keyed, path: str, viewport: dict[str, int], scheme: str) -> None:
    with opened(browser, keyed.running, viewport=viewport, color_scheme=scheme) as one:
        page = one.open(path, "#key-form:not([hidden])")
        assert one.axe_violations() == []
        page.fill("#key", "nsk_wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#key-error:has-text('does not accept')")
        assert one.axe_violations() == []
        one.errors.clear()  # 401


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
def test_the_example_of_an_embedded_picture(
    browser: Any, shipped: Running, viewport: dict[str, int], scheme: str
) -> None:
    with opened(browser, shipped, viewport=viewport, color_scheme=scheme) as one:
        open_example(one).locator(DRAWN).nth(1).wait_for()
        assert one.axe_violations() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_viewers_of_the_interface(browser: Any, shipped: Running, scheme: str) -> None:
    with opened(browser, shipped, color_scheme=scheme) as one:
        page = one.open("/docs", ".opblock-summary-control")
        page.locator(".opblock-summary-control").first.click()
        page.wait_for_selector("textarea[aria-label]")
        assert one.axe_violations() == []
        page = one.open("/redoc", "#redoc h5[aria-level]")
        arrows = page.locator("#redoc svg polygon").evaluate_all("all => all.map((one) => getComputedStyle(one).fill)")
        assert len(set(arrows)) == 1
        page.evaluate(KEEP_ONE_OPERATION)
        assert one.axe_violations() == []


def test_a_violation_is_found(browser: Any, shipped: Running) -> None:
    with opened(browser, shipped) as one:
        page = one.open()
        page.evaluate("document.querySelector('label[for=weight]').remove()")
        assert "label" in [found.partition(":")[0] for found in one.axe_violations()]
