"""Tables and the marks on their cells."""

from collections.abc import Iterable, Sequence

from app.benchmark.paper.study import Spread

BETTER, EQUAL, WORSE = "better", "equal", "worse"
ROUNDING = 1e-12  # 1.0 - 0.99 is a little more than 0.01
# How often `mark` tells two methods apart that are the same, with five normal values on either side.
FALSE_MARKS = 0.105
# The same where the published number comes without a standard deviation.
FALSE_MARKS_ALONE = 0.188


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *(_line(row) for row in rows), ""]


def pair(values: Spread) -> str:
    """0.961 ± 0.005, or the value alone where there is one injection."""
    return f"{values.mean:.3f} ± {values.sd:.3f}" if len(values.values) > 1 else f"{values.mean:.3f}"


def difference(values: Spread, of_mean: bool = True) -> str:
    """+0.012 ± 0.005: the standard error of the mean, or the standard deviation of the values. No sign on a zero."""
    mean, error = values.mean, values.standard_error if of_mean else values.sd
    return f"{mean:+.3f} ± {error:.3f}" if abs(mean) >= 0.0005 else f"0.000 ± {error:.3f}"


def published_pair(mean: float, sd: float) -> str:
    return f"{mean:.2f} ± {sd:.2f}"


def mark(ours: Spread, published: float, published_sd: float = 0.0) -> str:
    """Equal: the means differ by at most one standard deviation, the larger of the two."""
    difference = ours.mean - published
    if abs(difference) <= max(ours.sd, published_sd, 0.005) + ROUNDING:  # the paper prints two decimals
        return EQUAL
    return BETTER if difference > 0.0 else WORSE


def smaller_mark(ours: float, published: float) -> str:
    """For changes, which have no standard deviation in the paper: less is better, at its two decimals."""
    difference = round(ours, 2) - published
    return EQUAL if abs(difference) < 0.005 else (BETTER if difference < 0.0 else WORSE)


def reaches(ours: float, published: float) -> bool:
    """At least the published number at its two decimals."""
    return ours >= published - 0.005 - ROUNDING


def counted(marks: Iterable[str]) -> str:
    found = list(marks)
    return ", ".join(f"{found.count(kind)} {kind}" for kind in (BETTER, EQUAL, WORSE)) + f" (of {len(found)})"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
