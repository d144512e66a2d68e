"""The same rows in the same order, wherever they are scored."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import NormalcyError, NotInstalled
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.services.score_file.run import FileOrder, score_file
from app.services.score_file.work_folder import folder_of
from app.services.score_file.workers import cluster
from tests.services.score_file.tables import write_table

CALLER = Caller("somebody", "r-1", "normalcy score", 0.0)


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
    assert not any(folder_of(order.out).exists() for order in orders)


def test_without_dask_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NotInstalled, match=r"needs Dask .*make files-env"), cluster("tcp://127.0.0.1:1"):
        pass


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.score_file.workers.CONNECT_SECONDS", 1)
    with pytest.raises(NormalcyError, match="No Dask scheduler answers"), cluster("tcp://127.0.0.1:1"):
        pass
