"""The sets from the UCI repository, kept in a cache. What they hold is checked by whoever reads them."""

import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

from app.benchmark.paper.archives import ArchiveRefused, plain_table
from app.benchmark.paper.sets import DataSet

ADDRESS = "https://archive.ics.uci.edu/static/public/"
TIMEOUT_SECONDS = 60.0
LARGEST_BYTES = 10_000_000  # the largest table has under 200,000, and little lies beside it


class DataUnavailable(OSError):
    """An OSError, because that is what the command line prints as one sentence."""


def fetch(wanted: DataSet, cache: Path, address: str = ADDRESS) -> Path:
    """The cached file, downloaded if it is not there yet."""
    path = cache / wanted.file
    if path.is_file():
        return path
    try:
        table = plain_table(_download(address + wanted.archive.path), wanted)
    except (OSError, ArchiveRefused) as error:  # no network, no such page, another archive
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = f"{wanted.name} could not be downloaded from UCI ({getattr(error, 'reason', None) or error})"
        raise DataUnavailable(f"{reason}; name a folder that holds {wanted.file} with --data.") from error
    _keep(table, path)
    return path


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 (a constant address)
            data: bytes = answer.read(LARGEST_BYTES + 1)
    except http.client.HTTPException as error:  # no OSError, and its text is whatever the server wrote
        raise ArchiveRefused("the answer is not HTTP") from error
    if len(data) > LARGEST_BYTES:
        raise ArchiveRefused(f"the archive is larger than {LARGEST_BYTES} bytes")
    return data


def _keep(table: str, path: Path) -> None:
    """Whole or not at all: a reader never meets half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.part")
    partial.write_text(table, encoding="utf-8")
    os.replace(partial, path)
