"""How a payload is stored: deflated, because most of a record is the same in all of them.

The hash of a row is that of the payload itself, so nothing depends on how well it was deflated. What was stored plain,
before payloads were deflated, begins with `{` and stays as it is. The preset dictionary is part of the format and never
changes; tools/payload_dictionary.txt is the same file, beside the independent verifier.
"""

import zlib
from pathlib import Path

DICTIONARY = Path(__file__).with_name("payload_dictionary.txt").read_bytes()
PLAIN = b"{"
MOST_BYTES = 1 << 26  # of an inflated payload, part of the format; a block of items has some 300 kB
# Level 6 saves 7% of the bytes and costs half as much time again. The state of 48 KiB is copied for every record: with
# 128 KiB (14 and 7) nothing is smaller, and a record costs 13 µs more in a busy process.
WINDOW_BITS, MEMORY, LEVEL = 13, 5, 3
# A block is digits for the most part: looking for repetitions in them costs much and saves little.
LARGE = 1 << 14
LARGE_MEMORY = 9  # fewer Huffman tables: a fifth less time

_record = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, MEMORY, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
_block = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, LARGE_MEMORY, zlib.Z_HUFFMAN_ONLY)


def deflate(payload: bytes) -> bytes:
    """As it is stored."""
    stream = (_record if len(payload) < LARGE else _block).copy()  # with the dictionary already taken in
    return stream.compress(payload) + stream.flush()


def inflate(stored: bytes) -> bytes:
    """The payload. What is not a whole deflated payload of at most MOST_BYTES is returned unchanged: it is none."""
    if stored.startswith(PLAIN):
        return stored
    stream = zlib.decompressobj(zdict=DICTIONARY)
    try:
        payload = stream.decompress(stored, MOST_BYTES)
    except zlib.error:
        return stored
    return payload if stream.eof and not stream.unused_data else stored
