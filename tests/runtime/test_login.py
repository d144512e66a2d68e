"""Only a login that can do no more than add and read records may serve, unless the operator says otherwise."""

import asyncio
import io
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from app.database.migrate import upgrade
from app.errors import DatabaseNotReady
from app.runtime.credentials import OWNER_LOGIN
from app.runtime.runtime import open_runtime
from app.settings import Settings, load_settings
from tests.postgres import SCRIPT, SERVICE_LOGIN, PostgresServer, PrivateServer, as_login, as_service, postgres_server
from tests.web.serving import on_database, publish_small, serving

pytestmark = pytest.mark.anyio
ON_POSTGRES = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    publish_small(root, "SoV", "1.0.0", 0)
    return root


@contextmanager
def given(server: PostgresServer, settings: Settings, statement: str, taken_back: str) -> Iterator[None]:
    name = urlsplit(settings.database_url).path.lstrip("/")
    server.run(statement.format(database=name, login=SERVICE_LOGIN), name)
    try:
        yield
    finally:
        server.run(taken_back.format(database=name, login=SERVICE_LOGIN), name)


@ON_POSTGRES
async def test_an_owner_is_refused_with_what_to_do(settings: Settings, models: Path) -> None:
    with pytest.raises(DatabaseNotReady, match=r"it is a superuser.*NORMALCY_ALLOW_OWNER_LOGIN"):
        async with open_runtime(replace(settings, models_dir=models)):
            pass


@ON_POSTGRES
async def test_one_login_for_everything_is_a_choice_with_a_warning(
    settings: Settings, models: Path, log: io.StringIO
) -> None:
    async with open_runtime(replace(settings, models_dir=models, allow_owner_login=True)) as service:
        assert [warning["code"] for warning in service.login_warnings] == ["owner_login"]
    [line] = [json.loads(line) for line in log.getvalue().splitlines() if "owner login" in line]
    assert (line["consequence"], line["rights"]) == (OWNER_LOGIN, "it is a superuser")


@ON_POSTGRES
@pytest.mark.parametrize(
    ("statement", "taken_back"),
    [
        ("GRANT TEMPORARY ON DATABASE {database} TO PUBLIC", "REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC"),
        ("GRANT normalcy_owner TO {login}", "REVOKE normalcy_owner FROM {login}"),
        ("GRANT UPDATE ON audit_records TO normalcy_writer", "REVOKE UPDATE ON audit_records FROM normalcy_writer"),
    ],
    ids=["temporary objects", "membership of the owner", "a right of its role"],
)
async def test_a_service_login_that_was_given_more_is_refused(
    settings: Settings, models: Path, server: PostgresServer, statement: str, taken_back: str
) -> None:
    chosen = replace(settings, models_dir=models, database_url=as_service(settings.database_url))
    with (
        given(server, settings, statement, taken_back),
        pytest.raises(DatabaseNotReady, match="can do more than add and read records"),
    ):
        async with open_runtime(chosen):
            pass
    async with open_runtime(chosen) as service:
        assert service.login_warnings == ()


@ON_POSTGRES
def test_rights_of_other_roles_warn(settings: Settings, models: Path, server: PostgresServer) -> None:
    with (
        given(server, settings, "GRANT SELECT ON activations TO PUBLIC", "REVOKE SELECT ON activations FROM PUBLIC"),
        capture_logs() as logs,
        serving(settings, models) as running,
    ):
        ready = running.client.get("/health/ready")
    assert ready.status_code == 200
    [warning] = ready.json()["warnings"]
    assert warning["code"] == "rights_of_other_roles"
    assert "PUBLIC" not in warning["message"]  # anybody may read it
    [logged] = [log for log in logs if log["event"] == "rights of other roles"]
    assert "PUBLIC has SELECT on the table activations" in logged["roles"]


@pytest.mark.postgres
async def test_the_script_for_operators_makes_a_login_that_may_serve(models: Path, tmp_path: Path) -> None:
    """The script as the database's container runs it, on a server of its own: its roles have fixed names."""
    with postgres_server() as fresh:
        if not isinstance(fresh, PrivateServer) or not (fresh.binaries / "psql").exists():
            pytest.skip("needs a server of its own, with psql")
        fresh.run("CREATE DATABASE normalcy")
        fresh.run(f"DROP ROLE {SERVICE_LOGIN}; DROP ROLE normalcy_writer; DROP ROLE normalcy_auditor")
        try:
            (tmp_path / "password").write_text("secret")
            path = f"{fresh.binaries}:{os.environ['PATH']}"
            where = {"PGHOST": str(fresh.folder), "POSTGRES_USER": "postgres", "POSTGRES_DB": "normalcy"}
            secret = {"SERVICE_PASSWORD_FILE": str(tmp_path / "password")}
            command = ["/bin/sh", str(SCRIPT)]
            subprocess.run(command, env=where | secret | {"PATH": path}, check=True, capture_output=True)  # noqa: S603
            url = fresh.url("normalcy")
            owner = load_settings({"NORMALCY_DATABASE_URL": url, "NORMALCY_DATA_DIR": str(tmp_path)})
            await asyncio.to_thread(on_database, owner, upgrade)
            service_url = as_login(url, "normalcy_service", "secret")
            async with open_runtime(replace(owner, database_url=service_url, models_dir=models)) as service:
                assert service.login_warnings == ()
        finally:
            fresh.run(f"CREATE ROLE {SERVICE_LOGIN}")
