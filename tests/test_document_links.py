"""Every link in a document leads somewhere, to the right heading, and every path that a document names exists."""

import re

import pytest

from tests.documents import FENCE, ROOT

FILES = {str(file.relative_to(ROOT)): file for file in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")))}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
PATH = re.compile(r"(?<![\w./-])((?:app|tests|tools|docs|deploy|requirements|migrations|models_store)/[\w./*-]*[\w*/])")


def text(name: str) -> str:
    return FILES[name].read_text("utf-8")


def anchors(markdown: str) -> set[str]:
    """The anchors of headings, as GitHub makes them."""
    headings = (
        re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", found) for found in HEADING.findall(FENCE.sub("", markdown))
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(name: str) -> list[str]:
    found = []
    for link in LINK.findall(FENCE.sub("", text(name))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (FILES[name].parent / path).resolve() if path else FILES[name]
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            found.append(link)
    return found


@pytest.mark.parametrize("name", FILES)
def test_links_lead_to_files_and_headings_that_exist(name: str) -> None:
    assert dead_links(name) == []


@pytest.mark.parametrize("name", FILES)
def test_paths_in_documents_exist(name: str) -> None:
    named = {path.rstrip(".") for path in PATH.findall(text(name))}
    assert {path for path in named if not any(ROOT.glob(path.rstrip("/")))} == set()


def test_the_documents_lead_to_the_code() -> None:
    """The checks above see links and paths: these pages have many."""
    assert len(PATH.findall(text("README.md"))) > 10
    assert len(PATH.findall(text("docs/architecture.md"))) > 40
    assert len(LINK.findall(text("docs/index.md"))) > 20


def test_the_page_that_a_campaign_writes_is_there() -> None:
    sources = [*(ROOT / "tests/campaigns").rglob("*.py"), ROOT / "Makefile"]
    written = {path for file in sources for path in re.findall(r"--out (docs/\S+\.md)", file.read_text("utf-8"))}
    assert "docs/charts.md" in written
    assert {path for path in written if path not in FILES} == set()


def test_every_page_is_in_the_index() -> None:
    linked = {link.partition("#")[0] for link in LINK.findall(text("docs/index.md"))}
    pages = {file.name for file in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages - linked == set()


@pytest.mark.parametrize("name", FILES)
def test_no_two_headings_have_the_same_anchor(name: str) -> None:
    """GitHub would number them, the guide would not."""
    if name != "CHANGELOG.md":
        headings = HEADING.findall(FENCE.sub("", text(name)))
        assert len(anchors(text(name))) == len(headings)


def test_a_heading_has_the_anchor_that_github_gives_it() -> None:
    made = anchors("# What it is for, and what not\n\n## `normalcy` audit: how?\n\n```sh\n# no heading\n```\n")
    assert made == {"what-it-is-for-and-what-not", "normalcy-audit-how"}
