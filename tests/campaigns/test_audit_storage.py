"""A tiny campaign, so that it cannot rot, and so that deflating saves what it should."""

from pathlib import Path

from tests.campaigns.audit_storage import main


def test_a_tiny_campaign_ends_in_a_report_of_all_forms(tmp_path: Path) -> None:
    out = tmp_path / "storage.md"
    main(["--out", str(out), "--scores", "300"])
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    cells = [[cell.strip().replace(",", "") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    found = {(row[0], row[1]): list(map(float, row[2:5])) for row in cells if row and row[0] in ("single", "block")}
    assert len(found) == 4
    for measured, most in enumerate((0.25, 0.5, 0.75)):  # so few scores hardly fill PostgreSQL's first pages
        assert found["single", "deflated"][measured] < most * found["single", "plain"][measured]
