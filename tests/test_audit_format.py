# ruff: noqa: S608 - statements of our own
"""The audit format is what docs/auditors.md says: tools/verify_audit.py, written from it alone, agrees with the service
on real databases, intact and damaged."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import pytest

from app.audit.chain import row_hash
from app.audit.checkpoint import parse, render
from app.database.sqlite import FILE_NAME
from app.services.manage_models import activate_from_command
from app.services.verify_audit import AuditVerification, verify_audit, write_checkpoint
from app.settings import Settings
from tests.cli.running import tamper
from tests.documents import DOCS, ROOT, blocks
from tests.web.serving import READING, Running, bearer, create_key, publish_small, serving

TOOL = ROOT / "tools" / "verify_audit.py"
AUDITORS = DOCS["docs/auditors.md"]
VECTOR = json.loads(re.findall(r"```text\n(\{\n.*?\})\n```", AUDITORS, re.DOTALL)[0])
EXPORT, SIGNED_EXPORT = re.findall(r"\\copy \((SELECT .*)\) TO \w+\.csv CSV HEADER", AUDITORS)
NOT_CHECKED = "remark: without a public key, no signature was checked"
A_SCORE = "kind = 'score' AND item IS NULL"
LONG_CHAIN = f"chain_id IN (SELECT chain_id FROM audit_records WHERE {A_SCORE})"
LAST = f"{LONG_CHAIN} AND seq = (SELECT max(seq) FROM audit_records WHERE {LONG_CHAIN})"


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for site in ("SoV", "AA"):
        publish_small(root, site, "1.0.0", 0)
    return root


@pytest.fixture
def audited(settings: Settings, models_dir: Path) -> Settings:
    """A database with records of every kind, and a chain that is sealed."""
    with serving(settings, models_dir) as running:
        _use(running)
    return settings


def _use(running: Running) -> None:
    study = {k: v for k, v in READING.items() if k not in ("diameter_mm", "convention")}
    measurements = [{"site": "SoV", "diameter_mm": 41}, {"site": "AA", "diameter_mm": 38}]
    for number in range(3):
        sent = {"X-Request-ID": f"patient-{number}"}
        assert running.score({**READING, "subject": "Zoë"}, headers=sent).status_code == 200
    assert running.client.post("/v1/studies/score", json={**study, "measurements": measurements}).status_code == 200
    items = [{**study, **measurement} for measurement in measurements] * 30 + [{}]
    assert running.client.post("/v1/batch/score", json={"items": items}).json()["succeeded"] == 60
    key = create_key(running.settings, ["score", "audit:read", "model:read"])
    running.inside(running.runtime.poller.refresh())
    assert running.score({}, headers=bearer(key)).status_code == 422
    assert running.client.get("/v1/audit/records/patient-0", headers=bearer(key)).status_code == 200
    asyncio.run(activate_from_command(running.settings, "SoV", "1.0.0", "tests"))


def checkpoint(settings: Settings) -> Path:
    file = settings.data_dir / "own.jsonl"
    asyncio.run(write_checkpoint(settings, file))
    return file


def run_tool(settings: Settings, *checkpoints: Path) -> subprocess.CompletedProcess[str]:
    """Without the project on its path: it must not need any of it."""
    audit = exported(settings) if settings.database_url else settings.data_dir / FILE_NAME
    options = [word for file in checkpoints for word in ("--checkpoint", str(file))]
    command = [sys.executable, "-I", "-S", str(TOOL), str(audit), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)  # noqa: S603 - our own tool


def exported(settings: Settings) -> Path:
    """As `psql --csv` writes it."""
    file = settings.data_dir / "audit.csv"

    async def export() -> None:
        connection = await asyncpg.connect(settings.database_url)
        await connection.copy_from_query(EXPORT, output=file, format="csv", header=True)
        await connection.close()

    asyncio.run(export())
    return file


def verified(settings: Settings, checkpoint: Path) -> AuditVerification:
    return asyncio.run(verify_audit(settings, lambda words, share: None, choice=checkpoint))


def test_the_tool_is_small_and_needs_nothing_but_the_standard_library_and_cryptography() -> None:
    text = TOOL.read_text("utf-8")
    assert len(text.splitlines()) <= 600
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE))
    assert imported <= sys.stdlib_module_names | {"cryptography"}


@pytest.mark.req("REQ-082")
def test_an_intact_audit_is_intact_for_both(audited: Settings) -> None:
    own = checkpoint(audited)
    done, found = run_tool(audited, own), verified(audited, own)
    assert found.intact
    assert found.records >= 12
    assert found.chains == 3
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == [NOT_CHECKED, f"{found.records} records in {found.chains} chains: intact"]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_the_commands_of_the_document_find_an_intact_audit_intact(audited: Settings, tmp_path: Path) -> None:
    """With the file that the document passes beside the public key, and the service's command with the same file."""
    [block] = [block.text for block in blocks(AUDITORS) if "python3 tools/verify_audit.py" in block.text]
    of_sqlite = [line for line in block.splitlines() if "psql" not in line and " var/" in line]
    (tmp_path / "var").symlink_to(audited.data_dir)
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    python, normalcy = sys.executable, Path(sys.executable).with_name("normalcy")
    setup = [f"{normalcy} audit checkpoint --out checkpoint.jsonl", f"{normalcy} audit public-key --out public.pem"]
    [file] = {found for line in of_sqlite for found in re.findall(r"--checkpoint (\S+)", line)}
    own = f"{normalcy} audit verify --checkpoint {file} --public-key public.pem"
    script = "\n".join(["set -e", *setup, *of_sqlite, own]).replace("python3", python)
    environment = {**os.environ, "NORMALCY_DATA_DIR": str(audited.data_dir)}
    command = [shutil.which("bash") or "bash", "-c", script]
    done = subprocess.run(  # noqa: S603 - our own document
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "chains: intact" in done.stdout
    assert "Intact: " in done.stdout


def test_the_tool_names_the_file_and_the_columns_that_it_needs(tmp_path: Path) -> None:
    other = tmp_path / "events.csv"
    other.write_text("at,record_id,request_id\n2026-11-15T10:30:00.123Z,1,2\n")
    done = subprocess.run(  # noqa: S603 - our own tool
        [sys.executable, "-I", "-S", str(TOOL), str(other)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    [exported] = re.findall(r"SELECT (.*) FROM", EXPORT)
    columns = re.findall(r"(\w+)(?:, |$)", re.sub(r"encode\([^)]*\) AS ", "", exported))
    assert done.stderr == f"Could not check: {other} needs the columns {', '.join(columns)}, as psql exports them.\n"


def _hash(settings: Settings) -> None:
    tamper(settings, f"UPDATE audit_records SET row_hash = {_blob('11' * 32, settings)} WHERE {LAST}")


def _blob(digits: str, settings: Settings) -> str:
    return f"decode('{digits}', 'hex')" if settings.database_url else f"x'{digits}'"


def _statement(statement: str) -> Callable[[Settings], None]:
    return lambda settings: tamper(settings, statement)


def _payload(settings: Settings) -> None:
    tamper(
        settings, f"UPDATE audit_records SET payload = {_blob(b'{}'.hex(), settings)} WHERE {LONG_CHAIN} AND seq = 3"
    )


DAMAGE = {
    "payload": (_payload, "MUTATED", "row 3: not what was hashed"),
    "hash": (_hash, "MUTATED", "not what was hashed"),
    "column": (
        _statement(f"UPDATE audit_records SET principal = 'x' WHERE {LONG_CHAIN} AND seq = 2"),
        "MUTATED",
        "row 2: columns differ from the payload: principal",
    ),
    "status": (
        _statement(f"UPDATE audit_records SET status = 201 WHERE {LONG_CHAIN} AND seq = 2"),
        "MUTATED",
        "row 2: columns differ from the payload: status",
    ),
    "request id": (
        _statement(f"UPDATE audit_records SET request_id = NULL WHERE {LONG_CHAIN} AND seq = 2"),
        "MUTATED",
        "row 2: columns differ from the payload: request_id",
    ),
    "gap": (_statement(f"DELETE FROM audit_records WHERE {LONG_CHAIN} AND seq = 3"), "GAP", "row 3: missing"),
    "first": (_statement(f"DELETE FROM audit_records WHERE {LONG_CHAIN} AND seq = 1"), "GAP", "row 1: missing"),
    "end": (_statement(f"DELETE FROM audit_records WHERE {LAST}"), "TRUNCATED", "missing; a checkpoint covers"),
    "chain": (_statement(f"DELETE FROM audit_records WHERE {LONG_CHAIN}"), "VANISHED", "the whole chain is missing"),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.req("REQ-082")
def test_damage_is_damage_for_both(audited: Settings, name: str) -> None:
    damage, kind, words = DAMAGE[name]
    own = checkpoint(audited)
    damage(audited)
    done, found = run_tool(audited, own), verified(audited, own)
    assert [each.damage for each in found.tampering] == [kind]
    assert done.returncode == 1, done
    remark, problem, _ = done.stdout.splitlines()
    assert remark == NOT_CHECKED
    assert problem.startswith(f"{kind}: chain {found.tampering[0].chain_id}, ")
    assert words in problem


def test_a_checkpoint_of_another_history_is_noticed(audited: Settings) -> None:
    own = checkpoint(audited)
    taken = parse(own.read_bytes())
    chain_id, end = min(taken.ends.items())
    ends = {**taken.ends, chain_id: end._replace(row_hash=bytes(32))}
    own.write_bytes(render(replace(taken, ends=ends)))
    done, found = run_tool(audited, own), verified(audited, own)
    assert [each.damage for each in found.tampering] == ["REWRITTEN"]
    assert f"chain {chain_id}, row {end.seq}: a checkpoint has another hash\n" in done.stdout
    assert done.returncode == 1


def test_a_checkpoint_that_was_cut_is_not_used(audited: Settings) -> None:
    own = checkpoint(audited)
    header, *lines = own.read_text().splitlines()
    cut = own.with_name("cut.jsonl")
    cut.write_text("\n".join([header, *lines[:-1]]) + "\n")
    done = run_tool(audited, cut)
    assert done.returncode == 2
    assert "does not match its own root" in done.stderr


def test_what_cannot_be_read_is_not_called_intact(tmp_path: Path) -> None:
    empty = tmp_path / "audit.csv"
    empty.write_text("nothing,useful\n1,2\n")
    done = subprocess.run([sys.executable, TOOL, empty], capture_output=True, text=True, timeout=60)  # noqa: S603
    assert done.returncode == 2


def test_the_vector_of_the_document_is_right() -> None:
    payload = VECTOR["payload"].encode()
    assert hashlib.sha256(payload).hexdigest() == VECTOR["payload_sha256"]
    parts = bytes.fromhex(VECTOR["previous"]), UUID(VECTOR["chain_id"]), VECTOR["seq"], UUID(VECTOR["record_id"])
    assert row_hash(*parts, payload).hex() == VECTOR["row_hash"]
