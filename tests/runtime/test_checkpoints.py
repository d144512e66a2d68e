"""The service's own checkpoints: every end that was ever seen stays in them, and a failure raises a warning."""

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from app.audit.author import FOLDER
from app.audit.checkpoint import Checkpoint, parse
from app.database.records import ChainHead
from app.runtime.checkpoints import LOCK, CheckpointFolder, checkpoint_files
from app.settings import Settings
from tests.cli.running import tamper
from tests.web.serving import Running, publish_small, serving


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    publish_small(root, "SoV", "1.0.0", 0)
    return root


def take(running: Running) -> Checkpoint:
    """Take a checkpoint and read the newest file."""
    running.inside(running.runtime.checkpoints.take())
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
        running.inside(running.runtime.checkpoints.take())
        assert "checkpoint_failed" in warnings(running)
        assert metric(running, "normalcy_checkpoint_failures_total") >= 1
        before = metric(running, "normalcy_checkpoint_age_seconds")
        in_the_way.unlink()
        take(running)
        assert "checkpoint_failed" not in warnings(running)
        assert metric(running, "normalcy_checkpoint_age_seconds") < before
    assert "no audit checkpoint" in log.getvalue()


def test_a_late_checkpoint_is_a_warning(settings: Settings, models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(settings, models_dir) as running:
        take(running)
        assert warnings(running) == []
        monkeypatch.setattr("app.runtime.checkpoints.LATE_SECONDS", -1.0)
        assert warnings(running) == ["checkpoint_late"]


def test_an_end_that_was_seen_stays_when_the_chain_has_lost_it(settings: Settings, models_dir: Path) -> None:
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
        saved = take(running).ends
        assert saved.keys() > seen.ends.keys()
        assert warnings(running) == ["audit_chains_lost"]


def end(chain: int, seq: int = 3) -> ChainHead:
    return ChainHead("2026-11", UUID(int=chain), seq, bytes([seq]) * 32)


def seen(*ends: ChainHead, day: str = "2026-11-17") -> Checkpoint:
    return Checkpoint(f"{day}T21:00:00.000Z", {one.chain_id: one for one in ends}, "postgresql normalcy")


def folder(path: Path) -> CheckpointFolder:
    def fail(error: Exception) -> None:
        raise AssertionError from error

    return CheckpointFolder(path, fail)


def in_files(path: Path) -> list[tuple[int, int]]:
    [*_, newest] = checkpoint_files(path)
    return sorted((one.chain_id.int, one.seq) for one in parse(newest.read_bytes()).ends.values())


def test_processes_that_share_a_folder_preserve_what_the_others_saw(tmp_path: Path) -> None:
    one, other = folder(tmp_path), folder(tmp_path)
    other.add(seen(end(1)))
    one.add(seen(end(1, 5), end(2)))
    other.add(seen(end(1), end(3)))  # chain 2 is gone, and chain 1 was read earlier than by the other process
    assert in_files(tmp_path) == [(1, 5), (2, 3), (3, 3)]
    one.add(seen(end(1, 6), day="2026-11-18"))
    assert in_files(tmp_path) == [(1, 6), (2, 3), (3, 3)]
    assert len(checkpoint_files(tmp_path)) == 2


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing_and_leave_no_broken_file(tmp_path: Path) -> None:
    """Like replicas in containers, where every process has the same process id."""

    def write(writer: int) -> None:
        mine = folder(tmp_path)
        for turn in range(20):
            mine.add(seen(*(end(chain, turn + 1) for chain in range(200 * writer, 200 * writer + 200))))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert in_files(tmp_path) == [(chain, 20) for chain in range(800)]
    assert {file.name for file in tmp_path.iterdir()} == {LOCK, "2026-11-17-postgresql-normalcy.jsonl"}


def test_a_chain_that_another_process_saw_counts_as_lost(settings: Settings, models_dir: Path) -> None:
    """The other process is simulated by the file that it would have written."""
    with serving(settings, models_dir) as running:
        mine = take(running)
        gone = end(7)
        folder(settings.data_dir / FOLDER).add(replace(mine, ends={**mine.ends, gone.chain_id: gone}))
        assert take(running).ends[gone.chain_id] == gone
        assert warnings(running) == ["audit_chains_lost"]
