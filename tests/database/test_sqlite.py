"""The SQLite file: one serving process, a local disk, and one thread that writes."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import insert, text

from app.audit.chain import link, new_chain
from app.audit.records import encode
from app.database import sqlite
from app.database.appender import Appender
from app.database.checkpoints import CheckpointRow
from app.database.engine import Database, open_database
from app.database.migrate import upgrade
from app.database.sqlite import OneThread, check_local_folder, empty_log, serve_lock
from app.database.tables import audit_checkpoints
from app.errors import AlreadyServing, DatabaseNotReady, DatabaseUnavailable
from app.settings import load_settings
from tests.audit.recording import all_rows, score

SOON = 5.0  # seconds
HOLDER = """
import sys, time
from pathlib import Path
from app.database.sqlite import serve_lock
with serve_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
MOUNTS = """overlay / overlay rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
user@host: /mnt/far fuse.sshfs rw 0 0
"""


def test_a_second_serve_is_refused_while_the_first_lives_and_not_after_kill_9(tmp_path: Path) -> None:
    file = tmp_path / "normalcy.sqlite3"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, file], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(AlreadyServing, match="NORMALCY_DATA_DIR"), serve_lock(file):
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    with serve_lock(file):
        pass


def test_two_folders_do_not_disturb_each_other(tmp_path: Path) -> None:
    with serve_lock(tmp_path / "a" / "normalcy.sqlite3"), serve_lock(tmp_path / "b" / "normalcy.sqlite3"):
        pass


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mounts"
    file.write_text(MOUNTS)
    return file


@pytest.mark.parametrize("folder", ["/home/normalcy/var", "/mnt/my share/var", "/mnt/far"])
def test_a_network_folder_is_refused(folder: str, mounts: Path) -> None:
    with pytest.raises(DatabaseNotReady, match="NORMALCY_DATABASE_URL"):
        check_local_folder(Path(folder), mounts)


@pytest.mark.parametrize("folder", ["/var/lib/normalcy", "/home/local/var", "/homes/var"])
def test_a_local_folder_is_taken(folder: str, mounts: Path) -> None:
    check_local_folder(Path(folder), mounts)


def test_where_mounts_are_unknown_nothing_is_refused(tmp_path: Path) -> None:
    check_local_folder(tmp_path, tmp_path / "nothing")


@pytest.fixture
def thread() -> Iterator[OneThread]:
    thread = OneThread("test")
    yield thread
    thread.close()


@pytest.mark.anyio
async def test_the_thread_returns_or_raises_what_its_work_does(thread: OneThread) -> None:
    assert await thread.run(lambda: 6 * 7, SOON) == 42
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 / 0, SOON)


@pytest.mark.anyio
async def test_work_that_hangs_times_out_and_what_was_given_up_behind_it_never_runs(thread: OneThread) -> None:
    released, done = threading.Event(), []
    with pytest.raises(TimeoutError):
        await thread.run(released.wait, 0.01)
    with pytest.raises(TimeoutError):
        await thread.run(lambda: done.append("given up"), 0.01)
    cancelled = asyncio.create_task(thread.run(lambda: done.append("cancelled"), SOON))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    following = asyncio.create_task(thread.run(lambda: done.append("next"), SOON))
    await asyncio.sleep(0.01)
    assert done == []  # never two at once
    released.set()
    await following
    assert done == ["next"]


def test_work_that_ends_after_its_event_loop_does_not_end_the_thread(thread: OneThread) -> None:
    released = threading.Event()
    with pytest.raises(TimeoutError):
        asyncio.run(thread.run(released.wait, 0.01))
    released.set()
    assert asyncio.run(thread.run(lambda: "alive", SOON)) == "alive"


