"""Scales with round ticks, and the frame that every picture shares: title above, axes, caption below."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.charts.svg import Canvas
from app.charts.theme import SMALL_SIZE, ThemeName, theme

EDGE = 16.0  # free space around everything
LINE = 17.0  # height of a line of small text
MEAN_ADVANCE = 0.54  # of a letter, in font sizes: a little wider than most fonts, so that no line overflows
STEPS = (1.0, 2.0, 5.0, 10.0)
COMPACT_BELOW = 480  # px


@dataclass(frozen=True, slots=True)
class ChartStyle:
    """How a picture is drawn; never what it shows."""

    width: int = 640  # px that it is laid out for; type sizes do not change with it
    theme: ThemeName = "light"

    @property
    def is_compact(self) -> bool:
        return self.width < COMPACT_BELOW

    @property
    def plot_height(self) -> float:
        """Of pictures that stand beside each other."""
        return min(max(0.5 * self.width, 230.0), 420.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """From data to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, pixels_each: float) -> list[float]:
        """Round numbers inside the data, at least so many pixels apart."""
        most = max(abs(self.end - self.start) / pixels_each, 1.0)
        least = (self.high - self.low) / most
        magnitude = 10.0 ** math.floor(math.log10(least))
        step = next(magnitude * each for each in STEPS if magnitude * each >= least * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(k * step, 10) for k in range(first, last + 1)]


def padded(low: float, high: float, share: float = 0.06, least: float = 1.0) -> tuple[float, float]:
    """A little wider than the data, and never narrower than `least`."""
    pad = max(share * (high - low), 0.5 * (least - (high - low)))
    return low - pad, high + pad


@dataclass(frozen=True, slots=True)
class ChartTexts:
    """All text around a picture."""

    title: str
    subtitle: str
    notes: str  # how to read the picture
    model: str  # a line of its own below the notes
    warning: str = ""  # shown in the colour of thresholds
    verdicts: Sequence[str] = ()  # the same, each on lines of its own above the warning


@dataclass(frozen=True, slots=True)
class Box:
    """The inner rectangle, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


def framed_canvas(
    style: ChartStyle, texts: ChartTexts, plot_height: float, left: float = 0.0, right: float = 0.0, gap: float = 30.0
) -> tuple[Canvas, Box]:
    """A canvas with its texts, as high as they need, and the box for the plot; `gap` is the space above the box."""
    inner = style.width - 2 * EDGE
    above = list(wrapped(texts.subtitle, inner))
    titles = list(wrapped(texts.title, inner, 16))
    warning = [line for text in (*texts.verdicts, texts.warning) for line in wrapped(text, inner)]
    below = [*wrapped(texts.notes, inner), *wrapped(texts.model, inner)]
    top = EDGE + 20 * len(titles) + LINE * (len(above) + len(warning)) + gap
    bottom = top + plot_height
    height = bottom + 50 + LINE * len(below) + EDGE - 6
    canvas = Canvas(style.width, round(height), theme(style.theme))
    canvas.plot = (top - gap, bottom + 44)
    y = EDGE + 12
    for text in titles:
        canvas.text("nc-title", EDGE, y, text)
        y += 20
    for text in above:
        canvas.text("nc-muted", EDGE, y, text)
        y += LINE
    for text in warning:
        canvas.text("nc-note", EDGE, y, text)
        y += LINE
    for k, text in enumerate(below):
        canvas.text("nc-muted", EDGE, bottom + 62 + LINE * k, text)
    return canvas, Box(EDGE + left, top, style.width - EDGE - right, bottom)


def draw_x_axis(canvas: Canvas, box: Box, x: Scale, title: str, decimals: int = 0) -> None:
    canvas.line("nc-axis", box.left, box.bottom, box.right, box.bottom)
    for tick in x.ticks(56):
        canvas.line("nc-axis", x(tick), box.bottom, x(tick), box.bottom + 5)
        canvas.text("nc-muted", x(tick), box.bottom + 19, label(tick, decimals), "middle")
    canvas.text("nc-text", box.right, box.bottom + 37, title, "end")


def draw_y_axis(canvas: Canvas, box: Box, y: Scale, title: str, decimals: int = 0, *, lines: bool = True) -> None:
    for tick in y.ticks(34):
        if lines:
            canvas.line("nc-grid", box.left, y(tick), box.right, y(tick))
        canvas.text("nc-muted", box.left - 8, y(tick) + 4, label(tick, decimals), "end")
    if title:
        canvas.text("nc-text", EDGE, box.top - 12, title)


def label(tick: float, decimals: int = 0) -> str:
    """With a true minus, and as many decimals as the step needs."""
    text = f"{tick:.{decimals}f}" if tick == round(tick, decimals) else f"{tick:g}"
    return text.replace("-", "−")


def text_width(text: str, size: float = SMALL_SIZE) -> float:
    return MEAN_ADVANCE * size * len(text)


def wrapped(text: str, width: float, size: float = SMALL_SIZE) -> Iterator[str]:
    """Lines that fit the width."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer, size) > width:
            yield line
            line = word
        else:
            line = longer
    if line:
        yield line


def spread_labels(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions as near to the wanted ones (rising) as a gap between labels allows."""
    placed: list[float] = []
    for position in wanted:
        placed.append(max(position, placed[-1] + gap if placed else low))
    excess = placed[-1] - high if placed else 0.0
    if excess > 0:
        limit = high
        for k in range(len(placed) - 1, -1, -1):
            placed[k] = min(placed[k], limit)
            limit = placed[k] - gap
    return placed
