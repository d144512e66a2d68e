"""Evaluation of people whose figures are known by hand: f1 = 30 mm and exp(f2) = 3 mm for everybody, for certain."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from app.inference.executor import LoadedModel, NumpyExecutor
from app.maths.gp.posterior import HeteroscedasticPosterior, Scaling, SparseGP
from app.services.evaluate import evaluate, plots
from app.training.table import read_table
from tests.samples import a_loaded_model

DIAMETERS = [22.5, 27.0, 30.0, 33.0, 39.0, 42.0]  # z of -2.5, -1, 0, 1, 3, 4
LABELS = np.array([0, 0, 0, 1, 0, 1])
AGES = [40, 41, 42, 43, 44, 2]  # the last is outside the training range of 5 to 85


@pytest.fixture
def model() -> LoadedModel:
    scaling = Scaling(np.zeros(4), np.ones(4), 30.0, 3.0)
    certain = (SparseGP.constant("rational_quadratic", 0.0, 4) for _ in range(2))
    return replace(a_loaded_model(), executor=NumpyExecutor(HeteroscedasticPosterior(scaling, *certain)))


@pytest.fixture
def table_file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{age},male,175,75,{mm}" for age, mm in zip(AGES, DIAMETERS, strict=True)]
    path.write_text("\n".join(["age_years,sex,height_cm,weight_kg,diameter_mm", *rows]))
    return path


def test_every_figure_of_an_evaluation_is_that_of_the_definition(model: LoadedModel, table_file: Path) -> None:
    z = (np.array(DIAMETERS) - 30.0) / 3.0
    truth = z + np.array([0, 0, 0, 0, 0, 0.1])
    evaluated = evaluate(model, read_table(table_file, "diameter_mm"), LABELS, truth)
    found = evaluated.evaluation
    np.testing.assert_allclose(evaluated.expected_ns, z, rtol=1e-12)
    assert (found.people, found.labelled_1) == (6, 2)
    by_method = {row.method: row for row in found.discrimination}
    # Of 2 x 4 pairs of a 1 and a 0 only (z = 1, z = 3) is the wrong way round.
    assert by_method["E[NS]"].roc_auc == pytest.approx(7 / 8)
    # Ranked 4 (1), 3 (0), 1 (1): precision 1 at recall 1/2, 2/3 at recall 1.
    assert by_method["E[NS]"].pr_auc == pytest.approx((1 + 2 / 3) / 2)
    # P(NS > 2) is 0 or 1 here: the 1 at z = 4 beats three 0 and ties with one, the 1 at z = 1 ties with three.
    assert by_method["P(NS > 2)"].roc_auc == pytest.approx((3 + 0.5 + 3 * 0.5) / 8)
    assert found.true_z_covered == pytest.approx(5 / 6)  # the interval is a point, and one true z is not on it
    assert found.verdicts == {"ok": pytest.approx(5 / 6), "not_reliable": pytest.approx(1 / 6)}
    shares = {"within": 3 / 6, "below_minus_2": 1 / 6, "above_2": 1 / 6, "not_assessed": 1 / 6}
    assert found.positions == {name: pytest.approx(share) for name, share in shares.items()}


def test_calibration_is_of_the_people_labelled_0(model: LoadedModel, table_file: Path) -> None:
    evaluated = evaluate(model, read_table(table_file, "diameter_mm"), LABELS, true_z=None)
    np.testing.assert_allclose(evaluated.pit, norm.cdf([-2.5, -1.0, 0.0, 3.0]), rtol=1e-9)
    calibration = evaluated.evaluation.calibration
    assert calibration is not None
    assert (calibration.people, calibration.below, calibration.above) == (4, 0.25, 0.25)
    assert evaluated.evaluation.true_z_covered is None


def test_with_one_label_only_nothing_is_ranked(model: LoadedModel, table_file: Path) -> None:
    everybody = np.ones(6, dtype=np.int64)
    evaluated = evaluate(model, read_table(table_file, "diameter_mm"), everybody, true_z=None)
    assert evaluated.evaluation.discrimination == ()
    assert evaluated.evaluation.calibration is None
    assert set(plots(evaluated)) == {"scores", "shares"}


def test_the_curves_drawn_are_those_of_the_figures(model: LoadedModel, table_file: Path) -> None:
    drawn = plots(evaluate(model, read_table(table_file, "diameter_mm"), LABELS, true_z=None))
    (axes,) = drawn["roc"].axes
    line = next(line for line in axes.lines if str(line.get_label()).startswith("E[NS], 0.875"))
    x, y = (np.asarray(data, dtype=np.float64) for data in line.get_data())
    assert np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2.0) == pytest.approx(7 / 8)


def test_every_plot_names_the_model_and_the_people(model: LoadedModel, table_file: Path) -> None:
    drawn = plots(evaluate(model, read_table(table_file, "diameter_mm"), LABELS, true_z=None))
    assert set(drawn) == {"scores", "shares", "roc", "precision_recall", "calibration"}
    titles = {name: figure.get_suptitle() for name, figure in drawn.items()}
    assert titles.pop("calibration").splitlines()[1] == "4 people labelled 0, of 6"
    for title in titles.values():
        assert f": {model.ref.site} {model.ref.version} ({model.card.cohort.name})\n6 people, 2 labelled 1" in title


def test_every_person_is_drawn_once_and_those_without_a_score_are_marked(model: LoadedModel, table_file: Path) -> None:
    drawn = plots(evaluate(model, read_table(table_file, "diameter_mm"), LABELS, true_z=None))
    (axes,) = drawn["scores"].axes
    found = {str(line.get_label()): np.asarray(line.get_xdata()).tolist() for line in axes.lines}
    assert found.pop("labelled 0, 4 people") == [22.5, 27.0, 30.0, 39.0]
    assert found.pop("labelled 1, 1 person") == [33.0]
    assert found.pop("no score is given (not reliable), 1 person") == [42.0]


def test_the_curves_differ_in_colour_and_in_dash(model: LoadedModel, table_file: Path) -> None:
    drawn = plots(evaluate(model, read_table(table_file, "diameter_mm"), LABELS, true_z=None))
    for name in ("roc", "precision_recall"):
        _, *lines = drawn[name].axes[0].lines  # the first is chance
        assert len({line.get_color() for line in lines}) == len({line.get_linestyle() for line in lines}) == 4
