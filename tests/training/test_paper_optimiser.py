import numpy as np
import pytest

from app.maths.gp.scaling import Scaling
from app.training import paper_optimiser
from app.training.svgp import untrained
from tests.training.problems import people, short

pytestmark = pytest.mark.gpflow


def test_every_parameter_moves_and_the_objective_rises() -> None:
    X, y = people()
    scaling = Scaling.of(X, y)
    contexts = scaling.standardise(X)
    model = untrained(short(start_log_sd=-0.7, heteroscedastic=False), contexts[:8])
    before = [variable.numpy() for variable in model.trainable_variables]
    loss = model.training_loss_closure((contexts, scaling.standardise_y(y)[:, None]), compile=False)
    start, seen = -float(loss()), list[tuple[float, float]]()
    outcome = paper_optimiser.minimise(model, loss, 150, lambda *step: seen.append(step))
    assert [fraction for fraction, _ in seen] == [100 / 150, 1.0]
    assert start < seen[0][1] < seen[1][1]
    assert (outcome.iterations, outcome.evaluations) == (150, 300)
    for old, variable in zip(before, model.trainable_variables, strict=True):
        assert (old != variable.numpy()).any(), variable.name
    assert np.isfinite(float(loss()))
