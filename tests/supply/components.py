"""The components of others that we deliver: the pins, and what requirements/components.csv says of them."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tests.supply.pins import REQUIREMENTS, Pin, pins

TABLE = REQUIREMENTS / "components.csv"
# By file of pins: where its components are used.
DELIVERED: Mapping[str, tuple[str, ...]] = {
    "serve": ("serve", "image cpu"),
    "train": ("train",),
    "files": ("files",),
    "gpu": ("image gpu",),
}
# B: a failure could change a score, lose its record or give it to the wrong caller. A: it could not.
HIGHER, LOWER = "B", "A"


@dataclass(frozen=True)
class Entry:
    """A row of the table. What only comes with others has neither class nor purpose of its own."""

    licence: str
    safety_class: str
    purpose: str
    reviewed_version: str
    reviewed_on: str


@dataclass(frozen=True)
class Component:
    name: str
    versions: tuple[str, ...]
    licence: str
    safety_class: str
    purpose: str
    used_in: tuple[str, ...]
    reviewed_on: str  # empty if it was another version


@cache
def entries() -> Mapping[str, Entry]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row.pop("name"): Entry(**row) for row in csv.DictReader(file)}


def delivered() -> dict[str, list[Pin]]:
    """By name."""
    found: dict[str, list[Pin]] = {}
    for part in DELIVERED:
        for pin in pins(part):
            found.setdefault(pin.name, []).append(pin)
    return dict(sorted(found.items()))


def components() -> list[Component]:
    by_name = delivered()
    used_in = {
        name: tuple(
            place for part, places in DELIVERED.items() if any(p.name == name for p in pins(part)) for place in places
        )
        for name in by_name
    }
    return [_component(name, by_name, used_in[name]) for name in by_name]


def _component(name: str, by_name: Mapping[str, list[Pin]], used_in: tuple[str, ...]) -> Component:
    entry = entries()[name]
    versions = tuple(sorted({pin.version for pin in by_name[name]}))
    needed_by = sorted({other for pin in by_name[name] for other in pin.needed_by})
    return Component(
        name,
        versions,
        entry.licence,
        _safety_class(name, by_name, frozenset()),
        entry.purpose or "needed by " + ", ".join(needed_by),
        used_in,
        entry.reviewed_on if versions == (entry.reviewed_version,) else "",
    )


def _safety_class(name: str, by_name: Mapping[str, list[Pin]], seen: frozenset[str]) -> str:
    """Its own, or else the highest of what needs it."""
    if entries()[name].safety_class:
        return entries()[name].safety_class
    others = {other for pin in by_name[name] for other in pin.needed_by} - seen
    found = {_safety_class(other, by_name, seen | {name}) for other in others}
    return HIGHER if HIGHER in found else LOWER
