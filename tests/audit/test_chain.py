"""How records are chained."""

import hashlib
from uuid import UUID, uuid4

import pytest

from app.audit.chain import NOTHING_BEFORE, link, new_chain, row_hash
from app.audit.records import encode
from tests.audit.recording import score

CHAIN, RECORD = UUID(int=1), UUID(int=2)


def test_the_hash_is_the_documented_one() -> None:
    content = hashlib.sha256(b"payload").digest()
    parts = b"v1\0" + bytes(32) + bytes(15) + b"\1" + bytes(7) + b"\1" + bytes(15) + b"\2" + content
    assert row_hash(NOTHING_BEFORE, CHAIN, 1, RECORD, b"payload") == hashlib.sha256(parts).digest()


@pytest.mark.parametrize(
    "changed",
    [
        (b"\1" * 32, CHAIN, 1, RECORD, b"payload"),
        (NOTHING_BEFORE, uuid4(), 1, RECORD, b"payload"),
        (NOTHING_BEFORE, CHAIN, 2, RECORD, b"payload"),
        (NOTHING_BEFORE, CHAIN, 1, uuid4(), b"payload"),
        (NOTHING_BEFORE, CHAIN, 1, RECORD, b"Payload"),
    ],
)
def test_the_hash_binds_every_part(changed: tuple[bytes, UUID, int, UUID, bytes]) -> None:
    assert row_hash(*changed) != row_hash(NOTHING_BEFORE, CHAIN, 1, RECORD, b"payload")


def test_linking_in_two_steps_is_linking_in_one() -> None:
    start, records = new_chain("2026-11"), [encode(score()) for _ in range(4)]
    whole, end = link(start, records)
    first, middle = link(start, records[:2])
    second, same_end = link(middle, records[2:])
    assert (first + second, same_end) == (whole, end)
    assert [row.seq for row in whole] == [1, 2, 3, 4]
    assert {row.month for row in whole} == {"2026-11"}
