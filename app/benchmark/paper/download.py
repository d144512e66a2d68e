"""The sets from the UCI repository, kept in a cache. What they hold is checked by whoever reads them."""

import os
import urllib.error
import urllib.request
from pathlib import Path

from app.benchmark.paper.sets import DataSet

ADDRESS = "https://archive.ics.uci.edu/static/public/{uci_id}/data.csv"
TIMEOUT_SECONDS = 60.0
LARGEST_BYTES = 10_000_000  # Abalone, the largest, has under 200,000


class DataUnavailable(OSError):
    """An OSError, because that is what the command line prints as one sentence."""


def fetch(wanted: DataSet, cache: Path, address: str = ADDRESS) -> Path:
    """The cached file, downloaded if it is not there yet."""
    path = cache / wanted.file
    if path.is_file():
        return path
    url = address.format(uci_id=wanted.uci_id)
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 (a constant address)
            data = answer.read(LARGEST_BYTES)
    except OSError as error:  # no network, no such page, no answer in time
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = f"{wanted.name} could not be downloaded from UCI ({getattr(error, 'reason', None) or error})"
        raise DataUnavailable(f"{reason}; name a folder that holds {wanted.file} with --data.") from error
    cache.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_bytes(data)
    os.replace(partial, path)
    return path
