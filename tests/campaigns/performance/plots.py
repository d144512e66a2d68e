"""A plot of a section as SVG. Lines differ by colour and dash, so that nothing rests on hue."""

import io

from app.formats.figures import STROKES, STYLE
from tests.campaigns.performance.section import Plot

MARKERS = "os^Dvx+"


def svg(plot: Plot) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.0, 3.2), layout="constrained")
        axes = figure.subplots()
        for k, (name, points) in enumerate(plot.lines.items()):
            colour, dash = STROKES[k % len(STROKES)]
            x, y = zip(*points, strict=True)
            axes.plot(x, y, color=colour, linestyle=dash, marker=MARKERS[k % len(MARKERS)], label=name)
        if plot.logarithmic:
            axes.set_xscale("log")
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel(plot.x)
        axes.set_ylabel(plot.y)
        axes.set_title(plot.title)
        axes.legend(frameon=False, fontsize=8)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
