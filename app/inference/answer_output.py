"""Answers written from columns, without an object for each: as JSON, as flat columns, and as columns of a record.

Measurements of one kind (same sex, position, reasons, advisories and so on) differ only in their numbers. Of every kind
one answer is filled with numbers that stand for columns and encoded as any other answer is: its text with the gaps that
these numbers leave is the template of all answers of that kind. So nothing here repeats how an answer is built.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.domain.query import CONVENTIONS
from app.domain.score import SURE, UNLIKELY, Position, Tails
from app.formats.block_columns import Column as RecordColumn
from app.formats.block_columns import chosen, same
from app.formats.response import body, encode, parts
from app.inference.advisories import CONVENTION_UNIT, advisories
from app.inference.answer_columns import (
    AT_THRESHOLD,
    CONTEXT,
    ERROR_FREE_EXCEEDANCE,
    ERROR_FREE_HDI,
    INPUT,
    SINGLE,
    Z_SCORES,
    AnswerColumns,
    Judgement,
    ScoredAnswer,
    column_ranges,
    make_answer,
)
from app.inference.reliability_rules import Assessment
from app.maths.score.interval_table import MASS
from app.schemas.answers import BatchScore

Column = NDArray[np.float64] | list[Any]
Mask = NDArray[np.bool_]
AssessmentOf = Callable[[int], Assessment]

POSITIONS: tuple[Position, ...] = ("above_2", "below_minus_2", "within", "uncertain")
TAILS_OF = (Tails(1.0, 0.0), Tails(0.0, 1.0), Tails(0.0, 0.0), Tails(0.5, 0.5))
NO_TAILS = Tails(0.0, 0.0)
CELL_SEPARATOR = ";"  # values for several thresholds in one cell
NULL = b"null"

# Numbers no answer can have, each standing for a column: 1.000e203 for the first, 1.001e203 for the second.
FIRST_GAP = 1000
LARGEST = 1e200
GAP = re.compile(rb"\d(?:\.\d+)?e\+?203")

TEXT_FIELDS = (
    "score.position",
    "reliability.verdict",
    "reliability.reasons",
    "advisories",
    "comparators.not_applicable",
)
ERROR_FREE = "score_with_measurement_error."
WITHHELD = ("score.", "reference.", "comparators.", ERROR_FREE)
# The parts of the key of a kind, after that of the assessment: how many values each can have.
COUNTS = (CONVENTION_UNIT * len(CONVENTIONS), len(POSITIONS), 2, 2, 2, 2)
NOT_FLAT = (*INPUT, "error_free_hdi_width")
FLAT_TEXT_FIELDS = ("position", "verdict", "reasons", "advisories")
# Where the name of a flat column is another one than in AnswerColumns, and where it is absent for another reason than
# that the score is withheld.
FLAT_NAMES = {name: f"diameter_{name}_mm" for name in AT_THRESHOLD}
FLAT_PATHS = {
    **dict.fromkeys(CONTEXT, "reliability."),
    **{name: f"comparators.{name}" for name in Z_SCORES},
    **dict.fromkeys((*ERROR_FREE_HDI, *ERROR_FREE_EXCEEDANCE), ERROR_FREE),
}


class Template(NamedTuple):
    text: bytes  # from `input` on; with %b for each number
    numbers: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]  # which, in order


class AnswerOutput:
    """What leaves the service about the measurements of some columns."""

    def __init__(self, columns: AnswerColumns) -> None:
        self._columns, judged = columns, columns.judged
        male, states_error, altman, assessment, advised = (
            np.asarray(column)
            for column in (
                judged.male,
                judged.states_error,
                judged.altman_applies,
                judged.assessment,
                judged.advisories,
            )
        )
        self._withheld: Mask = np.asarray(judged.withheld, dtype=bool)
        position = _positions(np.asarray(judged.above_2), np.asarray(judged.below_minus_2))
        self._shows_error_free = states_error.astype(bool) & ~self._withheld
        keys = assessment.astype(np.int64)
        given = advised, position, altman, male, states_error, self._withheld
        for count, part in zip(COUNTS, given, strict=True):
            keys = keys * count + part
        distinct, self._kind = np.unique(keys, return_inverse=True)
        self._keys: list[int] = distinct.tolist()
        self._kinds = [_kind(judged.assessment_of, key) for key in self._keys]

    @cached_property
    def _texts(self) -> list[bytes]:
        """Every column of numbers as JSON, without brackets; null where a number is not finite: only if withheld."""
        return encode(self._columns.numbers.T.tolist())[2:-2].split(b"],[")

    @cached_property
    def _cells(self) -> list[list[bytes]]:
        return [text.split(b",") for text in self._texts]

    def items(self, head: bytes, indices: Sequence[int], ids: Sequence[bytes]) -> list[bytes]:
        """The JSON of each answer. `head` lies between the id, which is JSON, and `input`: what all answers share."""
        columns = self._columns
        options = columns.thresholds, columns.hdi_probability, columns.has_error_free
        found = [_template(columns.judged.assessment_of, key, *options) for key in self._keys]
        begin = b'{"index":%d,"id":%b' + head.replace(b"%", b"%%")
        templates = [(begin + template.text, template.numbers) for template in found]
        each = map(templates.__getitem__, self._kind.tolist())
        rows = zip(*self._cells, strict=True)
        return [
            text % (index, item_id, *numbers(row))
            for (text, numbers), index, item_id, row in zip(each, indices, ids, rows, strict=True)
        ]

    def record_columns(self) -> dict[str, RecordColumn]:
        """Every field from `score` to `advisories` by its path."""
        columns = self._columns
        found: dict[str, RecordColumn] = {}
        for path, value in _paths(columns.thresholds, columns.hdi_probability, columns.has_error_free):
            if path in TEXT_FIELDS:
                found[path] = self._text_fields(path)
                continue
            absent = self._absent(path)
            missing = np.flatnonzero(absent).tolist()
            if isinstance(value, int):
                found[path] = self._array(value, missing)
            elif missing:
                found[path] = chosen([value, None], absent.astype(np.int8).tolist())
            else:
                found[path] = same(value)
        return found

    def _array(self, column: int, missing: Sequence[int]) -> msgspec.Raw:
        text = self._texts[column]
        if missing:
            cells = self._cells[column].copy()
            for row in missing:
                cells[row] = NULL
            text = b",".join(cells)
        return msgspec.Raw(b"[%b]" % text)

    def flat(self) -> dict[str, Column]:
        """By the names of the columns of a file of scores: numbers with NaN, texts with None for what is not given."""
        columns = self._columns
        found: dict[str, Column] = {}
        for name, indices in columns.column_ranges.items():
            if name in NOT_FLAT:
                continue
            flat = FLAT_NAMES.get(name, name)
            absent = self._absent(FLAT_PATHS.get(flat, "score."))
            if name in SINGLE or name in ERROR_FREE_HDI:
                found[flat] = np.where(absent, np.nan, columns.numbers[:, indices.start])
            else:
                found[flat] = self._joined(indices, absent)
        found["hdi_probability"] = np.where(self._withheld, np.nan, columns.hdi_probability)
        asked = CELL_SEPARATOR.join(encode(threshold).decode() for threshold in columns.thresholds)
        found["thresholds"] = [None if withheld else asked for withheld in self._withheld.tolist()]
        words = zip(*map(_flat_text_fields, self._kinds), strict=True)
        for name, values in zip(FLAT_TEXT_FIELDS, words, strict=True):
            found[name] = [values[kind] for kind in self._kind.tolist()]
        return found

    def verdicts(self) -> Iterator[tuple[str, bool, int]]:
        """Verdict, whether there is a score, and of how many measurements."""
        counts = np.bincount(self._kind, minlength=len(self._kinds)).tolist()
        for kind, count in zip(self._kinds, counts, strict=True):
            yield kind.assessment.verdict, not kind.withheld, count

    def _absent(self, path: str) -> Mask:
        """Where a field is null."""
        if path.startswith(ERROR_FREE):
            return ~self._shows_error_free
        if path in ("comparators.linear_z", "comparators.altman_z"):
            outside: Mask = np.array([kind.assessment.is_outside_training_range for kind in self._kinds])[self._kind]
            applies: Mask = np.asarray(self._columns.judged.altman_applies, dtype=bool)
            return self._withheld | outside | ~applies if path.endswith("altman_z") else self._withheld | outside
        return self._withheld if path.startswith(WITHHELD) else np.zeros_like(self._withheld)

    def _text_fields(self, path: str) -> RecordColumn:
        """A column of words, each distinct value once."""
        values = [_text_fields(self._columns.judged.assessment_of, key)[path] for key in self._keys]
        distinct = {value: index for index, value in enumerate(dict.fromkeys(values))}
        each = np.array([distinct[value] for value in values])[self._kind]
        return chosen([msgspec.Raw(value) for value in distinct], each.tolist())

    def _joined(self, indices: range, absent: Mask) -> list[Any]:
        numbers = self._columns.numbers
        texts = [encode(numbers[:, index].tolist())[1:-1].decode().split(",") for index in indices]
        joined = texts[0] if len(texts) == 1 else list(map(CELL_SEPARATOR.join, zip(*texts, strict=True)))
        if not absent.any():
            return joined
        return [None if missing else text for text, missing in zip(joined, absent.tolist(), strict=True)]


def _flat_text_fields(kind: Judgement) -> tuple[str | None, ...]:
    position = "not_assessed" if kind.withheld else POSITIONS[TAILS_OF.index(kind.tails)]
    reasons = CELL_SEPARATOR.join(reason.code for reason in kind.assessment.reasons)
    advised = CELL_SEPARATOR.join(advisory.code for advisory in kind.advisories)
    return position, kind.assessment.verdict, reasons or None, advised or None


def _positions(above_2: NDArray[np.float64], below_minus_2: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices into POSITIONS, as `position` finds them."""
    within = np.maximum(above_2, below_minus_2) <= UNLIKELY
    return np.select([above_2 >= SURE, below_minus_2 >= SURE, within], [0, 1, 2], 3)


