from dataclasses import replace

from app.domain.card import Gate
from app.formats.card_markdown import NOT_FOR_CARE, card_markdown
from tests.samples import a_card

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
