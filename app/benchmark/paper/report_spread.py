"""What a spread that depends on the context adds: NS beside NS_hom, which has one spread for all."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.markdown import difference, table
from app.benchmark.paper.study import Spread, paired

AREAS = {"roc": "ROC AUC", "pr": "PR AUC"}
CLEAR = 2.0  # standard errors of the mean difference


@dataclass(frozen=True, slots=True)
class Gain:
    """NS less NS_hom, by injection."""

    dataset: str
    area: str  # a key of AREAS
    values: Spread

    @property
    def is_clear(self) -> bool:
        return self.values.mean > CLEAR * self.values.standard_error

    @property
    def words(self) -> str:
        return f"{self.dataset} {difference(self.values)}"


def gains(rows: dict[str, Rowwise]) -> list[Gain]:
    return list(_gains(rows))


def _gains(rows: dict[str, Rowwise]) -> Iterator[Gain]:
    for area in AREAS:
        for name in rows["NS"]:
            yield Gain(name, area, paired(*(getattr(rows[method][name], area) for method in ("NS", "NS_hom"))))


def has_both(rows: dict[str, Rowwise] | None) -> bool:
    return rows is not None and {"NS", "NS_hom"} <= rows.keys()


def in_short(rows: dict[str, Rowwise], fresh: dict[str, Rowwise] | None) -> str:
    parts = [_one(rows)] + ([f"On fresh seeds: {_one(fresh)}"] if fresh and has_both(fresh) else [])
    return f"NS_hom, with one spread for all contexts, is often as good. {' '.join(parts)}"


def _one(rows: dict[str, Rowwise]) -> str:
    found = gains(rows)
    paying = {area: [gain.words for gain in found if gain.area == area and gain.is_clear] for area in AREAS}
    not_ahead = sum(not gain.is_clear for gain in found)
    listed = "; ".join(f"in {AREAS[area]} on {', '.join(names) or 'no set'}" for area, names in paying.items())
    return (
        f"NS is ahead of it by more than two standard errors {listed}; in the other {not_ahead} NS is not "
        "ahead by more than two standard errors."
    )


def chapter(rows: dict[str, Rowwise], fresh: dict[str, Rowwise] | None) -> list[str]:
    named = {"first seeds": rows} | ({"fresh seeds": fresh} if fresh and has_both(fresh) else {})
    sets = list(rows["NS"])
    body = [
        [f"{title}, {AREAS[area]}", *(difference(gain.values) for gain in gains(own) if gain.area == area)]
        for title, own in named.items()
        for area in AREAS
    ]
    return [
        "## Where a spread that depends on the context pays",
        "",
        "NS minus NS_hom, mean ± standard error of the differences by injection.",
        "",
        *table(["", *sets], body),
        in_short(rows, fresh),
        "",
    ]