def arrives(file: Path, word: str, seconds: float = SOON) -> bool:
    """Whether it comes into the file itself in time, whatever the write-ahead log holds."""
    until = time.monotonic() + seconds
    while word.encode() not in file.read_bytes():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Open while a test runs, so that nothing is moved because the last connection is closed."""
    database = open_database(load_settings({"NORMALCY_DATA_DIR": str(tmp_path)}))
    await upgrade(database)
    empty_log(database.file)
    yield database
    await database.close()


@pytest.fixture
async def appender(database: Database) -> AsyncIterator[Appender]:
    appender = database.appender()
    await appender.connect()
    yield appender
    await appender.close()


def a_checkpoint(signature: str, number: int = 1) -> CheckpointRow:
    return CheckpointRow(UUID(int=1), number, "test", b"body", signature.encode())


@pytest.mark.anyio
async def test_what_was_committed_moves_into_the_file_when_the_writer_is_idle(
    database: Database, appender: Appender, monkeypatch: pytest.MonkeyPatch
) -> None:
    await appender.append([], [a_checkpoint("soon after the last move")])
    assert not await asyncio.to_thread(arrives, database.file, "soon after the last move", 0.3)
    monkeypatch.setattr(sqlite, "MOVE_SECONDS", 0.0)
    assert await appender.head("2026-11", UUID(int=1)) is None  # as the writer asks every second
    assert await asyncio.to_thread(arrives, database.file, "soon after the last move")
    await appender.append([], [a_checkpoint("at once", 2)])
    assert await asyncio.to_thread(arrives, database.file, "at once")


@pytest.mark.anyio
async def test_no_other_connection_moves_the_log(database: Database) -> None:
    """Beside a commit of another one, old versions of SQLite could lose that."""
    async with database.writing() as connection:
        for number in range(40):
            await connection.execute(insert(audit_checkpoints).values(**a_checkpoint("x" * 200_000, number)._asdict()))
    log = database.file.with_name(f"{database.file.name}-wal")
    assert log.stat().st_size > 4096 * sqlite.LOG_PAGES
    assert database.file.stat().st_size < log.stat().st_size / 4


@pytest.mark.anyio
async def test_the_writer_moves_a_large_log_in_its_commit(database: Database, appender: Appender) -> None:
    await appender.append([], [a_checkpoint("x" * 5000 * sqlite.LOG_PAGES)])
    assert database.file.stat().st_size > 5000 * sqlite.LOG_PAGES


@pytest.mark.anyio
async def test_the_log_can_be_emptied_while_it_is_moved(
    database: Database, appender: Appender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses this at once while another connection moves the log, however long it may wait."""
    monkeypatch.setattr(sqlite, "MOVE_SECONDS", 0.0)
    for number in range(200):
        await appender.append([], [a_checkpoint("signature", number)])
        assert await asyncio.to_thread(empty_log, database.file)


@pytest.mark.anyio
async def test_a_writer_that_ends_leaves_no_log(tmp_path: Path) -> None:
    database = open_database(load_settings({"NORMALCY_DATA_DIR": str(tmp_path)}))
    await upgrade(database)
    appender = database.appender()
    await appender.connect()
    await database.close()
    await appender.append([], [a_checkpoint("signature-of-this-row")])
    await appender.close()
    assert [each.name for each in tmp_path.iterdir()] == [database.file.name]
    assert arrives(database.file, "signature-of-this-row", 0)


@pytest.mark.anyio
@pytest.mark.parametrize("count", [1, 2, 3, 64, 100, 255, 256])
async def test_a_group_of_any_size_is_stored_in_order(database: Database, appender: Appender, count: int) -> None:
    rows, _ = link(new_chain("2026-11"), [encode(score(f"request-{number}")) for number in range(count)])
    await appender.append(rows)
    assert await all_rows(database) == rows


@pytest.mark.anyio
async def test_rows_that_a_trigger_leaves_out_are_a_failure(database: Database, appender: Appender) -> None:
    rows, _ = link(new_chain("2026-11"), [encode(score(f"request-{number}")) for number in range(3)])
    async with database.writing() as connection:
        await connection.execute(
            text("CREATE TRIGGER t BEFORE INSERT ON audit_records WHEN NEW.seq = 2 BEGIN SELECT RAISE(IGNORE); END")
        )
    with pytest.raises(DatabaseUnavailable):
        await appender.append(rows)
    assert await all_rows(database) == []
