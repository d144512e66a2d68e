"""One tiny round of the attacks, so that the campaign cannot rot. Nothing is said of how fast anything was."""

from pathlib import Path

from tests.campaigns.hostile_load import main
from tests.campaigns.hostile_load_report import LEAST_SHARE


def test_a_tiny_campaign_ends_in_a_report_of_every_attack(tmp_path: Path) -> None:
    out = tmp_path / "hostile.md"
    sizes = ["--rounds", "1", "--seconds", "0.5", "--flood-seconds", "0.5", "--databases", "SQLite"]
    main(["--out", str(out), *sizes])
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    summary, _, rounds = text.partition("## All rounds")
    for attack in LEAST_SHARE:
        assert f"| {attack} | SQLite |" in summary
        [line] = [line for line in rounds.splitlines() if line.startswith(f"| {attack} |")]
        alone, beside = (float(cell.replace(",", "")) for cell in line.split("|")[3:5])
        assert min(alone, beside) > 0
        assert 0 <= int(line.rstrip(" |").rpartition("|")[2]) <= 10
