"""The SQLite file: one serving process, and a local disk."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.database.sqlite import check_local_folder, serve_lock
from app.errors import AlreadyServing, DatabaseNotReady

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
