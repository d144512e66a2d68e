"""SHA256SUMS: one line per file, readable by `sha256sum --check`, and one digest over them all."""

import hashlib
import re
from collections.abc import Mapping

from app.errors import InvalidArtefact

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_.-]+)")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """The text of SHA256SUMS for these files, sorted by name. Its own SHA-256 is the digest of the version."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files)).encode()


def check_sums(sums: bytes, files: Mapping[str, bytes]) -> None:
    """Refuse the first file whose bytes are not those that were published."""
    published = _parse(sums)
    for name in sorted(files):
        if published.get(name) != sha256(files[name]):
            raise InvalidArtefact(name, f"its bytes do not match {SUMS}.")
    if sums != sums_of(files):
        raise InvalidArtefact(SUMS, "it does not list exactly the files of a version, sorted by name.")


def _parse(sums: bytes) -> dict[str, str]:
    lines = [_LINE.fullmatch(line) for line in sums.decode("ascii", errors="replace").splitlines()]
    if not lines or None in lines:
        raise InvalidArtefact(SUMS, "it is not a list of SHA-256 digests and file names.")
    return {line[2]: line[1] for line in lines if line}
