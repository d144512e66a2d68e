"""What a start needs, what it refuses, and what it leaves behind."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.audit.author import FOLDER
from app.audit.checkpoint import parse
from app.errors import AlreadyServing, InvalidSettings, PendingMigrations
from app.runtime.checkpoints import checkpoint_files
from app.settings import Settings, load_settings
from tests.postgres import PostgresServer
from tests.samples import publish_a_model
from tests.web.serving import READING, Running, bearer, create_key, serving


@pytest.mark.req("REQ-114")
def test_a_database_that_waits_for_its_migration_refuses_the_start(
    server: PostgresServer, models_dir: Path, tmp_path: Path
) -> None:
    with server.new_database() as name:
        settings = load_settings({"NORMALCY_DATABASE_URL": server.url(name), "NORMALCY_DATA_DIR": str(tmp_path)})
        with pytest.raises(PendingMigrations, match="normalcy db upgrade"), serving(settings, models_dir):
            pass


def test_an_embedded_database_is_made_and_migrated_by_the_start(models_dir: Path, tmp_path: Path) -> None:
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path / "new" / "folder")})
    with serving(settings, models_dir) as running:
        assert running.score().status_code == 200
        with pytest.raises(AlreadyServing), serving(settings, models_dir):
            pass


@pytest.mark.req("REQ-052")
def test_a_model_that_does_not_reproduce_its_golden_cases_is_not_served(tmp_path: Path) -> None:
    publish_a_model(tmp_path / "models")
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path)})
    with serving(settings, tmp_path / "models") as running:
        assert running.score().status_code == 503
        not_ready = running.client.get("/health/ready")
        assert (not_ready.status_code, not_ready.json()["checks"]["models_loaded"]) == (503, False)
        [warning] = not_ready.json()["warnings"]
        assert warning["code"] == "site_not_served"
        assert "golden cases are not reproduced" in warning["message"]


def test_without_a_model_it_serves_everything_but_scores(tmp_path: Path) -> None:
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path)})
    (tmp_path / "none").mkdir()
    with serving(settings, tmp_path / "none") as running:
        refused = running.score()
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        not_ready = running.client.get("/health/ready")
        assert not_ready.status_code == 503
        assert not_ready.json()["checks"]["models_loaded"] is False
        assert running.client.get("/health/live").status_code == 200
        assert running.client.get("/v1/sites").json()["sites"] == []
        assert running.client.get("/openapi.json").status_code == 200


@pytest.mark.parametrize("is_file", [False, True])
def test_a_model_store_that_is_no_folder_refuses_the_start(tmp_path: Path, is_file: bool) -> None:
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path / "var")})
    missing = tmp_path / "mistyped"
    if is_file:
        missing.touch()
    expected = f"NORMALCY_MODELS_DIR names {re.escape(str(missing))}, which is not a folder"
    with pytest.raises(InvalidSettings, match=expected), serving(settings, missing):
        pass
    assert not settings.data_dir.exists()


@pytest.fixture
def two(settings: Settings, models_dir: Path, tmp_path: Path) -> Iterator[list[Running]]:
    """Replicas on one database."""
    key = create_key(settings, ["score", "admin"])
    other_folder = replace(settings, data_dir=tmp_path / "other")
    with serving(settings, models_dir) as one, serving(other_folder, models_dir) as other:
        for running in (one, other):
            running.client.headers.update(bearer(key))
        yield [one, other]


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_replicas_share_activations_and_write_chains_of_their_own(two: list[Running]) -> None:
    one, other = two
    assert one.client.post("/v1/models/SoV/activate", json={"version": "1.0.0"}).status_code == 200
    for _ in range(600):
        if other.score().json()["provenance"]["model"]["version"] == "1.0.0":
            break
        time.sleep(0.05)
    answers = [running.score(READING).json() for running in two]
    assert answers[0]["score"] == answers[1]["score"]
    assert {answer["provenance"]["model"]["version"] for answer in answers} == {"1.0.0"}
    writers = [record for record in one.records("genesis") if "models" in record.input]
    assert len(writers) == 3  # of two replicas, and of the activation


def test_checkpoints_follow_the_chains_to_their_seal(settings: Settings, models_dir: Path) -> None:
    with serving(settings, models_dir) as running:
        running.score()
    [file] = checkpoint_files(settings.data_dir / FOLDER)
    [end] = parse(file.read_bytes()).ends.values()
    assert end.seq == len(running.records()) == 3


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.tensorflow
@pytest.mark.req("REQ-024")
def test_both_backends_give_the_same_answers(settings: Settings, models_dir: Path) -> None:
    queries = [READING | {"diameter_mm": 25 + k, "age_years": 20 + k} for k in range(12)]
    with serving(settings, models_dir) as running:
        expected = [running.score(query).json() for query in queries]
    with serving(replace(settings, backend="tensorflow", device="CPU"), models_dir) as running:
        found = [running.score(query).json() for query in queries]
        assert running.client.get("/health/ready").json()["backend"] == "tensorflow"
        assert running.client.get("/v1/selftest").json()["failed"] == 0
    for one, other in zip(expected, found, strict=True):
        assert other["provenance"]["service"]["backend"] == "tensorflow"
        for name in ("expected_ns", "hdi", "exceedance"):
            assert _numbers(one["score"][name]) == pytest.approx(_numbers(other["score"][name]), rel=1e-8)


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for each in value.values() for number in _numbers(each)]
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    assert isinstance(value, float)
    return [value]
