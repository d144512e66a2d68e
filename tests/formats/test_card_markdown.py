import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from app.domain.card import BmiCurve, Gate, ModelCard, TailCheck, tail_gate
from app.formats.card_markdown import COVERAGE_OF_SINGLE_MODELS, NOT_FOR_CARE, card_markdown, history_markdown, percent
from app.maths.statistics import shares_found
from app.schemas.lookups import ModelHistory
from app.store import load
from app.training.calibration import calibration_gates
from tests.samples import a_card

COVERAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
CARD = a_card()
SHIPPED = Path(__file__).parents[2] / "models_store"


def rendered(card: ModelCard) -> str:
    return card_markdown(card, calibration_gates(card.calibration))


TEXT = rendered(CARD)


def test_a_simulated_model_says_before_all_else_that_it_is_not_for_care() -> None:
    assert TEXT.splitlines()[2] == NOT_FOR_CARE
    real = replace(CARD, cohort=replace(CARD.cohort, name="Ghent 2024"))
    assert NOT_FOR_CARE not in rendered(real)


def test_the_card_states_cohort_ranges_calibration_and_gates() -> None:
    for part in (
        *("200 people: 90", "ab" * 32, "leading", "seed 42", "| gpflow | 2.11.2 |", "| log_age | 3 | 0 |"),
        *("| age, years | 5 | 85 |", "| height, cm, female | 100 | 190 |", "| male | 90 | 2.2% | 3.3% |"),
        *("| NS | -2.5000 |", "| predictive tail below | 0.02 |"),
    ):
        assert part in TEXT


def test_a_card_with_the_body_mass_index_of_its_cohort_shows_it() -> None:
    assert "Median body mass index" not in TEXT
    shown = rendered(replace(CARD, median_bmi={"male": BmiCurve((20.0, 60.25), (22.5, 26.0))}))
    assert "| male | 20, 60.25 | 22.5, 26 |" in shown


def test_a_failed_gate_is_plain_to_see() -> None:
    failed = replace(CARD, gates=(Gate("tail", 0.2, 0.0, 0.1),))
    assert "| tail | 0.2 | 0 | 0.1 | NO |" in rendered(failed)


def test_the_card_says_what_so_many_people_can_show_and_what_they_cannot() -> None:
    """200 people, three cells: 15 of them above would still pass, and a true share of 10.5% is found 9 times in 10."""
    ends = binom.ppf(0.01 / 3 / 2, 200, 0.025), binom.isf(0.01 / 3 / 2, 200, 0.025)
    least, most = shares_found(200, int(ends[0]), int(ends[1]), 0.9)
    assert least is None
    assert most is not None
    assert f"| all | 200 | {ends[0] / 2:.1f}% to {ends[1] / 2:.1f}% | {100 * most:.2g}% or more |" in TEXT
    assert "| male | 90 | not judged | none |" in TEXT
    many = replace(CARD.calibration, tails=(TailCheck("all", 20_000, 0.025, 0.025),))
    assert "% or less, " in rendered(replace(CARD, calibration=many))


@pytest.mark.parametrize("site", ["SoV", "AA"])
def test_an_earlier_card_is_judged_by_the_limits_of_today(site: str) -> None:
    """Its own gates let 0.3% to 4.7% of everybody pass, as if every group were one question of many."""
    card = load(SHIPPED, site, "1.0.0").card
    (today,) = [gate for gate in calibration_gates(card.calibration) if gate.name == tail_gate("above", "all")]
    text = rendered(card)
    assert f"| all | 1110 | {percent(today.low)} to {percent(today.high)} |" in text
    assert "| all | 1110 | 0.3% to 4.7% |" not in text
    assert "With the limits at the time of publication." in text
    assert "this model passes the gates on tails and log density." in text
    assert not re.search(r"\d %", text)


def test_a_card_says_that_today_it_would_be_rejected() -> None:
    wide = replace(CARD.calibration, tails=(TailCheck("all", 1110, 0.0, 0.047),))
    text = rendered(replace(CARD, calibration=wide))
    assert "would be rejected: share below the 95% interval, all; share above the 95% interval, all." in text


def test_the_coverage_of_single_models_on_the_card_is_the_measured_one() -> None:
    rows = re.findall(
        r"^\| everybody \|.*\| ([\d.]+)%, ([\d.]+)% \|$", COVERAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) == 2  # two sites
    lowest, highest = min(float(low) for low, _ in rows), max(float(high) for _, high in rows)
    assert tuple(100 * share for share in COVERAGE_OF_SINGLE_MODELS) == pytest.approx((lowest, highest))
    assert f"of {lowest:.1f}% to {highest:.1f}% with a single model" in " ".join(TEXT.split())
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
    assert "| phase | not stated |" in rendered(unknown)


def test_only_the_page_has_pictures() -> None:
    assert "```" not in TEXT
    text = card_markdown(CARD, calibration_gates(CARD.calibration), ("pit", "counts"))
    assert re.findall(r"```picture\n(.*)\n```", text) == ["counts", "pit"]
    assert re.sub(r"```picture\n.*\n```\n\n?", "", text).split() == TEXT.split()


def test_the_history_of_a_site() -> None:
    period = {"version": "1.0.0", "sha256": "ab" * 32, "from": "2026-01-01T00:00:00.000Z", "until": None, "by": "root"}

    def text(current: str | None, *periods: dict[str, Any]) -> str:
        history = {"request_id": "r", "site": "SoV", "current": current, "history": periods}
        return history_markdown("1.0.0", ModelHistory.model_validate(history))

    assert "1.0.0 is current; this is that version." in text("1.0.0", period)
    assert "| 1.0.0 | 2026-01-01T00:00:00.000Z | today | root |" in text("1.0.0", period)
    assert "1.1.0 is current." in text("1.1.0")
    assert "No activation is on record" in text("1.1.0")
    assert "No version is current." in text(None)
    assert "cannot be read" in history_markdown("1.0.0", None)
