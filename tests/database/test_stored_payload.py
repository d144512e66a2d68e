import zlib

import pytest
from sqlalchemy import text

from app.audit.chain import link, new_chain
from app.audit.records import encode
from app.database.engine import Database
from app.database.records import add_records
from app.database.stored_payload import DICTIONARY, LARGE, MOST_BYTES, deflate, inflate
from tests.audit.recording import all_rows, score
from tests.documents import ROOT

PAYLOADS = [b"{}", b'{"v":1}' * 300, b'{"n":[' + b"1.2345," * LARGE + b"0]}", b""]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_comes_back_whole(payload: bytes) -> None:
    assert inflate(deflate(payload)) == payload


def test_a_record_takes_a_quarter_of_its_bytes() -> None:
    for line in DICTIONARY.splitlines():
        assert len(deflate(line)) < 0.1 * len(line)
    payload = encode(score()).payload
    assert len(deflate(payload)) < 0.6 * len(payload)  # a short one, of which ids and times are most


def test_what_was_stored_plain_stays_as_it_is() -> None:
    assert inflate(b'{"v":1}') == b'{"v":1}'


def test_what_is_not_a_whole_stream_is_returned_unchanged() -> None:
    whole = deflate(b'{"v":1}' * 50)
    bomb = zlib.compress(bytes(MOST_BYTES + 1))
    for stored in (whole[:-1], whole + b"x", b"\xff", whole[:5] + b"\0" + whole[6:], b"\0not bytes", bomb):
        assert inflate(stored) == stored


def test_the_verifier_has_the_same_dictionary() -> None:
    assert (ROOT / "tools" / "payload_dictionary.txt").read_bytes() == DICTIONARY


@pytest.mark.anyio
async def test_rows_are_stored_deflated_and_read_as_they_were_hashed(database: Database) -> None:
    """However they are added: by the writer's statement, or in a transaction. Old rows are plain."""
    rows, _ = link(new_chain("2026-11"), [encode(score()) for _ in range(3)])
    appender = database.appender()
    await appender.connect()
    await appender.append(rows[:2])
    await appender.close()
    async with database.writing() as connection:
        await add_records(connection, rows[2:])
        stored = (await connection.execute(text("SELECT payload FROM audit_records ORDER BY seq"))).scalars().all()
    assert [bytes(payload) for payload in stored] == [deflate(row.payload) for row in rows]
    assert await all_rows(database) == rows
