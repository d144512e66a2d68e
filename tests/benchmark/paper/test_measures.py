"""From answers to the numbers of the tables, on answers made by hand."""

import numpy as np
import pytest

from app.benchmark.paper import abstention, detection, sensitivity, sparsity
from app.benchmark.paper.noise import linear_noise
from app.benchmark.paper.protocol import METHODS, Done
from app.benchmark.paper.study import Pooled
from app.benchmark.paper.tasks import (
    EXPERIMENTS,
    KERNELS,
    SENSITIVITY_SEED,
    SHARES,
    Scope,
    crossed,
    kernel_tasks,
    share_tasks,
    tasks_of,
)
from tests.benchmark.paper.hand_made import CHOICE, EVERYTHING, SCOPE, TABLES, study
from tests.benchmark.paper.problems import small_table


def test_all_rows_of_an_injection_are_pooled_in_their_order() -> None:
    pooled = study().pooled("Yacht", "NS", 42)
    assert pooled.rows.tolist() == list(range(200))
    assert pooled.anomalous.sum() == 30


def test_table_2_has_every_method_and_fresh_seeds_their_own_fits() -> None:
    rows = detection.table2(study())
    assert list(rows) == ["NS", "NS_hom", "Z-score"]
    assert len(rows["NS"]["Yacht"].roc.values) == 2
    assert rows["NS"]["Yacht"].roc.mean > 0.9
    assert study().pooled("Yacht", "NS", 1042).y.tolist() != study().pooled("Yacht", "NS", 42).y.tolist()
    fresh = detection.fresh(study())
    assert list(fresh) == list(rows)  # no method is judged by other draws than NS
    assert all(len(row["Yacht"].roc.values) == 1 for row in fresh.values())


def test_what_a_table_of_methods_needs_is_fitted_before_kernels_and_shares() -> None:
    tasks = tasks_of(EVERYTHING, TABLES, SCOPE, CHOICE)
    detecting = {
        task for method in SCOPE.methods for task in crossed(TABLES["Yacht"], method, CHOICE, SCOPE.seeds + SCOPE.fresh)
    }
    assert set(tasks[: len(detecting)]) == detecting
    assert len(set(tasks)) == len(tasks) > len(detecting)


def test_the_predictive_score_is_the_distance_over_the_predictive_sd() -> None:
    answer = {"m1": [1.0], "v1": [0.09], "m2": [np.log(0.4)], "v2": [0.0]}
    pooled = Pooled.of([Done([0], [2.0], [False], answer, 0.0, 0.0)])
    assert pooled.predictive_score[0] == pytest.approx(1.0 / np.sqrt(0.09 + 0.16))
    assert pooled.score[0] == pytest.approx(1.0 / 0.4)


def test_five_percent_of_the_rows_are_dropped_and_the_widest() -> None:
    answered = abstention.answered_rows(np.arange(200.0))
    assert answered.sum() == 190
    assert answered[:190].all()


def test_abstaining_by_i_drops_anomalies_because_i_grows_with_the_score() -> None:
    ways = abstention.abstention(study(), SCOPE.seeds)["Yacht"]
    # All rows have the same v1, m2 and v2, so i(x, y) ranks as |NS| does.
    assert ways[abstention.BY_WIDTH].dropped_anomalous.mean == 1.0
    assert ways[abstention.BY_FOREST].dropped_anomalous.mean < 0.5
    medians = abstention.width_by_score(study())["Yacht"].medians
    known = [value for value in medians if value == value]
    assert known[0] == 1.0
    assert known == sorted(known)
    assert known[-1] > 2.0


def test_without_uncertainty_of_f2_i_does_not_know_the_anomalies() -> None:
    ways = abstention.abstention(study(), SCOPE.seeds, "NS_hom")["Yacht"]
    assert ways[abstention.BY_WIDTH].dropped_anomalous.mean < 0.5


def test_kendall_is_asked_for_both_widths_and_three_detectors() -> None:
    found = sparsity.kendall(study())
    assert set(found) == {"i(x, y)", "W2"}
    assert set(found["W2"]["Yacht"]) == {"IForest", "LOF", "HBOS"}
    assert all(-1.0 <= tau.mean <= 1.0 for tau in found["i(x, y)"]["Yacht"].values())


def test_a_kernel_is_compared_with_the_same_rows_of_the_chosen_one() -> None:
    found = sensitivity.kernels(study())
    usual, other = found["rational_quadratic"]["Yacht"], found["rbf"]["Yacht"]
    assert (usual.expected, usual.width, usual.expected_by_row) == (0.0, 0.0, 0.0)
    pooled = study().pooled("Yacht", "NS", SENSITIVITY_SEED)
    assert other.expected == pytest.approx(0.2 * pooled.score.mean())  # 0.02 / 0.025 = 0.8 of every score
    assert other.rows == 200


def test_shares_are_compared_by_their_time_too() -> None:
    found = sensitivity.shares(study())
    assert list(found) == [0.05, 0.1, 0.2]
    assert found[0.1]["Yacht"].cpu_seconds == pytest.approx(10.0)


def test_abalone_gets_one_fold_for_kernels_and_no_twenty_percent() -> None:
    table = small_table("Abalone", 150)
    assert len(kernel_tasks(table, CHOICE, "rbf")) == 1
    assert len(share_tasks(table, CHOICE, 0.1)) == 1
    assert share_tasks(table, CHOICE, 0.2) == []


def test_the_whole_plan_holds_every_cell_of_the_paper() -> None:
    tables = {name: small_table(name, 150) for name in ("Abalone", "Yacht")}
    tasks = tasks_of(EVERYTHING, tables, Scope(), CHOICE)
    assert len(tasks) == len(set(tasks))
    for method in METHODS:
        assert set(crossed(tables["Yacht"], method, CHOICE, Scope().seeds)) <= set(tasks)
    assert {task.choice.kernel for task in tasks if task.choice} == {CHOICE.kernel, *KERNELS}
    assert {task.choice.inducing_share for task in tasks if task.choice} == {0.05, *SHARES}
    kinds = [(task.choice.kernel, task.choice.inducing_share) for task in tasks if task.choice]
    plain = [kind == (CHOICE.kernel, CHOICE.inducing_share) for kind in kinds]
    assert plain == sorted(plain, reverse=True)
    assert {task.dataset for task in tasks[-3:]} == {"Abalone"}  # the long ones last


def test_only_what_is_asked_for_is_planned() -> None:
    names = dict.fromkeys(EXPERIMENTS, False) | {"abstention": True}
    assert {task.method for task in tasks_of(names, TABLES, SCOPE, CHOICE)} == {"NS"}


def test_the_noise_of_a_row_is_that_of_five_injections() -> None:
    found = linear_noise(TABLES["Yacht"], (1.0, 1.0), injections=10)
    assert found.roc_mean > 0.95
    assert found.close == (True, True)
    assert linear_noise(TABLES["Yacht"], (0.5, 0.5), injections=10).close == (False, False)
