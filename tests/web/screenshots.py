"""Takes the pictures of the pages in docs/screenshots: `make screenshots`. Look at them before you commit them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from tests.web.browsing import chromium, opened, patient_settings
from tests.web.calculator import STATES
from tests.web.serving import Running, create_key, serving

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "screenshots"
DESKTOP = {"width": 1280, "height": 1070}
PHONE = {"width": 390, "height": 844}
A4 = {"width": 718, "height": 1047}  # px, within its margins
KEY_FORM = "#key-form:not([hidden])"


@dataclass(frozen=True)
class Shot:
    file: str
    state: Callable[[Any], None]
    screen: dict[str, int]
    top: str = "header"  # the element at the top of the picture
    scheme: str = "light"
    medium: str = "screen"
    path: str = "/"
    until: str = "#cards a"


SHOTS = [
    Shot("result", STATES["one site"], DESKTOP),
    Shot("result-dark", STATES["one site"], DESKTOP, scheme="dark"),
    Shot("caution", STATES["caution"], DESKTOP),
    Shot("not-reliable", STATES["not reliable"], DESKTOP),
    Shot("patient", STATES["patient"], {"width": 1280, "height": 960}),
    Shot("errors", STATES["errors"], {"width": 1280, "height": 960}),
    Shot("visits", STATES["visits"], {"width": 1280, "height": 680}, "#visits-result"),
    Shot("phone-result", STATES["two sites"], PHONE, "#result", "dark"),
    Shot("print", STATES["two sites"], A4, "main", medium="print"),
    Shot("card", STATES["empty"], {"width": 1280, "height": 900}, path="/models/SoV/1.0.0", until="main figure"),
]
WITH_KEYS = [Shot("key", STATES["empty"], {"width": 1280, "height": 760}, until=KEY_FORM)]


def take(browser: Any, running: Running, shot: Shot) -> None:
    screen = DESKTOP if shot.medium == "print" else shot.screen  # people print from a screen
    with opened(browser, running, viewport=screen, color_scheme=shot.scheme, reduced_motion="reduce") as one:
        page = one.open(shot.path, shot.until)
        shot.state(page)
        page.emulate_media(media=shot.medium, color_scheme=shot.scheme)
        if shot.medium == "print":
            page.set_viewport_size(shot.screen)
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.evaluate("document.activeElement.blur()")
        page.evaluate("top => document.querySelector(top).scrollIntoView()", shot.top)
        file = FOLDER / f"{shot.file}.png"
        page.screenshot(path=file)
        one.errors.clear()  # a form with errors: 422
    with Image.open(file) as picture:  # few colours: half of the size
        picture.convert("RGB").quantize(192).save(file, optimize=True)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as data, ThreadPoolExecutor(1) as other:
        settings = patient_settings(Path(data))
        with serving(settings, ROOT / "models_store") as running, chromium() as browser:
            for shot in SHOTS:
                take(browser, running, shot)
            other.submit(create_key, running.settings, ["score"]).result()  # in another thread: see `chromium`
            running.inside(running.runtime.poller.refresh())
            for shot in WITH_KEYS:
                take(browser, running, shot)


if __name__ == "__main__":
    main()
