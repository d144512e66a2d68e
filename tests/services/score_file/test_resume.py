"""A run that was stopped goes on: no row twice, none lost, one record."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.errors import FileExists, NormalcyError
from app.files import file_digest
from app.formats.table_files import Part
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.services.score_file import parts, run
from app.services.score_file.run import FileOrder, FileRun, score_file
from app.services.score_file.work_folder import folder_of
from app.settings import Settings
from tests.services.score_file.tables import write_table
from tests.web.serving import publish_small, records

ROWS, PART_ROWS = 60, 7
WAIT_SECONDS = 60


def order_of(folder: Path, **options: object) -> FileOrder:
    return FileOrder(folder / "in.csv", folder / "out.csv", part_rows=PART_ROWS, **options)  # type: ignore[arg-type]


async def score(runtime: Runtime, order: FileOrder, request_id: str = "r-1") -> FileRun:
    return await score_file(runtime, Caller("somebody", request_id, "normalcy score", 0.0), order, lambda *_: None)


class Stop(Exception):
    pass


async def stop_after(runtime: Runtime, order: FileOrder, rows: int, request_id: str = "r-1") -> None:
    def report(done: int, total: int) -> None:
        if done >= rows:
            raise Stop

    caller = Caller("somebody", request_id, "normalcy score", 0.0)
    with pytest.raises(Stop):
        await score_file(runtime, caller, order, report)


@pytest.mark.anyio
class TestStopped:
    async def test_what_is_finished_is_not_scored_again(
        self, runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_table(tmp_path / "in.csv", ROWS)
        order = order_of(tmp_path)
        await stop_after(runtime, order, 4 * PART_ROWS)
        assert not order.out.exists()
        scored: list[int] = []
        really = parts.PartScorer._score

        def spy(self: parts.PartScorer, part: Part, report: object) -> object:
            scored.append(part.number)
            return really(self, part, report)  # type: ignore[arg-type]

        monkeypatch.setattr(parts.PartScorer, "_score", spy)
        done = await score(runtime, order, "r-2")
        assert scored == [3, 4, 5, 6, 7, 8]  # of the fourth part, not every row was counted
        assert (done.request_id, done.rows, done.succeeded, done.failed) == ("r-1", ROWS, 54, 6)
        assert not folder_of(order.out).exists()
        order.out.rename(tmp_path / "resumed.csv")
        order.errors_out.unlink()
        assert (await score(runtime, order, "r-3")).output_sha256 == file_digest(tmp_path / "resumed.csv")

    async def test_a_damaged_part_is_scored_again(self, runtime: Runtime, tmp_path: Path) -> None:
        write_table(tmp_path / "in.csv", ROWS)
        whole = await score(runtime, FileOrder(tmp_path / "in.csv", tmp_path / "whole.csv", part_rows=PART_ROWS))
        order = order_of(tmp_path)
        await stop_after(runtime, order, 4 * PART_ROWS)
        part = folder_of(order.out) / "00000001.scores"
        part.write_bytes(part.read_bytes()[:-3])
        assert (await score(runtime, order)).output_sha256 == whole.output_sha256

    async def test_the_versions_of_the_first_start_are_used(self, runtime: Runtime, tmp_path: Path) -> None:
        write_table(tmp_path / "in.csv", ROWS)
        order = order_of(tmp_path)
        await stop_after(runtime, order, 4 * PART_ROWS)
        publish_small(tmp_path / "models", "SoV", "2.0.0", 5)
        runtime.loaded_models.make_current(await runtime.loaded_models.fetch("SoV", "2.0.0"))
        assert [model.version for model in (await score(runtime, order)).models] == ["1.0.0"]

    async def test_parts_of_another_input_or_other_options_are_not_used(self, runtime: Runtime, tmp_path: Path) -> None:
        write_table(tmp_path / "in.csv", ROWS)
        order = order_of(tmp_path)
        await stop_after(runtime, order, 4 * PART_ROWS)
        with pytest.raises(NormalcyError, match="another run: the options differ"):
            await score(runtime, order_of(tmp_path, site="SoV"))
        write_table(tmp_path / "in.csv", ROWS + 1)
        with pytest.raises(NormalcyError, match="another run: the measurements differ"):
            await score(runtime, order)

    async def test_a_run_that_was_recorded_is_not_recorded_twice(
        self, runtime: Runtime, file_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_table(tmp_path / "in.csv", ROWS)
        order = order_of(tmp_path)

        def fail(*_: object) -> None:
            raise Stop

        with monkeypatch.context() as patched:
            patched.setattr(run, "publish_file", fail)
            with pytest.raises(Stop):
                await score(runtime, order)
        assert not order.out.exists()
        done = await score(runtime, order, "r-2")
        assert order.out.exists()
        (record,) = await records_of_runs(file_settings)
        assert record == (done.request_id, file_digest(order.out))

    async def test_two_runs_do_not_write_the_same_output(self, runtime: Runtime, tmp_path: Path) -> None:
        write_table(tmp_path / "in.csv", ROWS)
        order = order_of(tmp_path)
        messages = []

        async def second() -> None:
            try:
                await score(runtime, order, "r-2")
            except NormalcyError as error:
                messages.append(str(error))

        def report(done: int, total: int) -> None:
            if not messages and done >= PART_ROWS:
                asyncio.run_coroutine_threadsafe(second(), loop).result(WAIT_SECONDS)

        loop = asyncio.get_running_loop()
        await score_file(runtime, Caller("somebody", "r-1", "normalcy score", 0.0), order, report)
        assert len(messages) == 1
        assert "Another process is writing" in messages[0]

    async def test_a_second_file_is_never_overwritten(self, runtime: Runtime, tmp_path: Path) -> None:
        write_table(tmp_path / "in.csv", ROWS)
        order = order_of(tmp_path)
        order.errors_out.write_text("mine")
        with pytest.raises(FileExists, match=r"out\.errors\.csv"):
            await score(runtime, order)
        assert order.errors_out.read_text() == "mine"
        assert not folder_of(order.out).exists()


async def records_of_runs(settings: Settings) -> list[tuple[str | None, str]]:
    found = await asyncio.to_thread(records, settings)
    return [(record.request_id, record.output["file_sha256"]) for record in found if record.kind == "score"]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_without_repeating_or_losing_rows(file_settings: Settings, tmp_path: Path) -> None:
    write_table(tmp_path / "in.csv", 2000)
    command = [sys.executable, "-c", "from app.cli.main import main; main()", "score", "--in", "in.csv"]
    command += ["--part-rows", "20", "--workers", "2"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "NORMALCY_DATA_DIR": str(file_settings.data_dir),
        "NORMALCY_MODELS_DIR": str(file_settings.models_dir),
    }
    subprocess.run([*command, "--out", "whole.csv"], cwd=tmp_path, env=environment, check=True)  # noqa: S603
    process = subprocess.Popen([*command, "--out", "out.csv"], cwd=tmp_path, env=environment)  # noqa: S603
    folder, until = tmp_path / "out.csv.parts", time.monotonic() + WAIT_SECONDS
    while len(list(folder.glob("*.json"))) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "out.csv").exists()
    receipts = {path.name: path.stat().st_mtime_ns for path in folder.glob("0*.json")}
    assert 0 < len(receipts) < 100
    watched = sorted(receipts)[0]
    saved = (folder / watched).stat().st_ino
    again = subprocess.Popen([*command, "--out", "out.csv"], cwd=tmp_path, env=environment)  # noqa: S603
    inodes = set()
    while again.poll() is None:
        try:
            inodes.add((folder / watched).stat().st_ino)
        except OSError:
            break
    assert again.wait() == 0
    assert inodes == {saved}  # the part was not made again
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "out.errors.csv").read_bytes() == (tmp_path / "whole.errors.csv").read_bytes()
    assert len([record for record in records(file_settings) if record.kind == "score"]) == 2
