"""Where and with what a result was made: code, libraries, kind of machine. No host name, no path."""

import platform
from functools import cache

from app.benchmark.report_header import git, installed_version, processor
from app.build_info import source_commit

LIBRARIES = ("numpy", "scipy", "scikit-learn", "tensorflow", "gpflow", "pyod", "quantile-forest")


@cache
def origin() -> dict[str, str]:
    """The commit ends in `-dirty` where the source tree had changes that it does not hold."""
    dirty = "-dirty" if git("status", "--porcelain") else ""
    versions = {name: installed_version(name) for name in LIBRARIES}
    return {"commit": source_commit() + dirty, "machine": processor(), "python": platform.python_version()} | versions
