"""One checker for every published model, run on all that ship."""

import hashlib
from pathlib import Path

import pytest

from app.domain.card import ModelCard
from app.services.manage_models import verify_models
from app.store import load, versions
from app.training.calibration import check_gates, failures
from app.training.cohort import simulate_cohort, to_csv

STORE = Path(__file__).parent.parent / "models_store"
SHIPPED = [(site, version) for site, known in versions(STORE).items() for version in known]


@pytest.fixture(params=SHIPPED, ids=lambda pair: f"{pair[0]} {pair[1]}")
def card(request: pytest.FixtureRequest) -> ModelCard:
    site, version = request.param
    return load(STORE, site, version).card


def test_both_sites_ship() -> None:
    assert {site for site, _ in SHIPPED} >= {"SoV", "AA"}


def test_every_shipped_model_is_intact_and_reproduces_its_golden_cases() -> None:
    results = verify_models(STORE)
    assert [(result.site, result.version) for result in results] == SHIPPED
    assert all(result.intact for result in results), [result.finding for result in results]


def test_golden_cases_are_many_enough_to_mean_something(card: ModelCard) -> None:
    assert len(load(STORE, card.site, card.version).golden) >= 20


def test_the_card_says_that_the_cohort_is_simulated(card: ModelCard) -> None:
    assert card.cohort.name == "simulated"
    text = (STORE / card.site / card.version / "CARD.md").read_text(encoding="utf-8")
    assert "Not for care" in text


def test_every_gate_of_publication_was_passed(card: ModelCard) -> None:
    assert card.gates
    assert all(gate.passed for gate in card.gates)
    by_name = {gate.name: gate.measured for gate in card.gates}
    assert by_name["largest difference from GPflow"] <= 1e-9


def test_the_gates_of_today_would_let_it_pass(card: ModelCard) -> None:
    measured = {gate.name: gate.measured for gate in card.gates}
    today = check_gates(
        card.calibration, measured["largest difference from GPflow"], int(measured["golden cases not reproduced"])
    )
    assert failures(today) == []


def test_the_training_table_can_be_made_again(card: ModelCard) -> None:
    """The documented command writes the very bytes that the card names."""
    table = to_csv(simulate_cohort(1110, 1)).encode()
    assert hashlib.sha256(table).hexdigest() == card.cohort.table_sha256
