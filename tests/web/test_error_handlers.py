"""One table turns every error of the tree into an answer, and nothing of an error's own text leaves."""

import pytest

from app import errors
from app.errors import FieldError, NormalcyError
from app.schemas.problem import PROBLEMS
from app.web.error_handlers import PROBLEM_OF, problem_exception, problem_response
from app.web.routes import audit, health, models, pages, scores  # every leaf is defined once all is imported

ROUTES = (audit, health, models, pages, scores)


def tree(kind: type[NormalcyError]) -> list[type[NormalcyError]]:
    return [each for child in kind.__subclasses__() for each in (child, *tree(child))]


@pytest.mark.parametrize("kind", tree(NormalcyError), ids=lambda kind: str(kind.__name__))
def test_every_error_has_an_answer(kind: type[NormalcyError]) -> None:
    assert kind in PROBLEM_OF
    assert PROBLEM_OF[kind] in PROBLEMS


def test_an_error_that_the_table_forgot_is_answered_as_its_nearest_ancestor() -> None:
    class Forgotten(errors.AuditUnavailable):
        pass

    class UnknownError(NormalcyError):
        pass

    assert problem_exception(Forgotten()).problem.slug == "not-audited"
    assert problem_exception(UnknownError()).problem.status == 500


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownSite("canary"),
        errors.UnknownVersion("canary", "canary"),
        errors.InvalidArtefact("canary", "canary"),
        errors.UnverifiedResult("canary"),
        errors.AuditUnavailable("canary"),
    ],
)
def test_the_text_of_an_error_stays_inside(error: NormalcyError) -> None:
    assert b"canary" not in problem_response(problem_exception(error), "id").body


@pytest.mark.parametrize("error", [errors.AuditUnavailable(), errors.AuditQueueFull(), errors.DatabaseUnavailable()])
@pytest.mark.req("REQ-071")
def test_a_caller_that_may_try_again_learns_when(error: NormalcyError) -> None:
    response = problem_response(problem_exception(error), "id")
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "1"


def test_only_codes_are_recorded_of_a_refusal() -> None:
    faults = [
        FieldError("out_of_range", "age_years", "m"),
        FieldError("missing", "sex", "m"),
        FieldError("missing", "height_cm", "m"),
    ]
    assert problem_exception(errors.InvalidInput(faults)).codes == ["missing", "out_of_range"]
    assert problem_exception(errors.UnknownSite("canary")).codes == ["unknown-site"]
