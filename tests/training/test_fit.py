from collections.abc import Callable
from functools import cache
from importlib.metadata import version

import numpy as np
import pytest

from app.errors import TrainingFailed
from app.maths.gp.kernels import SHAPES
from app.maths.gp.posterior import HeteroscedasticPosterior, Scaling
from app.maths.moments import Array, Moments
from app.training.fit import Fit, fit, minimise_by_lbfgs, minimise_by_paper, planned_stages, posterior_of, reference_of
from app.training.gpflow_setup import tf
from app.training.model import untrained
from app.training.recipe import Recipe
from tests.training.problems import people, short, true_mean, true_sd

pytestmark = pytest.mark.gpflow

ROBUST = short(robust=True)
CONSTANT = short(heteroscedastic=False)  # the quickest to fit, where the spread is not what is tested


Seen = dict[str, list[float]]  # shares of the whole fit, by stage


@cache
def watched(recipe: Recipe, size: int) -> tuple[Fit, Seen]:
    seen: Seen = {}
    result = fit(*people(size), recipe, 1, lambda stage, fraction: seen.setdefault(stage, []).append(fraction))
    return result, seen


def fitted(recipe: Recipe, size: int = 60) -> Fit:
    return watched(recipe, size)[0]


def largest_difference(ours: Moments, theirs: Moments, scale: float) -> float:
    """In standardised units."""
    units = {"m1": scale, "v1": scale**2, "m2": 1.0, "v2": 1.0}
    return max(float(np.abs(getattr(ours, name) - getattr(theirs, name)).max()) / unit for name, unit in units.items())


def around(X: Array) -> Array:
    """The training people and others far outside."""
    rng = np.random.default_rng(9)
    return np.vstack([X, rng.normal(X.mean(axis=0), 5.0 * X.std(axis=0), size=(100, X.shape[1]))])


@pytest.mark.parametrize(
    "recipe",
    [
        short(),
        short(kernel="rbf", constant_iterations=0),
        short(kernel="matern52", constant_iterations=0),
        short(heteroscedastic=False),
        ROBUST,
        short(optimiser="paper", paper_steps=20),
    ],
    ids=lambda recipe: f"{recipe.kernel}-{recipe.optimiser}-{recipe.heteroscedastic}-{recipe.robust}",
)
def test_numpy_posterior_equals_gpflow_after_training(recipe: Recipe) -> None:
    X = around(people()[0])
    result = fitted(recipe)
    difference = largest_difference(result.posterior.predict(X), result.reference(X), result.posterior.scaling.y_scale)
    assert difference < 1e-9
    assert all(np.isfinite(stage.objective) for stage in result.record.stages)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kernel", SHAPES)
