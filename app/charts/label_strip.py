"""Labels in a strip above a plot, each joined to what it names, so that no label lies on a line or on another label."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.charts.axes import Box, spread_labels, text_width
from app.charts.svg import Canvas
from app.charts.theme import TEXT_SIZE

ROW = 17.0  # px, of one line of labels
BETWEEN = 10.0  # px, between labels of a row


@dataclass(frozen=True, slots=True)
class StripLabel:
    x: float  # of what it names
    y: float
    text: str


def strip_height(texts: Sequence[str], width: float) -> float:
    """What the labels need above a plot of this width; nothing without labels."""
    return ROW * _rows(texts, width) + 6.0 if texts else 0.0


def draw_strip(canvas: Canvas, box: Box, labels: Sequence[StripLabel], name: str) -> None:
    """Neighbours lie in different rows where one row is too narrow; all lines first, so that none crosses a text."""
    labels = sorted(labels, key=lambda label: label.x)
    texts = [label.text for label in labels]
    rows, gap = _rows(texts, box.width), _gap(texts)
    half = (gap - BETWEEN) / 2
    placed = spread_labels([label.x for label in labels], gap / rows, box.left + half, box.right - half)
    tops = [box.top - 6.0 - ROW * (k % rows) for k in range(len(labels))]
    for label, x, y in zip(labels, placed, tops, strict=True):
        joined = f"M{x:.1f} {y + 3:.1f}L{x:.1f} {box.top - 4:.1f}L{label.x:.1f} {box.top + 6:.1f}"
        canvas.path("nc-leader", f"{joined}L{label.x:.1f} {max(label.y, box.top + 6):.1f}")
    for label, x, y in zip(labels, placed, tops, strict=True):
        canvas.text(name, x, y, label.text, "middle")


def _gap(texts: Sequence[str]) -> float:
    return max((text_width(text, TEXT_SIZE) for text in texts), default=0.0) + BETWEEN


def _rows(texts: Sequence[str], width: float) -> int:
    """As few as leave a gap within each row, with half a label's width at both ends."""
    gap = _gap(texts)
    return max(math.ceil(gap * (len(texts) - 1) / max(width - (gap - BETWEEN), 1.0)), 1)
