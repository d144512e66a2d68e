"""What the chapter says follows from the numbers it is given."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from app.benchmark.paper.clinical_report import headline, p_value, render, versus_z
from tests.benchmark.paper.test_clinical import small_run

pytestmark = pytest.mark.gpflow


def against_z(difference: float, p: float) -> dict[str, Any]:
    return {"methods": {"linear Z": {"versus_ns": {"difference": difference, "standard_error": 0.01, "p": p}}}}


def test_every_picture_is_linked_and_the_same_twice(tmp_path: Path) -> None:
    texts = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        texts.append(render(small_run(), tmp_path / name))
    assert texts[0] == texts[1]
    linked = set(re.findall(r"\(paper/(\w+\.svg)\)", texts[0]))
    assert linked == {path.name for path in (tmp_path / "first").iterdir()}
    for name in linked:
        drawn = (tmp_path / "first" / name).read_bytes()
        assert drawn == (tmp_path / "second" / name).read_bytes()
        assert b"<dc:date>" not in drawn


def test_the_tables_hold_the_numbers_of_the_run(tmp_path: Path) -> None:
    changed = copy.deepcopy(small_run())
    changed["roc"]["AA"]["40 mm"]["methods"]["Altman"]["area"] = 0.12345
    changed["counts"]["SoV"]["in_the_tail"] = 987
    text = render(changed, tmp_path)
    assert "| Altman | 0.123 ±" in text
    assert re.search(r"\| SoV \|[^\n]*\| 987 \| 82 \(other patients\)", text)
    assert "nan" not in text
    assert "by the true z: " in headline(changed)
    assert "nothing in this chapter repeats the paper's clinical results" in text


@pytest.mark.parametrize(
    ("difference", "p", "words"),
    [
        (-0.0401, 1e-9, "behind by 0.040 at AA (p < 0.001)"),
        (0.0024, 0.02, "ahead by 0.002 at AA (p = 0.020)"),
        (0.0036, 0.109, "ahead by 0.004 at AA (p = 0.109)"),
    ],
)
def test_ahead_and_behind_follow_the_sign(difference: float, p: float, words: str) -> None:
    assert versus_z("AA", against_z(difference, p)) == words


@pytest.mark.parametrize(("p", "words"), [(0.0004, "< 0.001"), (0.001, "0.001"), (0.25, "0.250")])
def test_small_p_are_not_given_as_zero(p: float, words: str) -> None:
    assert p_value(p) == words
