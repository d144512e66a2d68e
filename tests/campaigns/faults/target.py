"""The service that a row disturbs, started on an empty database of its own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from app.audit.signing_key import KEY_FILE
from app.database.engine import open_database
from app.database.migrate import upgrade
from app.settings import Settings, load_settings
from tests.campaigns.faults.network_proxy import NetworkProxy
from tests.campaigns.faults.row import Context
from tests.campaigns.service_process import ServiceProcess
from tests.postgres import PrivateServer

SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True)
class Target:
    service: ServiceProcess
    owner_settings: Settings  # of a login that may change everything; the service's own may not
    server: PrivateServer | None = None  # None: SQLite
    proxy: NetworkProxy | None = None  # between the service and PostgreSQL, where a row needs one

    @property
    def postgres(self) -> PrivateServer:
        if self.server is None:
            raise ValueError("this fault needs a private PostgreSQL")
        return self.server

    @property
    def network(self) -> NetworkProxy:
        if self.proxy is None:
            raise ValueError("this fault needs a proxy")
        return self.proxy


@asynccontextmanager
async def started(
    context: Context, more: Mapping[str, str] | None = None, *, behind_proxy: bool = False
) -> AsyncIterator[Target]:
    """The service, running; `more` are settings beyond those that every row has."""
    settings = {"NORMALCY_DATA_DIR": str(context.folder / "var"), "NORMALCY_LOG_LEVEL": "error", **(more or {})}
    if context.database == "SQLite":
        async with running(ServiceProcess(settings, context.program)) as service:
            yield Target(service, load_settings(settings))
        return
    server = context.postgres
    with server.new_database() as name:
        owner = load_settings(
            {"NORMALCY_DATA_DIR": settings["NORMALCY_DATA_DIR"], "NORMALCY_DATABASE_URL": server.url(name)}
        )
        await migrate(owner)
        if context.owner_sql:
            server.run(context.owner_sql, name)
        url = server.service_url(name)
        if not behind_proxy:
            async with running(ServiceProcess(settings | {"NORMALCY_DATABASE_URL": url}, context.program)) as service:
                yield Target(service, owner, server)
            return
        async with NetworkProxy(server.folder / SOCKET) as proxy:
            login = urlsplit(url).netloc.rpartition("@")[0]
            through = f"postgresql://{login}@127.0.0.1:{proxy.port}/{name}"
            async with running(
                ServiceProcess(settings | {"NORMALCY_DATABASE_URL": through}, context.program)
            ) as service:
                yield Target(service, owner, server, proxy)


@asynccontextmanager
async def running(service: ServiceProcess) -> AsyncIterator[ServiceProcess]:
    await service.start()
    try:
        yield service
    finally:
        if service.process.returncode is None:
            service.process.kill()
            await service.process.wait()


def second_replica(target: Target, program: tuple[str, ...]) -> ServiceProcess:
    """On the same database, not yet started. On the disk the replicas share the signing key alone."""
    first = data_folder(target.service)
    own = {"NORMALCY_DATA_DIR": f"{first}-2", "NORMALCY_SIGNING_KEY_FILE": str(first / KEY_FILE)}
    return ServiceProcess(target.service.settings | own, program)


async def migrate(settings: Settings) -> None:
    database = open_database(settings, statement_seconds=None)
    try:
        await upgrade(database)
    finally:
        await database.close()


def data_folder(service: ServiceProcess) -> Path:
    return Path(service.settings["NORMALCY_DATA_DIR"])
