"""A hospital's table of healthy people, read from CSV. `table_checks` decides whether it can be trained on.

Columns: age_years, sex, height_cm, weight_kg and one of diameters in mm; others are ignored. Nothing is corrected or
dropped: every problem is named by row (the header is row 1) and column, for the hospital to correct at the source.
"""

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.domain.card import Range, TrainingRanges
from app.domain.patient import AgeTransform, Sex, covariate_columns
from app.errors import InvalidTable
from app.files import CsvRecords, decimal_number
from app.maths.moments import Array

AGE_BANDS = (
    ("under 18 years", 0.0, 18.0),
    ("18 to 39 years", 18.0, 40.0),
    ("40 to 59 years", 40.0, 60.0),
    ("60 years and more", 60.0, np.inf),
)


@dataclass(frozen=True, slots=True)
class Table:
    """People as read from a file; what could not be read as a number is NaN and is in `cells` as text."""

    diameter_column: str
    sha256: str  # of the file's bytes
    rows: NDArray[np.int64]  # [N] row in the file, the header being row 1
    ragged_rows: tuple[int, ...]  # rows with more or fewer cells than the header; not among the N
    cells: Mapping[str, tuple[str, ...]]  # [N] texts by column, those that training does not use too
    age_years: Array  # [N]
    male: Array  # [N] 1 or 0
    height_cm: Array  # [N]
    weight_kg: Array  # [N]
    diameter_mm: Array  # [N]

    @property
    def bmi_kg_m2(self) -> Array:
        with np.errstate(all="ignore"):  # an unchecked table may hold a height of 0
            return self.weight_kg / (self.height_cm / 100.0) ** 2

    @property
    def numbers(self) -> dict[str, Array]:
        """The measured columns, by their names in the file."""
        return {
            "age_years": self.age_years,
            "height_cm": self.height_cm,
            "weight_kg": self.weight_kg,
            self.diameter_column: self.diameter_mm,
        }

    def covariates(self, age: AgeTransform) -> Array:
        """[N, 4]"""
        return covariate_columns(self.age_years, self.male, self.height_cm, self.weight_kg, age=age)

    def of_sex(self, sex: Sex) -> NDArray[np.bool_]:
        return np.equal(self.male, float(sex is Sex.MALE))

    def __len__(self) -> int:
        return len(self.rows)


def training_ranges(table: Table) -> TrainingRanges:
    """Of a table that has passed its checks."""
    first, last = np.percentile(table.age_years, [1.0, 99.0])
    return TrainingRanges(
        age_years=_range(table.age_years),
        age_years_middle_98=Range(float(first), float(last)),
        height_cm={sex.value: _range(table.height_cm[table.of_sex(sex)]) for sex in Sex},
        weight_kg={sex.value: _range(table.weight_kg[table.of_sex(sex)]) for sex in Sex},
        bmi_kg_m2=_range(table.bmi_kg_m2),
    )


def in_band(age_years: Array, low: float, high: float) -> NDArray[np.bool_]:
    return (age_years >= low) & (age_years < high)


def _range(values: Array) -> Range:
    return Range(float(values.min()), float(values.max()))


PARQUET = b"PAR1"  # the first bytes of such a file
CONTEXT_COLUMNS = ("age_years", "sex", "height_cm", "weight_kg")


def read_table(path: Path, diameter_column: str) -> Table:
    """InvalidTable unless the file has these columns; `check_table` judges the values in them."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidTable([f"{path.name} cannot be read: {error.strerror}."]) from error
    if content.startswith(PARQUET):
        raise InvalidTable([f"{path.name} is a Parquet file: training takes CSV, UTF-8 with commas and a header."])
    header, *body = [[cell.strip() for cell in record] for record in CsvRecords(io.BytesIO(content))] or [[]]
    needed = (*CONTEXT_COLUMNS, diameter_column)
    _check_header(header, needed)
    filled = [(row, record) for row, record in enumerate(body, start=2) if any(record)]
    whole = [(row, record) for row, record in filled if len(record) == len(header)]
    cells = {name: tuple(record[k] for _, record in whole) for k, name in enumerate(header)}
    return Table(
        diameter_column=diameter_column,
        sha256=hashlib.sha256(content).hexdigest(),
        rows=np.array([row for row, _ in whole], dtype=np.int64),
        ragged_rows=tuple(row for row, record in filled if len(record) != len(header)),
        cells=cells,
        age_years=numbers_of(cells["age_years"]),
        male=np.array([{"male": 1.0, "female": 0.0}.get(sex, math.nan) for sex in cells["sex"]]),
        height_cm=numbers_of(cells["height_cm"]),
        weight_kg=numbers_of(cells["weight_kg"]),
        diameter_mm=numbers_of(cells[diameter_column]),
    )


def numbers_of(cells: Sequence[str]) -> Array:
    """[N] NaN where a cell is not a finite number."""
    values = np.array([decimal_number(cell) for cell in cells], dtype=np.float64)  # None becomes NaN
    return np.where(np.isfinite(values), values, math.nan)


def _check_header(header: Sequence[str], needed: Sequence[str]) -> None:
    expected = ", ".join(needed)
    if not any(header):
        raise InvalidTable([f"The file has no header row; row 1 must name the columns {expected}."])
    for separator, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and separator in header[0]:
            problem = f"The columns are separated by {word}: save the file with commas between the columns, "
            raise InvalidTable([problem + "and with points in the numbers."])
    missing = [name for name in needed if name not in header]
    repeated = [name for name in needed if header.count(name) > 1]
    problems = [f"{_columns(missing)} missing; row 1 must name the columns {expected}."] if missing else []
    problems += [f"Column {name} appears more than once in row 1." for name in repeated]
    if needed[-1] in CONTEXT_COLUMNS:
        problems.append(f"Column {needed[-1]} cannot be the diameter as well.")
    if problems:
        raise InvalidTable(problems)


def _columns(names: Sequence[str]) -> str:
    return f"Column {names[0]} is" if len(names) == 1 else f"Columns {', '.join(names)} are"
