"""Values of many items as columns of JSON, and back: how a record stores a block of items.

A column is one of three things:

    [v0, v1, …]                          one value for each item
    {"all": v}                           the same value for every item
    {"of": [v0, v1, …], "each": [k, …]}  for each item the index of its value

Columns are named by the path of their field in an item, such as `score.exceedance[0].threshold`. Putting the columns
together gives back every item; an object or array that would hold nothing but nulls is null itself.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")

Column = msgspec.Raw | list[Any] | dict[str, Any]


def same(value: object) -> Column:
    return {"all": value}


def chosen(values: Sequence[object], each: Sequence[int]) -> Column:
    """The values of items by their index; one that all items share is stored once."""
    return same(values[0]) if len(values) == 1 else {"of": list(values), "each": list(each)}


def distinct(values: Sequence[Any]) -> Column:
    """Of hashable values many of which are equal."""
    index = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return chosen(list(index), [index[value] for value in values])


def items(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Every item that the columns hold. Raises ValueError for what are not columns of so many items."""
    tree: dict[Any, Any] = {}
    try:
        for path, column in columns.items():
            *parents, last = [name or int(index) for name, index in STEP.findall(path)]
            node = tree
            for step in parents:
                node = node.setdefault(step, {})
            node[last] = _values(column, count)
        return [_item(tree, k) or {} for k in range(count)]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("these are not columns of a block") from error


def _values(column: Any, count: int) -> list[Any]:
    if isinstance(column, dict):
        values = [column["all"]] * count if "all" in column else [column["of"][k] for k in column["each"]]
    else:
        values = column
    if len(values) != count:
        raise ValueError("a column has another number of values than there are items")
    return values


def _item(node: dict[Any, Any], k: int) -> Any:
    found = {step: inner[k] if isinstance(inner, list) else _item(inner, k) for step, inner in node.items()}
    if all(value is None for value in found.values()):
        return None
    return list(found.values()) if 0 in found else found
