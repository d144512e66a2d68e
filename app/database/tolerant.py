"""Column types that read whatever stands in an SQLite file.

SQLite keeps a text in a column of bytes, or of numbers, if somebody puts one there. Reading such a row must not fail:
verification has to name it as damaged. What cannot be read becomes a value that no writer of ours ever wrote.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Dialect, LargeBinary, String, Uuid

NO_UUID = UUID(int=0)
NO_PLACE = -1
NO_BYTES = b"\0not bytes"

Reader = Callable[[Any], Any]


def tolerant_text(content: bytes) -> str:
    """For the driver, which would refuse to hand over a text that is not UTF-8."""
    return content.decode("utf-8", "backslashreplace")


class TolerantUuid(Uuid[UUID]):
    def result_processor(self, dialect: Dialect, coltype: object) -> Reader:
        return _uuid


class TolerantBytes(LargeBinary):
    def result_processor(self, dialect: Dialect, coltype: object) -> Reader:
        return lambda value: value if isinstance(value, bytes) else NO_BYTES


class TolerantPlace(BigInteger):
    def result_processor(self, dialect: Dialect, coltype: object) -> Reader:
        return lambda value: value if isinstance(value, int) else NO_PLACE


class TolerantText(String):
    def result_processor(self, dialect: Dialect, coltype: object) -> Reader:
        return lambda value: value if value is None or isinstance(value, str) else repr(value)


def _uuid(value: Any) -> UUID:
    """As we write them: another spelling of the same number is another key to SQLite."""
    try:
        found = UUID(value)
    except (ValueError, TypeError, AttributeError):
        return NO_UUID
    return found if found.hex == value else NO_UUID
