import re
from dataclasses import replace
from pathlib import Path

import pytest

from app.domain.card import Gate
from app.formats.card_markdown import NOT_FOR_CARE, card_markdown
from app.formats.card_promises import COVERAGE_OF_SINGLE_MODELS
from app.maths.binomial import shares_found
from tests.samples import a_card

COVERAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
CARD = a_card()
TEXT = card_markdown(CARD)


def test_a_simulated_model_says_before_all_else_that_it_is_not_for_care() -> None:
    assert TEXT.splitlines()[2] == NOT_FOR_CARE
    real = replace(CARD, cohort=replace(CARD.cohort, name="Ghent 2024"))
    assert NOT_FOR_CARE not in card_markdown(real)


def test_the_card_tells_cohort_ranges_calibration_and_gates() -> None:
    for part in (
        *("200 people: 90", "ab" * 32, "leading", "seed 42", "| gpflow | 2.11.2 |", "| log_age | 3 | 0 |"),
        *("| age, years | 5 | 85 |", "| height, cm, female | 100 | 190 |", "| male | 90 | 2.2 % | 3.3 % |"),
        *("| NS | -2.5000 |", "| predictive tail below | 0.02 |"),
    ):
        assert part in TEXT


def test_a_failed_gate_is_plain_to_see() -> None:
    failed = replace(CARD, gates=(Gate("tail", 0.2, 0.0, 0.1),))
    assert "| tail | 0.2 | 0 | 0.1 | NO |" in card_markdown(failed)


def test_the_card_says_what_so_many_people_can_show_and_what_they_cannot() -> None:
    """200 people: 15 of them above would still pass, and a true share of 10.5 % would be found nine times of ten."""
    judged = replace(CARD, gates=(Gate("share above the 95 % interval, all", 0.03, 0.005, 0.075),))
    text = card_markdown(judged)
    least, most = shares_found(200, 1, 15, 0.9)
    assert least is not None
    assert most is not None
    assert f"| all | 200 | 0.5 % to 7.5 % | {100 * least:.2g} % or less, {100 * most:.2g} % or more |" in text
    assert "| male | 90 | not judged | no share |" in text
    open_below = replace(CARD, gates=(Gate("share above the 95 % interval, all", 0.03, 0.0, 0.075),))
    assert f"| all | 200 | 0.0 % to 7.5 % | {100 * most:.2g} % or more |" in card_markdown(open_below)


def test_the_coverage_of_single_models_on_the_card_is_the_measured_one() -> None:
    rows = re.findall(
        r"^\| everybody \|.*\| ([\d.]+)%, ([\d.]+)% \|$", COVERAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) == 2  # two sites
    lowest, highest = min(float(low) for low, _ in rows), max(float(high) for _, high in rows)
    assert tuple(100 * share for share in COVERAGE_OF_SINGLE_MODELS) == pytest.approx((lowest, highest))
    assert f"of {lowest:.1f} % to {highest:.1f} % with a single model" in " ".join(TEXT.split())
    readme = " ".join((COVERAGE.parent.parent / "README.md").read_text(encoding="utf-8").split())
    assert f"a single model's share varied from {lowest:.0f} to {highest:.0f}%" in readme


def test_free_text_cannot_break_the_page() -> None:
    assert "People \\| of &lt;nowhere> at all." in TEXT


def test_every_table_has_as_many_cells_in_each_row() -> None:
    blocks = [block for block in TEXT.split("\n\n") if block.startswith("|")]
    assert blocks
    for block in blocks:
        assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1


def test_a_part_of_the_convention_that_is_unknown_is_not_stated() -> None:
    unknown = replace(CARD, convention=replace(CARD.convention, phase=None))
    assert "| phase | not stated |" in card_markdown(unknown)
