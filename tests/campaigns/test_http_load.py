"""One tiny round of the campaign, so that it cannot rot. Nothing is said of how long anything took."""

from pathlib import Path

import pytest

from tests.campaigns.http_load import main
from tests.campaigns.http_load_client import ask
from tests.campaigns.http_load_report import RATIOS, SERVERS


def test_a_tiny_campaign_ends_in_a_report_with_every_server_and_every_ratio(tmp_path: Path) -> None:
    out = tmp_path / "http.md"
    main(["--out", str(out), "--rounds", "1", "--seconds", "0.3", "--connections", "1", "4", "--starts", "1"])
    text = out.read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert all(f"| {name} / {other} |" in text for name, other in RATIOS)
    rounds = [line for line in text.partition("## All rounds")[2].splitlines() if line.startswith(("| 1 ", "| 4 "))]
    assert len(rounds) == 2
    for line in rounds:
        rates = [float(cell.replace(",", "")) for cell in line.strip("|").split("|")[1:]]
        assert len(rates) == len(SERVERS)
        assert min(rates) > 0


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_no_measurement() -> None:
    with pytest.raises(OSError, match=r".+"):
        await ask(1, 1, 0.1)
