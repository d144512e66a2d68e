"""A service's own checkpoints: kept, never forgetful, and loud when they fail."""

import io
from pathlib import Path

import pytest

from app.audit.checkpoint import Checkpoint, parse
from app.services.checkpoints import FOLDER, checkpoint_files
from app.settings import Settings
from tests.cli.running import tamper
from tests.web.serving import Running, publish_small, serving


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    publish_small(root, "SoV", "1.0.0", 0)
    return root


def take(running: Running) -> Checkpoint:
    """The newest file, after another turn."""
    running.inside(running.service.checkpoints.take())
    return parse(checkpoint_files(running.settings.data_dir / FOLDER)[-1].read_bytes())


def warnings(running: Running) -> list[str]:
    ready = running.client.get("/health/ready")
    assert ready.status_code == 200
    return [warning["code"] for warning in ready.json()["warnings"]]


def metric(running: Running, name: str) -> float:
    lines = running.client.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))


def test_a_file_says_the_last_state_of_its_day(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        before = take(running)
        running.score()
        after = take(running)
    assert len(checkpoint_files(settings.data_dir / FOLDER)) == 1
    assert [end.seq for end in before.ends.values()] == [1]
    assert [end.seq for end in after.ends.values()] == [2]
    assert after.database.split()[0] == ("postgresql" if settings.database_url else "sqlite")


def test_a_failed_checkpoint_is_a_warning_and_counted(settings: Settings, models_dir: Path, log: io.StringIO) -> None:
    in_the_way = settings.data_dir / FOLDER
    in_the_way.write_text("no folder")
    with serving(settings, models_dir) as running:
        running.inside(running.service.checkpoints.take())
        assert warnings(running) == ["checkpoint_failed"]
        assert metric(running, "normalcy_checkpoint_failures_total") >= 1
        before = metric(running, "normalcy_checkpoint_age_seconds")
        in_the_way.unlink()
        take(running)
        assert warnings(running) == []
        assert metric(running, "normalcy_checkpoint_age_seconds") < before
    assert "no audit checkpoint" in log.getvalue()


def test_a_late_checkpoint_is_a_warning(settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(settings, models_dir) as running:
        take(running)
        assert warnings(running) == []
        monkeypatch.setattr("app.services.checkpoints.LATE_SECONDS", -1.0)
        assert warnings(running) == ["checkpoint_late"]


def test_an_end_that_was_seen_is_kept_when_the_chain_has_lost_it(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        running.score()
        seen = take(running)
        tamper(settings, "DELETE FROM audit_records WHERE kind = 'score'")
        assert take(running).ends == seen.ends
        assert warnings(running) == ["audit_chains_lost"]


def test_the_next_process_remembers_what_an_emptied_table_has_lost(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        running.score()
        seen = take(running)
    tamper(settings, "DELETE FROM audit_records")
    with serving(settings, models_dir) as running:
        kept = take(running).ends
        assert kept.keys() > seen.ends.keys()
        assert warnings(running) == ["audit_chains_lost"]
