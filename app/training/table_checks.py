"""Whether a table of people can be trained on, or evaluated with.

Each check yields sentences that name rows and columns; none of them repeats a person's value.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.domain import limits
from app.domain.limits import Limit, body_mistakes, value_mistake
from app.domain.patient import Sex
from app.errors import InvalidTable
from app.files import has_decimal_comma
from app.maths.moments import Array
from app.training.table import AGE_BANDS, Table, in_band, numbers_of, read_table

Check = Callable[[Table], Iterator[str]]

# Who cannot be scored cannot be trained on: the service's ranges, in the order of the table's columns.
SERVED = (limits.AGE, limits.HEIGHT, limits.WEIGHT, limits.DIAMETER)

ROWS_NAMED = 5  # enough to see the pattern; a sentence must stay readable
MIN_PEOPLE = 100
MIN_OF_A_SEX = 20  # five folds leave 16 to train on; with fewer the effect of sex is a guess
MIN_IN_A_BAND = 10  # the spread of ten people is known to ±22% at best

# Whole years, cm, kg and mm make about one chance repeat in 1,000 people; 2% means that tables were merged twice.
MAX_REPEATS_SHARE = 0.02

# Half of a healthy cohort is never heavier. In pounds an adult median of 21 kg/m² reads 46, a child's 15.5 reads 34.
MAX_MEDIAN_BMI = (("children", 0.0, 18.0, 30.0), ("adults", 18.0, np.inf, 40.0))

WORDS = {Sex.MALE: "men", Sex.FEMALE: "women"}


@dataclass(frozen=True, slots=True)
class Findings:
    problems: tuple[str, ...]  # with any of these the table cannot be trained on
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """People for evaluation: the columns of training, a label, and the true z where it is known."""

    table: Table
    label: NDArray[np.int64]  # [N] 1: expected to score high
    true_z: Array | None  # [N] on the mm scale


def accepted_table(path: Path, diameter_column: str) -> tuple[Table, tuple[str, ...]]:
    """The table and its warnings; InvalidTable, with every problem, if it cannot be trained on."""
    table = read_table(path, diameter_column)
    findings = check_table(table)
    if findings.problems:
        raise InvalidTable(findings.problems)
    return table, findings.warnings


def check_table(table: Table) -> Findings:
    return Findings(
        tuple(sentence for check in PROBLEM_CHECKS for sentence in check(table)),
        tuple(sentence for check in WARNING_CHECKS for sentence in check(table)),
    )


def read_labelled(path: Path, diameter_column: str, label_column: str, truth_column: str | None) -> Labelled:
    """Read a table for evaluation, of any number of people; InvalidTable with every problem at once."""
    table = read_table(path, diameter_column)
    columns = [name for name in (label_column, truth_column) if name]
    missing = [f"Column {name} is missing." for name in columns if name not in table.cells]
    if missing or not len(table):
        raise InvalidTable(missing or ["The file contains no people."])
    label = numbers_of(table.cells[label_column])
    true_z = numbers_of(table.cells[truth_column]) if truth_column else None
    problems = [sentence for check in CELL_CHECKS for sentence in check(table)]
    problems += _wrong(table, label_column, ~np.isin(label, (0.0, 1.0)), "must be 0 or 1")
    if truth_column and true_z is not None:
        problems += _wrong(table, truth_column, np.isnan(true_z), "must be a number")
    if problems:
        raise InvalidTable(problems)
    return Labelled(table, label.astype(np.int64), true_z)


def row_list(rows: Iterable[int]) -> str:
    """row 4 · rows 4 and 9 · rows 4, 5, 6, 7, 8 and 12 more"""
    numbers = [str(row) for row in rows]
    if len(numbers) == 1:
        return f"row {numbers[0]}"
    if len(numbers) <= ROWS_NAMED:
        return f"rows {', '.join(numbers[:-1])} and {numbers[-1]}"
    return f"rows {', '.join(numbers[:ROWS_NAMED])} and {len(numbers) - ROWS_NAMED} more"


def ragged_rows(table: Table) -> Iterator[str]:
    if table.ragged_rows:
        yield f"The number of cells differs from the header: {row_list(table.ragged_rows)} (a decimal comma?)."


def unreadable_numbers(table: Table) -> Iterator[str]:
    for column, numbers in table.numbers.items():
        wrong = np.flatnonzero(np.isnan(numbers))
        for error, rows in _grouped(table, wrong, [_error(table.cells[column][k]) for k in wrong]).items():
            yield f"Column {column} {error}: {row_list(rows)}."


def unreadable_sexes(table: Table) -> Iterator[str]:
    wrong = np.flatnonzero(np.isnan(table.male))
    rules = ["must be exactly male or female" if table.cells["sex"][k] else "is empty" for k in wrong]
    for rule, rows in _grouped(table, wrong, rules).items():
        yield f"Column sex {rule}: {row_list(rows)}."


def forbidden_values(table: Table) -> Iterator[str]:
    for (column, values), limit in zip(table.numbers.items(), SERVED, strict=True):
        wrong = np.flatnonzero(_outside(limit, values))
        questions = [_question(value_mistake(limit.field, values[k])) for k in wrong]
        for question, rows in _grouped(table, wrong, questions).items():
            yield f"Column {column} must be between {_bounds(limit)}: {row_list(rows)}{question}."


def small_diameters(table: Table) -> Iterator[str]:
    limit = limits.DIAMETER_FROM_SCHOOL_AGE
    allowed_in_general = ~_outside(limits.DIAMETER, table.diameter_mm)
    of_age = table.age_years >= limit.from_age_years
    rows = table.rows[allowed_in_general & of_age & _outside(limit, table.diameter_mm)]
    if len(rows):
        rule = f"must be at least {limit.low:g} mm from the age of {limit.from_age_years:g} years"
        yield f"Column {table.diameter_column} {rule}: {row_list(rows)} (given in cm?)."


def forbidden_bodies(table: Table) -> Iterator[str]:
    wrong = np.flatnonzero(_sound_bodies(table) & _outside(limits.BMI, table.bmi_kg_m2))
    questions = [_body_question(table.height_cm[k], table.weight_kg[k]) for k in wrong]
    for question, rows in _grouped(table, wrong, questions).items():
        yield (
            "Columns height_cm and weight_kg must give a body mass index between "
            f"{_bounds(limits.BMI)}: {row_list(rows)}{question}."
        )


def high_median_bmi(table: Table) -> Iterator[str]:
    for who, youngest, oldest, highest in MAX_MEDIAN_BMI:
        bmi = table.bmi_kg_m2[_sound_bodies(table) & in_band(table.age_years, youngest, oldest)]
        if len(bmi) and np.median(bmi) > highest:
            yield (
                f"Half of the {who} have a body mass index above {highest:g} kg/m²: "
                "is column weight_kg given in pounds, or column height_cm in inches?"
            )


def constant_columns(table: Table) -> Iterator[str]:
    for column, numbers in table.numbers.items():
        known = numbers[~np.isnan(numbers)]
        if len(known) > 1 and np.ptp(known) == 0.0:
            yield f"Column {column} has the same value in every row."


def too_few_people(table: Table) -> Iterator[str]:
    if len(table) < MIN_PEOPLE:
        yield f"The table has {len(table)} people; at least {MIN_PEOPLE} are needed."
    for sex, word in WORDS.items():
        count = int(table.of_sex(sex).sum())
        if count < MIN_OF_A_SEX:
            yield f"The table has {count} {word}; at least {MIN_OF_A_SEX} are needed."


def many_repeats(table: Table) -> Iterator[str]:
    rows = _repeats(table)[0]
    if len(rows) > MAX_REPEATS_SHARE * len(table):
        yield f"{len(rows)} rows are exact copies of an earlier one: {row_list(rows)}."


def few_repeats(table: Table) -> Iterator[str]:
    rows = _repeats(table)[0]
    if 0 < len(rows) <= MAX_REPEATS_SHARE * len(table):
        yield f"An exact copy of an earlier row: {row_list(rows)}. Is it the same person?"


def measured_twice(table: Table) -> Iterator[str]:
    rows = _repeats(table)[1]
    if rows:
        yield (
            f"The same age, sex, height and weight as an earlier row, but a different diameter: {row_list(rows)}. "
            "If this is the same person, keep only one measurement."
        )


def sparse_age_groups(table: Table) -> Iterator[str]:
    ages = table.age_years[~np.isnan(table.age_years)]
    for label, low, high in AGE_BANDS:
        if not (ages < high).any() or not (ages >= low).any():
            continue  # the ages of this table end before the band: no score is given there anyway
        for sex, word in WORDS.items():
            count = int((table.of_sex(sex) & in_band(table.age_years, low, high)).sum())
            if count < MIN_IN_A_BAND:
                yield f"Only {count} {word} in the age group {label}: scores there will rest on few people."


def heavy_adults(table: Table) -> Iterator[str]:
    adult = table.age_years >= limits.HIGH_BMI.from_age_years
    rows = table.rows[_sound_bodies(table) & adult & (table.bmi_kg_m2 > limits.HIGH_BMI.high)]
    if len(rows):
        what = f"Adults with a body mass index above {limits.HIGH_BMI.high:g} kg/m²"
        yield f"{what}: {row_list(rows)} (weight given in pounds?)."


# Checks of single rows, for any table; of the whole table, only for training.
CELL_CHECKS: tuple[Check, ...] = (
    ragged_rows, unreadable_numbers, unreadable_sexes, forbidden_values, small_diameters, forbidden_bodies,
)  # fmt: skip
PROBLEM_CHECKS: tuple[Check, ...] = (*CELL_CHECKS, high_median_bmi, constant_columns, too_few_people, many_repeats)
WARNING_CHECKS: tuple[Check, ...] = (few_repeats, measured_twice, sparse_age_groups, heavy_adults)


def _grouped(table: Table, wrong: NDArray[np.intp], kinds: Iterable[str]) -> dict[str, list[int]]:
    """Row numbers of the wrong entries, by kind."""
    groups: dict[str, list[int]] = defaultdict(list)
    for row, kind in zip(table.rows[wrong].tolist(), kinds, strict=True):
        groups[kind].append(row)
    return groups


def _outside(limit: Limit, values: Array) -> NDArray[np.bool_]:
    """[N] NaN is not outside: it is not a value."""
    return (values < limit.low) | (values > limit.high)


def _body_question(height_cm: float, weight_kg: float) -> str:
    return _question(" or ".join(mistake.words for mistake in body_mistakes(height_cm, weight_kg)))


def _question(words: str) -> str:
    """As an addition to a sentence."""
    return f" ({words}?)" if words else ""


def _bounds(limit: Limit) -> str:
    return f"{limit.low:g} and {limit.high:g} {limit.unit}"


def _error(cell: str) -> str:
    if not cell:
        return "is empty"
    if has_decimal_comma(cell):
        return "has a decimal comma instead of a point"
    return "is not a number"


def _sound_bodies(table: Table) -> NDArray[np.bool_]:
    """Height and weight each allowed: only then does the body mass index say anything about the pair."""
    known = ~np.isnan(table.bmi_kg_m2)
    return known & ~_outside(limits.HEIGHT, table.height_cm) & ~_outside(limits.WEIGHT, table.weight_kg)


def _repeats(table: Table) -> tuple[list[int], list[int]]:
    """Rows that copy an earlier one in all five columns, and rows that copy all but its diameter."""
    context = np.column_stack([table.age_years, table.male, table.height_cm, table.weight_kg])
    known = ~np.isnan(np.column_stack([context, table.diameter_mm])).any(axis=1)
    people = zip(table.rows[known], context[known], table.diameter_mm[known], strict=True)
    diameters: dict[tuple[float, ...], list[float]] = defaultdict(list)
    copies: list[int] = []
    twice: list[int] = []
    for row, person, diameter in people:
        earlier = diameters[tuple(person)]
        if earlier:
            (copies if diameter in earlier else twice).append(int(row))
        earlier.append(diameter)
    return copies, twice


def _wrong(table: Table, column: str, wrong: NDArray[np.bool_], rule: str) -> Iterator[str]:
    if wrong.any():
        yield f"Column {column} {rule}: {row_list(table.rows[wrong].tolist())}."
