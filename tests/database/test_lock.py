"""One serving process per embedded database."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.database.lock import serving_alone
from app.errors import AlreadyServing

HOLDER = """
import sys, time
from pathlib import Path
from app.database.lock import serving_alone
with serving_alone(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_serve_is_refused_while_the_first_lives_and_not_after_kill_9(tmp_path: Path) -> None:
    file = tmp_path / "normalcy.sqlite3"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, file], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(AlreadyServing, match="NORMALCY_DATA_DIR"), serving_alone(file):
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    with serving_alone(file):
        pass


def test_two_folders_do_not_disturb_each_other(tmp_path: Path) -> None:
    with serving_alone(tmp_path / "a" / "normalcy.sqlite3"), serving_alone(tmp_path / "b" / "normalcy.sqlite3"):
        pass
