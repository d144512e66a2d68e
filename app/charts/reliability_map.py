"""The reliability map: how wide the interval of a score is, over age and body surface area."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from app.charts.axes import EDGE, Box, Look, Scale, Words, draw_x_axis, draw_y_axis, framed
from app.charts.svg import Canvas
from app.charts.wording import model_caption, model_warning, sentences, short, signed, site_title
from app.schemas.answers import ModelProvenance
from app.schemas.charts import MapGrid

BREAKS = (0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0)  # between the levels of the theme; at 1.0 W2 leads to caution
SWATCH = 30.0  # px
OVERLAP = 0.4  # px; cells that only touch leave hairlines when they are rasterised


@dataclass(frozen=True, slots=True)
class MapData:
    site: str
    sex: str
    diameter_mm: float | None
    grid: MapGrid
    model: ModelProvenance


def draw_reliability_map(data: MapData, look: Look) -> str:
    title = f"{site_title(data.site)}: reliability map"
    notes = (
        "Outlined: verdict ok; outside it: caution. Grey: not reliable, no score. "
        f"Height and weight at the median body mass index for age. {data.grid.bmi_source}"
    )
    words = Words(title, _subtitle(data), notes, model_caption(data.model), model_warning(data.model))
    canvas, box = framed(look, words, min(max(0.5 * look.width, 230.0), 420.0), 30.0, 4.0, gap=76.0)
    _draw_key(canvas, box)
    x_edges = _edges(data.grid.age_years, box.left, box.right)
    y_edges = _edges(data.grid.bsa_m2, box.bottom, box.top)
    _draw_cells(canvas, data.grid, x_edges, y_edges)
    canvas.path("nc-contour", "".join(_contour(data.grid, x_edges, y_edges)))
    draw_y_axis(canvas, box, _scale(data.grid.bsa_m2, y_edges), "Body surface area, m²", 1, lines=False)
    draw_x_axis(canvas, box, _scale(data.grid.age_years, x_edges), "Age, years")
    return canvas.render("reliability-map", title, _description(data))


def _edges(centres: Sequence[float], start: float, end: float) -> list[float]:
    """Of cells of equal size."""
    return [start + (end - start) * k / len(centres) for k in range(len(centres) + 1)]


def _scale(centres: Sequence[float], edges: Sequence[float]) -> Scale:
    """The values at the middles of the first and the last cell."""
    half = (edges[1] - edges[0]) / 2
    return Scale(centres[0], centres[-1], edges[0] + half, edges[-1] - half)


def _draw_key(canvas: Canvas, box: Box) -> None:
    size = min(SWATCH, (canvas.width - 2 * EDGE) / (len(BREAKS) + 1))
    y = box.top - 62
    for level in range(len(BREAKS) + 1):
        canvas.rect(f"nc-level nc-level-{level}", EDGE + size * level, y, size + OVERLAP, 10)
    for k, limit in enumerate(BREAKS, 1):
        canvas.text("nc-muted", EDGE + size * k, y + 25, f"{limit:g}", "middle")


def _draw_cells(canvas: Canvas, grid: MapGrid, x_edges: Sequence[float], y_edges: Sequence[float]) -> None:
    """One path for each colour, of runs of cells in a row."""
    paths: dict[str, list[str]] = defaultdict(list)
    for row, (widths, verdicts) in enumerate(zip(grid.width, grid.verdict, strict=True)):
        top, height = y_edges[row + 1], y_edges[row] - y_edges[row + 1] + OVERLAP
        names = [
            "nc-not-reliable" if verdict == "not_reliable" else f"nc-level nc-level-{bisect_right(BREAKS, width)}"
            for width, verdict in zip(widths, verdicts, strict=True)
        ]
        for name, run in groupby(range(len(names)), key=names.__getitem__):
            columns = list(run)
            left, right = x_edges[columns[0]], x_edges[columns[-1] + 1] + OVERLAP
            paths[name].append(f"M{left:.1f} {top:.1f}H{right:.1f}v{height:.1f}H{left:.1f}Z")
    for name in sorted(paths):
        canvas.path(name, "".join(paths[name]))


def _contour(grid: MapGrid, x_edges: Sequence[float], y_edges: Sequence[float]) -> Iterator[str]:
    """The edges between cells of which exactly one is `ok`."""
    is_ok = [[verdict == "ok" for verdict in row] for row in grid.verdict]
    for row, cells in enumerate(is_ok):
        for column, (left, right) in enumerate(pairwise(cells), 1):
            if left != right:
                yield f"M{x_edges[column]:.1f} {y_edges[row]:.1f}V{y_edges[row + 1]:.1f}"
    for row, (lower, upper) in enumerate(pairwise(is_ok), 1):
        for column, (below, above) in enumerate(zip(lower, upper, strict=True)):
            if below != above:
                yield f"M{x_edges[column]:.1f} {y_edges[row]:.1f}H{x_edges[column + 1]:.1f}"


def _subtitle(data: MapData) -> str:
    at = "a score of 2 (W2)" if data.diameter_mm is None else f"the score of {short(data.diameter_mm)} mm"
    return f"Width of the 95% HDI of {at}. Reference group: {data.sex}."


def _description(data: MapData) -> str:
    grid = data.grid
    verdicts = [verdict for row in grid.verdict for verdict in row]
    shown = [
        width
        for widths, row in zip(grid.width, grid.verdict, strict=True)
        for width, verdict in zip(widths, row, strict=True)
        if verdict != "not_reliable"
    ]
    shares = {name: f"{100 * verdicts.count(name) / len(verdicts):.0f}%" for name in ("ok", "caution", "not_reliable")}
    spans = f" There the width is {signed(min(shown))} to {signed(max(shown))}." if shown else ""
    return sentences(
        [
            _subtitle(data),
            f"Ages from {grid.age_years[0]:.1f} to {grid.age_years[-1]:.1f} years, body surface areas from "
            f"{signed(grid.bsa_m2[0])} to {signed(grid.bsa_m2[-1])} m².",
            f"Of this map {shares['ok']} is ok, {shares['caution']} needs caution and {shares['not_reliable']} is not "
            f"reliable. The first two are coloured by the width.{spans}",
            grid.bmi_source,
            model_caption(data.model),
            model_warning(data.model),
        ]
    )
