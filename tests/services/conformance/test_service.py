"""Our own service conforms: with the shipped models on both databases, with keys and without, and with other models."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import CouldNotCheck
from app.services.conformance.cases import read_cases
from app.services.conformance.run import Conformance, check_conformance
from app.settings import Settings
from tests.web.serving import Running, create_key, publish_small, serving

SHIPPED = Path(__file__).parents[3] / "models_store"


def check(running: Running, key: str | None) -> Conformance:
    return check_conformance(running.url, key, read_cases(), lambda step, share: None)


def failures(found: Conformance) -> dict[str, tuple[str, ...]]:
    return {case.name: case.mistakes for case in found.cases if case.outcome == "failed"}


def skipped(found: Conformance) -> set[str]:
    return {case.name for case in found.cases if case.outcome == "skipped"}


@pytest.fixture
def shipped(settings: Settings) -> Iterator[Running]:
    """On both databases, one after the other."""
    with serving(settings, SHIPPED) as running:
        yield running


def test_the_service_conforms_without_and_with_a_key(shipped: Running) -> None:
    file = read_cases()
    found = check(shipped, None)
    assert failures(found) == {}
    need_a_key = {case.name for case in file.cases if case.needs_key}
    assert skipped(found) == need_a_key | {"unknown-record"}
    assert len(need_a_key) >= 9

    front_end = create_key(shipped.settings, ["score", "model:read"])
    auditor = create_key(shipped.settings, ["score", "model:read", "audit:read", "admin"])
    too_little = create_key(shipped.settings, ["model:read"])
    shipped.inside(shipped.runtime.poller.refresh())
    for key, missing in ((front_end, {"unknown-record"}), (auditor, {"scope-missing"})):
        found = check(shipped, key)
        assert failures(found) == {}
        assert skipped(found) == missing
    for insufficient, status in ((None, 401), (too_little, 403)):
        with pytest.raises(CouldNotCheck, match=f"has status {status}. Conformance is checked with a key"):
            check(shipped, insufficient)
    scores = [record for record in shipped.records("score") if record.request_id.startswith("conformance-")]
    assert len(scores) >= 3 * 32  # every response with numbers is on record


def test_other_models_are_judged_by_the_self_test(settings: Settings, tmp_path: Path) -> None:
    root = tmp_path / "models"
    publish_small(root, "SoV", "1.0.0", 0)
    with serving(settings, root) as running:
        found = check(running, None)
    assert failures(found) == {}
    with_numbers = {case.name for case in read_cases().cases if case.models}
    assert with_numbers < skipped(found)
    passed = {case.name for case in found.cases if case.outcome == "passed"}
    assert {"lookup-selftest", "order-input", "input-3-unknown_field"} <= passed
