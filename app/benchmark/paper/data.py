"""The UCI sets as numbers: from a folder, or from a cache that `download` fills. Always checked against a digest."""

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.benchmark.paper.download import DataUnavailable, fetch
from app.benchmark.paper.sets import DataSet
from app.maths.moments import Array

# Abalone's sex is written as a letter by UCI and as a number by others; alphabetical order is what both agree on.
LETTERS = {"F": 0.0, "I": 1.0, "M": 2.0}


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    X: Array  # [N, D] contexts, as published
    y: Array  # [N] the target, scaled to [0, 1]
    digest: str


def load(wanted: DataSet, folder: Path | None, cache: Path) -> Table:
    """From `folder` if one is given, else from the cache, downloaded on the first use."""
    path = folder / wanted.file if folder else fetch(wanted, cache)
    if not path.is_file():
        raise DataUnavailable(f"{wanted.file} is not in the folder of data.")
    try:
        numbers = _checked(path, wanted)
    except DataUnavailable as error:
        if folder:
            raise
        remedy = f"delete {path} to download it again, or name a folder that holds {wanted.file} with --data."
        raise DataUnavailable(f"{str(error).rstrip('.')}; {remedy}") from error
    y = numbers[:, -1]
    return Table(wanted.name, numbers[:, :-1], (y - y.min()) / (y.max() - y.min()), wanted.digest)


def read(text: str, wanted: DataSet) -> Array:
    """[N, D + 1] with the target last. A first column without a name counts the rows and is left out."""
    try:
        rows = [row for row in csv.reader(text.splitlines()) if row]
        skip = 1 if rows and not rows[0][0].strip() else 0
        numbers = np.array([_numbers(row[skip:]) for row in rows[1:]])
    except (ValueError, csv.Error) as error:
        raise DataUnavailable(f"The table of {wanted.name} has a cell that is not a number.") from error
    if numbers.ndim != 2 or len(numbers) != wanted.rows:
        raise DataUnavailable(f"The table of {wanted.name} has {len(numbers)} rows instead of {wanted.rows}.")
    return numbers


def content_digest(numbers: Array) -> str:
    """Of ten significant digits, so that 0.101 and 0.10099999999999999 are the same number."""
    lines = (",".join(f"{value:.10g}" for value in row) for row in numbers)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _checked(path: Path, wanted: DataSet) -> Array:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataUnavailable(f"{path.name} is not text.") from error
    numbers = read(text, wanted)
    digest = content_digest(numbers)
    if digest != wanted.digest:
        raise DataUnavailable(f"{path.name} does not hold the numbers of the UCI set {wanted.name} (digest {digest}).")
    return numbers


def _numbers(cells: Sequence[str]) -> list[float]:
    return [LETTERS[cell] if cell in LETTERS else float(cell) for cell in cells]
