"""Takes the pictures of the calculator in docs/screenshots: `make screenshots`. Look at them before you commit them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from tests.web.browsing import chromium, opened, patient_settings
from tests.web.calculator import STATES
from tests.web.serving import serving

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "screenshots"
DESKTOP = {"width": 1280, "height": 1070}
PHONE = {"width": 390, "height": 844}
A4 = {"width": 718, "height": 1047}  # px, within its margins

# Name of the file, state, screen, scheme, medium, and the element at the top of the picture.
SHOTS: list[tuple[str, str, dict[str, int], str, str, str]] = [
    ("result", "one site", DESKTOP, "light", "screen", "header"),
    ("not-reliable", "not reliable", DESKTOP, "light", "screen", "header"),
    ("visits", "visits", {"width": 1280, "height": 680}, "light", "screen", "#visits-result"),
    ("phone-result", "two sites", PHONE, "dark", "screen", "#result"),
    ("print", "two sites", A4, "light", "print", "main"),
]


def take(browser: Any, running: Any, shot: tuple[str, str, dict[str, int], str, str, str]) -> None:
    name, state, viewport, scheme, medium, top = shot
    screen = DESKTOP if medium == "print" else viewport  # people print from a screen
    with opened(browser, running, viewport=screen, color_scheme=scheme, reduced_motion="reduce") as one:
        page = one.open()
        STATES[state](page)
        page.emulate_media(media=medium, color_scheme=scheme)
        if medium == "print":
            page.set_viewport_size(viewport)
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.evaluate("document.activeElement.blur()")
        page.evaluate("top => document.querySelector(top).scrollIntoView()", top)
        file = FOLDER / f"{name}.png"
        page.screenshot(path=file)
    with Image.open(file) as picture:  # few colours: half of the size
        picture.convert("RGB").quantize(192).save(file, optimize=True)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as data:
        settings = patient_settings(Path(data))
        with serving(settings, ROOT / "models_store") as running, chromium() as browser:
            for shot in SHOTS:
                take(browser, running, shot)


if __name__ == "__main__":
    main()