@lru_cache(maxsize=4096)
def _kind(assessment_of: AssessmentOf, key: int) -> Judgement:
    """What the parts of a key stand for."""
    parts = []
    for count in reversed(COUNTS):
        key, part = divmod(key, count)
        parts.append(part)
    withheld, states_error, male, altman_applies, position, advised = parts
    tails = TAILS_OF[position]
    return Judgement(
        bool(male),
        bool(states_error),
        tails,
        tails,
        bool(altman_applies),
        assessment_of(key),
        advisories(advised),
        bool(withheld),
    )


@lru_cache(maxsize=4096)
def _template(
    assessment_of: AssessmentOf, key: int, thresholds: tuple[float, ...], hdi_probability: float, error_free: bool
) -> Template:
    scored = _filled(_kind(assessment_of, key), thresholds, hdi_probability, error_free)
    text = encode(BatchScore(0, None, 0, "", scored.input, *parts(scored.answer)))
    _, name, rest = text.partition(b',"input":')
    gaps = [_column(float(gap)) for gap in GAP.findall(rest)]
    return Template(name + GAP.sub(b"%b", rest.replace(b"%", b"%%")), itemgetter(*gaps))


@lru_cache(maxsize=4096)
def _text_fields(assessment_of: AssessmentOf, key: int) -> dict[str, bytes]:
    """The fields of an answer that are not numbers, as JSON; null where one is withheld."""
    found = body(_filled(_kind(assessment_of, key), (2.0,), MASS, error_free=True).answer)
    return {path: encode(_at(found, path)) for path in TEXT_FIELDS}


@lru_cache(maxsize=256)
def _paths(thresholds: tuple[float, ...], hdi_probability: float, error_free: bool) -> list[tuple[str, Any]]:
    """Every field from `score` to `advisories`: its path and its column of numbers (an int), or its value."""
    everything = Judgement(True, error_free, NO_TAILS, NO_TAILS, True, Assessment.of(()), (), False)
    found = body(_filled(everything, thresholds, hdi_probability, error_free).answer)
    return [
        (path, _column(value) if isinstance(value, float) and value > LARGEST else value)
        for path, value in _leaves(found, "")
    ]


def _filled(kind: Judgement, thresholds: tuple[float, ...], hdi_probability: float, error_free: bool) -> ScoredAnswer:
    """An answer whose numbers are gaps."""
    count = max(indices.stop for indices in column_ranges(len(thresholds), error_free).values())
    gaps = [float(f"{FIRST_GAP + column}e200") for column in range(count)]
    return make_answer(thresholds, hdi_probability, gaps, kind)


def _column(gap: float) -> int:
    """The column that a gap stands for."""
    return round(gap / 1e200) - FIRST_GAP


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[name] if value is not None else None
    return value


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Arrays without elements are leaves: they hold words."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path, value
