"""One serving process per embedded database."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import AlreadyServing


@contextmanager
def serving_alone(database_file: Path) -> Iterator[None]:
    """Held while serving. The system releases it when the process dies, however it dies: nothing is left to clean."""
    database_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock_file = database_file.with_suffix(".serve.lock")
    handle = os.open(lock_file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyServing(str(database_file)) from error
        yield
    finally:
        os.close(handle)
