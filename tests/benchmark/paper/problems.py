"""A small set with a line in it, for tests."""

import numpy as np

from app.benchmark.paper.data import Table
from app.maths.moments import Array


def line(rows: int = 60, seed: int = 0) -> tuple[Array, Array]:
    """X [rows, 2] and y in [0, 1], nearly linear in X."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (rows, 2))
    y = X @ np.array([0.6, 0.4]) + 0.01 * rng.normal(size=rows)
    return X, (y - y.min()) / np.ptp(y)


def small_table(name: str = "Yacht", rows: int = 60) -> Table:
    """Under the name of a known set, whose number of anomalies the protocol looks up."""
    return Table(name, *line(rows), digest="d1")
