"""A small file system of its own that another file fills: SQLite and PostgreSQL find no room, then room again."""

import asyncio
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tests.campaigns.faults.cycles import run_cycles
from tests.campaigns.faults.injection import FULL_SECONDS
from tests.campaigns.faults.row import Context, Finding
from tests.campaigns.faults.target import Target
from tests.postgres import private_server, service_login

SIZE_MB = 768  # room for the rows of 50 cycles
POSTGRES_SETTINGS = ("max_wal_size=64MB", "min_wal_size=32MB")  # by default the log alone may take 1 GB
BLOCK_BYTES = 4096


@contextmanager
def small_file_system() -> Iterator[Path]:
    """Needs the right to mount."""
    folder = Path(tempfile.mkdtemp(prefix="normalcy-full-"))
    mount, unmount = (shutil.which(name) for name in ("mount", "umount"))
    if mount is None or unmount is None:
        raise RuntimeError("mount and umount are not here")
    subprocess.run([mount, "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=711", "tmpfs", folder], check=True)  # noqa: S603
    try:
        yield folder
    finally:
        subprocess.run([unmount, "--lazy", folder], check=True)  # noqa: S603
        folder.rmdir()


async def run_full_disk(context: Context) -> Finding:
    with small_file_system() as disk:
        ballast = disk / "ballast"

        async def inject(target: Target, rng: random.Random) -> float:
            try:
                await asyncio.to_thread(_fill, ballast)
                await asyncio.sleep(FULL_SECONDS)
            finally:
                ballast.unlink()
            over = time.monotonic()
            if target.server is not None and not target.server.is_running:
                await asyncio.to_thread(target.server.start, *POSTGRES_SETTINGS)
            return over

        if context.database == "SQLite":
            (disk / "sqlite").mkdir(mode=0o700)
            return await run_cycles(replace(context, folder=disk / "sqlite"), inject, must_refuse=True)
        with private_server(disk, *POSTGRES_SETTINGS) as server, service_login(server):
            return await run_cycles(replace(context, server=server), inject, must_refuse=True)


def _fill(file: Path) -> None:
    room = os.statvfs(file.parent)
    handle = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        with suppress(OSError):
            os.posix_fallocate(handle, 0, max(room.f_bavail - 16, 1) * room.f_frsize)
            while True:
                os.write(handle, b"x" * BLOCK_BYTES)
    finally:
        os.close(handle)
