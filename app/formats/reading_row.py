"""A reading as a flat row, as a CSV or Parquet file of many patients holds it.

The columns are the fields of the single request, `site` and an optional `id`; a convention takes three columns
(`convention.edge` and so on), thresholds one cell (`2;3`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.errors import FieldError, InvalidInput, InvalidTable
from app.formats.faults import fault
from app.schemas.errors import did_you_mean, parse
from app.schemas.requests import ScoreRequest, SiteRequest, StatedConvention

Json = dict[str, Any]
Row = Mapping[str, object]

BETWEEN = ";"  # elements of one cell
RAGGED = ""  # the column of a row that does not have as many cells as the header
RAGGED_ROW = "The row does not have as many cells as the header. Is there a decimal comma where a point is needed?"
OTHER_SEPARATORS = (BETWEEN, "\t")
OTHER_SEPARATOR = (
    "The columns are separated by semicolons or tabs: save the file with commas between the columns, and with points "
    "in the numbers."
)

SITE, ID, THRESHOLDS, FLAG = "site", "id", "thresholds", "include_unreliable"
CONVENTION = {f"convention.{part}": part for part in StatedConvention.model_fields}
TEXTS = frozenset({SITE, ID, "sex", "subject", "model_version", *CONVENTION})
REQUIRED = ("age_years", "sex", "height_cm", "weight_kg", "diameter_mm")
KNOWN = (ID, SITE, *(name for name in ScoreRequest.model_fields if name != "convention"), *CONVENTION)

# Python's own float() also takes "1_000" and "nan"; neither is a measurement.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Item:
    """One row: a request, or all that is wrong with it."""

    index: int
    id: str
    site: str
    request: SiteRequest | None
    faults: tuple[FieldError, ...]


def check_columns(names: Iterable[str], default_site: str | None) -> None:
    """Refuses a table whose columns cannot be meant, before any row of it is scored."""
    found = list(names)
    if len(found) == 1 and any(separator in found[0] for separator in OTHER_SEPARATORS):
        raise InvalidTable([OTHER_SEPARATOR])
    needed = REQUIRED if default_site else (*REQUIRED, SITE)
    problems = [f"Column {name} is missing." for name in needed if name not in found]
    absent = [name for name in KNOWN if name not in found]
    problems += [_not_known(name, absent) for name in dict.fromkeys(found) if name not in KNOWN]
    problems += [f"Column {name} stands there twice." for name in KNOWN if found.count(name) > 1]
    if problems:
        raise InvalidTable([*problems, f"Known are {', '.join(KNOWN)}."])


def _not_known(name: str, absent: list[str]) -> str:
    if not name:
        return "A column has no name in the header. Leave row numbers out of the file."
    return f"Column {name} is not known.{did_you_mean([name], absent)}"


def read_item(index: int, row: Row, default_site: str | None = None) -> Item:
    """A cell that is empty is a field that was not given. Nothing is corrected: a row is right, or it has faults."""
    cells = {name: cell for name, cell in row.items() if cell is not None and cell != ""}
    site, name = str(cells.pop(SITE, default_site) or ""), str(cells.pop(ID, ""))
    faults: list[FieldError] = []
    if RAGGED in cells:
        return Item(index, name, site, None, (fault("ragged_row", "", RAGGED_ROW),))
    if not site:
        faults.append(fault("missing", SITE, "site is required: the site of a published model."))
    try:
        request = parse(ScoreRequest, _body(cells)).for_site(site)
    except InvalidInput as refused:
        faults.extend(refused.faults)
    return Item(index, name, site, None if faults else request, tuple(faults))


def _body(cells: Mapping[str, object]) -> Json:
    body = {name: _value(name, cell) for name, cell in cells.items() if name not in CONVENTION}
    convention = {CONVENTION[name]: cell for name, cell in cells.items() if name in CONVENTION}
    return body | ({"convention": convention} if convention else {})


def _value(name: str, cell: object) -> object:
    """Text becomes what the field holds. What cannot is left as it is, to be refused by the field's own words."""
    if not isinstance(cell, str) or name in TEXTS:
        return [float(cell)] if name == THRESHOLDS and isinstance(cell, int | float) else cell
    if name == THRESHOLDS:
        return [_number(part.strip()) for part in cell.split(BETWEEN)]
    return _FLAGS.get(cell.lower(), cell) if name == FLAG else _number(cell)


def _number(text: str) -> object:
    return float(text) if _NUMBER.fullmatch(text) else text
