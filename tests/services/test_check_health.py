from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.clock import later_month, month_of, utc_now
from app.database.migrate import partition_name, upgrade
from app.schemas.lookups import Readiness
from app.settings import Settings, load_settings
from tests.postgres import PostgresServer
from tests.web.serving import Running, create_key, on_database, publish_small, serving

METRIC = "normalcy_key_expiry_seconds "


def warnings_with_keys(settings: Settings, models: Path, *days: float) -> list[str]:
    """Of a service whose keys expire after so many days."""
    for after in days:
        create_key(settings, ["score"], expires=utc_now() + timedelta(days=after))
    with serving(settings, models) as running:
        ready = running.client.get("/health/ready")
        assert ready.status_code == 200
        warnings = Readiness.model_validate(ready.json(), strict=True).warnings
        ids = [key.key_id for key in running.runtime.keyring.live(utc_now())]
        assert not any(key_id in warning.message for key_id in ids for warning in warnings)
        assert running.score().status_code == 401  # with no credential, whatever became of the keys
    return [f"{warning.code}: {warning.message}" for warning in warnings]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    publish_small(tmp_path / "models", "SoV", "1.0.0", 0)
    return tmp_path / "models"


def test_readiness_warns_a_month_before_a_key_expires(settings: Settings, models: Path) -> None:
    assert warnings_with_keys(settings, models, 31) == []
    [warning] = warnings_with_keys(settings, models, 29, 5)
    assert warning.startswith("key_expires_soon: 2 API keys expire within 30 days, the first at ")


def test_readiness_warns_when_the_last_key_is_over(settings: Settings, models: Path) -> None:
    [warning] = warnings_with_keys(settings, models, -1)
    assert warning.startswith("no_live_key: ")


def test_the_metric_counts_down_to_the_next_expiry(settings: Settings, models: Path) -> None:
    with serving(replace(settings, metrics="open"), models) as running:
        assert "normalcy_key_expiry_seconds +Inf" in running.client.get("/metrics").text
        create_key(settings, ["score"], expires=utc_now() + timedelta(days=10))
        running.inside(running.runtime.poller.refresh())
        [line] = [line for line in running.client.get("/metrics").text.splitlines() if line.startswith(METRIC)]
        assert 9 * 86400 < float(line.split()[1]) <= 10 * 86400


def test_readiness_warns_before_the_audit_runs_out_of_months(server: PostgresServer, tmp_path: Path) -> None:
    publish_small(tmp_path / "models", "SoV", "1.0.0", 0)
    with server.new_database() as name:
        settings = load_settings({"NORMALCY_DATABASE_URL": server.url(name), "NORMALCY_DATA_DIR": str(tmp_path)})
        on_database(settings, upgrade)
        next_month = partition_name(later_month(month_of(utc_now()), 1))
        server.run(f"ALTER TABLE audit_records DETACH PARTITION {next_month}", name)
        with serving(settings, tmp_path / "models") as running:
            running.inside(running.runtime.poller.refresh())
            ready = running.client.get("/health/ready")
            assert ready.status_code == 200
            assert [warning["code"] for warning in ready.json()["warnings"]] == ["partitions_run_out"]


def test_metrics_say_what_readiness_says(settings: Settings, models: Path) -> None:
    def lines(service: Running) -> list[str]:
        return [line for line in service.client.get("/metrics").text.splitlines() if not line.startswith("#")]

    with serving(replace(settings, metrics="open"), models) as running:
        [model] = running.client.get("/health/ready").json()["models"]
        named = f'normalcy_current_model{{sha256="{model["sha256"]}",site="SoV",version="1.0.0"}} 1.0'
        before = lines(running)
        assert named in before
        assert {line for line in before if line.startswith("normalcy_ready")} == {
            f'normalcy_ready{{check="{check}"}} 1.0' for check in ("accepting", "models_loaded", "audit_writable")
        }
        assert not any(line.startswith("normalcy_warnings") for line in before)
        running.runtime.writer.not_durable = "PostgreSQL runs with fsync=off."
        running.runtime.is_draining = True
        after = lines(running)
        assert 'normalcy_ready{check="audit_writable"} 0.0' in after
        assert 'normalcy_ready{check="accepting"} 0.0' in after
        assert 'normalcy_warnings{code="audit_not_durable"} 1.0' in after
        running.runtime.writer.not_durable = None
        assert not any(line.startswith("normalcy_warnings") for line in lines(running))
