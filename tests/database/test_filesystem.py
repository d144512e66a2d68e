"""An embedded database on a network file system is refused."""

from pathlib import Path

import pytest

from app.database.sqlite import check_local_folder
from app.errors import DatabaseNotReady

MOUNTS = """overlay / overlay rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
user@host: /mnt/far fuse.sshfs rw 0 0
"""


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
