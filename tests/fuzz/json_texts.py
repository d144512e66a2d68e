"""Bodies that are nearly JSON, or JSON that is nearly acceptable: bytes, drawn from a seed."""

import json
import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.canaries import Canary

NUMBERS = (
    "NaN", "Infinity", "-Infinity", "nan", "1e400", "-1e400", "1E+999", "1e-400", "0x1F", "010", "1_0", "+1", ".5",
    "5.", "1e", "-", "--1", "1e5e5", "-0.0", "1" * 400, "9" * 5000, "0." + "0" * 4000 + "1", "true", "null", "{}", "[]",
    '"55"', "1" + "0" * 308, "1" + "0" * 309, "2.5e308", "٣", "½", "1,5", "5 5", "undefined", "0b1", "1e0000000001",
)  # fmt: skip
TEXTS = (
    r"\ud800", r"\udc00\ud800", r"\u0000", r"\uFFFF", r"\u202e", r"\x41", r"\ud83d", r"\u12", "\\", "\x00", "\x1f",
    "\x7f", "\u2028", "é" * 200, "𝔊", "a" * 129, "a" * 10_000, "", " ", "'; DROP TABLE audit_records; --", "<script>",
    "../../etc", "{{7*7}}", "${x}", "%s%n", "\ufeff",
)  # fmt: skip
WRAPPERS: tuple[Callable[[str], bytes], ...] = (
    lambda text: b"\xef\xbb\xbf" + text.encode(),
    lambda text: text.encode("utf-16"),
    lambda text: text.encode("utf-16-le"),
    lambda text: text.encode("utf-16-be"),
    lambda text: text.encode("utf-32"),
    lambda text: text.encode("utf-7"),
    lambda text: text.encode("latin-1", "replace"),
    lambda text: text.encode("cp037"),
    lambda text: b"\xff\xfe" + text.encode(),
    lambda text: text.encode().replace(b"e", b"\xc1\xa5"),  # an overlong e
    lambda text: text.encode() + b"\xf0\x9f",
)
DEPTHS = (2, 15, 16, 17, 18, 200, 3000)
BYTES = (
    b"\x00",
    b"\xff",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\n",
    b"\xed\xa0\x80",
    b"1",
    b"-",
    b"e",
    b"'",
    b"//",
)


def mutated(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    """One way of spoiling, or none."""
    return rng.choice(SPOILERS)(rng, document, canary)


def _as_it_is(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    return json.dumps(document, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 2))).encode()


def _bytes_changed(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    text = bytearray(_as_it_is(rng, document, canary))
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        place, length = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 1, 4, 30))
        text[place : place + length] = rng.choice((*BYTES, b"", bytes([rng.randrange(256)]), bytes(text[-length:])))
    return bytes(text)


def _a_number(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    name = rng.choice([name for name, value in document.items() if isinstance(value, int | float)])
    text = rng.choice((*NUMBERS, str(canary.value), f'"{canary.name}"', f"[{canary.value}]"))
    return _with(document, name, text)


def _a_text(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    name = rng.choice([name for name in document if name != "measurements"])
    return _with(document, name, f'"{rng.choice(TEXTS)}{canary.name}"')


def _a_key(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    """Given twice, unknown, or misspelled."""
    name, text = rng.choice(sorted(document)), json.dumps(document)
    added = rng.choice((name, name.upper(), canary.name, name + "\\u0000", rng.choice(TEXTS), "__proto__", "age"))
    pair = f'"{added}": {rng.choice((json.dumps(document[name]), canary.value, "null"))}'
    return (text[:-1] + f", {pair}}}" if rng.random() < 0.5 else "{" + pair + ", " + text[1:]).encode()


def _fewer_keys(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    kept = rng.sample(sorted(document), rng.randrange(len(document)))
    return json.dumps({name: document[name] for name in kept}).encode()


def _another_encoding(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    return rng.choice(WRAPPERS)(json.dumps(document))


def _deep(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    depth, (opened, closed) = rng.choice(DEPTHS), rng.choice((("[", "]"), ('{"a":', "}")))
    inner = f'"{canary.name}"' if rng.random() < 0.8 else ""
    nested = opened * depth + inner + closed * (depth if rng.random() < 0.8 else depth - 1)
    return nested.encode() if rng.random() < 0.5 else _with(document, "convention", nested)


def _long(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    size = rng.choice((16_000, 16_384, 16_385, 40_000, 300_000))
    filling = rng.choice((" ", canary.name, "[", "9", "\\u0061", '",', '{"a":1},'))
    return _with(document, "subject", '"' + (filling * size)[:size] + '"')


def _another_document(rng: random.Random, document: dict[str, Any], canary: Canary) -> bytes:
    name = f'"{canary.name}"'
    whole = json.dumps(document)
    others = (
        "",
        " ",
        "null",
        "true",
        name,
        "[]",
        "{}",
        f"[{whole}]",
        f"{whole} {whole}",
        f"{whole} {name}",
        f"// {name}",
    )
    more = (
        whole[:-1],
        whole[1:],
        whole.replace('"', "'"),
        whole.replace(",", ",,"),
        f"{whole[:-1]},}}",
        f"/*{name}*/{whole}",
    )
    return rng.choice(others + more).encode()


def _with(document: dict[str, Any], name: str, text: str) -> bytes:
    """The document with the text of one value replaced as it stands."""
    mark = "\u0001"
    return json.dumps(document | {name: mark}).replace(json.dumps(mark), text).encode("utf-8", "surrogatepass")


SPOILERS = (
    _as_it_is, _bytes_changed, _bytes_changed, _a_number, _a_text, _a_key, _fewer_keys, _another_encoding, _deep, _long,
    _another_document,
)  # fmt: skip
