"""Parameters of the path and of the query, each read strictly: understood, or refused without being repeated."""

from collections.abc import Mapping
from datetime import UTC, datetime

from app.clock import timestamp
from app.errors import InvalidCursor, InvalidInput, UnknownRecord, UnknownSite
from app.formats.faults import fault
from app.store.registry import is_site
from app.web.envelope import REQUEST_ID

LAST_ITEM = 9999  # of the largest batch

Given = Mapping[str, str]


def request_id(text: str) -> str:
    """One that no request can have had has no record."""
    if not REQUEST_ID.fullmatch(text.encode("utf-8", "replace")):
        raise UnknownRecord
    return text


def moment(given: Given, name: str) -> str | None:
    """A time as the audit writes it, in UTC unless it says otherwise."""
    if name not in given:
        return None
    try:
        when = datetime.fromisoformat(given[name])
        return timestamp(when if when.tzinfo else when.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        message = f"{name} must be a time in ISO 8601, as 2026-11-15T10:30:00Z."
        raise InvalidInput([fault("wrong_type", name, message)]) from None


def site_name(given: Given) -> str | None:
    site = given.get("site")
    if site is not None and not is_site(site):
        raise UnknownSite(site)
    return site


def cursor(given: Given) -> str | None:
    if given.get("cursor") == "":
        raise InvalidCursor
    return given.get("cursor")


def item(given: Given) -> int | None:
    """The place of a reading in a study."""
    text = given.get("item")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= LAST_ITEM):
        raise InvalidInput([fault("out_of_range", "item", f"item must be a whole number from 0 to {LAST_ITEM}.")])
    return int(text)