def test_numpy_posterior_equals_gpflow_for_random_parameters(kernel: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = people(seed=seed)
    scaling = Scaling.of(X, y)
    model = untrained(short(kernel=kernel), rng.normal(size=(20, 2)))
    for variable in model.trainable_variables:
        variable.assign_add(0.7 * rng.normal(size=variable.shape))
    trained = model, kernel, scaling, 1e-6
    ours, theirs = posterior_of(*trained).predict(around(X)), reference_of(*trained)(around(X))
    assert largest_difference(ours, theirs, scaling.y_scale) < 1e-9


def arrays(result: Fit) -> list[bytes]:
    return [array.tobytes() for _, array in sorted(result.posterior.arrays().items())]


def test_the_same_seed_gives_the_same_bits() -> None:
    assert arrays(fitted(short())) == arrays(fit(*people(), short(), seed=1))


def test_it_finds_the_mean_and_the_spread_that_made_the_data() -> None:
    X, _ = people(400)
    moments = fitted(short(constant_iterations=60, released_iterations=60), 400).posterior.predict(X)
    assert np.sqrt(np.mean((moments.m1 - true_mean(X)) ** 2)) < 0.3
    assert np.corrcoef(moments.m2, np.log(true_sd(X)))[0, 1] > 0.95
    assert np.abs(moments.m2 - np.log(true_sd(X))).mean() < 0.15


def test_one_constant_spread_has_no_uncertainty_and_the_size_of_the_residuals() -> None:
    X, y = people()
    moments = fitted(short(heteroscedastic=False)).posterior.predict(X)
    assert (moments.v2 == 0.0).all()
    assert len(set(moments.m2)) == 1
    np.testing.assert_allclose(np.exp(moments.m2[0]), (y - moments.m1).std(), rtol=0.2)


def test_the_robust_stage_keeps_anomalies_out_of_the_spread() -> None:
    X, y = people()
    clean = fitted(short(heteroscedastic=False)).posterior.predict(X)
    anomalies = np.where(np.arange(len(y)) % 12 == 0, 15.0, 0.0)
    robust = fit(X, y + anomalies, short(heteroscedastic=False, robust=True), seed=1).posterior.predict(X)
    naive = np.log((y + anomalies - clean.m1).std())
    assert naive - clean.m2[0] > 1.0
    assert abs(robust.m2[0] - clean.m2[0]) < 0.5 * (naive - clean.m2[0])


def test_the_record_tells_how_the_model_was_made() -> None:
    record = fitted(ROBUST).record
    assert [stage.name for stage in record.stages] == ["constant spread", "varying spread", "Student-t noise"]
    assert all(stage.evaluations >= stage.iterations > 0 and stage.seconds > 0.0 for stage in record.stages)
    assert record.recipe == ROBUST.as_dict()
    assert (record.seed, record.inducing_points) == (1, 8)
    assert record.libraries["gpflow"] == version("gpflow")
    assert {"python", "numpy", "scipy", "tensorflow"} <= set(record.libraries)


def test_elbo_and_objective_differ_by_the_priors_only() -> None:
    plain = fitted(short(priors=False, heteroscedastic=False)).record.stages[-1]
    assert plain.elbo == pytest.approx(plain.objective, rel=1e-12)
    constant, varying = fitted(short()).record.stages
    assert constant.objective < constant.elbo < plain.elbo
    assert varying.objective > constant.objective


def test_progress_rises_to_one_over_all_stages() -> None:
    seen = watched(ROBUST, 60)[1]
    assert list(seen) == ["constant spread", "varying spread", "Student-t noise"]
    fractions = [fraction for stage in seen.values() for fraction in stage]
    assert fractions == sorted(fractions)
    ends = np.cumsum(list(planned_stages(ROBUST).values()))
    assert [stage[-1] for stage in seen.values()] == pytest.approx(ends / ends[-1])


def test_a_kuu_that_cannot_be_factorised_gets_a_second_attempt_with_more_jitter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1))
    recipe = short(kernel="rbf", inducing_minimum=40, heteroscedastic=False, jitter=2e-16)
    result = fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=100), recipe, seed=0)
    assert "second attempt, jitter 2e-14" in result.record.stages[0].message
    assert np.isfinite(result.posterior.predict(X).m1).all()


def test_numbers_that_are_not_finite_fail_in_words() -> None:
    X, y = people()
    y[3] = np.nan
    with pytest.raises(TrainingFailed, match="'constant spread'"):
        fit(X, y, short(), 0)


def fails_while(jitter: float, exported: Callable[..., HeteroscedasticPosterior]) -> Callable[..., object]:
    """An export that cannot factorise Kuu with so little jitter."""

    def export(model: object, kernel: str, scaling: Scaling, used: float) -> HeteroscedasticPosterior:
        if used <= jitter:
            raise np.linalg.LinAlgError("3-th leading minor of the array is not positive definite")
        return exported(model, kernel, scaling, used)

    return export


def test_a_model_that_cannot_be_exported_is_trained_again_with_more_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.training.fit.posterior_of", fails_while(1e-6, posterior_of))
    again = fit(*people(60), CONSTANT, 1)
    assert again.record.recipe["jitter"] == pytest.approx(1e-4)
    assert arrays(again) == arrays(
        fit(*people(60), short(heteroscedastic=False, jitter=again.record.recipe["jitter"]), 1)
    )


