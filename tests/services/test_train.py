from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from app.domain.patient import Sex
from app.domain.query import Convention
from app.inference.median_bmi import FROM_CARD, median_bmi, median_bmi_curves
from app.services.train import CHECKS_BEGIN, FITS_BEGIN, TrainingPlan, train
from app.training.table import read_table
from tests.cli.command import normalcy
from tests.training.problems import short

pytestmark = pytest.mark.gpflow


def test_one_report_covers_the_whole_training_and_the_card_has_the_cohort_s_body_mass_index(tmp_path: Path) -> None:
    assert normalcy("cohort", "simulate", "--n", "120", "--out", "people.csv", cwd=tmp_path).returncode == 0
    table = read_table(tmp_path / "people.csv", "SoV_mm")
    plan = TrainingPlan("SoV", "1.0.0", "simulated", "", Convention(), short(), seed=1, folds=2)
    reported: list[tuple[str, float]] = []
    candidate = train(table, plan, datetime(2026, 1, 2, tzinfo=UTC), lambda what, share: reported.append((what, share)))
    stages = ("constant spread", "varying spread")
    fits = [f"{name}, {stage}" for name in ("all people", "fold 1 of 2", "fold 2 of 2") for stage in stages]
    assert list(dict.fromkeys(what for what, _ in reported)) == [*fits, "checking the gates"]
    shares = [share for _, share in reported]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 0.1
    assert max(after - before for before, after in pairwise(shares)) < 0.25
    ends = [
        max(share for what, share in reported if what.startswith(name)) for name in ("all people", "fold 1", "fold 2")
    ]
    third = (CHECKS_BEGIN - FITS_BEGIN) / 3
    assert ends == pytest.approx([FITS_BEGIN + done * third for done in (1, 2, 3)])
    cohort = median_bmi_curves(table.age_years, table.male == 1.0, table.height_cm, table.weight_kg)
    assert candidate.card.median_bmi == cohort
    assert set(cohort) == {"male", "female"}
    assert median_bmi(candidate.card, Sex.FEMALE).source == FROM_CARD
