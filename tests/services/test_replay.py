from typing import Any

from app.schemas.lookups import Replay
from app.services.replay import differences, summarise

RECORDED: dict[str, Any] = {
    "score": {"hdi": {"low": 1.0, "high": 2.0}, "position": "within"},
    "advisories": [{"code": "a", "message": "m"}],
}


def found(now: object, recorded: object = RECORDED) -> Replay:
    return summarise("r-1", list(differences(recorded, now)), 1)


def test_the_same_is_identical() -> None:
    assert found(RECORDED).identical is True
    assert found(RECORDED).max_relative_difference == 0.0


def test_a_number_that_moved_is_named_with_its_path() -> None:
    moved = {**RECORDED, "score": {"hdi": {"low": 1.0, "high": 2.0 + 1e-7}, "position": "within"}}
    report = found(moved)
    assert (report.identical, report.fields) == (False, ["score.hdi.high"])


def test_a_number_that_moved_less_than_is_promised_is_the_same() -> None:
    moved = {**RECORDED, "score": {"hdi": {"low": 1.0, "high": 2.0 + 1e-9}, "position": "within"}}
    report = found(moved)
    assert report.identical is True
    assert 0 < report.max_relative_difference < 1e-8


def test_a_word_that_decides_something_counts_and_wording_does_not() -> None:
    reworded = {**RECORDED, "advisories": [{"code": "a", "message": "put differently"}]}
    assert found(reworded).identical is True
    other = {**RECORDED, "score": {"hdi": {"low": 1.0, "high": 2.0}, "position": "uncertain"}}
    assert found(other).fields == ["score.position"]


def test_what_is_missing_counts() -> None:
    assert found({**RECORDED, "score": None}).fields == ["score"]
    assert found({**RECORDED, "advisories": []}).fields == ["advisories"]


def test_fields_that_answers_gained_later_are_not_compared() -> None:
    newer = {**RECORDED, "score": {**RECORDED["score"], "added": 1.0}, "added": None}
    assert found(newer).identical is True
    assert found({"score": RECORDED["score"]}).identical is False


def test_an_end_near_zero_is_compared_beside_the_width_of_its_interval() -> None:
    recorded, close = (
        {"low": 1e-6, "high": 1.0, "width": 0.999999},
        {"low": 1e-6 + 5e-9, "high": 1.0, "width": 0.999999},
    )
    assert found(close, recorded).identical is True
    far = {"low": 1e-6 + 2e-8, "high": 1.0, "width": 0.999999}
    assert found(far, recorded).fields == ["low"]
    other = {"low": 1e-6, "high": 1.0, "width": 0.999999 + 2e-8}
    assert found(other, recorded).fields == ["width"]
