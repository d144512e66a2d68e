"""Every requirement has a test, and everything that a hazard or a threat names exists."""

import re

import pytest

from tests.traceability import Risk, marked_tests, requirements, risks, showing

HAZARDS = {"cause", "severity", "control", "test", "remains"}
THREATS = {"kind", "control", "test", "remains"}
SEVERITIES = ("serious", "moderate", "minor")
KINDS = {"spoofing", "tampering", "repudiation", "disclosure", "denial", "elevation"}
# Those that every reviewer asks about.
EXPECTED_HAZARDS = [
    "wrong units", "exchanged fields", "wrong model", "stale", "extrapolation", "NaN", "twice", "without a record",
    "another patient", "misread", "convention",
]  # fmt: skip


def test_no_id_is_given_twice() -> None:
    for ids in ([one for one, _ in requirements()], [risk.name for risk in risks()]):
        assert len(ids) > 10
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("requirement", [one for one, _ in requirements()])
def test_every_requirement_has_a_test(requirement: str) -> None:
    assert showing(requirement)


def test_every_marker_names_a_requirement() -> None:
    known = {one for one, _ in requirements()}
    assert {name: marked for name, marked in marked_tests().items() if not set(marked) <= known} == {}


@pytest.mark.parametrize("risk", risks(), ids=lambda risk: risk.name)
def test_every_hazard_and_threat_is_controlled_and_tested(risk: Risk) -> None:
    assert set(risk.fields) == (HAZARDS if risk.name.startswith("HAZ") else THREATS)
    assert risk.requirements
    assert risk.requirements <= {one for one, _ in requirements()}
    assert risk.tests
    assert risk.tests <= set(marked_tests())
    if "severity" in risk.fields:
        assert risk.fields["severity"].startswith(SEVERITIES)
    else:
        assert set(re.split(r", ", risk.fields["kind"].rstrip("."))) <= KINDS


def test_the_hazards_that_reviewers_look_for_are_there() -> None:
    titles = " / ".join(risk.title for risk in risks() if risk.name.startswith("HAZ"))
    assert [words for words in EXPECTED_HAZARDS if words.lower() not in titles.lower()] == []


def test_a_section_is_read() -> None:
    [risk] = risks(
        "## HAZ-01: a title\n\n- **Cause**: one\n  two\n- **Test**: `tests/a.py::test_b`, REQ-001\n\n## Next\nREQ-002"
    )
    assert (risk.name, risk.title, risk.fields["cause"]) == ("HAZ-01", "a title", "one two")
    assert risk.tests == {"tests/a.py::test_b"}
    assert risk.requirements == {"REQ-001"}


def test_markers_are_found_on_functions_of_every_kind() -> None:
    assert "REQ-074" in marked_tests()["tests/audit/test_verify_chains.py::test_a_deleted_row_is_a_gap"]  # async
    assert (
        "REQ-080" in marked_tests()["tests/cli/test_audit.py::test_nothing_is_shown_that_cannot_be_recorded"]
    )  # of a class
    assert marked_tests()["tests/test_traceability.py::test_markers_are_found_on_functions_of_every_kind"] == ()
