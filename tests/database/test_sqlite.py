"""The SQLite file: one serving process, a local disk, and one thread that writes."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from app.database.checkpoints import CheckpointRow
from app.database.engine import open_database
from app.database.migrate import upgrade
from app.database.sqlite import (
    MOVE_SECONDS,
    LogMover,
    OneThread,
    check_local_folder,
    empty_log,
    serve_lock,
    set_pragmas,
)
from app.errors import AlreadyServing, DatabaseNotReady
from app.settings import load_settings

SOON = 5.0  # seconds
MOVER = "audit-sqlite-log"
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


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A database that somebody else has open, so that nothing is moved because it is closed."""
    file = tmp_path / "normalcy.sqlite3"
    connection = sqlite3.connect(file, isolation_level=None)
    set_pragmas(connection)
    connection.execute("CREATE TABLE t (word TEXT)")
    yield file
    connection.close()


def commit(file: Path, word: str) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("INSERT INTO t VALUES (?)", (word,))
    connection.close()


def arrives(file: Path, word: str, seconds: float = SOON) -> bool:
    """Whether it comes into the file itself in time, whatever the write-ahead log holds."""
    until = time.monotonic() + seconds
    while word.encode() not in file.read_bytes():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_what_was_committed_moves_from_the_log_into_the_file_without_the_writer(file: Path) -> None:
    mover = LogMover(file)
    commit(file, "first")
    assert not arrives(file, "first", seconds=0.5)  # nobody said so
    for word in ("second", "third"):
        commit(file, word)
        mover.committed()
        assert arrives(file, word)
    mover.end()
    commit(file, "last")
    mover.committed()
    assert not arrives(file, "last", seconds=0.5)


def test_the_log_can_be_emptied_while_it_is_moved(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite refuses this at once while another connection moves the log, however long it may wait."""
    monkeypatch.setattr("app.database.sqlite.MOVE_SECONDS", 0)
    mover = LogMover(file)
    for number in range(200):
        commit(file, f"{number}")
        mover.committed()
        assert empty_log(file)
    mover.end()


def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    mover = LogMover(tmp_path / "normalcy.sqlite3")
    mover.committed()
    time.sleep(3 * MOVE_SECONDS)
    mover.end()
    assert not list(tmp_path.iterdir())


@pytest.mark.anyio
async def test_every_commit_of_the_audit_is_moved_and_no_log_stays_behind(tmp_path: Path) -> None:
    database = open_database(load_settings({"NORMALCY_DATA_DIR": str(tmp_path)}))
    await upgrade(database)
    before = set(threading.enumerate())
    appender = database.appender()
    await appender.connect()
    await database.close()
    await appender.append([], [CheckpointRow(UUID(int=1), 1, "test", b"body", b"signature-of-this-row")])
    assert await asyncio.to_thread(arrives, database.file, "signature-of-this-row")
    await appender.close()
    assert MOVER not in {thread.name for thread in set(threading.enumerate()) - before}  # else it may use the log
    assert [each.name for each in tmp_path.iterdir()] == [database.file.name]
