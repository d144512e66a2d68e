"""An example of a table of measurements, with every column that a table may have, as CSV or Parquet."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, BinaryIO

from app.files import csv_lines
from app.formats.score_table import CELL_SEPARATOR, FIELDS, KNOWN
from app.formats.table_files import CSV, pyarrow_modules

ARROW_TYPES = {"number": "float64", "text": "string", "choice": "string", "flag": "bool"}
EXAMPLE: tuple[Mapping[str, Any], ...] = (
    {
        "id": "only what is required",
        "site": "SoV",
        "age_years": 55.0,
        "sex": "male",
        "height_cm": 176.0,
        "weight_kg": 84.0,
        "diameter_mm": 41.0,
    },
    {
        "id": "with the protocol of the measurement",
        "site": "AA",
        "age_years": 34.5,
        "sex": "female",
        "height_cm": 168.0,
        "weight_kg": 61.0,
        "diameter_mm": 29.5,
        "convention.edge": "leading",
        "convention.phase": "end-diastole",
        "convention.modality": "TTE",
    },
    {
        "id": "with every option",
        "site": "SoV",
        "age_years": 12.0,
        "sex": "female",
        "height_cm": 152.0,
        "weight_kg": 43.0,
        "diameter_mm": 25.0,
        "measurement_sd_mm": 0.8,
        "convention.edge": "leading",
        "convention.phase": "end-diastole",
        "convention.modality": "TTE",
        "model_version": "current",
        "thresholds": [2.0, 3.0],
        "hdi_probability": 0.9,
        "include_unreliable": True,
        "subject": "your reference of the patient",
    },
)


def write_template(path: PurePath, file: BinaryIO) -> None:
    """In the format of the suffix."""
    if path.suffix.lower() == CSV:
        rows = ([_cell(row.get(name)) for name in KNOWN] for row in EXAMPLE)
        file.write(csv_lines([KNOWN, *rows]))
        return
    pyarrow, parquet = pyarrow_modules()
    columns = {name: pyarrow.array([row.get(name) for row in EXAMPLE], _arrow_type(pyarrow, name)) for name in KNOWN}
    parquet.write_table(pyarrow.table(columns), file)


def _cell(value: Any) -> object:
    if isinstance(value, list):
        return CELL_SEPARATOR.join(map(repr, value))
    return str(value).lower() if isinstance(value, bool) else value


def _arrow_type(pyarrow: Any, name: str) -> Any:
    field = FIELDS.get(name)
    if field is not None and field.element is not None:
        return pyarrow.list_(pyarrow.type_for_alias(ARROW_TYPES[field.element.kind]))
    return pyarrow.type_for_alias(ARROW_TYPES[field.kind if field is not None else "text"])
