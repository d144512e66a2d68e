"""A tiny version of a part of `make bench`, so that it cannot rot. Nothing is said of how long anything took."""

from pathlib import Path

import pytest

from tests.campaigns.performance import compute
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
