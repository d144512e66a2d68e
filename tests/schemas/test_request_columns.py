"""What the vectorised checks accept is what pydantic accepts, with the same values; and only pydantic rejects."""

import random
from typing import Any

import numpy as np
import pytest

from app.domain.query import CONVENTIONS
from app.errors import FieldError, InvalidInput
from app.schemas import request_columns
from app.schemas.request_columns import (
    ABSENT,
    ID,
    NUMBERS,
    SEX,
    SITE,
    SUBJECT,
    Options,
    RequestColumns,
    validate_columns,
    validate_items,
)
from app.schemas.requests import BatchItem
from app.schemas.validation import parse

STATED = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}
ITEM: dict[str, Any] = {
    "site": "SoV", "age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41,
}  # fmt: skip
# Of each field: what is acceptable, also at the ends of its range, and what is not.
VALUES: dict[str, list[Any]] = {
    "site": ["SoV", "AA", "no such site", "", "a\tb", "x" * 65, 7, None],
    "id": ["a", "7 / 2026", "ü\u00a0b", "", "x" * 128, "x" * 129, "a\nb", 7, None],
    "age_years": [0, -0.0, 4.999, 5, 55.5, 120, 120.5, -1, True, "55", None, 10**40, [55]],
    "sex": ["male", "female", "Male", "", None, 1, ["male"]],
    "height_cm": [40, 51.5, 90, 176, 250, 39.9, 251, 1.76, "176", None, False],
    "weight_kg": [1.5, 3.4, 12.96, 24.7808, 84, 309.76, 350, 1.4, 351, None, {}],
    "diameter_mm": [3, 9.99, 10, 41, 120, 2.9, 121, 4.1, "41", None],
    "measurement_sd_mm": [0, -0.0, 1.5, 5, 5.1, -1, True, None],
    "convention": [{}, STATED, {"edge": "inner"}, {"edge": "upper"}, {"edge": None}, {"side": "left"}, [], None, "TTE"],
    "model_version": ["current", "1.0.0", "", "9", 1, None],
    "thresholds": [[2.0], [2], [True], [-0.0, 3.5], [], [11], ["2"], [1.0] * 9, 2.0, None],
    "hdi_probability": [0.5, 0.9, 0.99, 0.4, 1, True, None],
    "include_unreliable": [True, False, 1, 0, "true", None],
    "subject": ["p-1", "x" * 128, "x" * 129, "", "a\x7fb", 5, None],
    "diamter_mm": [41],
}


def test_every_field_of_a_request_has_a_column() -> None:
    """One without would be validated, and then missing in the records of batches and files."""
    columns = {*Options._fields, *NUMBERS, *(ID, SITE, SEX, SUBJECT)}
    assert columns == set(BatchItem.model_fields)


def an_item(rng: random.Random) -> Any:
    if rng.random() < 0.02:
        return rng.choice([None, 3, "SoV", [], {}])
    item = dict(ITEM)
    for name in rng.sample(list(VALUES), rng.randrange(4)):
        if rng.random() < 0.2:
            item.pop(name, None)
        else:
            item[name] = rng.choice(VALUES[name])
    return item


def _parsed(item: Any) -> BatchItem | tuple[FieldError, ...]:
    try:
        return parse(BatchItem, item)
    except InvalidInput as invalid:
        return invalid.errors


def check(found: RequestColumns, row: int, item: Any) -> bool:
    """That the row is what pydantic makes of the item; whether it is valid."""
    request = _parsed(item)
    if not isinstance(request, BatchItem):
        assert found.errors[row] == request
        return False
    options = found.options[row]
    assert row not in found.errors, item
    assert (found.ids[row], found.sites[row], found.subjects[row]) == (request.id, request.site, request.subject)
    assert found.male[row] == (request.sex == "male")
    for name, column in found.numbers.items():
        assert repr(float(column[row])) == repr(getattr(request, name))  # -0.0 is not 0.0
    assert options == (
        tuple(request.thresholds), request.hdi_probability,
        CONVENTIONS.index(request.convention.to_convention()), request.include_unreliable, request.model_version,
    )  # fmt: skip
    assert [type(threshold) for threshold in options.thresholds] == [float] * len(request.thresholds)
    return True


@pytest.mark.parametrize("seed", range(8))
def test_blocks_accept_the_same_items_with_the_same_values(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible sample
    items = [an_item(rng) for _ in range(300)]
    found = validate_items(items)
    valid = sum(check(found, row, item) for row, item in enumerate(items))
    assert 60 < valid < 240


def test_every_value_alone() -> None:
    items = [ITEM | {name: value} for name, values in VALUES.items() for value in values]
    found = validate_items(items)
    for row, item in enumerate(items):
        check(found, row, item)


def test_the_body_mass_index_at_its_limits_is_left_to_pydantic() -> None:
    heights = np.linspace(60.0, 190.0, 400).tolist()
    limits = [(height, bmi * (height / 100.0) ** 2) for height in heights for bmi in (8.0, 100.0)]
    items = [ITEM | {"height_cm": h, "weight_kg": w} for h, w in limits if 1.5 <= w <= 350.0]
    found = validate_items(items)
    valid = sum(check(found, row, item) for row, item in enumerate(items))
    assert 0 < valid < len(items)


def test_ordinary_items_never_reach_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [ITEM | {"id": str(k), "diameter_mm": 30.5 + k, "convention": STATED, "subject": "p"} for k in range(20)]
    validate_items(items[:1])  # the options that all of them share

    def fail(*_: object) -> None:
        raise AssertionError("pydantic validated an ordinary item")

    monkeypatch.setattr(request_columns, "parse", fail)
    assert not validate_items(items).errors


def test_columns_of_a_table_may_be_arrays() -> None:
    given = {name: [value] * 3 for name, value in ITEM.items()}
    diameters = np.array([41.0, np.nan, 2.0])
    rows = [
        ITEM | {"diameter_mm": 41.0},
        {k: v for k, v in ITEM.items() if k != "diameter_mm"},
        ITEM | {"diameter_mm": 2.0},
    ]
    columns: dict[str, Any] = given | {"diameter_mm": diameters, "measurement_sd_mm": np.array([np.nan, 1.0, 1.0])}
    found = validate_columns(columns, 3, rows.__getitem__)
    assert list(found.errors) == [1, 2]
    assert (found.numbers["diameter_mm"][0], found.numbers["measurement_sd_mm"][0]) == (41.0, 0.0)
    assert diameters[0] == 41.0
    assert repr(ABSENT) == "ABSENT"


def test_no_items_are_no_rows() -> None:
    assert len(validate_items([])) == 0
