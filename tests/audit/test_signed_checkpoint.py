"""When a signer signs again, and the line of a file that a signed checkpoint becomes."""

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from app.audit.author import CheckpointLog
from app.audit.signed_checkpoint import INTERVAL, NOTHING_BEFORE, OwnEnd, Signer, read_line, render_line
from app.audit.signing_key import SigningKey
from app.clock import timestamp, utc_now
from app.database.records import ChainHead


def test_the_time_of_rows_decides_too_when_a_clock_was_set() -> None:
    signer = Signer(SigningKey.generate(), "x")
    now = utc_now()
    assert signer.is_due(now)
    signer.confirm(signer.written([], now))
    assert not signer.is_due(now, [timestamp(now - INTERVAL), timestamp(now)])
    assert signer.is_due(now - timedelta(seconds=1))
    assert signer.is_due(now, [timestamp(now), timestamp(now + INTERVAL)])
    assert signer.is_due(now, [timestamp(now), timestamp(now - INTERVAL - timedelta(seconds=1))])
    assert signer.is_due(now + INTERVAL)


def test_a_line_is_what_was_signed_and_nothing_else() -> None:
    row = Signer(SigningKey.generate(), "x").written([OwnEnd(ChainHead("2026-11", uuid4(), 3, bytes(32)))], utc_now())
    assert read_line(render_line(row)) == row


def test_the_first_checkpoint_of_a_folder_names_no_one_before_it(tmp_path: Path) -> None:
    assert CheckpointLog(tmp_path).latest_hash("x") == NOTHING_BEFORE
