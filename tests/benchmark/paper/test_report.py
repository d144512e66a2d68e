from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from app.benchmark.paper import report
from app.benchmark.paper.abstention import BY_WIDTH
from app.benchmark.paper.choice import Judged
from app.benchmark.paper.detection import LIBRARY, Cell, caveat, render_table2, spread_sentence
from app.benchmark.paper.published import ABSTENTION, KENDALL, TABLE2
from app.benchmark.paper.rendering import FALSE_MARKS, FALSE_MARKS_ALONE, difference, mark, reaches, smaller_mark
from app.benchmark.paper.report import in_short
from app.benchmark.paper.run import Measured, measure
from app.benchmark.paper.study import Spread
from app.benchmark.paper.tasks import EXPERIMENTS
from tests.benchmark.paper.hand_made import CHOICE, EVERYTHING, SCOPE, study

ORIGIN = {"commit": "abc-dirty", "machine": "a processor", "numpy": "1.26.4"}


@cache
def found() -> Measured:
    flat = np.array([[0.9]])
    judged = Judged((CHOICE,), ("Yacht",), (0, 1), flat, flat, np.array([1.0]), 6, 60.0)
    return measure(study(), EVERYTHING, judged, lambda _: None)


def rendered(folder: Path) -> str:
    return report.render(found(), (), [ORIGIN], ["Made by a test."], SCOPE, folder / "paper")


def test_every_chapter_stands_in_the_report_beside_the_paper(tmp_path: Path) -> None:
    text = rendered(tmp_path)
    for title in (
        "In short",
        "Protocol",
        "chosen without a label of the experiment",
        "Table 2",
        "NS against the paper's row",
    ):
        assert title in text
    for title in ("Abstention", "weighted Kendall tau", "Kernels", "Inducing points", "Where the numbers come from"):
        assert title.lower() in text.lower()
    assert "0.97 ± 0.02" in text  # the paper's NS on Yacht
    assert "commit abc-dirty, on a processor" in text


def test_every_figure_that_the_text_shows_was_drawn_and_no_other(tmp_path: Path) -> None:
    text = rendered(tmp_path)
    drawn = {path.name for path in (tmp_path / "paper").iterdir()}
    shown = {part.split(")")[0] for part in text.split("](paper/")[1:]}
    assert drawn == shown


def test_the_same_numbers_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    assert rendered(first) == rendered(second)
    for path in (first / "paper").iterdir():
        assert path.read_bytes() == (second / "paper" / path.name).read_bytes()


def test_a_report_of_one_experiment_has_no_other_chapter(tmp_path: Path) -> None:
    names = dict.fromkeys(EXPERIMENTS, False) | {"kernels": True}
    part = measure(study(), names, found().judged, lambda _: None)
    text = report.render(part, (), [ORIGIN], [], SCOPE, tmp_path / "paper")
    assert "## Kernels" in text
    assert "## Table 2" not in text
    assert "## Abstention" not in text


@pytest.mark.parametrize(
    ("mean", "sd", "published", "published_sd", "expected"),
    [
        (0.95, 0.01, 0.89, 0.02, "better"),
        (0.90, 0.01, 0.89, 0.02, "equal"),
        (0.905, 0.02, 0.89, 0.0, "equal"),
        (0.80, 0.01, 0.89, 0.02, "worse"),
        (0.997, 0.0, 1.0, 0.0, "equal"),  # the paper rounds
        (0.99, 0.0, 1.0, 0.0, "worse"),
        (1.0, 0.0, 0.99, 0.01, "equal"),  # whatever 1.0 - 0.99 is in binary
    ],
)
def test_marks(mean: float, sd: float, published: float, published_sd: float, expected: str) -> None:
    spread = Spread((mean - sd / np.sqrt(2.0), mean + sd / np.sqrt(2.0)))
    assert spread.sd == pytest.approx(sd)
    assert mark(spread, published, published_sd) == expected


def test_how_often_equal_methods_are_marked_apart() -> None:
    draws = np.random.default_rng(3).normal(size=(2, 20_000, 5))
    apart = np.abs(np.diff(draws.mean(axis=2), axis=0)[0]) > draws.std(axis=2, ddof=1).max(axis=0)
    assert apart.mean() == pytest.approx(FALSE_MARKS, abs=0.01)
    alone = np.abs(np.diff(draws.mean(axis=2), axis=0)[0]) > draws[0].std(axis=1, ddof=1)
    assert alone.mean() == pytest.approx(FALSE_MARKS_ALONE, abs=0.01)


