"""Reading a hospital's CSV of healthy people, and deciding whether it can be trained on.

Columns: age_years, sex, height_cm, weight_kg and one of diameters in mm; others are ignored. Nothing is corrected or
dropped: every fault is named by row (the header is row 1) and column, for the hospital to correct at the source.
"""

import csv
import hashlib
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.errors import InvalidTable
from app.maths.moments import Array
from app.training.people import Table, training_ranges
from app.training.table_rules import PROBLEM_RULES, WARNING_RULES

__all__ = ["Findings", "Table", "accepted_table", "check_table", "numbers_of", "read_table", "training_ranges"]

PARQUET = b"PAR1"  # the first bytes of such a file
CONTEXT_COLUMNS = ("age_years", "sex", "height_cm", "weight_kg")

# Python's own float() also takes "1_000", "nan" and Arabic digits; none of them is a measurement.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Findings:
    problems: tuple[str, ...]  # any of them refuses the table
    warnings: tuple[str, ...]


def accepted_table(path: Path, diameter_column: str) -> tuple[Table, tuple[str, ...]]:
    """The table and its warnings; InvalidTable, with every problem, if it cannot be trained on."""
    table = read_table(path, diameter_column)
    findings = check_table(table)
    if findings.problems:
        raise InvalidTable(findings.problems)
    return table, findings.warnings


def check_table(table: Table) -> Findings:
    return Findings(
        tuple(sentence for rule in PROBLEM_RULES for sentence in rule(table)),
        tuple(sentence for rule in WARNING_RULES for sentence in rule(table)),
    )


def read_table(path: Path, diameter_column: str) -> Table:
    """Refuses what is no table of these columns; what its cells hold is for `check_table`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidTable([f"{path.name} cannot be read: {error.strerror}."]) from error
    if content.startswith(PARQUET):
        raise InvalidTable([f"{path.name} is a Parquet file: training takes CSV, UTF-8 with commas and a header."])
    header, *body = _records(_decoded(content)) or [[]]
    needed = (*CONTEXT_COLUMNS, diameter_column)
    _refuse_wrong_header(header, needed)
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
    """[N] NaN where a cell holds no finite number."""
    values = np.array([float(cell) if NUMBER.fullmatch(cell) else math.nan for cell in cells])
    return np.where(np.isfinite(values), values, math.nan)


def _decoded(content: bytes) -> str:
    try:
        # A byte order mark passes without a word: Excel's "CSV UTF-8" writes one, and no number depends on it.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise InvalidTable([f"The file is not UTF-8 text (first seen in row {row}): save it as CSV UTF-8."]) from error


def _records(text: str) -> list[list[str]]:
    """Blank lines stay, so that a record's place is its row in a spreadsheet."""
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), strict=True):
            records.append([cell.strip() for cell in record])
    except csv.Error as error:
        row = len(records) + 1
        raise InvalidTable([f"Row {row} is not valid CSV: look for a quotation mark that does not close."]) from error
    return records


def _refuse_wrong_header(header: Sequence[str], needed: Sequence[str]) -> None:
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
    problems += [f"Column {name} stands more than once in row 1." for name in repeated]
    if needed[-1] in CONTEXT_COLUMNS:
        problems.append(f"Column {needed[-1]} cannot be the diameter as well.")
    if problems:
        raise InvalidTable(problems)


def _columns(names: Sequence[str]) -> str:
    return f"Column {names[0]} is" if len(names) == 1 else f"Columns {', '.join(names)} are"