def test_what_cannot_be_exported_at_all_is_a_failed_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.training.fit.posterior_of", fails_while(1.0, posterior_of))
    with pytest.raises(TrainingFailed, match=r"cannot be exported, even with a jitter of 0\.0001"):
        fit(*people(60), CONSTANT, 1)


def test_lbfgs_comes_back_from_a_step_beyond_the_numbers_range() -> None:
    x = tf.Variable(np.array([0.3]))

    # Finite up to 1 only; the first step from 0.3 goes beyond.
    def loss() -> object:
        return tf.reduce_sum(-100.0 * tf.math.log(1.0 - x) - 300.0 * x)

    outcome = minimise_by_lbfgs(loss, [x], 50, lambda fraction, objective: None)
    np.testing.assert_allclose(x.numpy(), 2.0 / 3.0, rtol=1e-4)
    assert outcome.evaluations > outcome.iterations


def test_lbfgs_comes_back_from_a_matrix_without_a_cholesky_factor() -> None:
    x = tf.Variable(np.array([0.1]))

    def loss() -> object:
        root = tf.linalg.cholesky([[1.0 - x[0], 0.0], [0.0, 1.0]])
        return -2000.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root))) - 3000.0 * x[0]

    minimise_by_lbfgs(loss, [x], 50, lambda fraction, objective: None)
    np.testing.assert_allclose(x.numpy(), 2.0 / 3.0, rtol=1e-4)


def test_a_refused_step_does_not_pass_for_convergence() -> None:
    point = tf.Variable(np.array([-1.5, 2.0]))

    # Rosenbrock's valley with a wall beside it: the first line search ends in front of the wall, far from (1, 1).
    def loss() -> object:
        above = point[1] - point[0] ** 2
        inside = tf.where(above < 0.01, tf.ones_like(above), np.nan * tf.ones_like(above))
        return inside * 1e4 * (100.0 * above**2 + (1.0 - point[0]) ** 2)

    minimise_by_lbfgs(loss, [point], 200, lambda fraction, objective: None)
    np.testing.assert_allclose(point.numpy(), [1.0, 1.0], atol=1e-2)


def test_a_start_without_a_finite_objective_is_an_error() -> None:
    x = tf.Variable(np.array([2.0]))
    with pytest.raises(FloatingPointError):
        minimise_by_lbfgs(lambda: tf.reduce_sum(tf.math.log(1.0 - x)), [x], 5, lambda fraction, objective: None)


def test_lbfgs_reports_a_rising_objective() -> None:
    x = tf.Variable(np.full(3, 4.0))
    seen: list[tuple[float, float]] = []
    scale = np.array([1.0, 10.0, 100.0])
    minimise_by_lbfgs(lambda: tf.reduce_sum(scale * x**2), [x], 30, lambda *step: seen.append(step))
    fractions, objectives = zip(*seen, strict=True)
    assert list(fractions) == sorted(fractions)
    assert list(objectives) == sorted(objectives)
    np.testing.assert_allclose(objectives[-1], 0.0, atol=1e-4)


def test_the_paper_s_optimiser_moves_every_parameter_and_the_objective_rises() -> None:
    X, y = people()
    scaling = Scaling.of(X, y)
    contexts = scaling.standardise(X)
    model = untrained(short(start_log_sd=-0.7, heteroscedastic=False), contexts[:8])
    before = [variable.numpy() for variable in model.trainable_variables]
    loss = model.training_loss_closure((contexts, scaling.standardise_y(y)[:, None]), compile=False)
    start, seen = -float(loss()), list[tuple[float, float]]()
    outcome = minimise_by_paper(model, loss, 150, lambda *step: seen.append(step))
    assert [fraction for fraction, _ in seen] == [100 / 150, 1.0]
    assert start < seen[0][1] < seen[1][1]
    assert (outcome.iterations, outcome.evaluations) == (150, 300)
    for old, variable in zip(before, model.trainable_variables, strict=True):
        assert (old != variable.numpy()).any(), variable.name
    assert np.isfinite(float(loss()))
