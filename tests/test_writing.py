"""The words that CONTRIBUTING.md says we do not use are not in the code, the tests or the documents."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Only words that are never right here; the table in CONTRIBUTING.md has more. A part of a name counts too: `door_of`.
WORDS = [
    "anew", "deaf", "desk", "desks", "door", "doors", "envelope", "envelopes", "gentle", "mended", "on[ _]its[ _]way",
    "reign", "reigns", "shelf", "slip", "slips", "stranger", "strangers", "tells[ _]of", "told", "under[ _]way",
    "visiting", "watcher", "wears",
]  # fmt: skip
FORBIDDEN = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(WORDS)})(?![A-Za-z])", re.IGNORECASE)
STEM = re.compile(r"s$|ed$|ing$")
SUFFIXES = {".py", ".md", ".html", ".js", ".css", ".sh", ".yml", ".toml"}
# They say which words we do not use.
LISTS = {"CONTRIBUTING.md", "tests/test_writing.py"}


def written_files() -> Iterator[Path]:
    for folder in ("app", "tests", "docs", "deploy"):
        yield from (file for file in sorted((ROOT / folder).rglob("*")) if file.suffix in SUFFIXES and file.is_file())
    yield from sorted(file for file in ROOT.iterdir() if file.suffix in SUFFIXES or file.name == "Makefile")


def found_in(name: str, text: str) -> list[str]:
    """Each with file and line, as an editor can open it."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{name}:{number}: {word}" for number, line in lines for word in FORBIDDEN.findall(line)]


def test_words_that_we_do_not_use() -> None:
    names = {str(file.relative_to(ROOT)): file for file in written_files()}
    found = [one for name in names.keys() - LISTS for one in found_in(name, names[name].read_text("utf-8"))]
    assert not found, "Write it in plain English (see the writing guide in CONTRIBUTING.md):\n" + "\n".join(
        sorted(found)
    )


@pytest.mark.parametrize(
    "text", ["the reigns", "reign_of", "class Reign:", "A Watcher.", "is under way", "answer_under_way"]
)
def test_a_word_is_found_in_prose_and_in_names(text: str) -> None:
    [found] = found_in("a.py", f"first line\n{text}\n")
    assert found.startswith("a.py:2: ")


def test_parts_of_other_words_are_not_found() -> None:
    assert found_in("a.py", "foreign sovereign reigned") == []


def test_the_writing_guide_lists_every_word() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Writing guide")[2]
    assert [word for word in WORDS if not re.search(rf"\b{STEM.sub('', word)}", guide)] == []
