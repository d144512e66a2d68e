"""A record as bytes."""

import json

import msgspec
import pytest

from app.audit.records import KINDS, decode, encode
from tests.audit.recording import score

CONTRACT = {"v", "kind", "record_id", "request_id", "item", "at", "principal", "route", "status", "model"}


@pytest.mark.req("REQ-085")
def test_a_payload_has_exactly_the_keys_of_the_contract() -> None:
    assert json.loads(encode(score()).payload).keys() == CONTRACT | {"input", "output"}


def test_the_kinds_are_those_of_the_contract() -> None:
    assert set(KINDS) == {"score", "refusal", "read", "key", "activation", "genesis", "seal"}


def test_bytes_are_canonical() -> None:
    payload = encode(score(input={"b": 0.1, "a": [1e-7, 2.0]}, output={"é": "ü"})).payload
    again = json.dumps(json.loads(payload), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert b'"input":{"a":[1e-7,2.0],"b":0.1}' in payload
    assert payload == again.replace("1e-07", "1e-7").encode()


def test_every_record_has_an_id_of_its_own_in_the_order_of_time() -> None:
    ids = [encode(score()).record_id for _ in range(100)]
    assert ids == sorted(set(ids))
    assert {record_id.version for record_id in ids} == {7}


def test_columns_repeat_the_payload() -> None:
    record = encode(score("abc", item=3))
    said = decode(record.payload)
    assert (said.record_id, said.request_id, said.item, said.at) == (record.record_id, "abc", 3, record.at)
    assert said.model is not None
    assert (said.model.site, said.model.version) == (record.site, record.version) == ("SoV", "1.0.0")


@pytest.mark.parametrize("text", ["a\0b", "x" * 600])
def test_text_that_a_database_could_not_store_is_refused_before_it_can_spoil_a_group(text: str) -> None:
    with pytest.raises(ValueError, match="zero byte"):
        encode(score(principal=text))
    with pytest.raises(ValueError, match="zero byte"):
        encode(score(text))


def test_a_payload_with_more_or_fewer_keys_is_no_record() -> None:
    whole = json.loads(encode(score()).payload)
    for broken in (whole | {"more": 1}, {k: v for k, v in whole.items() if k != "route"}, whole | {"v": 2}):
        with pytest.raises(msgspec.DecodeError):
            decode(json.dumps(broken).encode())
