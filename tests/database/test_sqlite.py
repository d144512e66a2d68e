"""The SQLite file: one serving process, a local disk, and one thread that writes."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.database.sqlite import OneThread, check_local_folder, serve_lock
from app.errors import AlreadyServing, DatabaseNotReady

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
