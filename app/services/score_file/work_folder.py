"""The folder beside the output that holds the finished parts of a run, so that a run that was stopped can go on.

A part counts as finished when its receipt is there and the digests on it are those of its files. So nothing needs to be
synchronised to the disk before the end: after a loss of power a part is whole, or it is scored again.
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from app.domain.card import ModelRef
from app.errors import FileExists, NormalcyError
from app.files import file_digest, replace_file, scratch_file
from app.formats.table_files import Part

SUFFIX = ".parts"  # after the name of the output
MANIFEST, LOCK = "manifest.json", "lock"
ANOTHER_RUN = (
    "{folder} holds parts of another run: {what} differ. Delete that folder to start again, or choose another name for "
    "the output."
)
BUSY = "Another process is writing {out}. Wait until it has ended, or choose another name."


@dataclass(frozen=True, slots=True)
class Manifest:
    """What all parts of a run share. The first three are fixed by the first start; what is below them must agree."""

    request_id: str
    current: tuple[ModelRef, ...]
    not_served: tuple[tuple[str, str], ...]
    measurements: str  # SHA-256 of the input
    options: tuple[str, ...]
    program: tuple[str, ...]  # version, commit, backend, device


@dataclass(frozen=True, slots=True)
class Receipt:
    """A finished part."""

    number: int
    succeeded: int
    failed: int
    models: tuple[ModelRef, ...]
    digests: dict[str, str]  # of its files, by name

    @property
    def rows(self) -> int:
        return self.succeeded + self.failed


def folder_of(out: Path) -> Path:
    return out.with_name(out.name + SUFFIX)


@contextmanager
def opened(out: Path, wanted: Manifest, *names: Path) -> Iterator[Manifest]:
    """The manifest of the run: this one, or that of an earlier start with the same input, options and program.

    Raises FileExists if a new run would write to one of these names, and NormalcyError if the folder belongs to another
    run. The folder stays until `remove` is called.
    """
    folder = folder_of(out)
    is_new = not (folder / MANIFEST).exists()
    if is_new:
        for name in names:
            if name.exists():
                raise FileExists(str(name))
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NormalcyError(f"{out} cannot be written: {error.strerror}.") from error
    with (folder / LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NormalcyError(BUSY.format(out=out)) from error
        if is_new:
            replace_file(folder / MANIFEST, msgspec.json.encode(wanted))
        found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        adopted = replace(wanted, request_id=found.request_id, current=found.current, not_served=found.not_served)
        for what in ("measurements", "options", "program"):
            if getattr(found, what) != getattr(adopted, what):
                raise NormalcyError(ANOTHER_RUN.format(folder=folder, what=f"the {what}"))
        yield found


def remove(out: Path) -> None:
    shutil.rmtree(folder_of(out), ignore_errors=True)


def finished(folder: Path, part: Part) -> Receipt | None:
    """What an earlier start left of this part, if it is whole."""
    try:
        receipt = msgspec.json.decode((folder / receipt_name(part.number)).read_bytes(), type=Receipt)
        whole = all(file_digest(folder / name) == digest for name, digest in receipt.digests.items())
    except (OSError, msgspec.MsgspecError):
        return None
    return receipt if whole and receipt.rows == part.rows else None


def save_receipt(folder: Path, part: Part, receipt: Receipt) -> None:
    with scratch_file(folder / receipt_name(part.number)) as file:
        file.write(msgspec.json.encode(receipt))


def receipt_name(number: int) -> str:
    return f"{number:08}.json"


def scores_name(number: int) -> str:
    return f"{number:08}.scores"


def errors_name(number: int) -> str:
    return f"{number:08}.errors"
