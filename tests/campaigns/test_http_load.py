"""One tiny round of the campaign, so that it cannot rot. Nothing is said of how long anything took."""

import re
from pathlib import Path

import pytest

from app.benchmark.report_header import git
from tests.campaigns.http_load import main
from tests.campaigns.http_load_report import RATIOS, SERVERS
from tests.campaigns.load_client import run_load
from tests.campaigns.trees import head_commit, worktree


def test_a_tiny_campaign_ends_in_a_report_with_every_server_and_every_ratio(tmp_path: Path) -> None:
    out = tmp_path / "http.md"
    main(["--out", str(out), "--rounds", "1", "--seconds", "0.3", "--connections", "4", "--starts", "1"])
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert all(f"| {name} / {other} |" in text for name, other in RATIOS)
    rounds = [line for line in text.partition("## All rounds")[2].splitlines() if line.startswith("| 4 ")]
    [line] = rounds
    rates = [float(cell.replace(",", "")) for cell in line.strip("|").split("|")[1:]]
    assert len(rates) == len(SERVERS)
    assert min(rates) > 0


def test_a_worktree_is_gone_after_its_block(tmp_path: Path, earlier: str) -> None:
    with worktree(earlier, tmp_path / "tree") as tree:
        assert head_commit(tree) == earlier
        assert (tree / "app").is_dir()
    assert str(tmp_path) not in git("worktree", "list")


def test_two_commits_are_compared_on_both_databases(tmp_path: Path, earlier: str) -> None:
    out = tmp_path / "compared.md"
    main(["--out", str(out), "--against", earlier, "--rounds", "1", "--seconds", "0.3", "--connections", "1"])
    text = out.read_text(encoding="utf-8")
    assert f"# This tree against commit {earlier}" in text
    for name in ("SQLite, 1 connection", "PostgreSQL, 1 connection"):
        summary, commits = (
            line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(f"| {name} |")
        )
        before, now, ratio = (float(re.sub(r"[,%].*", "", cell.replace(",", ""))) for cell in summary[1:4])
        assert ratio == pytest.approx(100 * now / before, abs=1 + 60 / before)
        assert float(commits[1]) > 0
        assert 0.5 <= float(commits[4]) <= int(name.split()[1])  # a commit may hold a checkpoint alone


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_no_measurement() -> None:
    with pytest.raises(OSError, match=r".+"):
        await run_load(1, 1, 0.1)
