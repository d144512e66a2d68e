"""The same rows in the same order, wherever they are scored."""

import os
import pickle
import sys
import time
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen, run

import psutil  # type: ignore[import-untyped]
import pytest

from app.errors import InvalidArtefact, InvalidTable, NormalcyError, NotInstalled, UnknownVersion
from app.files import file_digest
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.services.score_file.run import FileOrder, score_file
from app.services.score_file.work_folder import folder_of
from app.services.score_file.workers import WORKER_ENDED, cluster
from app.settings import Settings
from tests.cli.command import COMMAND
from tests.services.score_file.tables import write_table

WAIT_SECONDS = 120
CALLER = Caller("somebody", "r-1", "normalcy score", 0.0)


@pytest.mark.parametrize(
    "error", [InvalidTable(["Column id is wrong."]), UnknownVersion("SoV", "9.9.9"), InvalidArtefact("a.json", "No.")]
)
def test_an_error_of_a_worker_arrives_unchanged(error: NormalcyError) -> None:
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 - as processes and Dask pass it
    assert (type(arrived), str(arrived), vars(arrived)) == (type(error), str(error), vars(error))


@pytest.mark.slow
@pytest.mark.anyio
async def test_processes_and_a_cluster_give_the_same_bytes(runtime: Runtime, tmp_path: Path) -> None:
    import distributed

    here = FileOrder(write_table(tmp_path / "in.csv", 500), tmp_path / "here.parquet", part_rows=60)
    orders = [here, replace(here, out=tmp_path / "there.parquet", workers=2)]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as running:
        orders.append(replace(here, out=tmp_path / "far.parquet", scheduler=running.scheduler_address))
        runs = [await score_file(runtime, CALLER, order, lambda *_: None) for order in orders]
    assert [(run.rows, run.succeeded, run.failed) for run in runs] == [(500, 450, 50)] * 3
    assert len({(run.models, run.output_sha256, run.errors_sha256) for run in runs}) == 1
    assert len({order.out.read_bytes() for order in orders}) == 1
    assert runs[0].output_sha256 == file_digest(here.out)
    assert runs[0].errors_sha256 == file_digest(here.errors_out)
    assert not any(folder_of(order.out).exists() for order in orders)


def test_a_worker_imports_no_database() -> None:
    """Which would double the time that it takes to start."""
    code = "import sys, app.services.score_file.workers; sys.exit('sqlalchemy' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 - ours


@pytest.mark.slow
def test_a_killed_worker_ends_the_command_with_one_sentence_and_the_next_run_goes_on(
    file_settings: Settings, tmp_path: Path
) -> None:
    source, out = write_table(tmp_path / "in.csv", 500), tmp_path / "out.csv"
    own = {"NORMALCY_DATA_DIR": str(file_settings.data_dir), "NORMALCY_MODELS_DIR": str(file_settings.models_dir)}
    arguments = ["score", "--in", str(source), "--out", str(out), "--workers", "2"]
    started = {"env": os.environ | own, "stdout": PIPE, "stderr": PIPE, "text": True}
    with Popen([*COMMAND, *arguments], **started) as running:  # type: ignore[call-overload]  # noqa: S603
        kill_a_worker(psutil.Process(running.pid))
        _, errors = running.communicate(timeout=WAIT_SECONDS)
    assert (running.returncode, errors.strip().splitlines()[-1]) == (1, f"normalcy: {WORKER_ENDED}")
    assert "Traceback" not in errors
    assert not out.exists()
    with Popen([*COMMAND, *arguments], **started) as running:  # type: ignore[call-overload]  # noqa: S603
        running.communicate(timeout=WAIT_SECONDS)
    assert len(out.read_text().splitlines()) == 1 + 450


def kill_a_worker(parent: psutil.Process) -> None:
    """The first that there is: it is still being started, long before any part is finished."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        for child in parent.children():
            if any("spawn_main" in word for word in child.cmdline()):
                child.kill()
                return
        time.sleep(0.01)
    raise AssertionError("no worker was started")


@pytest.mark.slow
def test_a_dask_worker_that_dies_is_reported_in_one_sentence() -> None:
    import distributed

    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as running:
        running.scheduler.allowed_failures = 0
        with (
            cluster(running.scheduler_address) as workers,
            pytest.raises(NormalcyError, match="A worker ended before its part was scored"),
        ):
            workers.call(os._exit, 1)


def test_without_dask_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NotInstalled, match=r"needs Dask .*make files-env"), cluster("tcp://127.0.0.1:1"):
        pass


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.score_file.workers.CONNECT_SECONDS", 1)
    with pytest.raises(NormalcyError, match="No Dask scheduler answers"), cluster("tcp://127.0.0.1:1"):
        pass
