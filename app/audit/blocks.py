"""A block: items of a batch that one row of the audit records together.

The payload holds what the items share once, and the rest as columns (`app.formats.block_columns`): `item` is the index
of the first item, `output.items` are the indices of all, `input.columns` and `output.columns` what the records of
single scores hold. `expand` gives every item a record of its own again, under an id of its own: that of the block plus
one, two and so on. The last 32 bits of the block's id are zero, so no other record can have these ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from app.audit.records import ITEMS
from app.formats import block_columns
from app.formats.block_columns import Column

Json = dict[str, Any]

COLUMNS, ENCRYPTED = "columns", "encrypted"
MAX_ITEMS = 1024  # from the first to the last index of a block: so an item is found without reading every block
ID_MASK = (1 << 32) - 1


def block_fields(
    items: Sequence[int],
    output: Mapping[str, Column],
    recorded_input: Mapping[str, Column] | None = None,
    **shared: object,
) -> Json:
    """The fields of a NewRecord that holds these items; `shared` are parts of every item's output."""
    return {
        "item": items[0],
        "input": None if recorded_input is None else {COLUMNS: recorded_input},
        "output": {ITEMS: msgspec.Raw(msgspec.json.encode(items)), COLUMNS: output, **shared},
    }


def block_id(record_id: UUID) -> UUID:
    """Of the block that the record of an item belongs to; of any other record an id shortly before its own."""
    return UUID(int=record_id.int & ~ID_MASK)


def expand(payload: Json) -> list[Json]:
    """One record for each item of a block. Any other payload is returned unchanged, a malformed block too."""
    output = payload.get("output")
    if not (isinstance(output, dict) and ITEMS in output):
        return [payload]
    try:
        return _records(payload, output)
    except (ValueError, TypeError, LookupError, AttributeError):
        return [payload]


def contents(given: Json | None, output: Json) -> list[tuple[Json | None, Json | None]]:
    """Input and output of every item. Raises ValueError, TypeError, LookupError or AttributeError."""
    count = len(output[ITEMS])
    if given is not None and ENCRYPTED in given:  # each item by itself
        return [({ENCRYPTED: part}, None) for part in given[ENCRYPTED]]
    if COLUMNS not in output and given is None:  # its key was destroyed, or is not available
        return [(None, None)] * count
    shared = {name: value for name, value in output.items() if name not in (ITEMS, COLUMNS)}
    outputs = block_columns.items(output[COLUMNS], count)
    inputs = [None] * count if given is None else block_columns.items(given[COLUMNS], count)
    return [(one, said | shared) for one, said in zip(inputs, outputs, strict=True)]


def _records(payload: Json, output: Json) -> list[Json]:
    first = UUID(payload["record_id"]).int + 1
    each = zip(output[ITEMS], contents(payload["input"], output), strict=True)
    return [
        {**payload, "record_id": str(UUID(int=first + k)), "item": item, "input": given, "output": said}
        for k, (item, (given, said)) in enumerate(each)
    ]
