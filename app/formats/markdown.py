"""Markdown tables."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric_from: int | None = None) -> list[str]:
    """Lines of a table whose cells are Markdown, and an empty one. Columns from `numeric_from` on are right-aligned."""
    left = len(head) if numeric_from is None else numeric_from
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return [*(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)), ""]
