"""Backup while the service runs, loss of the database, restore, verification, and on with the service.

The steps are those of docs/operators.md: pg_dump and pg_restore by the logins of the containers, and for SQLite
its own backup or VACUUM INTO.
"""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from app.audit.chain import DamageKind
from app.database.sqlite import FILE_NAME
from app.runtime.command import upgrade_database
from app.services.stored_checkpoints import CheckpointChoice
from app.services.verify_audit import AuditVerification, verify_audit, write_checkpoint
from app.settings import Settings, load_settings
from tests.campaigns.service_process import NORMALCY, ServiceProcess
from tests.database.test_container_logins import LOGINS
from tests.database.test_container_logins import run as run_script
from tests.postgres import PrivateServer, private_server
from tests.web.serving import READING, SCORE, bearer, create_key

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
SUBJECT_KEY = "a key of tests, long enough to be one"
BEFORE, DURING, AFTER = 10, 30, 5  # requests, seen from the backup


@dataclass(frozen=True)
class Installation:
    """A database and what an operator does to it."""

    owner: dict[str, str]  # settings with the login that migrates and manages keys
    service: dict[str, str]
    back_up: Callable[[], None]
    lose_and_restore: Callable[[], None]

    def settings(self, data: Path) -> Settings:
        return load_settings({**self.owner, "NORMALCY_DATA_DIR": str(data)})


@contextmanager
def on_sqlite(folder: Path, copy: Callable[[sqlite3.Connection, Path], None]) -> Iterator[Installation]:
    data, backup = folder / "data", folder / "backup.sqlite3"
    data.mkdir()

    def back_up() -> None:
        with closing(sqlite3.connect(data / FILE_NAME)) as connection:
            copy(connection, backup)

    def lose_and_restore() -> None:
        for file in data.glob(f"{FILE_NAME}*"):  # with the write-ahead log
            file.unlink()
        shutil.copy(backup, data / FILE_NAME)

    yield Installation({}, {}, back_up, lose_and_restore)


def by_backup(connection: sqlite3.Connection, to: Path) -> None:
    with closing(sqlite3.connect(to)) as target:
        connection.backup(target)


def by_vacuum(connection: sqlite3.Connection, to: Path) -> None:
    connection.execute("VACUUM INTO ?", (str(to),))


@contextmanager
def on_postgres(folder: Path) -> Iterator[Installation]:
    """On a server of its own that requires passwords, with the logins of the containers."""
    passwords = {login: f"{login}-password" for login in LOGINS}
    files, dump = folder / "passwords", folder / "normalcy.dump"
    files.mkdir()
    for login, password in passwords.items():
        (files / login).write_text(password)
    with private_server() as server:
        server.run(f"ALTER ROLE postgres PASSWORD '{passwords['admin']}'")
        (server.folder / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        server.run("SELECT pg_reload_conf()")
        admin = PrivateServer(url("postgres", passwords["admin"], server, "postgres"), server.binaries, server.folder)

        def create() -> None:
            admin.run("CREATE DATABASE normalcy")
            run_script("create-manager-login.sh", server, files)
            run_script("create-service-login.sh", server, files)

        def tool(name: str, *arguments: str) -> None:
            command = [str(server.binaries / name), *arguments]
            subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603

        manager = url("normalcy_manager", passwords["manager"], server)
        service = url("normalcy_service", passwords["service"], server)

        def back_up() -> None:
            tool("pg_dump", "--format=custom", f"--file={dump}", manager)

        def lose_and_restore() -> None:
            admin.run("DROP DATABASE normalcy")
            create()
            tool("pg_restore", "--exit-on-error", f"--dbname={admin.url('normalcy')}", str(dump))
            asyncio.run(upgrade_database(load_settings({"NORMALCY_DATABASE_URL": manager})))

        create()
        asyncio.run(upgrade_database(load_settings({"NORMALCY_DATABASE_URL": manager})))
        yield Installation(
            {"NORMALCY_DATABASE_URL": manager}, {"NORMALCY_DATABASE_URL": service}, back_up, lose_and_restore
        )


def url(login: str, password: str, server: PrivateServer, database: str = "normalcy") -> str:
    return f"postgresql://{login}:{password}@/{database}?host={quote(str(server.folder), safe='')}"


@pytest.fixture(params=["postgresql", "sqlite backup", "sqlite vacuum"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    copies = {"sqlite backup": by_backup, "sqlite vacuum": by_vacuum}
    opened = on_sqlite(tmp_path, copies[request.param]) if request.param in copies else on_postgres(tmp_path)
    with opened as made:
        yield made


def scores(port: int | None, key: str, prefix: str, count: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer(key), timeout=30) as client:
        for number in range(count):
            body = READING | {"diameter_mm": 35 + number / 10, "subject": "patient-1"}
            answer = client.post(SCORE, json=body, headers={"X-Request-ID": f"{prefix}-{number}"})
            assert answer.status_code == 200, answer.text


def normalcy(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    service = ServiceProcess(environment)  # for its environment
    return subprocess.run(  # noqa: S603
        [*NORMALCY, *arguments], env=service.environment, capture_output=True, text=True, timeout=120
    )


def verified(settings: Settings, choice: CheckpointChoice = "folder") -> AuditVerification:
    return asyncio.run(verify_audit(settings, lambda *_: None, choice=choice))


def served(environment: dict[str, str], work: Callable[[int | None], Any]) -> None:
    """Runs `work(port)` beside a service, in a thread, then stops the service."""

    async def run() -> None:
        process = ServiceProcess(environment)
        await process.start()
        try:
            await asyncio.to_thread(work, process.port)
        finally:
            assert await process.end(signal.SIGINT) == 0  # without a drain, which no proxy here needs

    asyncio.run(run())


@pytest.mark.req("REQ-116")
def test_a_restored_audit_is_intact_says_what_is_missing_and_goes_on(
    installation: Installation, models_dir: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    own = {
        **installation.service,
        "NORMALCY_DATA_DIR": str(data),
        "NORMALCY_MODELS_DIR": str(models_dir),
        "NORMALCY_SUBJECT_KEY": SUBJECT_KEY,
    }
    settings, earlier = installation.settings(data), tmp_path / "earlier.jsonl"
    if not settings.database_url:
        asyncio.run(upgrade_database(settings))
    key = create_key(settings, ["score", "model:read"])

    def back_up_under_load(port: int | None) -> None:
        scores(port, key, "before", BEFORE)
        asyncio.run(write_checkpoint(settings, earlier))
        with ThreadPoolExecutor(1) as thread:
            loading = thread.submit(scores, port, key, "during", DURING)
            installation.back_up()
            loading.result()
        scores(port, key, "after", AFTER)

    served(own, back_up_under_load)
    complete = verified(settings)
    assert complete.intact
    installation.lose_and_restore()

    restored = verified(settings, earlier)
    assert restored.intact
    assert BEFORE < restored.records < complete.records
    [open_chain] = restored.open_chains  # the service was running when the backup was taken
    lost = verified(settings)  # against the checkpoints that the service took and signed when it stopped
    damage = {(one.damage, one.chain_id) for one in lost.tampering}
    assert damage == {(DamageKind.TRUNCATED, open_chain.chain_id), (DamageKind.CHECKPOINT_GONE, None)}

    shutil.rmtree(data / "checkpoints")  # as the documents say, once they are stored with the report
    assert normalcy(own, "audit", "replay", "before-0").returncode == 0
    served(own, lambda port: scores(port, key, "again", AFTER))
    again = verified(settings)
    assert again.intact
    assert again.checkpoints
    assert again.records > restored.records + AFTER
    assert verified(settings, earlier).intact