def test_a_number_reaches_another_at_two_decimals() -> None:
    assert reaches(0.955, 0.96)
    assert not reaches(0.9549, 0.96)
    assert reaches(0.9951, 1.0)


def test_less_change_is_better() -> None:
    assert [smaller_mark(value, 0.07) for value in (0.02, 0.071, 0.2)] == ["better", "equal", "worse"]


def test_the_published_tables_are_whole() -> None:
    assert len(TABLE2) == 9
    assert all(len(row) == 5 for row in TABLE2.values())
    assert TABLE2["NS"]["Yacht"] == ((0.97, 0.02), (0.88, 0.06))
    assert TABLE2["HBOS"]["Yacht"] == ((0.76, 0.05), (0.34, 0.08))
    assert TABLE2["Altman"]["SynMachine"] == ((0.99, 0.01), (0.96, 0.03))
    assert set(ABSTENTION) == set(KENDALL) == set(TABLE2["NS"])


def test_a_difference_of_nothing_has_no_sign() -> None:
    assert difference(Spread((0.02, 0.04))) == "+0.030 ± 0.010"
    assert difference(Spread((0.02, 0.04)), of_mean=False) == "+0.030 ± 0.014"
    assert difference(Spread((-0.0001, -0.0003))) == "0.000 ± 0.000"


def test_no_cell_of_a_table_breaks_its_row(tmp_path: Path) -> None:
    lines = rendered(tmp_path).splitlines()
    for above, below in pairwise(lines):
        if above.startswith("|") and below.startswith("|"):
            assert above.count("|") == below.count("|"), below


def test_the_short_results_say_what_did_not_hold() -> None:
    whole = found()
    assert whole.abstention
    ways = whole.abstention["Yacht"]
    worse = ways | {BY_WIDTH: replace(ways[BY_WIDTH], pr=Spread((0.1, 0.1)))}
    for measured_ways, held in ((ways, 1), (worse, 0)):
        short = "\n".join(in_short(replace(whole, abstention={"Yacht": measured_ways}), SCOPE))
        assert f"at least as good as by an isolation forest on {held} of 1 sets" in short
    assert "NS_hom, with one spread for all contexts, is often as good." in short


def test_cells_are_not_counted_against_the_paper_without_the_caveat() -> None:
    (line,) = [line for line in in_short(found(), SCOPE) if "cells are at least the paper's" in line]
    assert line.endswith(f"{caveat()}.")
    assert "Seeds 42–43: " in line
    assert "Fresh seeds 1042–1042: " in line
    assert line.count("of NS_hom's, ") == 2


def test_fresh_seeds_stand_in_the_report_for_every_method(tmp_path: Path) -> None:
    text = rendered(tmp_path)
    chapter = text.split("## The same methods on fresh seeds")[1].split("\n## ")[0]
    assert all(chapter.count(f"| {method} | ") == 2 for method in SCOPE.methods)
    assert text.split("## NS against the paper's row")[1].split("\n## ")[0].count(caveat()) == 1
    assert "ours, seeds 1042–1042" in text  # the gain over the linear Z-score too


def test_a_method_that_the_paper_does_not_print_stands_without_a_mark() -> None:
    rows = {"NS": ROW} | {name: ROW for plain in LIBRARY for name in (plain, f"{plain}_std")}
    rows["LOF_std"] = {"Yacht": Cell(Spread((0.9, 0.9)), Spread((0.5, 0.5)))}
    text = render_table2(rows)
    assert "| LOF_std | 0.900 ± 0.000 |" in text
    assert "| LOF | 0.800 ± 0.000 · 0.71 ± 0.04 · better |" in text
    assert "LOF by at most +0.100 (Yacht)" in text
    assert "IForest nowhere" in text


ROW = {"Yacht": Cell(Spread((0.8, 0.8)), Spread((0.5, 0.5)))}


def test_a_spread_by_context_pays_where_it_is_ahead_by_two_standard_errors() -> None:
    ahead = {"Yacht": Cell(Spread((0.8, 0.8)), Spread((0.60, 0.62)))}
    unclear = {"Yacht": Cell(Spread((0.8, 0.8)), Spread((0.50, 0.56)))}
    assert "in ROC AUC on no set; in PR AUC on Yacht +0.110 ± 0.010; in the other 1 NS is not ahead" in spread_sentence(
        {"NS": ahead, "NS_hom": ROW}, None
    )
    text = spread_sentence({"NS": unclear, "NS_hom": ROW}, {"NS": ahead, "NS_hom": ROW})
    assert (
        "in PR AUC on no set; in the other 2 NS is not ahead by more than two standard errors. On fresh seeds: " in text
    )
