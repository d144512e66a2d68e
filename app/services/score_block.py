"""Score a block of requests as columns: the one way that batches, streams and files take.

    requests = validate_items(parsed_json)                # or `score_table.validate_table` for columns of a table
    models = await BlockModels(runtime).find(requests)    # one BlockModels for all blocks of a request or run
    block = score_block(requests, models)                 # only computes: it may run in a thread
    block.items(first_index, provenance)                  # JSON of each result, in order
    block.flat(first_index)                               # or the columns of a file of scores

A row that is not valid, or that has no model, gets its errors and does not affect the others. Blocks of 500 to 4,000
rows cost the least for each row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.domain.card import ModelRef
from app.domain.query import MeasurementColumns
from app.errors import (
    FieldError,
    InvalidArtefact,
    NoModelLoaded,
    NormalcyError,
    SiteNotServed,
    UnknownSite,
    UnknownVersion,
)
from app.formats.response import encode
from app.formats.score_table import COLUMNS, error_columns
from app.formats.table_files import Flat
from app.inference.answer_output import AnswerOutput
from app.inference.executor import LoadedModel
from app.inference.scoring import score_columns
from app.schemas.answers import BatchError, ItemError
from app.schemas.request_columns import Coded, RequestColumns
from app.schemas.requests import CURRENT
from app.schemas.validation import field_error

if TYPE_CHECKING:
    from app.runtime.runtime import Runtime  # with the database, which a worker of a file does without

SiteVersion = tuple[str, str]
Rows = NDArray[np.intp]

MAX_NAMES = 1000  # sites and versions that were looked up and are remembered


class BlockModels:
    """The models of one batch or file: "current" is resolved once, when this is made."""

    def __init__(self, runtime: "Runtime") -> None:
        self._loaded = runtime.loaded_models
        self._current = dict(runtime.loaded_models.current)
        self._found: dict[SiteVersion, LoadedModel | FieldError] = {}

    async def find(self, requests: RequestColumns) -> Mapping[SiteVersion, LoadedModel | FieldError]:
        """The model of every site and version that rows name, or why there is none."""
        if len(self._found) > MAX_NAMES:  # a stream may name as many unknown ones as it likes
            self._found = {name: found for name, found in self._found.items() if isinstance(found, LoadedModel)}
        for name in asked_models(requests):
            if name not in self._found:
                self._found[name] = await self._look_up(*name)
        return self._found

    async def _look_up(self, site: str, version: str) -> LoadedModel | FieldError:
        try:
            if version == CURRENT:
                return self._current.get(site) or self._loaded.find_current(site)
            return await self._loaded.find(site, version)
        except NormalcyError as error:
            return model_error(error)


def model_error(error: NormalcyError) -> FieldError:
    """Of a row whose model cannot be had. Raises the error if it is about something else."""
    match error:
        case SiteNotServed():
            why = f"model_version, the current one, cannot be used: {error}"
            return field_error("version_refused", "model_version", why)
        case UnknownSite() | NoModelLoaded():
            return field_error("unknown_site", "site", "site has no published model.")
        case UnknownVersion():
            return field_error("unknown_version", "model_version", "model_version is not published for the site.")
        case InvalidArtefact():
            return field_error("version_refused", "model_version", f"model_version cannot be used: {error}")
    raise error


@dataclass(frozen=True, slots=True)
class ScoredGroup:
    """Rows of a block that one model scored with the same thresholds and the same probability of the interval."""

    model: LoadedModel
    rows: Rows  # in the block
    output: AnswerOutput


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    requests: RequestColumns
    groups: Sequence[ScoredGroup]
    errors: Mapping[int, tuple[FieldError, ...]]  # by row

    @property
    def succeeded(self) -> int:
        return len(self.requests) - len(self.errors)

    def items(self, first_index: int, model_numbers: Mapping[ModelRef, int]) -> list[bytes]:
        """The JSON of every result, in order; models are numbered as in `provenance`."""
        found: list[bytes] = [b""] * len(self.requests)
        ids = self.requests.ids
        for group in self.groups:
            ref, rows = group.model.ref, group.rows.tolist()
            head = b',"model":%d,"site":%b' % (model_numbers[ref], encode(ref.site))
            indices = (group.rows + first_index).tolist()
            written = group.output.items(head, indices, [encode(ids[row]) for row in rows])
            for row, item in zip(rows, written, strict=True):
                found[row] = item
        for row, errors in self.errors.items():
            described = tuple(ItemError(error.code, error.field, error.message) for error in errors)
            found[row] = encode(BatchError(first_index + row, ids[row], described))
        return found

    def flat(self, first_index: int) -> Flat:
        """Columns of a file of scores, by name in their order: numbers with NaN, texts with None for empty cells."""
        count = len(self.requests)
        found: Flat = {
            column.name: np.full(count, np.nan) if column.kind == "number" else np.full(count, None, dtype=object)
            for column in COLUMNS
        }
        found["index"] = np.arange(first_index, first_index + count)
        found["id"][:] = self.requests.ids
        for group in self.groups:
            ref, cohort = group.model.ref, group.model.card.cohort.name
            named = {"site": ref.site, "model_version": ref.version, "model_sha256": ref.sha256, "cohort": cohort}
            for name, values in (group.output.flat() | named).items():
                found[name][group.rows] = values
        sites = (self.requests.sites[row] for row in self.errors)
        for name, values in error_columns(sites, self.errors.values()).items():
            found[name][list(self.errors)] = values
        return found


def score_block(requests: RequestColumns, models: Mapping[SiteVersion, LoadedModel | FieldError]) -> ScoredBlock:
    """`models` as BlockModels finds them."""
    errors = dict(requests.errors)
    for row, name in requests.named.items():
        if isinstance(error := models[name], FieldError):
            errors[row] = (*errors[row], error)
    groups: list[ScoredGroup] = []
    for (site, version), rows in _scored_together(requests):
        model = models[site, version]
        if isinstance(model, FieldError):
            errors.update(dict.fromkeys(rows.tolist(), (model,)))
        else:
            groups += _score_rows(model, requests, rows, errors)
    return ScoredBlock(requests, groups, dict(sorted(errors.items())))


def _scored_together(requests: RequestColumns) -> Iterator[tuple[SiteVersion, Rows]]:
    """The valid rows that are scored together: of one site and version, with the same thresholds and probability."""
    sites, options = requests.sites, requests.options
    option_sets = Coded.of([(one.model_version, one.thresholds, one.hdi_probability) for one in options.values])
    keys = sites.codes * len(option_sets.values) + option_sets.codes[options.codes]
    keys[list(requests.errors)] = -1
    distinct, firsts = np.unique(keys, return_index=True)
    for key in distinct[np.argsort(firsts)].tolist():
        if key >= 0:
            site, option_set = divmod(key, len(option_sets.values))
            yield (sites.values[site], option_sets.values[option_set][0]), np.flatnonzero(keys == key)


def _score_rows(
    model: LoadedModel, requests: RequestColumns, rows: Rows, errors: dict[int, tuple[FieldError, ...]]
) -> Iterator[ScoredGroup]:
    """One group, unless a measurement has no trustworthy score: that one gets an error, and the others are scored."""
    try:
        output = AnswerOutput(score_columns(model, measurements_of(requests, rows)))
    except NormalcyError as error:
        if rows.size == 1:
            errors[rows.item()] = (field_error("numbers_not_trusted", "", str(error)),)
            return
        for half in np.array_split(rows, 2):
            yield from _score_rows(model, requests, half, errors)
    else:
        yield ScoredGroup(model, rows, output)


def measurements_of(requests: RequestColumns, rows: Rows) -> MeasurementColumns:
    options, codes = requests.options.values, requests.options.codes[rows]
    return MeasurementColumns(
        male=requests.male[rows],
        **{name: column[rows] for name, column in requests.numbers.items()},
        convention=np.array([choice.convention for choice in options])[codes],
        include_unreliable=np.array([choice.include_unreliable for choice in options])[codes],
        thresholds=options[codes[0]].thresholds,
        hdi_probability=options[codes[0]].hdi_probability,
    )


def asked_models(requests: RequestColumns) -> set[SiteVersion]:
    """The sites and versions that rows name, also those that are not valid for another reason."""
    return {named for named, _ in _scored_together(requests)} | set(requests.named.values())
