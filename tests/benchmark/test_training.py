import pytest

from app.benchmark.training import measure_optimisers, render_optimisers
from tests.training.problems import people

pytestmark = pytest.mark.gpflow


def test_both_optimisers_are_measured_on_the_same_objective() -> None:
    race = measure_optimisers(*people(), steps=20, seed=0)
    assert (race.people, race.covariates, race.inducing_points) == (60, 2, 10)
    assert race.staged.objective > race.paper.objective
    assert race.overtaking is not None
    assert race.paper.objective <= race.overtaking.objective <= race.staged.objective
    assert 0.0 < race.overtaking.wall_seconds <= race.staged.wall_seconds
    assert "natural gradient and Adam, 20 steps" in "\n".join(render_optimisers(race))
