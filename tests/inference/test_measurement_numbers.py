from dataclasses import dataclass, replace

import numpy as np

from app.domain.patient import Patient, Sex
from app.domain.query import MeasurementColumns, ScoreQuery
from app.inference.measurement_numbers import compute_numbers
from app.maths.moments import Array, Moments
from tests.samples import a_loaded_model

MAN = Patient(45.0, Sex.MALE, 175.0, 75.0)


@dataclass(frozen=True)
class Said:
    """An executor of given moments."""

    moments: Moments

    def predict(self, X: Array) -> Moments:
        return self.moments


def test_a_percentile_never_passes_100_whatever_the_spread() -> None:
    """The quadrature's weights sum to 1 + 4e-16 on some grids."""
    s2 = np.linspace(0.001, 1.0, 500)
    moments = Moments(np.full(500, 34.0), np.full(500, 0.1), np.full(500, 1.1), s2**2)
    model = replace(a_loaded_model(), executor=Said(moments))
    for diameter in (3.0, 500.0):
        percentile = compute_numbers(model, MeasurementColumns.of([ScoreQuery(MAN, diameter)] * 500)).score.percentile
        assert ((percentile >= 0.0) & (percentile <= 100.0)).all()


def test_columns_have_one_entry_per_threshold_and_person() -> None:
    queries = [
        ScoreQuery(MAN, diameter, (2.0, 3.0), 0.9, measurement_sd_mm=sd)
        for diameter, sd in ((30.0, 0.0), (35.0, 1.0), (40.0, 2.0))
    ]
    found = compute_numbers(a_loaded_model(), MeasurementColumns.of(queries))
    scores = found.score
    assert scores.without_error is not None
    assert scores.locations.above.shape == scores.locations.below.shape == scores.without_error.above.shape == (2, 3)
    assert scores.diameter_at_threshold_mm.shape == (3, 2, 3)
    assert scores.context_width.shape == found.linear_z.shape == (3,)
