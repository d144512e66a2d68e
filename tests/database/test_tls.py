"""TLS to PostgreSQL, tried on a server that speaks nothing else over TCP, with certificates made for the test."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import asyncpg  # type: ignore[import-untyped]
import pytest

from app.database.engine import Database, open_database
from app.database.migrate import pending_migrations
from app.errors import DatabaseNotTrusted, DatabaseUnavailable
from app.settings import load_settings
from tests.postgres import PrivateServer, private_server

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]
ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@dataclass(frozen=True)
class TlsServer:
    port: int
    certificates: Path  # right.crt signed the server's, wrong.crt did not

    def open(self, mode: str, authority: str = "", host: str = "localhost") -> Database:
        given = {
            "NORMALCY_DATABASE_URL": f"postgresql://postgres@{host}:{self.port}/postgres",
            "NORMALCY_DATABASE_TLS": mode,
            "NORMALCY_DATABASE_TLS_CA": str(self.certificates / authority) if authority else "",
        }
        return open_database(load_settings(given))


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    if shutil.which("openssl") is None:
        not_available("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificates")
    with private_server() as server:
        if not asyncio.run(_speaks_tls(server)):
            not_available("this PostgreSQL was built without TLS")
        _make_certificates(folder)
        _only_tls(server, folder)
        port = _free_port()
        server.stop()
        server.start("listen_addresses=127.0.0.1", f"port={port}", "ssl=on")
        yield TlsServer(port, folder)


def not_available(reason: str) -> NoReturn:
    """The test is skipped, but fails in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


async def _speaks_tls(server: PrivateServer) -> bool:
    connection = await asyncpg.connect(server.admin_url)
    try:
        return bool(await connection.fetchval("SHOW ssl_library"))
    finally:
        await connection.close()


def _make_certificates(folder: Path) -> None:
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    for name in ("right", "wrong"):
        own = ["-x509", "-subj", f"/CN={name} authority", "-keyout", f"{name}.key", "-out", f"{name}.crt"]
        _openssl(folder, "req", *new_key, *own)
    signed = ["-CA", "right.crt", "-CAkey", "right.key", "-addext", "subjectAltName=DNS:localhost"]
    names = ["-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.crt"]
    _openssl(folder, "req", "-x509", *new_key, *signed, *names)


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607


def _only_tls(server: PrivateServer, certificates: Path) -> None:
    data = server.folder / "data"
    owner = data.stat()
    for name in ("server.key", "server.crt"):
        shutil.copy(certificates / name, data / name)
        (data / name).chmod(0o600)
        os.chown(data / name, owner.st_uid, owner.st_gid)
    (data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def encrypted(database: Database) -> tuple[bool, bool]:
    """Of a connection of the pool, and of the audit writer's."""
    writer = database.appender()
    try:
        async with database.reading() as connection:
            pooled = (await connection.exec_driver_sql(ENCRYPTED)).scalar_one()
        await writer.connect()
        return bool(pooled), bool(await writer._open().fetchval(ENCRYPTED))  # type: ignore[attr-defined]
    finally:
        await writer.close()
        await database.close()


@pytest.mark.parametrize(("mode", "authority"), [("verify-full", "right.crt"), ("require", ""), ("prefer", "")])
async def test_pool_and_audit_writer_are_encrypted(tls: TlsServer, mode: str, authority: str) -> None:
    assert await encrypted(tls.open(mode, authority)) == (True, True)


@pytest.mark.parametrize(("authority", "host"), [("wrong.crt", "localhost"), ("right.crt", "127.0.0.1")])
async def test_another_authority_and_another_name_are_refused(tls: TlsServer, authority: str, host: str) -> None:
    database = tls.open("verify-full", authority, host)
    with pytest.raises(DatabaseNotTrusted, match="NORMALCY_DATABASE_TLS_CA"):
        await pending_migrations(database)
    writer = database.appender()
    with pytest.raises(DatabaseUnavailable):
        await writer.connect()
    await database.close()


async def test_without_tls_this_server_is_not_reached(tls: TlsServer) -> None:
    database = tls.open("disable")
    with pytest.raises(DatabaseUnavailable):
        await pending_migrations(database)
    await database.close()


async def test_a_server_that_cannot_encrypt_is_refused_by_require(tls: TlsServer) -> None:
    with private_server() as plain:
        port = _free_port()
        plain.stop()
        plain.start("listen_addresses=127.0.0.1", f"port={port}")
        for mode, authority in (("require", ""), ("verify-full", "right.crt")):
            database = TlsServer(port, tls.certificates).open(mode, authority)
            with pytest.raises(DatabaseUnavailable):
                await pending_migrations(database)
            await database.close()
        assert await encrypted(TlsServer(port, tls.certificates).open("disable")) == (False, False)
