"""A tiny version of a part of `make bench`, so that it cannot rot. Nothing is said of how long anything took."""

from pathlib import Path

import pytest

from tests.campaigns.performance import batches, compute
from tests.campaigns.performance.__main__ import main


def test_a_part_ends_in_the_report_and_is_not_measured_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "QUICK", (1, 20, (1, 20), (5,)))
    results, out = tmp_path / "results", tmp_path / "performance.md"
    arguments = ["--only", "batch", "--quick", "--results", str(results), "--out", str(out)]
    main(arguments)
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert "## A batch" in text
    for name in ("batch-size", "inducing-points"):
        assert f"performance/{name}.svg" in text
        assert (tmp_path / "performance" / f"{name}.svg").read_text().startswith("<?xml")
    [saved] = results.iterdir()
    before = saved.stat().st_mtime_ns
    main(arguments)
    assert saved.stat().st_mtime_ns == before


def test_batches_over_http_end_in_aims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "QUICK", (20, 1000, 1, 3))
    section = batches.measure(quick=True)
    assert [goal.what for goal in section.goals] == [
        "batch of 20 over HTTP",
        "stream of 1,000 lines",
        "stream of 1,000 lines",
    ]


@pytest.mark.postgres
def test_replicas_are_compared_on_one_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "QUICK_REPLICAS", ((1, 2), 1, 0.3, 4))
    section = batches.measure_replicas(quick=True)
    assert [row[0] for row in section.tables[0].rows] == ["1", "2"]
