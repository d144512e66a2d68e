"""Only JSON with one meaning is read. The standard library, made strict by hooks, is the independent judge."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.errors import MalformedJson
from app.formats.strict_json import MAX_DEPTH, loads

HOSTILE = [
    (b"", "empty_body"),
    (b" \r\n\t", "empty_body"),
    (b'{"age_years": NaN}', "not_finite"),
    (b'{"age_years": Infinity}', "not_finite"),
    (b'{"age_years": -Infinity}', "not_finite"),
    (b'{"other": [NaN]}', "not_finite"),
    (b'{"age_years": 1e400}', "number_too_large"),
    (b'{"age_years": -1e400}', "number_too_large"),
    (b'{"age_years": 1%s}' % (b"0" * 400), "number_too_large"),
    (b'{"age_years": -1%s}' % (b"0" * 400), "number_too_large"),
    (b'{"age_years": %s}' % (b"7" * 4000), "number_too_large"),
    (b'{"age_years": %s}' % (b"7" * 5000), "number_too_large"),
    (b'{"other": [[%s]]}' % (b"7" * 400), "number_too_large"),
    (b'{"subject": "\\ud800"}', "lone_surrogate"),
    (b'{"subject": "\\udc00 and more"}', "lone_surrogate"),
    (b'{"subject": "\\ud800 and more text"}', "lone_surrogate"),
    (b'{"\\udfff": 1}', "lone_surrogate"),
    (b'{"age_years": 50, "age_years": 5}', "duplicate_key"),
    (b'{"age_years": 50, "\\u0061ge_years": 5}', "duplicate_key"),
    (b'{"convention": {"edge": "inner", "edge": "outer"}}', "duplicate_key"),
    (b'{"a:b": 1, "c": {"a:b": 2, "a:b": 2}}', "duplicate_key"),
    (b'[{"a": 1}, {"b": 2, "b": 3}]', "duplicate_key"),
    ('{"age_years": 50}'.encode("utf-16"), "wrong_encoding"),
    ('{"age_years": 50}'.encode("utf-16-le"), "wrong_encoding"),
    ('{"age_years": 50}'.encode("utf-32-be"), "wrong_encoding"),
    (b'\xef\xbb\xbf{"age_years": 50}', "wrong_encoding"),
    (b'{"subject": "\xff"}', "wrong_encoding"),
    (b'{"\xff": 1}', "wrong_encoding"),
    (b'{"subject": "\xed\xa0\x80"}', "wrong_encoding"),
    (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "too_deep"),
    (b"[" * 100_000, "too_deep"),
    (b'{"a":' * 100_000, "too_deep"),
    (b'{"age_years": 50', "syntax"),
    (b'{"age_years": 50}}', "syntax"),
    (b'{"age_years": 50} {}', "syntax"),
    (b'{"age_years": 50,}', "syntax"),
    (b"{'age_years': 50}", "syntax"),
    (b'{"age_years": 050}', "syntax"),
    (b'{"age_years": 0x32}', "syntax"),
    (b'{"age_years": +50}', "syntax"),
    (b'{"age_years": .5}', "syntax"),
    (b'{"age_years": 5.}', "syntax"),
    (b'{"subject": "a\x00b"}', "syntax"),
    (b'{"subject": "a\nb"}', "syntax"),
    (b'{"subject": "\\x41"}', "syntax"),
    (b"// a comment\n{}", "syntax"),
    (b'{"items": [' + b'{"a": 1}, ' * 20, "syntax"),
]


@pytest.mark.parametrize(("body", "code"), HOSTILE, ids=lambda value: str(value)[:40])
@pytest.mark.req("REQ-006")
def test_hostile_bodies_are_rejected_with_their_cause(body: bytes, code: str) -> None:
    with pytest.raises(MalformedJson) as rejected:
        loads(body)
    assert rejected.value.error.code == code


@pytest.mark.parametrize("hostile", [b'"' + b'\\"' * 500_000, b'"' + b'\\"' * 500_000 + b"\\", b'[{"' * 300_000])
def test_unfinished_strings_are_read_once(hostile: bytes) -> None:
    # A scan that started again at every quote would take hours here.
    with pytest.raises(MalformedJson):
        loads(b"[" * (MAX_DEPTH + 1) + hostile)


def test_brackets_in_texts_are_not_depth() -> None:
    body = json.dumps({"a": "[" * 50, "b": '\\"[[' * 20, "[{[{": [[]]}).encode()
    assert loads(body) == json.loads(body)


def test_the_deepest_allowed_nesting_is_read_among_many_brackets() -> None:
    value: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        value = [[], value, {}]
    assert loads(json.dumps(value).encode()) == value


def test_a_message_shows_the_place_of_a_syntax_error() -> None:
    with pytest.raises(MalformedJson, match="line 2, column 7"):
        loads(b'{"a": 1,\n "b": !}')


# Texts with what could confuse a count of colons, quotes and brackets, and pairs that need escapes.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(':"\\[]{},𝔞é\n'), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_another_writer_wrote_is_read_as_it_was(value: object, ascii_only: bool, indent: int | None) -> None:
    read = loads(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(), max_depth=100)
    assert json.dumps(read) == json.dumps(value)  # as text: 1 and 1.0, True and 1, 0.0 and -0.0 differ


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4), VALUES, st.data())
@pytest.mark.req("REQ-005")
def test_a_key_given_twice_is_rejected_at_any_level(
    pairs: dict[str, object], again: object, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(pairs)))
    twice = json.dumps(pairs)[:-1] + f", {json.dumps(key)}: {json.dumps(again)}" + "}"
    outside = data.draw(st.sampled_from(["%s", "[1, %s]", '{"k:": %s, "l": ":"}', '[{"k": [%s]}]']))
    with pytest.raises(MalformedJson) as rejected:
        loads((outside % twice).encode(), max_depth=100)
    assert rejected.value.error.code == "duplicate_key"


# JSON with a few bytes struck out, put in or changed: near enough to the grammar to reach its corners.
PIECES = st.sampled_from(
    [b'"', b"\\", b"\\ud8", b":", b",", b"{", b"}", b"[", b"]", b"1e9", b"-", b"NaN", b"\x00", b"\xff"]
)


@st.composite
def nearly_json(draw: st.DrawFn) -> bytes:
    body = json.dumps(draw(VALUES), ensure_ascii=draw(st.booleans())).encode()
    for _ in range(draw(st.integers(1, 3))):
        at, length = draw(st.integers(0, len(body))), draw(st.integers(0, 2))
        body = body[:at] + draw(PIECES | st.binary(max_size=2)) + body[at + length :]
    return body


@given(nearly_json() | st.binary(max_size=40))
@example(b'{"a":1,"a":1}')
@example(b'"\\ud83d\\ude00"')
@example(b"1" * 309)
def test_the_strict_standard_library_agrees(body: bytes) -> None:
    try:
        expected = json.dumps(_judge(body))
    except (ValueError, RecursionError, OverflowError):
        with pytest.raises(MalformedJson):
            loads(body, max_depth=100)
    else:
        assert json.dumps(loads(body, max_depth=100)) == expected


def _judge(body: bytes) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    def finite(digits: str) -> float:
        if not math.isfinite(float(digits)):
            raise ValueError
        return float(digits)

    def whole(digits: str) -> int:
        finite(digits)
        return int(digits)

    def refuse(_: str) -> None:
        raise ValueError

    text = body.decode()
    value = json.loads(text, object_pairs_hook=once, parse_float=finite, parse_int=whole, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError, a ValueError: half of a surrogate pair
    return value
