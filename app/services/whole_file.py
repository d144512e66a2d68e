"""A file that appears whole under its name, or not at all, and never over one that is there."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from app.errors import FileExists, NormalcyError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write into it; when the block ends well the file is on disk under its name. A block that raises leaves nothing.

    Readable by its owner alone, because it holds what patients' records hold.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _reserve(path)
        try:
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            for left in (draft, path):
                left.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise NormalcyError(f"{path} cannot be written: {error.strerror}.") from error


def _reserve(path: Path) -> None:
    """Takes the name, so that of two runs at once only one goes on. Works where hard links do not."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as error:
        raise FileExists(str(path)) from error
