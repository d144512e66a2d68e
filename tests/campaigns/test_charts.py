"""A tiny campaign, so that it cannot rot. Nothing is said of how long anything took."""

from pathlib import Path

from tests.campaigns.charts import kinds, main


def test_a_tiny_campaign_ends_in_a_report(tmp_path: Path) -> None:
    out = tmp_path / "charts.md"
    main(["--out", str(out), "--pictures", "20", "--page-runs", "2"])
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    for kind in kinds():
        assert f"| {kind.name} | {kind.share} | " in text
    assert "Memory of the serving process" in text
    assert "First view of the calculator over the wire, with headers: " in text
    assert "from submit to the four pictures of two sites, 2 times: median " in text
