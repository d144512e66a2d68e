"""The guide: the documents of `docs/`, the same files that the repository shows.

`docs/index.md` is served at /guide, `docs/clinicians.md` at /guide/clinicians, a picture at /guide/pictures/NAME. Links
between documents lead to the pages; a link to a file that is not served (code, for example) becomes plain text. A wheel
and an image hold the folder as `app/docs`; in a source tree it is beside `app`.
"""

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from app.web import markdown_page
from app.web.assets import Asset, make_asset

INDEX = "index"
FOLDER = "docs"
PICTURES, PICTURE = "pictures", ".svg"
COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z]+:")


def guide_page(name: str) -> Asset | None:
    """A document as a page; None if there is none of this name."""
    return _page(name) if name in _documents() else None


def guide_picture(name: str) -> Asset | None:
    file = _pictures().get(name)
    return make_asset(file.read_bytes(), PICTURE) if file else None


def served_link(page: str, link: str) -> str | None:
    """Where a link of a document leads on the page that shows it; None: to something that is not served."""
    path, hash_mark, anchor = link.partition("#")
    if not path or ELSEWHERE.match(path):
        return link
    folder = "guide/" if page == INDEX else ""
    name = path.removesuffix(".md")
    if path == f"{INDEX}.md":
        return f"../guide{hash_mark}{anchor}"
    if path.endswith(".md") and name in _documents():
        return f"{folder}{name}{hash_mark}{anchor}"
    if path.startswith(f"{PICTURES}/") and path.removeprefix(f"{PICTURES}/") in _pictures():
        return f"{folder}{path}"
    return None


@cache
def _page(name: str) -> Asset:
    text = COMMENT.sub("", _documents()[name].read_text("utf-8"))
    found = TITLE.search(text)
    title = f"Normalcy: {found[1]}" if found else "Normalcy"
    root = "./" if name == INDEX else "../"
    html = markdown_page.render(text, title, root, lambda link: served_link(name, link))
    return make_asset(html.encode(), ".html")


@cache
def _documents() -> dict[str, Traversable]:
    return {file.name.removesuffix(".md"): file for file in _folder().iterdir() if file.name.endswith(".md")}


@cache
def _pictures() -> dict[str, Traversable]:
    folder = _folder() / PICTURES
    return {file.name: file for file in folder.iterdir() if file.name.endswith(PICTURE)} if folder.is_dir() else {}


def _folder() -> Traversable:
    installed = files("app") / FOLDER
    return installed if installed.is_dir() else Path(__file__).parents[2] / FOLDER
