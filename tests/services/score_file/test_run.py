import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from app.errors import AuditUnavailable
from app.inference.executor import Executor
from app.maths.moments import Array, Moments
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.services.score_file.run import FileOrder, FileRun, score_file

pytestmark = pytest.mark.anyio
ROWS = [f"SoV,{age},male,176,84,36" for age in (30, 81, 40, 82, 50)]
CALLER = Caller("somebody", "r-1", "normalcy score", 0.0)


async def score(runtime: Runtime, folder: Path) -> FileRun:
    (folder / "in.csv").write_text("\n".join(["site,age_years,sex,height_cm,weight_kg,diameter_mm", *ROWS]))
    order = FileOrder(folder / "in.csv", folder / "out.csv")
    return await score_file(runtime, CALLER, order, lambda done, total: None)


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
    with (tmp_path / "out.errors.csv").open(newline="") as file:
        rejected = [(row["index"], row["error_codes"]) for row in csv.DictReader(file)]
    assert rejected == [("1", "numbers_not_trusted"), ("3", "numbers_not_trusted")]
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == [whole[k] for k in (1, 3, 5)]


async def test_no_file_appears_before_its_record_is_durable(runtime: Runtime, tmp_path: Path) -> None:
    await runtime.writer.stop()
    with pytest.raises(AuditUnavailable):
        await score(runtime, tmp_path)
    assert [path.name for path in tmp_path.glob("*out*")] == ["out.csv.parts"]
