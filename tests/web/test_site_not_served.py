"""A site whose current version cannot be used is left out: it answers 503, and the others are served."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.database.engine import Database
from app.domain.card import ModelRef
from app.runtime import poller
from app.schemas.lookups import Readiness, SiteList
from app.settings import Settings
from tests.audit.recording import activate
from tests.web.serving import READING, Running, on_database, serving
from tests.web.test_activation import damage, until, version_of

AA = "/v1/sites/AA/score"
REMEDY = "To serve SoV, repair that version or activate another one: `normalcy models activate SoV VERSION`."
UNRECORDED = text(
    "INSERT INTO activations (site, version, sha256, activated_at, activated_by, month, chain_id, seq) "
    "VALUES ('SoV', '1.0.0', :sha256, '2026-11-17T10:00:00.000Z', 'nobody', '2026-11', :chain, 2)"
)


@pytest.fixture
def own_models(models_dir: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(models_dir, tmp_path / "models"))


def put(settings: Settings, site: str, version: str, sha256: str) -> None:
    async def work(database: Database) -> None:
        async with database.writing() as connection:
            await activate(connection, ModelRef(site, version, sha256), "somebody")

    on_database(settings, work)


def put_without_a_record(settings: Settings) -> None:
    async def work(database: Database) -> None:
        async with database.engine.connect() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver.execute("PRAGMA foreign_keys = OFF")  # as another program would
            await connection.execute(UNRECORDED, {"sha256": "0" * 64, "chain": "0" * 32})
            await connection.commit()

    on_database(settings, work)


BAD: dict[str, tuple[Callable[[Settings, Path], None], str]] = {
    "unknown version": (lambda settings, models: put(settings, "SoV", "9.9.9", "0" * 64), "no model version 9.9.9"),
    "wrong digest": (lambda settings, models: put(settings, "SoV", "1.0.0", "0" * 64), "not the one on record"),
    "broken version": (lambda settings, models: damage(models, "1.1.0"), "posterior.npz"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.req("REQ-057")
def test_the_other_site_is_served_and_everything_reports_the_one_that_is_not(
    settings: Settings, own_models: Path, case: str, log: io.StringIO
) -> None:
    spoil, reason = BAD[case]
    spoil(settings, own_models)
    with serving(settings, own_models) as running:
        check_that_only_aa_is_served(running, reason)
    [line] = [json.loads(line) for line in log.getvalue().splitlines() if "site not served" in line]
    assert (line["level"], line["site"]) == ("error", "SoV")
    assert reason in line["reason"]
    assert line["reason"].endswith(REMEDY)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_an_activation_without_a_record_is_not_followed(settings: Settings, own_models: Path) -> None:
    put_without_a_record(settings)
    with serving(settings, own_models) as running:
        check_that_only_aa_is_served(running, "no record in the audit")


def check_that_only_aa_is_served(running: Running, reason: str) -> None:
    assert running.score(path=AA).status_code == 200
    refused = running.score()
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "current version of this site cannot be used" in refused.json()["detail"]
    both = [{"site": site, "diameter_mm": 38} for site in ("AA", "SoV")]
    person = {name: READING[name] for name in ("age_years", "sex", "height_cm", "weight_kg")}
    assert running.score(person | {"measurements": both}, "/v1/studies/score").status_code == 503
    assert version_of(running.score(READING | {"model_version": "1.0.0"})) == "1.0.0"  # asked for by name
    answer = running.client.get("/health/ready")
    ready = Readiness.model_validate(answer.json(), strict=True)
    assert (answer.status_code, [model.site for model in ready.models]) == (200, ["AA"])
    assert [warning.code for warning in ready.warnings] == ["site_not_served"]
    assert ready.warnings[0].message.startswith("SoV is not served")
    assert reason in ready.warnings[0].message
    assert ready.warnings[0].message.endswith(REMEDY)
    listed = SiteList.model_validate(running.client.get("/v1/sites").json(), strict=True)
    assert {site.site: site.current for site in listed.sites} == {"AA": "1.0.0", "SoV": None}
    assert running.client.get("/openapi.json").status_code == 200
    assert running.client.get("/v1/models").status_code == 200


def test_a_version_that_was_repaired_is_served_without_a_restart(
    settings: Settings, models_dir: Path, own_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "RETRY_SECONDS", 0.2)
    damage(own_models, "1.1.0")
    with serving(settings, own_models) as running:
        assert running.score().status_code == 503
        shutil.copy(models_dir / "SoV" / "1.1.0" / "posterior.npz", own_models / "SoV" / "1.1.0")
        until(lambda: running.score().status_code == 200)
        assert version_of(running.score()) == "1.1.0"
        assert running.client.get("/health/ready").json()["warnings"] == []
