import pytest

from app.formats.block_columns import chosen, distinct, items, same


def test_columns_give_back_the_items() -> None:
    columns = {
        "a": [1.0, None, 3.0],
        "b.c": same("x"),
        "b.list[0].d": [None, 5, None],
        "b.list[1].d": [6, None, None],
        "e": chosen([[], [{"code": "f"}]], [1, 0, 0]),
        "g.h": [None, None, 7],
    }
    assert items(columns, 3) == [
        {"a": 1.0, "b": {"c": "x", "list": [None, {"d": 6}]}, "e": [{"code": "f"}], "g": None},
        {"a": None, "b": {"c": "x", "list": [{"d": 5}, None]}, "e": [], "g": None},
        {"a": 3.0, "b": {"c": "x", "list": None}, "e": [], "g": {"h": 7}},
    ]


def test_equal_values_are_stored_once() -> None:
    assert distinct(["x", "x"]) == {"all": "x"}
    assert distinct(["x", None, "x"]) == {"of": ["x", None], "each": [0, 1, 0]}


@pytest.mark.parametrize(
    "column", [[1], {"of": [1], "each": [0]}, {"of": [1], "each": [0, 1]}, {"some": 1}, 5, {"of": 1, "each": ["x", 0]}]
)
def test_what_are_no_columns_of_so_many_items_is_rejected(column: object) -> None:
    with pytest.raises(ValueError, match=r"column"):
        items({"a": column}, 2)
    with pytest.raises(ValueError, match=r"column"):
        items({"a.b": [1, 2], "a": column}, 2)
