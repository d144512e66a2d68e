"""A table of labelled people, for evaluation: the columns of training, a label, and the true z where it is known."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidTable
from app.maths.moments import Array
from app.training.people import Table
from app.training.table import numbers_of, read_table
from app.training.table_rules import CELL_RULES, named


@dataclass(frozen=True, slots=True)
class Labelled:
    table: Table
    label: NDArray[np.int64]  # [N] 1: ought to score high
    true_z: Array | None  # [N] on the mm scale


def read_labelled(path: Path, diameter_column: str, label_column: str, truth_column: str | None) -> Labelled:
    """As for training, but any number of people will do. Every problem at once."""
    table = read_table(path, diameter_column)
    columns = [name for name in (label_column, truth_column) if name]
    missing = [f"Column {name} is missing." for name in columns if name not in table.cells]
    if missing or not len(table):
        raise InvalidTable(missing or ["The file holds no people."])
    label = numbers_of(table.cells[label_column])
    true_z = numbers_of(table.cells[truth_column]) if truth_column else None
    problems = [sentence for rule in CELL_RULES for sentence in rule(table)]
    problems += _wrong(table, label_column, ~np.isin(label, (0.0, 1.0)), "must be 0 or 1")
    if truth_column and true_z is not None:
        problems += _wrong(table, truth_column, np.isnan(true_z), "must be a number")
    if problems:
        raise InvalidTable(problems)
    return Labelled(table, label.astype(np.int64), true_z)


def _wrong(table: Table, column: str, wrong: NDArray[np.bool_], rule: str) -> Iterator[str]:
    if wrong.any():
        yield f"Column {column} {rule}: {named(table.rows[wrong].tolist())}."
