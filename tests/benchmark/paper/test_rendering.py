"""Templates: parts, placeholders and wrapped paragraphs. Marks are tested with the report."""

from pathlib import Path

import pytest

from app.benchmark.paper import rendering
from app.benchmark.paper.rendering import TEMPLATES, Prose

TEMPLATE = """\
<!-- chapter -->
## A title

A paragraph that is wrapped
before $count
things.

- a point that
  is wrapped
- another

$table

<!-- sentence -->
Only $count.
"""


@pytest.fixture
def prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prose:
    (tmp_path / "one.md").write_text(TEMPLATE)
    monkeypatch.setattr(rendering, "TEMPLATES", tmp_path)
    return Prose("one")


def test_paragraphs_and_points_are_joined_and_values_are_not_changed(prose: Prose) -> None:
    assert prose("chapter", count=3, table="| a |\n| --- |") == (
        "## A title\n\nA paragraph that is wrapped before 3 things.\n\n"
        "- a point that is wrapped\n- another\n\n| a |\n| --- |"
    )
    assert prose("sentence", count="$5") == "Only $5."


def test_a_value_that_is_missing_or_has_no_placeholder_is_refused(prose: Prose) -> None:
    with pytest.raises(KeyError, match="table"):
        prose("chapter", count=3)
    with pytest.raises(ValueError, match="no place for table"):
        prose("sentence", count=3, table="")


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.stem)
def test_a_template_is_wrapped_and_begins_with_a_part(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!-- ")
    assert max(map(len, text.splitlines())) <= 120
