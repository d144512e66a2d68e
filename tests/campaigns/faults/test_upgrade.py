"""The row of the upgrade: it holds only if the older release really served."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.campaigns.faults.__main__ import main
from tests.campaigns.faults.compare import Tally
from tests.campaigns.faults.load import Outcome
from tests.campaigns.faults.results import read_all
from tests.campaigns.faults.upgrade import OLDER, answered_by_older, judge
from tests.campaigns.service_process import Verdict
from tests.documents import ROOT


def has_history() -> bool:
    command = ["git", "-C", str(ROOT), "cat-file", "-e", f"{OLDER}^{{commit}}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


@pytest.mark.skipif(not has_history(), reason="needs the history of the repository")
def test_an_upgrade_is_one_from_the_older_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # so that our own code is in the working directory
    main(["--only", "F16", "--cycles", "1", "--database", "SQLite", "--results", str(tmp_path)])
    [found] = read_all(tmp_path).values()
    assert found.unmet == []
    assert int(found.figures["by the older release"]) > 0


def test_an_upgrade_from_this_release_is_noticed() -> None:
    good = Tally(cycles=2, acknowledged=300, returns=[1.0, 1.0])
    assert judge(good, Verdict(0, 6, 0), [100, 50]).unmet == []
    assert judge(good, Verdict(0, 6, 0), [100, 0]).unmet == ["no score of the older release in 1 of 2 cycles"]


def test_a_score_of_the_older_release_names_its_commit() -> None:
    answers = ({"provenance": {"service": {"commit": commit}}} for commit in ("232ea28b0181", "5211a7af4c55"))
    outcomes = [Outcome("a", {}, 0.0, 0.1, 200, json.dumps(answer).encode()) for answer in answers]
    assert answered_by_older([*outcomes, Outcome("b", {}, 0.0, 0.1, 503, b"")]) == 1
