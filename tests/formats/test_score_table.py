from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from app.domain.query import CONVENTIONS
from app.errors import FieldError, InvalidTable
from app.formats.score_table import KNOWN, check_columns, validate_table
from app.formats.table_files import RAGGED, Cells, Columns

CELLS = {"site": "SoV", "age_years": "55", "sex": "male", "height_cm": "176", "weight_kg": "84", "diameter_mm": "41"}


def columns(*rows: Mapping[str, object]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def errors(cells: Mapping[str, object], default_site: str | None = None) -> tuple[FieldError, ...]:
    """Of a row; the row beside it is scored all the same."""
    found = validate_table(columns(CELLS, cells), default_site).errors
    assert 0 not in found
    return found.get(1, ())


def codes(cells: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(error.code, error.field) for error in errors(cells)]


def asked(cells: Mapping[str, object]) -> tuple[object, ...]:
    found = validate_table(columns(cells))
    assert not found.errors
    return (
        found.ids,
        list(found.sites),
        list(found.options),
        {name: column.tolist() for name, column in found.numbers.items()},
    )


def test_a_row_of_texts_and_a_row_of_numbers_ask_the_same() -> None:
    more = {"thresholds": "2; 3", "include_unreliable": "TRUE", "convention.edge": "inner", "hdi_probability": "9e-1"}
    typed = {"thresholds": [2.0, 3.0], "include_unreliable": True, "convention.edge": "inner", "hdi_probability": 0.9}
    numbers = {n: float(c) if n.endswith(("s", "m", "g")) and n not in ("thresholds",) else c for n, c in CELLS.items()}
    text, binary = {**CELLS, **more}, {**numbers, **typed}
    assert asked(text) == asked(binary)
    [options] = validate_table(columns(text)).options
    assert (options.thresholds, options.hdi_probability, options.include_unreliable) == ((2.0, 3.0), 0.9, True)
    assert CONVENTIONS[options.convention].edge == "inner"


def test_an_empty_cell_is_a_field_that_was_not_given() -> None:
    assert asked({**CELLS, "thresholds": "", "measurement_sd_mm": "", "convention.phase": None}) == asked(CELLS)
    assert codes({**CELLS, "weight_kg": ""}) == [("missing", "weight_kg")]


@pytest.mark.parametrize("cell", ["4_1", "41,5", "0x29", "٤١", "one", "NaN", "true"])
def test_what_is_no_number_is_never_taken_for_one(cell: str) -> None:
    assert codes({**CELLS, "diameter_mm": cell}) == [("wrong_type", "diameter_mm")]


@pytest.mark.parametrize(
    ("name", "cell", "code"),
    [
        ("thresholds", "2;;3", "wrong_type"),
        ("thresholds", "99", "out_of_range"),
        ("include_unreliable", "yes", "wrong_type"),
        ("convention.edge", "upper", "not_a_choice"),
        ("sex", "M", "not_a_choice"),
        ("diameter_mm", "inf", "wrong_type"),
        ("diameter_mm", float("nan"), "wrong_type"),
        ("diameter_mm", True, "wrong_type"),
    ],
)
def test_a_wrong_cell_is_named(name: str, cell: object, code: str) -> None:
    assert [found for found, _ in codes({**CELLS, name: cell})] == [code]


@pytest.mark.parametrize(
    "cells",
    [
        np.array([12345678901234567, 12345678901234568]),
        np.array([12345678901234567, 12345678901234568], dtype=np.uint64),
        [Decimal(12345678901234567), Decimal("12345678901234568")],
        ["12345678901234567", 12345678901234568],
    ],
)
def test_a_reference_is_its_digits_whatever_the_column_holds(cells: Cells) -> None:
    found = validate_table(columns(CELLS, CELLS) | {"id": cells, "subject": cells})
    assert (found.errors, found.ids, found.subjects) == ({}, texts := ["12345678901234567", "12345678901234568"], texts)


@pytest.mark.parametrize("cell", [1.0, float("nan"), True, b"1", date(2026, 1, 1), object()])
@pytest.mark.parametrize("name", ["id", "subject", "site", "sex", "model_version", "convention.edge"])
def test_a_column_of_which_the_exact_text_is_not_known_is_rejected_by_name(name: str, cell: object) -> None:
    with pytest.raises(InvalidTable, match=f"Column {name} must contain text or whole numbers"):
        validate_table(columns(CELLS, {**CELLS, name: cell}))


def test_a_reference_is_exactly_what_the_cell_holds_and_other_cells_are_trimmed() -> None:
    spaced = {name: f" {cell} " for name, cell in CELLS.items()} | {
        "thresholds": " 2; 3 ",
        "convention.edge": " inner ",
    }
    trimmed = {name: cell.strip() for name, cell in spaced.items()}
    given = {"id": "  x ", "subject": " p\xa0"}
    assert asked(spaced | given) == asked(trimmed | given)
    found = validate_table(columns(spaced | given))
    assert (found.ids, found.subjects) == (["  x "], [" p\xa0"])
    assert codes({**CELLS, "id": "a\n"}) == [("control_character", "id")]


def test_every_error_of_a_row_is_reported() -> None:
    wrong = {**CELLS, "site": "", "age_years": "x", "height_cm": "1.76"}
    assert {code for code, _ in codes(wrong)} == {"missing", "wrong_type", "given_in_m"}


def test_columns_are_known_or_rejected() -> None:
    check_columns(KNOWN, None)
    with pytest.raises(InvalidTable) as rejected:
        check_columns(["site", "site", "age_years", "sex", "heigth_cm", "weight_kg"], None)
    problems = rejected.value.problems
    assert "Column height_cm is missing." in problems
    assert "Column diameter_mm is missing." in problems
    assert "Column heigth_cm is not known. Did you mean height_cm?" in problems
    assert "Column site appears twice." in problems


@pytest.mark.parametrize("header", ["age_years;sex;height_cm", "age_years\tsex\theight_cm"])
def test_another_separator_is_named_instead_of_every_column(header: str) -> None:
    with pytest.raises(InvalidTable) as rejected:
        check_columns([header], "SoV")
    (problem,) = rejected.value.problems
    assert "separated by semicolons or tabs" in problem
    assert "points in the numbers" in problem


def test_a_column_without_a_name_is_explained() -> None:
    with pytest.raises(InvalidTable, match="A column has no name in the header"):
        check_columns(["", *KNOWN], None)


def test_a_decimal_comma_gets_a_hint() -> None:
    cells = {"age_years": "55", "sex": "male", "height_cm": "176", "weight_kg": "84", "diameter_mm": "41,5"}
    (error,) = errors(cells, "SoV")
    assert (error.code, error.field) == ("wrong_type", "diameter_mm")
    assert error.message.endswith("Write a decimal point, not a comma.")
    assert "41" not in error.message
    (error,) = errors(cells | {"diameter_mm": "wide"}, "SoV")
    assert "comma" not in error.message
    (error,) = errors(cells | {RAGGED: 6}, "SoV")
    assert "decimal comma" in error.message


def test_the_columns_are_the_fields_of_the_request() -> None:
    assert (
        *("id", "site", "age_years", "sex", "height_cm", "weight_kg", "diameter_mm", "measurement_sd_mm"),
        *("convention.edge", "convention.phase", "convention.modality", "model_version"),
        *("thresholds", "hdi_probability", "include_unreliable", "subject"),
    ) == KNOWN
