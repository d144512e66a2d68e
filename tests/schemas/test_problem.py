import re

from app.errors import FieldError
from app.schemas.problem import DEFECT, INPUT_REFUSED, PROBLEMS, UNKNOWN_SITE, problem_body

ERRORS = (
    FieldError("missing", "age_years", "age_years is required."),
    FieldError("unknown_field", "(unknown)", "Not known."),
)


def test_rejected_input_lists_every_error() -> None:
    assert problem_body(INPUT_REFUSED, "r-1", ERRORS) == {
        "type": "/guide#problem-input-refused",
        "title": "Invalid input",
        "status": 422,
        "detail": "See `errors` for everything that is wrong, by field.",
        "request_id": "r-1",
        "errors": [
            {"code": "missing", "field": "age_years", "message": "age_years is required."},
            {"code": "unknown_field", "field": "(unknown)", "message": "Not known."},
        ],
    }


def test_a_problem_without_field_errors_has_no_list_of_them() -> None:
    assert list(problem_body(UNKNOWN_SITE, "r-1")) == ["type", "title", "status", "detail", "request_id"]


def test_a_detail_of_the_service_replaces_the_fixed_one() -> None:
    assert problem_body(DEFECT, "r-1", detail="The golden cases failed.")["detail"] == "The golden cases failed."


def test_kinds_differ_and_every_status_of_the_contract_has_one() -> None:
    assert len({problem.slug for problem in PROBLEMS}) == len(PROBLEMS)
    contract = {400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 431, 500, 503}
    assert {problem.status for problem in PROBLEMS} == contract


def test_types_are_paths_into_the_guide_and_details_are_sentences() -> None:
    for problem in PROBLEMS:
        assert re.fullmatch(r"/guide#problem-[a-z-]+", problem.type)
        assert re.fullmatch(r"[A-Z].+\.", problem.detail)
        assert not problem.title.endswith(".")
