from collections.abc import Iterator

import pytest

from tests.cli.running import Normalcy
from tests.postgres import PostgresServer


@pytest.fixture
def empty_postgres(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with server.new_database() as name:
        monkeypatch.setenv("NORMALCY_DATABASE_URL", server.url(name))
        yield


def check_upgrade(normalcy: Normalcy) -> None:
    first = normalcy("db", "upgrade", "--json")
    assert first.code == 0
    assert first.json["applied"] == ["0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010"]
    again = normalcy("db", "upgrade")
    assert (again.code, again.out) == (0, "The database is up to date.\n")
    assert normalcy("audit", "verify").code == 0


def test_an_embedded_database_is_made_and_migrated(alone: Normalcy) -> None:
    check_upgrade(alone)


@pytest.mark.usefixtures("empty_postgres")
def test_a_postgresql_database_is_migrated_on_command_only(alone: Normalcy) -> None:
    for words in (["keys", "list"], ["models", "activate", "SoV", "1.0.0"], ["audit", "show"]):
        done = alone(*words)
        assert done.code == 1
        needs = "The database needs the migrations 0001, 0002, 0003, 0004, 0005, 0006, 0007, 0008, 0009, 0010"
        assert done.err == f"normalcy: {needs}: run `normalcy db upgrade`, then start again.\n"
    check_upgrade(alone)
    assert alone("keys", "list").code == 0


def test_a_database_that_is_away_is_one_sentence(alone: Normalcy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMALCY_DATABASE_URL", "postgresql://127.0.0.1:1/normalcy")
    done = alone("db", "upgrade")
    assert (done.code, done.out, done.err) == (
        1,
        "",
        "normalcy: The database cannot be reached, or did not answer in time.\n",
    )


def test_a_setting_that_there_is_not_is_refused(alone: Normalcy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMALCY_DATABSE_URL", "postgresql://localhost/normalcy")
    done = alone("db", "upgrade")
    assert done.code == 1
    assert "There is no setting NORMALCY_DATABSE_URL." in done.err
