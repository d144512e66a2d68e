"""One serving process per embedded database."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.database.sqlite import serve_lock
from app.errors import AlreadyServing

HOLDER = """
import sys, time
from pathlib import Path
from app.database.sqlite import serve_lock
with serve_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
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
