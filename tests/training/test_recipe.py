import json

import pytest

from app.training.recipe import Recipe


def test_every_option_stands_on_the_card_as_a_plain_value() -> None:
    options = Recipe().as_dict()
    assert json.loads(json.dumps(options)) == options
    assert Recipe(**options) == Recipe()  # type: ignore[arg-type]


@pytest.mark.parametrize(("people", "points"), [(8, 8), (60, 10), (246, 12), (1110, 55)])
def test_inducing_points_are_a_share_of_the_people_and_at_least_ten(people: int, points: int) -> None:
    assert Recipe().inducing_points(people) == points


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "periodic"},
        {"optimiser": "sgd"},
        {"inducing_share": 0.0},
        {"inducing_share": 1.5},
        {"robust_freedom": 2.0},
        {"robust": True, "optimiser": "paper"},
    ],
)
def test_options_that_cannot_be_trained_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Recipe(**options)  # type: ignore[arg-type]


def test_named_recipes_differ_from_the_default_as_described() -> None:
    assert Recipe.reg1t6() == Recipe(robust=True)
    assert Recipe.base().constant_iterations == 0
    assert Recipe.base().f2_variance_sd > Recipe().f2_variance_sd
