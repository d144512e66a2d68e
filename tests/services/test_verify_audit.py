"""The running service verifies its audit, records that, and says what it found in readiness and the metrics."""

from pathlib import Path

import pytest

from app.audit.records import NewRecord
from app.errors import AuditUnavailable
from app.services.verify_audit import verify_once
from app.settings import Settings
from tests.cli.running import tamper
from tests.web.serving import Running, publish_small, serving


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    publish_small(root, "SoV", "1.0.0", 0)
    return root


def metrics(running: Running) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in running.client.get("/metrics").text.splitlines()]
    return {name: float(value) for name, _, value in lines if name.startswith("normalcy_audit")}


def codes(running: Running) -> list[str]:
    return [warning["code"] for warning in running.client.get("/health/ready").json()["warnings"]]


@pytest.mark.slow
@pytest.mark.req("REQ-156")
def test_an_audit_is_intact_until_somebody_tampers_with_it(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        assert metrics(running)['normalcy_audit_verification{outcome="pending"}'] == 1
        running.score()
        running.inside(verify_once(running.runtime))
        assert metrics(running)['normalcy_audit_verification{outcome="intact"}'] == 1
        intact_at = metrics(running)["normalcy_audit_verified_timestamp_seconds"]
        assert intact_at > 0
        assert codes(running) == []
        assert [record.output for record in running.records() if record.route == "scheduled verification"] == [
            {"records": 2, "intact": True, "kinds": []}
        ]
        tamper(settings, "UPDATE audit_records SET principal = 'x' WHERE kind = 'score'")
        running.inside(verify_once(running.runtime))
        assert codes(running) == ["audit_tampered"]
        assert metrics(running)["normalcy_audit_verified_timestamp_seconds"] == intact_at
        running.runtime.verification.outcome = "not_permitted"
        assert codes(running) == ["audit_not_verified"]


@pytest.mark.slow
@pytest.mark.req("REQ-156")
def test_tampering_is_reported_also_if_the_verification_cannot_be_recorded(
    settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write(records: list[NewRecord]) -> None:
        raise AuditUnavailable

    with serving(settings, models_dir) as running:
        running.score()
        with monkeypatch.context() as patched:
            patched.setattr(running.runtime.writer, "write", write)
            running.inside(verify_once(running.runtime))
            assert codes(running) == ["audit_not_verified"]  # intact, without the record of it
            assert metrics(running)["normalcy_audit_verified_timestamp_seconds"] == 0
            tamper(settings, "UPDATE audit_records SET principal = 'x' WHERE kind = 'score'")
            running.inside(verify_once(running.runtime))
            assert codes(running) == ["audit_tampered"]
