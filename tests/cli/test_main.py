"""The command line as a user meets it: a process of its own, with an exit code and two streams."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from app.cli.commands import cli
from tests.cli.command import normalcy

pytestmark = pytest.mark.slow


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and group, as its words."""
    yield words
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*words, name))


def test_every_command_explains_itself() -> None:
    found = list(commands(get_command(cli)))
    assert {(), ("serve",), ("models", "verify"), ("bench", "coverage")} < set(found)
    for words in found:
        done = CliRunner().invoke(cli, [*words, "--help"])
        assert done.exit_code == 0, words
        assert "Usage" in done.stdout


@pytest.mark.parametrize("group", ["models", "audit", "keys", "bench"])
def test_the_line_about_a_group_names_all_its_commands(group: str) -> None:
    found = get_command(cli).commands[group]  # type: ignore[attr-defined]
    words = found.help.lower().replace(",", "").split()
    assert [name for name in found.commands if name not in words] == []


def test_a_failure_is_one_sentence_and_a_non_zero_exit(tmp_path: Path) -> None:
    done = normalcy("models", "show", "SoV", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "normalcy: No model is published for the site SoV.\n"
    assert done.stdout == ""


def test_a_simulated_cohort_is_written_once(tmp_path: Path) -> None:
    first = normalcy("cohort", "simulate", "--n", "20", "--out", "people.csv", "--json", cwd=tmp_path)
    assert first.returncode == 0
    assert json.loads(first.stdout) == {"file": "people.csv", "people": 20, "seed": 1, "bicuspid": False}
    written = (tmp_path / "people.csv").read_text()
    assert len(written.splitlines()) == 21
    second = normalcy("cohort", "simulate", "--n", "30", "--out", "people.csv", cwd=tmp_path)
    assert second.returncode == 1
    assert "not overwritten" in second.stderr
    assert (tmp_path / "people.csv").read_text() == written


@pytest.mark.parametrize(("words", "code"), [(["models", "list"], 0), (["models", "verify"], 1)])
def test_an_empty_store_is_said_so_and_counts_as_not_verified(words: list[str], code: int, tmp_path: Path) -> None:
    (tmp_path / "models_store").mkdir()
    done = normalcy(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "No version is published in models_store.\n")


def test_a_store_that_does_not_exist_is_not_an_empty_one(tmp_path: Path) -> None:
    done = normalcy("models", "list", "--models", "no_store", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "normalcy: no_store cannot be used: there is no such folder.\n")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["cohort", "simulate", "--out", "no_folder/people.csv"], "no_folder/people.csv"),
        (["train", "t.csv", "--site", "SoV", "--version", "1.0.0", "--cohort", "c", "--models", "a_file"], "a_file"),
    ],
)
def test_a_file_or_folder_that_cannot_be_used_is_one_sentence(words: list[str], named: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").touch()
    done = normalcy(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("normalcy: ")
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.gpflow
def test_a_table_that_a_benchmark_does_not_find_is_one_sentence(tmp_path: Path) -> None:
    done = normalcy("bench", "optimiser", "no_table.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("normalcy: no_table.csv")
    assert len(done.stderr.splitlines()) == 1


def without(library: str, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as if the library were not installed."""
    script = (
        f"import sys; sys.modules['{library}'] = None; sys.argv = ['normalcy', *'{command}'.split()]; "
        "from app.cli.main import main; main()"
    )
    return subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)  # noqa: S603


@pytest.mark.parametrize(
    ("command", "library"), [("bench optimiser no_table.csv", "gpflow"), ("bench paper", "sklearn")]
)
def test_a_benchmark_whose_libraries_are_not_installed_names_the_environment(
    command: str, library: str, tmp_path: Path
) -> None:
    done = without(library, command, tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"normalcy: This command needs {library}: run `make paper-env`, then `source .venv/paper/bin/activate`.\n"
    )


def test_training_whose_libraries_are_not_installed_names_the_environment(tmp_path: Path) -> None:
    normalcy("cohort", "simulate", "--n", "200", "--seed", "1", "--out", "cohort.csv", cwd=tmp_path)
    options = "--models . --site SoV --version 1.0.0 --diameter-column SoV_mm --cohort simulated --description none"
    done = without("gpflow", f"train cohort.csv {options} --edge leading --phase end-diastole --modality TTE", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "normalcy: This command needs gpflow: run `make train-env`, then `source .venv/train/bin/activate`."
    )


def test_light_commands_do_not_load_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "models_store").mkdir()
    script = (
        "import sys; from app.cli.commands import cli; cli(['models', 'list'], standalone_mode=False); "
        "heavy = {'tensorflow', 'gpflow', 'sklearn', 'matplotlib'}; "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & heavy))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"


def test_commands_compute_with_one_blas_thread(tmp_path: Path) -> None:
    """Otherwise the last digits would depend on how many rows are computed together, and on the machine."""
    script = (
        "import sys\n"
        "from app.cli.main import main\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.argv = ['normalcy', '--version']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "from threadpoolctl import threadpool_info\n"
        "import numpy\n"
        "print([library['num_threads'] for library in threadpool_info()])\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    assert set(json.loads(done.stdout.splitlines()[-1])) == {1}


def test_a_bad_table_is_refused_before_any_training(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age_years,sex,height_cm,weight_kg\n40,male,180,80\n")
    done = normalcy("train", "people.csv", "--site", "SoV", "--version", "1.0.0", "--cohort", "ours", cwd=tmp_path)
    assert done.returncode == 1
    assert "Column diameter_mm is missing" in done.stderr
    assert not (tmp_path / "models_store").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("--site", "a/b", "The name of a site is"), ("--version", "newest", "A version is")],
)
def test_a_name_that_cannot_be_published_is_refused_at_once(
    option: str, value: str, message: str, tmp_path: Path
) -> None:
    names = {"--site": "SoV", "--version": "1.0.0"} | {option: value}
    words = [word for pair in names.items() for word in pair]
    done = normalcy("train", "no_such_table.csv", *words, "--cohort", "ours", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"normalcy: {message}")


def test_the_settings_file_names_the_store_of_the_commands_that_read_models(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "normalcy.env"
    file.write_text(f"NORMALCY_MODELS_DIR={models}\n")
    monkeypatch.setenv("NORMALCY_ENV_FILE", str(file))
    for words in (["list"], ["verify"], ["show", "AA"]):
        done = normalcy("models", *words, "--json", cwd=tmp_path)
        assert (done.returncode, "AA" in done.stdout) == (0, True), done.stderr
    assert "no_store" in normalcy("models", "list", "--models", "no_store", cwd=tmp_path).stderr
    monkeypatch.setenv("NORMALCY_MODELS_DRI", "elsewhere")
    assert "NORMALCY_MODELS_DIR?" in normalcy("models", "verify", cwd=tmp_path).stderr
