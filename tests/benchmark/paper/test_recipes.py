import numpy as np
import pytest

from app.benchmark.paper.recipes import CANDIDATES, FREEDOMS, RECIPES, Choice, Contexts, effective

RNG = np.random.default_rng(0)
SKEWED = np.exp(RNG.normal(size=200))
FLAT = RNG.uniform(1.0, 2.0, 200)
WITH_ZERO = np.append(SKEWED[1:], 0.0)


def test_only_positive_skewed_columns_enter_as_logarithms() -> None:
    contexts = Contexts.of(np.column_stack([FLAT, SKEWED, WITH_ZERO, -SKEWED]), log=True)
    assert contexts.logged.tolist() == [1]
    assert Contexts.of(np.column_stack([FLAT, SKEWED]), log=False).logged.size == 0


def test_a_test_row_below_the_training_rows_stays_finite() -> None:
    contexts = Contexts.of(np.column_stack([FLAT, SKEWED]), log=True)
    found = contexts.transformed(np.array([[1.5, 0.0], [1.5, np.e]]))
    assert found[0, 1] == np.log(SKEWED.min())
    assert found[1].tolist() == pytest.approx([1.5, 1.0], rel=1e-15)


def test_the_caller_keeps_its_own_contexts() -> None:
    X = np.column_stack([FLAT, SKEWED])
    Contexts.of(X, log=True).transformed(X)
    assert np.array_equal(X[:, 1], SKEWED)


def test_a_choice_without_a_column_to_transform_is_the_plain_choice() -> None:
    assert effective(Choice("reg1t6", log=True), FLAT[:, None]) == Choice("reg1t6")
    assert effective(Choice("reg1t6", log=True), SKEWED[:, None]) == Choice("reg1t6", log=True)


def test_the_candidates_are_five_recipes_with_and_without_logarithms() -> None:
    recipes = ["base", "reg1", "reg1t4", "reg1t6", "reg1t10"]
    assert [one.name for one in CANDIDATES] == [name + log for name in recipes for log in ("", "-log")]
    assert [RECIPES[f"reg1t{freedom}"].robust_freedom for freedom in FREEDOMS] == [4.0, 6.0, 10.0]
    assert len({str(one.as_dict()) for one in CANDIDATES}) == 10


def test_a_choice_says_everything_that_decides_a_fit() -> None:
    details = Choice("reg1t6", kernel="rbf", inducing_share=0.1, heteroscedastic=False).details()
    assert (details.robust, details.kernel, details.inducing_share, details.heteroscedastic) == (
        True,
        "rbf",
        0.1,
        False,
    )
