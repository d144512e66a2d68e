"""The result of one part: text, tables and plots, as it is saved and as the report shows it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Table:
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Plot:
    name: str  # of the file
    title: str
    x: str
    y: str
    lines: dict[str, list[tuple[float, float]]]
    logarithmic: bool = True


@dataclass(frozen=True, slots=True)
class Goal:
    what: str
    goal: str
    measured: str
    reached: bool


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    text: str
    tables: list[Table]
    plots: list[Plot] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Saved:
    section: Section
    command: str
    commit: str
    day: str
    load_average: tuple[float, float]  # of the machine before and after, one minute
    quick: bool
