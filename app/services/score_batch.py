"""Score a batch: blocks of items, each validated, scored, recorded and only then returned, in order.

A block is computed in a thread, so that single requests are answered meanwhile. "Current" is resolved once, when the
batch begins. Memory is bounded by one block, whatever the length of a stream.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from app.audit.blocks import block_fields
from app.audit.encryption import encrypt, owners_of
from app.audit.recorded_request import recorded_columns
from app.audit.records import NewRecord
from app.domain.card import ModelRef
from app.errors import FieldError, InvalidInput, LineTooLong, MalformedJson
from app.files import csv_lines
from app.formats import strict_json
from app.formats.block_columns import distinct, same
from app.formats.csv_stream import CsvStream, Record, columns_of, header_errors
from app.formats.response import encode, provenance
from app.formats.score_table import COLUMNS, validate_table
from app.formats.table_parts import csv_of
from app.inference.executor import LoadedModel
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.answers import BatchEnd, BatchSummary, Provenance
from app.schemas.problem import INPUT_REFUSED
from app.schemas.request_columns import RequestColumns, validate_items
from app.schemas.requests import BatchRequest
from app.schemas.validation import parse
from app.services.score_block import BlockModels, ScoredBlock, score_block

T = TypeVar("T")
Json = dict[str, Any]
Chunks = AsyncIterator[bytes]

BLOCK_ITEMS = 1000  # at most as many as `app.audit.blocks` allows
MAX_LINE_BYTES = 64 * 1024


class Batch:
    """One request with many items."""

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self._runtime, self._caller = runtime, caller
        self._models = BlockModels(runtime)
        self._numbers: dict[ModelRef, int] = {}  # by which results name their model
        self._used: list[Provenance] = []
        self.succeeded = self.failed = 0

    @property
    def provenance(self) -> tuple[Provenance, ...]:
        return tuple(self._used)

    @property
    def seen(self) -> int:
        return self.succeeded + self.failed

    async def score(self, validate: Callable[[], RequestColumns], write: Callable[[ScoredBlock, int], T]) -> T:
        """Validate, score and record one block, and return what `write` makes of it. Raises AuditUnavailable."""
        batch_thread, first = self._runtime.batches, self.seen
        requests = await batch_thread.run(validate)
        models = await self._models.find(requests)
        block = await batch_thread.run(partial(score_block, requests, models))
        for group in block.groups:
            self._number(group.model)
        written, records = await batch_thread.run(lambda: (write(block, first), list(self.records(block, first))))
        async with batch_thread.recording:
            await self._runtime.writer.write_in_parts(await self._encrypted(records))
        self._count(block)
        return written

    async def _encrypted(self, records: list[NewRecord]) -> list[NewRecord]:
        """Where inputs are encrypted, the items of each patient are a record of their own."""
        data_keys = self._runtime.data_keys
        if not data_keys.encrypts:
            return records
        scores = [record for record in records if record.kind == "score"]
        keys = await data_keys.get(owner for record in scores for owner in owners_of(record))
        encrypted = await self._runtime.batches.run(lambda: [each for one in scores for each in encrypt(one, keys)])
        return [*encrypted, *(record for record in records if record.kind != "score")]

    def items(self, block: ScoredBlock, first: int) -> list[bytes]:
        return block.items(first, self._numbers)

    def summary(self) -> BatchSummary:
        return BatchSummary(self.succeeded, self.failed, self._caller.request_id, self.provenance)

    def _number(self, model: LoadedModel) -> None:
        if model.ref not in self._numbers:
            self._numbers[model.ref] = len(self._used)
            info, now = self._runtime.service_info, self._runtime.clock()
            self._used.append(provenance(model.provenance, info, now))

    def records(self, block: ScoredBlock, first: int) -> Iterator[NewRecord]:
        """One for each group of items, and one for the items that were rejected: their codes, never their values."""
        now, info, hasher = self._runtime.clock(), self._runtime.service_info, self._runtime.hasher
        for group in block.groups:
            rows = group.rows.tolist()
            fields = block_fields(
                [first + row for row in rows],
                group.output.record_columns(),
                recorded_columns(block.requests, rows, hasher),
                service=info,
            )
            yield self._caller.new_record("score", now, model=group.model.ref, **fields)
        if block.errors:
            codes = [tuple(sorted({error.code for error in errors})) for errors in block.errors.values()]
            columns = {"problem": same(INPUT_REFUSED.slug), "errors": distinct(codes)}
            fields = block_fields([first + row for row in block.errors], columns)
            yield replace(self._caller.new_record("refusal", now, **fields), status=INPUT_REFUSED.status)

    def _count(self, block: ScoredBlock) -> None:
        self.succeeded += block.succeeded
        self.failed += len(block.errors)
        metrics = self._runtime.metrics
        for group in block.groups:
            ref = group.model.ref
            for verdict, has_score, count in group.output.verdicts():
                metrics.verdicts[ref.site, verdict].inc(count)
                if has_score:
                    metrics.scores[ref.site, ref.version].inc(count)


async def score_json(runtime: Runtime, caller: Caller, body: bytes, is_gone: Callable[[], bool]) -> list[bytes]:
    """The response in parts. Raises MalformedJson and InvalidInput before anything is scored."""
    batch = Batch(runtime, caller)
    request = await runtime.batches.run(lambda: parse(BatchRequest, strict_json.loads(body)))
    results: list[bytes] = []
    for items in _blocks(request.items):
        if is_gone():
            return []
        results += await batch.score(partial(validate_items, items), batch.items)
    head = {
        "request_id": caller.request_id,
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "provenance": batch.provenance,
    }
    return [encode(head)[:-1], b',"results":[', b",".join(results), b"]}"]


async def score_ndjson(runtime: Runtime, caller: Caller, chunks: Chunks) -> AsyncIterator[bytes]:
    """One result per line, in order; the last line is the summary. Raises LineTooLong and AuditUnavailable."""
    batch = Batch(runtime, caller)
    async for lines in _lines(chunks):
        for some in _blocks([line for line in lines if line.strip()]):
            results = await batch.score(partial(_validate_lines, some), batch.items)
            yield b"\n".join((*results, b""))
    yield encode(BatchEnd(batch.summary())) + b"\n"


async def score_csv(runtime: Runtime, caller: Caller, chunks: Chunks) -> AsyncIterator[bytes]:
    """A header and one row per row. Raises InvalidInput for a header that cannot be used, and as `score_ndjson`."""
    batch, table, begun = Batch(runtime, caller), CsvStream(MAX_LINE_BYTES), False
    async for lines in _lines(chunks):
        rows = table.read(lines)
        if table.columns and not begun:
            begun = True
            yield _csv_header(table.columns)
        for some in _blocks(rows):
            yield await batch.score(partial(_validate_records, table.columns, some), _csv)
    if not begun:
        yield _csv_header(table.columns)
    for some in _blocks(table.finish()):
        yield await batch.score(partial(_validate_records, table.columns, some), _csv)


def csv_problem(problem: Json) -> bytes:
    """The last row of a stream that failed: it belongs to no item."""
    row = {"error_codes": problem["type"].rpartition("problem-")[2], "errors": problem["detail"]}
    return csv_lines([[row.get(column.name) for column in COLUMNS]])


def _csv_header(columns: Sequence[str]) -> bytes:
    if errors := header_errors(columns):
        raise InvalidInput(errors)
    return csv_lines([[column.name for column in COLUMNS]])


def _csv(block: ScoredBlock, first: int) -> bytes:
    return csv_of(block.flat(first).values())


def _validate_records(names: Sequence[str], records: Sequence[Record]) -> RequestColumns:
    requests = validate_table(columns_of(names, records))
    requests.errors.update({k: (one,) for k, one in enumerate(records) if isinstance(one, FieldError)})
    return requests


def _blocks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + BLOCK_ITEMS] for start in range(0, len(items), BLOCK_ITEMS))


async def _lines(chunks: Chunks) -> AsyncIterator[list[bytes]]:
    """Whole lines as they arrive; the last one need not end. Raises LineTooLong."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES or any(len(line) > MAX_LINE_BYTES for line in lines):
            raise LineTooLong
        if lines:
            yield lines
    if rest:
        yield [rest]


def _validate_lines(lines: Iterable[bytes]) -> RequestColumns:
    """Every line by itself: one that is not acceptable JSON is an item with an error."""
    items: list[Any] = []
    malformed: dict[int, tuple[FieldError, ...]] = {}
    for k, line in enumerate(lines):
        try:
            items.append(strict_json.loads(line))
        except MalformedJson as error:
            items.append(None)
            malformed[k] = (error.error,)
    requests = validate_items(items)
    requests.errors.update(malformed)
    return requests
