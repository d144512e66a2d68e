import subprocess
import sys
from pathlib import Path

import numpy as np

from app.domain.patient import Patient, Sex, covariates
from app.inference.executor import load_on_numpy
from app.store import load
from tests.samples import a_posterior, publish_a_model


def test_a_loaded_model_predicts_as_the_stored_posterior_and_keeps_the_comparators(tmp_path: Path) -> None:
    ref = publish_a_model(tmp_path)
    model = load_on_numpy(load(tmp_path, "SoV", "1.0.0"))
    x = covariates([Patient(45.0, Sex.MALE, 175.0, 75.0)], model.card.age_transform)
    found, expected = model.executor.predict(x), a_posterior().predict(x)
    np.testing.assert_array_equal([found.m1, found.v1, found.m2, found.v2],
                                  [expected.m1, expected.v1, expected.m2, expected.v2])  # fmt: skip
    assert model.ref == ref
    np.testing.assert_allclose(model.linear.expected(x), 10.0 + 3.0 * np.log(45.0) + 2.0 + 0.05 * 175.0 + 0.06 * 75.0)


def test_scoring_never_loads_tensorflow() -> None:
    code = "import sys, app.inference.scoring, app.inference.executor; sys.exit('tensorflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
