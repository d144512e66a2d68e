from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from app.errors import AuditUnavailable
from app.formats.table_files import CsvReader
from app.inference.executor import Executor
from app.maths.moments import Array, Moments
from app.runtime.command import command_runtime
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.services.score_file import FileRun, score_file
from app.settings import load_settings
from tests.web.serving import publish_small

pytestmark = pytest.mark.anyio
ROWS = [f"SoV,{age},male,176,84,36" for age in (30, 81, 40, 82, 50)]
CALLER = Caller("somebody", "r-1", "normalcy score", 0.0)


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    publish_small(tmp_path / "models", "SoV", "1.0.0", 0)
    given = {"NORMALCY_DATA_DIR": str(tmp_path / "var"), "NORMALCY_MODELS_DIR": str(tmp_path / "models")}
    async with command_runtime(load_settings(given), "score") as running:
        await running.poller.start()
        yield running


async def score(runtime: Runtime, folder: Path) -> FileRun:
    (folder / "in.csv").write_text("\n".join(["site,age_years,sex,height_cm,weight_kg,diameter_mm", *ROWS]))
    return await score_file(runtime, CALLER, folder / "in.csv", folder / "out.csv", None, lambda what, share: None)


@dataclass(frozen=True)
class BrokenForTheOld:
    """An executor that loses its way for people above 80."""

    inner: Executor

    def predict(self, X: Array) -> Moments:
        found = self.inner.predict(X)
        old = np.log(80.0) < X[:, 0]
        return Moments(np.where(old, np.nan, found.m1), found.v1, found.m2, found.v2)


async def test_a_reading_without_a_trustworthy_answer_spoils_no_other(runtime: Runtime, tmp_path: Path) -> None:
    healthy = await score(runtime, tmp_path)
    whole = (tmp_path / "out.csv").read_text().splitlines()
    (tmp_path / "out.csv").unlink()
    model = runtime.loaded_models.find_current("SoV")
    runtime.loaded_models.make_current(replace(model, executor=BrokenForTheOld(model.executor)))
    run = await score(runtime, tmp_path)
    assert (healthy.succeeded, run.succeeded, run.failed) == (5, 3, 2)
    with (tmp_path / "out.csv").open("rb") as file:
        codes = [row["error_codes"] for row in CsvReader(file, 1)]
    assert codes == ["", "numbers_not_trusted", "", "numbers_not_trusted", ""]
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [lines[k] for k in (1, 3, 5)] == [whole[k] for k in (1, 3, 5)]


async def test_no_file_appears_before_its_record_is_durable(runtime: Runtime, tmp_path: Path) -> None:
    await runtime.writer.stop()
    with pytest.raises(AuditUnavailable):
        await score(runtime, tmp_path)
    assert not list(tmp_path.glob("*out.csv*"))
