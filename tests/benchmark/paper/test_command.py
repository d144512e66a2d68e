"""`normalcy bench paper` from the command line to the file, with fits replaced by answers made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from app.benchmark.paper import data, run
from app.benchmark.paper.data import DataUnavailable
from app.benchmark.paper.protocol import Done, Task
from app.benchmark.paper.run import CHAPTERS
from app.benchmark.paper.runner import Report, Runner
from app.benchmark.paper.tasks import EXPERIMENTS
from app.cli.commands import cli
from tests.benchmark.paper.hand_made import answered


def judged(task: Task) -> Done:
    """An inner fold is answered like an outer one: here it is not the areas that matter."""
    return answered(replace(task, inner=None))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table that passes for Yacht, and a place to work in."""
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(size=(200, 2)), 6)
    rows = np.column_stack([X, np.round(X @ [0.6, 0.4], 6)])
    text = "\n".join([",a,b,resistance", *(f"{n},{','.join(map(str, row))}" for n, row in enumerate(rows.tolist()))])
    (tmp_path / "yachtHydrodynamics.csv").write_text(text)
    yacht = replace(data.BY_NAME["Yacht"], rows=200, digest=data.content_digest(rows))
    monkeypatch.setitem(data.BY_NAME, "Yacht", yacht)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_quick_writes_a_report_and_its_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Task] = []

    def results(self: Runner, tasks: Sequence[Task], report: Report, what: str) -> dict[Task, Done]:
        asked.extend(tasks)
        return {task: judged(task) for task in tasks}

    monkeypatch.setattr(Runner, "results", results)
    done = CliRunner().invoke(cli, ["bench", "paper", "--quick", "--data", str(folder)])
    assert done.exit_code == 0, done.output
    assert not Path("docs").exists()  # where the report of all experiments stands
    text = Path("build/paper/part.md").read_text()
    assert "## Table 2" in text
    assert str(folder) not in text
    assert {path.name for path in Path("build/paper/paper").iterdir()} == {
        "detection.svg",
        "abstention.svg",
        "width_by_score.svg",
    }
    assert {task.dataset for task in asked} == {"Yacht"}
    assert {task.seed for task in asked} == {42}


def test_an_unknown_experiment_is_refused_with_the_known_ones(folder: Path) -> None:
    done = CliRunner().invoke(cli, ["bench", "paper", "--only", "everything"])
    assert done.exit_code == 2
    assert "everything" in done.output
    assert "table2" in done.output


def test_a_folder_without_the_files_is_one_sentence(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["bench", "paper", "--quick", "--data", str(tmp_path)])
    assert isinstance(done.exception, DataUnavailable)
    assert str(done.exception) == "yachtHydrodynamics.csv is not in the folder of data."


@pytest.mark.gpflow
def test_a_chapter_is_run_once_and_then_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.benchmark.paper import variance_as_sd

    runs: list[int] = []

    def once() -> dict[str, int]:
        runs.append(1)
        return {"found": 7}

    monkeypatch.setattr(variance_as_sd, "run", once)
    first = run.chapter("variance_as_sd", tmp_path, lambda _: None)
    assert run.chapter("variance_as_sd", tmp_path, lambda _: None) == first
    assert first.result == {"found": 7}
    assert runs == [1]


@pytest.mark.gpflow
def test_every_chapter_can_be_run_and_rendered() -> None:
    from importlib import import_module

    for name in CHAPTERS:
        assert callable(import_module(f"app.benchmark.paper.{name}").run)
        assert callable(import_module(f"app.benchmark.paper.{CHAPTERS[name]}").render)


def test_all_of_it_is_asked_for_by_default() -> None:
    order = run.Order(None, Path("x"), quick=False, only=(), processes=1, scheduler=None)
    assert set(order.names) == {*EXPERIMENTS, *CHAPTERS}
