from typing import Any

import msgspec
import numpy as np
import pytest

from app.domain.card import Gate, ModelCard, Range
from app.store import canonical_json
from app.store.canonical_json import NotCanonical
from tests.samples import a_card


def test_a_card_is_read_back_equal() -> None:
    card = a_card()
    assert canonical_json.read(canonical_json.write(card), ModelCard) == card


def test_numbers_are_written_as_they_will_be_read() -> None:
    high: Any = np.float64(85.0)
    assert canonical_json.write(Range(5, high)) == canonical_json.write(Range(5.0, 85.0))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused_with_its_place(number: float) -> None:
    with pytest.raises(NotCanonical, match="measured"):
        canonical_json.write(Gate("tail", number, 0.0, 1.0))


@pytest.mark.parametrize(
    "text",
    [
        b'{\n  "low": 1.0,\n  "high": 2.0,\n  "note": "x"\n}\n',
        b'{\n  "low": 1.0,\n  "low": 1.5,\n  "high": 2.0\n}\n',
        b'{\n  "low": 1.0,\n  "high": "2.0"\n}\n',
        b'{\n  "low": 1.0\n}\n',
        b'{"low": 1.0, "high": 2.0}',
        b'{\n  "low": NaN,\n  "high": 2.0\n}\n',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=[
        "unknown field",
        "duplicate key",
        "text for a number",
        "missing",
        "another form",
        "NaN",
        "no UTF-8",
        "too deep",
    ],
)
def test_any_other_form_is_refused(text: bytes) -> None:
    with pytest.raises(NotCanonical):
        canonical_json.read(text, Range)


def test_the_file_is_plain_json_for_other_readers() -> None:
    assert msgspec.json.decode(canonical_json.write(a_card()))["ranges"]["height_cm"]["male"]["high"] == 200.0
