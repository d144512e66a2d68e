"""A crowd is thinned out evenly, and the plot says how many people it leaves out."""

import numpy as np

from app.formats import figures


def drawn_of(people: int) -> tuple[str, int]:
    rng = np.random.default_rng(1)
    diameters = rng.normal(33.0, 4.0, people)
    everybody = {figures.LABELLED_0: np.ones(people, dtype=np.bool_)}
    score = (diameters - 33.0) / 3.0
    figure = figures.score_intervals(score, score - 0.3, score + 0.3, diameters, everybody, "Scores")
    (points, *_) = figure.axes[0].lines
    return figure.get_suptitle(), len(np.asarray(points.get_xdata()))


def test_everybody_is_drawn_while_there_is_room() -> None:
    assert drawn_of(figures.MOST_PEOPLE) == ("Scores", figures.MOST_PEOPLE)


def test_the_number_left_out_is_in_the_title() -> None:
    title, drawn = drawn_of(figures.MOST_PEOPLE + 345)
    assert drawn == figures.MOST_PEOPLE
    assert title == "Scores\n2000 of them shown, evenly over the diameters; 345 left out"


def test_those_who_are_shown_cover_the_diameters_evenly() -> None:
    diameters = np.arange(1000.0)[::-1].copy()
    chosen = np.sort(diameters[figures.people_to_draw(diameters, 101)])
    assert (chosen[0], chosen[-1], len(chosen)) == (0.0, 999.0, 101)
    assert np.diff(chosen).max() <= 11.0
