"""A tiny campaign, so that it cannot rot. Nothing is said of how long anything took."""

from pathlib import Path

from tests.campaigns.batch_cost import STAGES, main


def test_a_tiny_campaign_ends_in_a_report(tmp_path: Path) -> None:
    out = tmp_path / "cost.md"
    main(["--out", str(out), "--items", "20", "--stream", "1000", "--turns", "1", "--singles", "3"])
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert all(f"| {stage} | " in text for stage in STAGES)
    assert "| stream of 1,000 JSON lines, over HTTP | " in text
