import asyncio
import errno
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.database.engine import Database
from app.domain.card import ModelRef
from app.inference.executor import LoadedModel
from app.runtime import models, poller
from app.runtime.models import load_model
from app.schemas.lookups import Activation, ModelHistory, ModelList, Readiness
from app.services import manage_models
from app.services.manage_models import activate_from_command
from app.settings import Settings
from tests.audit.recording import activate as put_on_record
from tests.postgres import PostgresServer
from tests.web.serving import READING, SCORE, Running, bearer, create_key, on_database, serving
from tests.web.test_fail_closed import careless

pytestmark = pytest.mark.slow


@pytest.fixture
def own_models(models_dir: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(models_dir, tmp_path / "models"))


@pytest.fixture
def governed(settings: Settings, own_models: Path) -> Iterator[Running]:
    key = create_key(settings, ["score", "model:read", "admin"])
    with serving(replace(settings, rate_per_second=0.0), own_models) as running:
        running.client.headers.update(bearer(key))
        yield running


def activate(running: Running, version: str, site: str = "SoV") -> httpx.Response:
    return running.client.post(f"/v1/models/{site}/activate", json={"version": version})


def version_of(answer: httpx.Response) -> str:
    version: str = answer.json()["provenance"]["model"]["version"]
    return version


def damage(models: Path, version: str) -> None:
    posterior = models / "SoV" / version / "posterior.npz"
    posterior.chmod(0o644)
    content = bytearray(posterior.read_bytes())
    content[len(content) // 2] ^= 1
    posterior.write_bytes(content)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


def test_a_version_that_was_activated_answers_and_is_on_record(governed: Running) -> None:
    assert version_of(governed.score()) == "1.1.0"
    answer = activate(governed, "1.0.0")
    assert answer.status_code == 200
    Activation.model_validate(answer.json(), strict=True)
    assert version_of(governed.score()) == "1.0.0"
    assert activate(governed, "1.1.0").status_code == 200
    history = ModelHistory.model_validate(governed.client.get("/v1/models/SoV/history").json(), strict=True)
    assert [period.version for period in history.history] == ["1.0.0", "1.1.0"]
    assert history.history[0].until == history.history[1].from_
    assert (history.current, history.history[1].until) == ("1.1.0", None)
    recorded = sorted(governed.records("activation"), key=lambda record: record.record_id)
    steps = [(record.model["version"], record.output["step"]) for record in recorded]
    assert steps == [("1.0.0", "activated"), ("1.1.0", "activated")]
    assert {record.principal for record in recorded} == {period.by for period in history.history}
    assert governed.score(path="/v1/sites/AA/score").status_code == 200


@pytest.mark.req("REQ-055")
def test_a_version_that_is_not_there_or_is_damaged_leaves_the_old_one_serving(
    governed: Running, own_models: Path
) -> None:
    damage(own_models, "1.0.0")
    assert activate(governed, "9.9.9").status_code == 404
    assert activate(governed, "1.0.0", site="none").status_code == 404
    refused = activate(governed, "1.0.0")
    assert refused.status_code == 422
    assert "keeps serving" in refused.json()["detail"]
    assert version_of(governed.score()) == "1.1.0"
    assert governed.records("activation") == []
    models = ModelList.model_validate(governed.client.get("/v1/models").json(), strict=True)
    assert {(m.site, m.version): m.status for m in models.models} == {
        ("AA", "1.0.0"): "current",
        ("SoV", "1.0.0"): "refused",
        ("SoV", "1.1.0"): "current",
    }


def remove(models: Path, version: str) -> None:
    shutil.rmtree(models / "SoV" / version)


@pytest.mark.req("REQ-055")
@pytest.mark.parametrize(("spoil", "status"), [(damage, 422), (remove, 404)])
def test_a_version_in_memory_whose_files_were_spoilt_meanwhile_is_not_activated(
    governed: Running, own_models: Path, spoil: Callable[[Path, str], None], status: int
) -> None:
    """After the next start it could not be served."""
    assert activate(governed, "1.0.0").status_code == 200
    spoil(own_models, "1.1.0")
    assert activate(governed, "1.1.0").status_code == status
    assert version_of(governed.score()) == "1.0.0"
    assert len(governed.records("activation")) == 1


def test_a_version_that_was_checked_and_recorded_is_current_whatever_becomes_of_its_files(
    governed: Running, own_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between commit and refresh it leaves the memory, and its files are damaged."""
    commit = manage_models._activate

    async def commit_and_damage(*given: Any) -> Any:
        activation = await commit(*given)
        governed.runtime.loaded_models._others.clear()
        damage(own_models, "1.0.0")
        await governed.runtime.poller.refresh()  # the poller may see the activation first
        return activation

    monkeypatch.setattr(manage_models, "_activate", commit_and_damage)
    answer = activate(governed, "1.0.0")
    assert answer.status_code == 200
    assert version_of(governed.score()) == "1.0.0"
    assert governed.client.get("/health/ready").json()["warnings"] == []


def test_an_activation_elsewhere_is_followed(governed: Running) -> None:
    asyncio.run(activate_from_command(governed.settings, "SoV", "1.0.0", by="somebody"))
    until(lambda: version_of(governed.score()) == "1.0.0")
    made = [(record.principal, record.model["version"]) for record in governed.records("activation")]
    assert made == [("somebody", "1.0.0")]


def test_an_activation_elsewhere_that_cannot_be_followed_is_reported(governed: Running, own_models: Path) -> None:
    sha256 = governed.client.get("/v1/models/SoV/1.0.0").json()["sha256"]
    whole = shutil.copytree(own_models / "SoV" / "1.0.0", own_models.parent / "whole")
    governed.runtime.loaded_models._others.clear()  # as in a process that never read it
    damage(own_models, "1.0.0")

    async def put(database: Database) -> None:
        async with database.writing() as connection:
            await put_on_record(connection, ModelRef("SoV", "1.0.0", sha256), "somebody")

    on_database(governed.settings, put)
    until(lambda: bool(governed.client.get("/health/ready").json()["warnings"]))
    ready = governed.client.get("/health/ready")
    assert ready.status_code == 200
    assert "posterior.npz" in Readiness.model_validate(ready.json(), strict=True).warnings[0].message
    assert version_of(governed.score()) == "1.1.0"
    shutil.rmtree(own_models / "SoV" / "1.0.0")
    shutil.copytree(whole, own_models / "SoV" / "1.0.0")
    until(lambda: version_of(governed.score()) == "1.0.0")
    assert governed.client.get("/health/ready").json()["warnings"] == []


def test_the_version_on_record_is_current_after_a_start(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir):
        pass
    asyncio.run(activate_from_command(replace(settings, models_dir=models_dir), "SoV", "1.0.0"))
    with serving(settings, models_dir) as running:
        assert version_of(running.score()) == "1.0.0"


@pytest.mark.req("REQ-056")
def test_under_load_no_request_fails_and_none_mixes_versions(governed: Running) -> None:
    """An answer's numbers belong to the version that it names, whatever is activated meanwhile."""
    expected = {
        version: governed.score(READING | {"model_version": version}).json()["score"]["expected_ns"]
        for version in ("1.0.0", "1.1.0")
    }
    answers: list[httpx.Response] = []
    stop = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=governed.url, headers=governed.client.headers, timeout=30) as client:
            while not stop.is_set():
                answers.append(client.post(SCORE, json=READING))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for turn in range(10):
        assert activate(governed, ("1.0.0", "1.1.0")[turn % 2]).status_code == 200
    stop.set()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {200}
    answered = {(version_of(answer), answer.json()["score"]["expected_ns"]) for answer in answers}
    assert {version for version, _ in answered} == expected.keys()
    for version, number in answered:
        assert number == pytest.approx(expected[version], rel=1e-8)


def test_a_version_that_could_not_be_read_once_is_read_again(
    governed: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = governed.client.get("/v1/models/SoV/1.0.0").json()["sha256"]
    governed.runtime.loaded_models._others.clear()  # as in a process that never read it
    failures: list[Exception] = [OSError(errno.EMFILE, "too many open files")]

    def flaky(*where: Any) -> LoadedModel:
        if failures:
            raise failures.pop()
        return load_model(*where)

    async def elsewhere(database: Database) -> None:
        async with database.writing() as connection:
            await put_on_record(connection, ModelRef("SoV", "1.0.0", sha256), "somebody")

    monkeypatch.setattr(models, "load_model", flaky)
    monkeypatch.setattr(poller, "RETRY_SECONDS", 0.2)
    on_database(governed.settings, elsewhere)
    until(lambda: version_of(governed.score()) == "1.0.0")
    assert failures == []


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_database_that_could_lose_records_makes_no_version_current(governed: Running, server: PostgresServer) -> None:
    """Even while the audit writer has not looked yet."""
    with careless(server):
        statuses = [activate(governed, "1.0.0").status_code for _ in range(20)]  # the first may precede the reload
        assert statuses[-1] == 503
        assert len(governed.records("activation")) == statuses.count(200)
    until(lambda: activate(governed, "1.0.0").status_code == 200)


def test_no_version_becomes_current_while_the_audit_writer_knows_of_a_loss(governed: Running) -> None:
    governed.runtime.writer.not_durable = "PostgreSQL runs with fsync=off."
    refused = activate(governed, "1.0.0")
    assert refused.status_code == 503
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert governed.records("activation") == []
