"""The list of components is complete, and says nothing about packages that are not delivered."""

from dataclasses import replace

import pytest

from tests.supply.components import TABLE, components, delivered, entries


def test_every_delivered_package_is_in_the_table_and_no_other() -> None:
    assert sorted(delivered()) == sorted(entries()), f"{TABLE.name}: add or remove the rows, then run `make docs`"


def test_what_we_use_ourselves_has_a_class_and_a_purpose() -> None:
    direct = {name for name, found in delivered().items() if any(pin.direct for pin in found)}
    assert direct
    assert {name for name in direct if not entries()[name].safety_class or not entries()[name].purpose} == set()
    assert {entry.safety_class for entry in entries().values()} == {"A", "B", ""}


def test_what_comes_with_others_has_the_highest_class_of_those() -> None:
    found = {component.name: component.safety_class for component in components()}
    assert found["greenlet"] == "B"  # of SQLAlchemy
    assert found["markupsafe"] == "B"  # of Mako, which Alembic needs
    assert found["mdurl"] == "A"  # of markdown-it-py


@pytest.mark.parametrize("same_version", [True, False])
def test_a_review_counts_for_its_version_alone(monkeypatch: pytest.MonkeyPatch, same_version: bool) -> None:
    [pinned] = {pin.version for pin in delivered()["starlette"]}
    version = pinned if same_version else "0.1"
    reviewed = replace(entries()["starlette"], reviewed_version=version, reviewed_on="2026-11-18")
    table = {**entries(), "starlette": reviewed}
    monkeypatch.setattr("tests.supply.components.entries", lambda: table)
    [found] = [component for component in components() if component.name == "starlette"]
    assert found.reviewed_on == ("2026-11-18" if same_version else "")
