"""The pages where the service requires a key, in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

from tests.web.browsing import opened
from tests.web.calculator import RESULT, fill, sent


def test_where_a_key_is_needed_the_page_asks_for_it(browser: Any, keyed: Any) -> None:
    running, both, reading = keyed
    with opened(browser, running) as one:
        page = one.open(until="#key-form:not([hidden])")
        assert "model:read" in page.inner_text("#key-form")
        assert one.errors == []  # no request was refused to find this out
        page.get_by_role("button", name="Use this key").click()
        assert page.inner_text("#key-error") == "Enter a key."
        page.fill("#key", "nsk_ключ")
        page.keyboard.press("Enter")
        assert "does not accept" in page.inner_text("#key-error")
        page.fill("#key", "nsk_wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#key-error:has-text('does not accept')")
        page.fill("#key", reading)
        page.keyboard.press("Enter")
        page.wait_for_selector("#cards a")
        assert page.locator("#key-form").is_hidden()
        fill(page)
        page.click("#calculate")
        page.wait_for_selector("#key-error:has-text('lacks a scope')")
        page.fill("#key", both)
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-site=AA] [data-picture=reference]")
        assert both not in page.content()
        assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        page.reload()
        page.wait_for_selector("#key-form:not([hidden])")
        assert [error for error in one.errors if not re.search("40[13]", error)] == []
        one.errors.clear()


def test_without_a_key_calculate_leads_to_it_and_clear_forgets_the_patient(browser: Any, keyed: Any) -> None:
    running, both, _ = keyed
    with opened(browser, running, viewport={"width": 390, "height": 700}) as one:
        page, bodies = one.open(until="#key-form:not([hidden])"), sent(one)
        fill(page)
        page.click("#calculate")
        page.wait_for_selector("#key-error:has-text('Enter a key first.')")
        assert page.evaluate("document.activeElement.id") == "key"
        assert page.evaluate("document.getElementById('key').getBoundingClientRect().top") >= 0
        assert page.get_attribute("#calculate", "aria-busy") is None
        page.get_by_role("button", name="Clear").click()
        page.fill("#key", both)
        page.keyboard.press("Enter")
        page.wait_for_selector("#cards a")  # a round trip after the key was taken: a calculation would have been sent
        assert bodies == []
        assert page.locator(RESULT).count() == 0


def test_a_card_asks_for_a_key_too(browser: Any, keyed: Any) -> None:
    running, _, reading = keyed
    with opened(browser, running) as one:
        page = one.open("/models/SoV/1.0.0", until="#key-form:not([hidden])")
        assert "Loading" not in page.inner_text("main")
        assert "1110" not in page.content()
        page.fill("#key", "nsk_wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#key-error:has-text('does not accept')")
        assert "Loading" not in page.inner_text("main")
        one.errors.clear()
        page.fill("#key", reading)
        page.keyboard.press("Enter")
        page.wait_for_selector("main h1:has-text('SoV 1.0.0')")
        assert "1110 people" in page.inner_text("main")
        assert page.title() == "Normalcy: SoV 1.0.0"
        with page.expect_download() as event:
            page.get_by_role("link", name="The same as JSON").click()
        assert event.value.suggested_filename == "normalcy-SoV-1.0.0.json"
        assert json.loads(Path(event.value.path()).read_text())["version"] == "1.0.0"
