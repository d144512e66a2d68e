from pathlib import Path

from app.database.migrate import upgrade
from app.database.partitions import partition_name
from app.database.times import later_month, month_of, utc_now
from app.settings import load_settings
from tests.postgres import PostgresServer
from tests.web.serving import on_database, publish_small, serving


def test_readiness_warns_before_the_audit_runs_out_of_months(server: PostgresServer, tmp_path: Path) -> None:
    publish_small(tmp_path / "models", "SoV", "1.0.0", 0)
    with server.new_database() as name:
        settings = load_settings({"NORMALCY_DATABASE_URL": server.url(name), "NORMALCY_DATA_DIR": str(tmp_path)})
        on_database(settings, upgrade)
        next_month = partition_name(later_month(month_of(utc_now()), 1))
        server.run(f"ALTER TABLE audit_records DETACH PARTITION {next_month}", name)
        with serving(settings, tmp_path / "models") as running:
            running.inside(running.service.watcher.look())
            ready = running.client.get("/health/ready")
            assert ready.status_code == 200
            assert [warning["code"] for warning in ready.json()["warnings"]] == ["partitions_run_out"]
