"""Measures what is missing, then writes the report: see the package."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.build_info import source_commit
from app.clock import utc_now
from app.observability import configure_logging
from tests.campaigns.performance import audit, batches, compute, files, http
from tests.campaigns.performance.report import write_report
from tests.campaigns.performance.section import Saved, Section

PARTS: dict[str, Callable[[bool], Section]] = {
    "http": http.measure,
    "batch": compute.measure,
    "batch-http": batches.measure,
    "files": files.measure,
    "replicas": batches.measure_replicas,
    "audit": audit.measure,
}
BUILD = Path("build/performance")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.performance", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(PARTS), help="this part; repeat for several")
    parser.add_argument("--quick", action="store_true", help="shorter: the figures are less certain")
    parser.add_argument("--again", action="store_true", help="measure parts again that were measured before")
    parser.add_argument("--results", type=Path, default=BUILD, help="folder of the saved results")
    parser.add_argument("--out", type=Path, help="write the report of all saved results")
    given = parser.parse_args(arguments)
    given.results.mkdir(parents=True, exist_ok=True)
    for name in given.only or PARTS:
        path = given.results / f"{name}.json"
        if given.again or not path.exists():
            sys.stderr.write(f"measuring {name}\n")
            path.write_bytes(msgspec.json.format(msgspec.json.encode(measure(name, given.quick)), indent=1))
    if given.out:
        saved = [given.results / f"{name}.json" for name in PARTS]
        write_report(given.out, [msgspec.json.decode(p.read_bytes(), type=Saved) for p in saved if p.exists()])


def measure(name: str, quick: bool) -> Saved:
    before = os.getloadavg()[0]
    section = PARTS[name](quick)
    command = f"python -m tests.campaigns.performance --only {name}{' --quick' if quick else ''}"
    after = os.getloadavg()[0]
    return Saved(section, command, source_commit(), f"{utc_now():%Y-%m-%d}", (before, after), quick)


if __name__ == "__main__":
    configure_logging("error", sys.stderr)
    main(sys.argv[1:])
