"""Writes SVG: presentation attributes and class names only, so that it shows under any content security policy.

No ids (several pictures may stand in one document), no `style`, no script.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from app.charts.theme import FONT, Theme

Points = Iterable[tuple[float, float]]


def number(value: float) -> str:
    """To a hundredth of a pixel, without trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def line_path(points: Points) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def area_path(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]) -> str:
    """The closed area between two lines over the same x."""
    return line_path([*upper, *reversed(lower)]) + "Z"


class Canvas:
    """Elements in drawing order. Every element has a class, which gives it the colours of the theme."""

    def __init__(self, width: float, height: float, theme: Theme) -> None:
        self.width, self.height, self._theme = width, height, theme
        self._parts: list[str] = []
        self.plot: tuple[float, float] | None = None  # top and bottom of the part between title and notes
        self.rect("nc-background", 0, 0, width, height)

    def rect(self, name: str, x: float, y: float, width: float, height: float, *, radius: float = 0) -> None:
        size = {"x": x, "y": y, "width": max(width, 0.0), "height": max(height, 0.0)}
        self._add("rect", name, size | ({"rx": radius} if radius else {}))

    def line(self, name: str, x1: float, y1: float, x2: float, y2: float) -> None:
        self._add("line", name, {"x1": x1, "y1": y1, "x2": x2, "y2": y2})

    def circle(self, name: str, x: float, y: float, radius: float) -> None:
        self._add("circle", name, {"cx": x, "cy": y, "r": radius})

    def path(self, name: str, d: str) -> None:
        self._add("path", name, {"d": d})

    def text(self, name: str, x: float, y: float, content: str, anchor: str = "start") -> None:
        where = {"x": x, "y": y} | ({"text-anchor": anchor} if anchor != "start" else {})
        self._add("text", name, where, escape(content, quote=False))

    def render(self, name: str, title: str, description: str) -> str:
        """The whole document; `description` says in words what the picture shows."""
        width, height = number(self.width), number(self.height)
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="nc-chart nc-{name}" role="img" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}"{self._plot_box()} font-family="{FONT}">'
        )
        words = f"<title>{escape(title, quote=False)}</title><desc>{escape(description, quote=False)}</desc>"
        return "\n".join([opening, words, *self._parts, "</svg>\n"])

    def _plot_box(self) -> str:
        """The view box of the plot with its axes, for a page that prints the texts itself."""
        if self.plot is None:
            return ""
        top, bottom = self.plot
        return f' data-plot="0 {number(top)} {number(self.width)} {number(bottom - top)}"'

    def _add(self, tag: str, name: str, own: Mapping[str, float | str], content: str = "") -> None:
        attributes: dict[str, float | str] = {"class": name, **own, **self._theme[name]}
        written = " ".join(
            f'{key}="{value if isinstance(value, str) else number(value)}"' for key, value in attributes.items()
        )
        self._parts.append(f"<{tag} {written}>{content}</{tag}>" if content else f"<{tag} {written}/>")
