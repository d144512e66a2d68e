"""The calculator as a user operates it, for tests in a browser: fill the form, calculate, reach a state."""

import json
from collections.abc import Callable
from typing import Any

from tests.web.browsing import OpenPage

PERSON = {"age": "55", "height": "176", "weight": "84"}
BOTH_SITES = {"diameter-SoV": "41", "diameter-AA": "38.5"}
ONE_SITE = {"diameter-SoV": "41"}
RESULT = "#result:not([hidden])"
# From submit to the pictures of both sites, in ms; infinite if the service answered with an error instead. A result may
# be shown already.
MEASURE = """async () => {
    for (const old of document.querySelectorAll("#sites figure")) old.dataset.old = "";
    const drawn = () => document.querySelectorAll("#sites figure:not([data-old]) svg").length === 4;
    const failed = () => document.querySelector("#errors:not([hidden]), #sites .pictures > .hint") !== null;
    const start = performance.now();
    document.getElementById("calculate").click();
    while (!drawn() && !failed()) await new Promise(requestAnimationFrame);
    return drawn() ? performance.now() - start : Infinity;
}"""


def choose(page: Any, name: str, value: str) -> None:
    page.locator(f"input[name={name}][value={value}]").check(force=True)  # its label covers it


def fill(page: Any, sex: str | None = "male", **values: str) -> None:
    """`values` by the id of the input, `_` for `-`; without diameters: those of both sites."""
    if sex:
        choose(page, "sex", sex)
    given = {name.replace("_", "-"): value for name, value in values.items()}
    has_diameter = any(name.startswith("diameter") for name in given)
    for name, value in (PERSON | ({} if has_diameter else BOTH_SITES) | given).items():
        page.fill(f"#{name}", value)


def calculate(page: Any) -> None:
    """Returns when the new result is there with all pictures; the last one stays until then."""
    page.evaluate("() => document.querySelectorAll('#sites > *').forEach((old) => { old.dataset.old = ''; })")
    page.click("#calculate")
    page.wait_for_selector(f"{RESULT} [data-site]:not([data-old])")
    page.wait_for_selector(".pictures[aria-busy]", state="detached")


def sent(one: OpenPage) -> list[tuple[str, Any]]:
    """Every request with a body from now on: path and body."""
    bodies: list[tuple[str, Any]] = []

    def note(request: Any) -> None:
        if request.post_data:
            bodies.append((request.url.removeprefix(one.running.url), json.loads(request.post_data)))

    one.page.on("request", note)
    return bodies


def add_visits(page: Any, count: int = 3) -> None:
    page.click("#visits summary")
    for number in range(1, count + 1):
        page.click("#add-visit")
        page.fill(f"#visit-{number}-age", str(40 + 3 * number))
        page.fill(f"#visit-{number}-SoV", str(36 + number))


def _two_sites(page: Any) -> None:
    fill(page)
    calculate(page)


def _one_site(page: Any) -> None:
    fill(page, **ONE_SITE)
    calculate(page)


def _caution(page: Any) -> None:
    fill(page, age="79", diameter_SoV="46")
    calculate(page)


def _not_reliable(page: Any) -> None:
    fill(page, "female", age="3", height="95", weight="14", diameter_SoV="19")
    calculate(page)


def _shown_anyway(page: Any) -> None:
    _not_reliable(page)
    page.get_by_role("button", name="Show the numbers anyway").click()
    page.wait_for_selector(".figures")
    page.wait_for_selector(".pictures[aria-busy]", state="detached")


def _errors(page: Any) -> None:
    fill(page, None, height="1.76")
    page.click("#calculate")
    page.wait_for_selector("#errors:not([hidden])")


def _patient(page: Any) -> None:
    _two_sites(page)
    choose(page, "wording", "patient")


def _visits(page: Any) -> None:
    fill(page, **ONE_SITE)
    add_visits(page)
    calculate(page)


def _visits_of_both_sites(page: Any) -> None:
    fill(page)
    add_visits(page)
    for number in (1, 2, 3):
        page.fill(f"#visit-{number}-AA", str(33 + number))
    calculate(page)


def _copied_by_hand(page: Any) -> None:
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    _one_site(page)
    page.click("#copy")
    page.wait_for_selector("textarea.copy")


def _offline(page: Any) -> None:
    page.context.set_offline(True)
    fill(page, **ONE_SITE)
    page.click("#calculate")
    page.wait_for_selector("#errors:not([hidden])")


def _dates_and_imperial(page: Any) -> None:
    choose(page, "age-by", "dates")
    choose(page, "units", "imperial")
    choose(page, "diameter-unit", "cm")
    page.click("#more summary")
    for name, value in {"birth": "1971-03-04", "study": "2026-11-01", "height-ft": "5", "height-in": "9"}.items():
        page.fill(f"#{name}", value)


def _stale(page: Any) -> None:
    _two_sites(page)
    page.fill("#age", "56")


# Where the browser reports a request that failed.
WITH_A_FAILED_REQUEST = {"errors", "offline"}
STATES: dict[str, Callable[[Any], None]] = {
    "empty": lambda page: None,
    "errors": _errors,
    "one site": _one_site,
    "two sites": _two_sites,
    "caution": _caution,
    "not reliable": _not_reliable,
    "shown anyway": _shown_anyway,
    "patient": _patient,
    "visits": _visits,
    "visits of both sites": _visits_of_both_sites,
    "copied by hand": _copied_by_hand,
    "offline": _offline,
    "dates and imperial": _dates_and_imperial,
    "stale": _stale,
}
