"""A large Parquet file: on one worker, on two, and on a Dask cluster of two; time, memory, and the same bytes."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.campaigns.performance.section import Goal, Section, Table
from tests.campaigns.servers import COMMAND, OUR_TREE

ROWS, QUICK_ROWS = 2_000_000, 300_000
GENERATED = 100_000  # rows of a row group of the input
MOST, MIN_RATIO = 20.0, 1.7  # µs a row on one worker; how many times faster two are
TEXT = """\
`normalcy score --in studies.parquet --out scores.parquet` as a user runs it, with the start of the command, its audit
record and the assembly of the output; half of the rows for each site. *CPU* is the processor time of all processes. The
memory is the largest of any single process. The Dask workers run already when the command starts, and their processor
time and memory are not included."""


class Run(NamedTuple):
    seconds: float
    processor_seconds: float
    megabytes: float
    result: dict[str, Any]


def measure(quick: bool) -> Section:
    rows = QUICK_ROWS if quick else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_studies(folder / "studies.parquet", rows)
        runs = {
            "1 worker": score(folder, "one.parquet"),
            "2 workers": score(folder, "two.parquet", "--workers", "2"),
        }
        with dask_cluster() as address:
            runs["Dask, 2 workers"] = score(folder, "dask.parquet", "--scheduler", address)
    digests = {run.result["output_sha256"] for run in runs.values()}
    one, two = runs["1 worker"], runs["2 workers"]
    each = one.seconds / rows * 1e6
    ratio = one.seconds / two.seconds
    table = [[name, *_figures(run, rows)] for name, run in runs.items()]
    same = "the same" if len(digests) == 1 else "NOT the same"
    return Section(
        f"A Parquet file of {rows:,} measurements",
        f"{TEXT} The output files of all three are {same}, byte for byte.",
        [Table(["", "seconds", "µs a row", "CPU, µs a row", "memory, MB"], table)],
        goals=[
            Goal("Parquet, one worker", f"at most {MOST:g} µs a row", f"{each:.1f} µs", each <= MOST),
            Goal("Parquet, two workers", f"at least {MIN_RATIO} times one", f"{ratio:.2f} times", ratio >= MIN_RATIO),
            Goal("Parquet on Dask", "the same rows in the same order", same, len(digests) == 1),
        ],
    )


def _figures(run: Run, rows: int) -> list[str]:
    times = (run.seconds, run.seconds / rows * 1e6, run.processor_seconds / rows * 1e6)
    return [*(f"{value:.1f}" for value in times), f"{run.megabytes:.0f}"]


def write_studies(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, rows, GENERATED):
        n = min(GENERATED, rows - first)
        table = pa.table(
            {
                "id": [f"study-{first + k}" for k in range(n)],
                "site": np.where(rng.random(n) < 0.5, "SoV", "AA"),
                "age_years": rng.uniform(20, 75, n).round(1),
                "sex": np.where(rng.random(n) < 0.5, "male", "female"),
                "height_cm": rng.integers(155, 190, n).astype(float),
                "weight_kg": rng.integers(55, 95, n).astype(float),
                "diameter_mm": rng.uniform(27, 44, n).round(1),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def score(folder: Path, out: str, *options: str) -> Run:
    words = [sys.executable, *COMMAND, "score", "--in", "studies.parquet", "--out", out, "--json", *options]
    began = time.perf_counter()
    with (folder / "printed.json").open("wb") as printed:
        process = subprocess.Popen(words, cwd=folder, env=environment(folder), stdout=printed)  # noqa: S603 - ours
        _, status, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError("The file was not scored.")
    result = json.loads((folder / "printed.json").read_bytes())
    return Run(took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, result)


def environment(folder: Path) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("NORMALCY_")}
    given.pop("PYTHONDONTWRITEBYTECODE", None)  # as on a machine where the package is installed
    return {
        **given,
        "PYTHONPATH": str(OUR_TREE),
        "NORMALCY_DATA_DIR": str(folder / "var"),
        "NORMALCY_MODELS_DIR": str(OUR_TREE / "models_store"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


@contextmanager
def dask_cluster() -> Iterator[str]:
    from distributed import LocalCluster

    own: Sequence[tuple[str, str]] = (("PYTHONPATH", str(OUR_TREE)), ("OPENBLAS_NUM_THREADS", "1"))
    os.environ.update(own)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address
