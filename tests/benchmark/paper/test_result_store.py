import ast
from dataclasses import replace
from pathlib import Path

import pytest

from app.benchmark.paper import runner as digests
from app.benchmark.paper.protocol import Done, Task, module_of
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.runner import ResultStore

TASK = Task("Yacht", 30, 42, 0, "NS", Choice("reg1t6"))
DONE = Done([1, 2], [0.5, 0.25], [False, True], {"score": [1.0, 2.0]}, 1.0, 0.5, ["a note"])


def test_a_stored_result_is_found_again(tmp_path: Path) -> None:
    ResultStore(tmp_path).save(TASK, "data", DONE)
    assert ResultStore(tmp_path).find(TASK, "data") == DONE
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


@pytest.mark.parametrize(
    "other",
    [
        replace(TASK, seed=43),
        replace(TASK, fold=1),
        replace(TASK, inner=0),
        replace(TASK, choice=Choice("reg1")),
        replace(TASK, choice=Choice("reg1t6", log=True)),
        replace(TASK, choice=Choice("reg1t6", kernel="rbf")),
    ],
)
def test_another_task_is_not_found(other: Task, tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.save(TASK, "data", DONE)
    assert store.find(other, "data") is None


def test_other_data_or_other_code_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ResultStore(tmp_path)
    store.save(TASK, "data", DONE)
    assert store.find(TASK, "other data") is None
    monkeypatch.setattr("app.benchmark.paper.runner.code_digest", lambda *_: "changed")
    assert store.find(TASK, "data") is None


def test_half_a_file_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", dies)
    with pytest.raises(KeyboardInterrupt):
        ResultStore(tmp_path).save(TASK, "data", DONE)
    assert ResultStore(tmp_path).find(TASK, "data") is None


def test_a_result_says_who_made_it_and_not_where(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.save(TASK, "data", DONE)
    (origin,) = store.origins([(TASK, "data")])
    assert {"commit", "machine", "python", "numpy", "gpflow", "tensorflow"} <= origin.keys()
    assert not any("/" in value for value in origin.values())


def test_the_digest_follows_imports_into_the_packages_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    original = digests._file

    def watched(name: str) -> Path:
        seen.append(name)
        return original(name)

    digests.code_digest.cache_clear()
    monkeypatch.setattr(digests, "_file", watched)
    digests.code_digest("app.benchmark.paper.normalcy_score")
    assert {"app.training.fit", "app.training.model", "app.maths.gp.kernels"} <= set(seen)
    read = {name for name in seen if original(name).is_file()}
    assert "app.training.calibration" not in read  # a fit does not ask whether it may be published


def test_the_digest_of_a_chapter_holds_the_equations_that_people_are_drawn_from_and_no_card(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    original = digests._without_docstrings

    def watched(tree: ast.Module) -> ast.Module:
        read.append(ast.dump(tree))
        return original(tree)

    monkeypatch.setattr(digests, "_without_docstrings", watched)
    digests.code_digest.cache_clear()
    digests.code_digest("app.benchmark.paper.variance_as_sd")
    assert any("CAMPENS_2014" in dumped and "ClassDef" in dumped for dumped in read)
    assert not any("name='ModelCard'" in dumped and "ClassDef" in dumped for dumped in read)


def test_a_comment_does_not_change_the_digest_and_a_number_does() -> None:
    def dumped(source: str) -> str:
        return ast.dump(digests._without_docstrings(ast.parse(source)))

    assert dumped('"""a"""\nx = 1') == dumped("# other\nx  =  1")
    assert dumped("x = 1") != dumped("x = 2")


def test_a_change_of_another_method_leaves_the_results_of_ns_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    original = digests._file
    digests.code_digest.cache_clear()

    def watched(name: str) -> Path:
        seen.append(name)
        return original(name)

    monkeypatch.setattr(digests, "_file", watched)
    digests.code_digest(digests.PROTOCOL, module_of("NS"))
    assert module_of("QCAD") not in seen
    assert digests.code_digest(module_of("NS")) != digests.code_digest(module_of("QCAD"))
