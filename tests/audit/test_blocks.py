import json
from typing import Any
from uuid import UUID

import pytest

from app.audit.blocks import block_fields, block_id, expand
from app.audit.records import encode
from app.audit.writer import SIZE_BYTES, Group
from app.formats.block_columns import chosen, same
from tests.audit.recording import score


def a_block() -> dict[str, Any]:
    output = {"score.expected_ns": [1.5, None], "reliability.verdict": chosen(["ok", "not_reliable"], [0, 1])}
    fields = block_fields([4, 7], output, {"age_years": [55.0, 60.0], "sex": same("male")}, service={"version": "1"})
    payload: dict[str, Any] = json.loads(encode(score(**fields)).payload)
    return payload


def test_every_item_of_a_block_has_a_record_of_its_own() -> None:
    block = a_block()
    first, second = expand(block)
    assert block["item"] == 4
    assert (first["item"], second["item"]) == (4, 7)
    assert first["output"] == {
        "score": {"expected_ns": 1.5},
        "reliability": {"verdict": "ok"},
        "service": {"version": "1"},
    }
    assert second["output"]["score"] is None
    assert second["input"] == {"age_years": 60.0, "sex": "male"}
    assert first.keys() == block.keys()
    assert block["record_id"] < first["record_id"] < second["record_id"]
    assert {first[name] for name in ("kind", "request_id", "at")} == {
        block[name] for name in ("kind", "request_id", "at")
    }


def test_the_ids_of_items_lead_to_their_block() -> None:
    block = a_block()
    assert {str(block_id(UUID(record["record_id"]))) for record in expand(block)} == {block["record_id"]}
    assert UUID(block["record_id"]).version == 7


@pytest.mark.parametrize(
    "change",
    [
        {"items": 5},
        {"items": [1]},
        {"columns": None},
        {"columns": {"a": [1]}},
        {"columns": {"a": {"of": [], "each": [0, 0]}}},
    ],
)
def test_a_malformed_block_is_shown_as_it_is(change: dict[str, Any]) -> None:
    damaged = a_block()
    damaged["output"] |= change
    assert expand(damaged) == [damaged]


def test_any_other_record_is_itself() -> None:
    single = json.loads(encode(score()).payload)
    assert expand(single) == [single]


def test_a_large_record_counts_as_several_in_the_queue() -> None:
    large = encode(score(output={"text": "x" * (10 * SIZE_BYTES)}))
    assert (Group([encode(score())], None).size, Group([large, encode(score())], None).size) == (1, 12)
