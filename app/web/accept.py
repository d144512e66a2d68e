"""Content negotiation by the headers `Accept` and `Accept-Encoding` (RFC 9110, section 12.5)."""

from collections.abc import Sequence

from fastapi import Request

SVG, PNG = "image/svg+xml", "image/png"
MAX_ELEMENTS = 32  # of a list in a header; browsers send ten at most, and anybody can send thousands


ANYTHING = "*/*"


def preferred(request: Request, offered: Sequence[str]) -> str | None:
    """The media type that the caller prefers, the first one of several equals; None if it accepts none of them.
    Without the header everything is acceptable."""
    accepted = dict(_ranges(", ".join(request.headers.getlist("accept")) or ANYTHING))
    weights = [_weight(media, accepted) for media in offered]
    return offered[weights.index(max(weights))] if any(weights) else None


def accepts_gzip(request: Request) -> bool:
    """By name or by `*`, with a weight above 0."""
    accepted = dict(_ranges(", ".join(request.headers.getlist("accept-encoding"))))
    return accepted.get("gzip", accepted.get("*", 0.0)) > 0


def elements(text: str, separator: str = ",") -> list[str]:
    """Those of a list; what is beyond the limit is ignored."""
    return text.split(separator, MAX_ELEMENTS)[:MAX_ELEMENTS]


def _ranges(header: str) -> list[tuple[str, float]]:
    """(media range, weight) of each element; an unreadable weight counts as 0."""
    found = []
    for element in elements(header):
        media, *parameters = (part.strip().lower() for part in elements(element, ";"))
        weights = [part[2:] for part in parameters if part.startswith("q=")]
        found.append((media, _number(weights[0]) if weights else 1.0))
    return found


def _number(text: str) -> float:
    digits = text.replace(".", "", 1)
    return float(text) if digits.isascii() and digits.isdigit() else 0.0


def _weight(media: str, accepted: dict[str, float]) -> float:
    """By the most specific range that matches."""
    ranges = (media, f"{media.partition('/')[0]}/*", ANYTHING)
    return next((accepted[each] for each in ranges if each in accepted), 0.0)
