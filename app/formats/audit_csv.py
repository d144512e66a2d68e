"""Audit records as CSV: one line per record with its whole content, which includes patients' values.

`input` and `output` are JSON, in one cell each, because their keys depend on the kind of record.
"""

import csv
import io
from collections.abc import Mapping
from typing import Any

import msgspec

HEADER = (
    "record_id",
    "request_id",
    "item",
    "kind",
    "at",
    "principal",
    "route",
    "status",
    "site",
    "version",
    "model_sha256",
    "input",
    "output",
    "chain_month",
    "chain_id",
    "chain_seq",
    "row_hash",
    "damaged",  # true: the row is not what was hashed; if its payload cannot be read, only the other columns are filled
    "damage",  # its kind, and a description
)
_JSON = ("input", "output")


def header() -> bytes:
    return _line(HEADER)


def line(record: Mapping[str, Any]) -> bytes:
    """`record` is the payload with `damaged` and `chain`, as `app.audit.lookup` returns it."""
    model, chain = record.get("model") or {}, record["chain"]
    cells = {
        **record,
        **{name: _json(record.get(name)) for name in _JSON},
        "site": model.get("site"),
        "version": model.get("version"),
        "model_sha256": model.get("sha256"),
        "chain_month": chain["month"],
        "chain_id": chain["id"],
        "chain_seq": chain["seq"],
        "row_hash": chain["row_hash"],
        "damaged": "true" if record["damaged"] else None,
        "damage": "{kind}: {detail}".format(**record["damage"]) if record["damaged"] else None,
    }
    return _line(tuple(cells.get(name) for name in HEADER))


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _line(cells: tuple[object, ...]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
