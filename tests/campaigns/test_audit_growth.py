"""A tiny campaign, so that it cannot rot. Nothing is said of how long anything took."""

from pathlib import Path

from tests.campaigns.audit_growth import main


def test_a_tiny_campaign_ends_in_a_report_of_both_databases(tmp_path: Path) -> None:
    out = tmp_path / "growth.md"
    main(["--out", str(out), "--sizes", "3x2", "3x20", "--turns", "1"])
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    for database in ("SQLite", "PostgreSQL"):
        for records in (6, 60):
            assert f"| {database} | 3 | {records} | " in text
