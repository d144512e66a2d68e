"""The nightly check of the audit on Kubernetes: the script of its manifest, run as there, on an embedded database."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from app.audit.signing_key import KEY_FILE, load_signing_key
from app.runtime.command import upgrade_database
from app.settings import Settings, load_settings
from tests.campaigns.service_process import NORMALCY
from tests.cli.running import tamper
from tests.deploy.manifests import KUBERNETES, documents, pod_spec
from tests.web.serving import create_key

pytestmark = pytest.mark.slow
DATA, SECRETS = "/var/lib/normalcy", "/run/secrets/normalcy"


def run_script(data: Path, secrets: Path) -> subprocess.CompletedProcess[str]:
    [job] = [one for one in documents(KUBERNETES / "base" / "audit-check.yaml") if one["kind"] == "CronJob"]
    spec = pod_spec(job)
    assert spec is not None
    [container] = spec["containers"]
    [script] = container["args"]
    assert DATA in script
    script = script.replace(DATA, str(data)).replace(SECRETS, str(secrets))
    path = f"{Path(NORMALCY[0]).parent}:{os.environ['PATH']}"
    return subprocess.run(  # noqa: S603
        [*container["command"], script],
        env={**os.environ, "PATH": path, "NORMALCY_DATA_DIR": str(data)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of an audit with a key, and a check that has nothing but the public half of the signing key."""
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path)})
    asyncio.run(upgrade_database(settings))
    create_key(settings, ["score"])
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "audit_public_keys").write_bytes(load_signing_key(settings).public.pem)
    (tmp_path / KEY_FILE).unlink()
    return settings


def test_it_stores_a_checkpoint_and_finds_a_record_that_was_removed_after_it(
    settings: Settings, tmp_path: Path
) -> None:
    first = run_script(tmp_path, tmp_path / "secrets")
    assert first.returncode == 0, first.stderr
    assert "compared with 1 signed checkpoint" in first.stdout
    assert len(list((tmp_path / "checkpoints").glob("20*.jsonl"))) == 1
    tamper(settings, "DELETE FROM audit_records WHERE seq = (SELECT max(seq) FROM audit_records)")
    found = run_script(tmp_path, tmp_path / "secrets")
    assert found.returncode == 1
    assert "TRUNCATED" in found.stdout
    assert len(list((tmp_path / "checkpoints").glob("20*.jsonl"))) == 1  # no checkpoint of a damaged audit


def test_it_finds_a_chain_that_no_trusted_key_signed(settings: Settings, tmp_path: Path) -> None:
    create_key(settings, ["score"])  # with a new signing key, as the first one is not there any more
    found = run_script(tmp_path, tmp_path / "secrets")
    assert found.returncode == 1
    assert "UNKNOWN_CHAIN" in found.stdout
    assert "BAD_SIGNATURE" in found.stdout
