"""A page to draw a figure on, kept as a file when the drawing is done. Readable in grey, the same bytes every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from app.formats.figures import STYLE, render


@contextmanager
def page(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Inches. The ending of the path says the format, .svg or .png."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        path.write_bytes(render(figure, path.suffix.removeprefix(".")))
