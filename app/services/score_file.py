"""Score a file of measurements block by block. A bad row does not affect the rest; the run leaves one record.

"Current" is resolved once, at the start. The file with the scores appears under its name only after the record of the
run is durable. It holds nothing that changes from run to run: the same input and versions give the same digest.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from app.audit.records import NewRecord
from app.domain.card import ModelRef
from app.errors import (
    FieldError,
    InvalidArtefact,
    InvalidTable,
    NoModelLoaded,
    NormalcyError,
    SiteNotServed,
    UnknownSite,
    UnknownVersion,
)
from app.files import new_file
from app.formats import table_files
from app.formats.response import body
from app.formats.score_table import COLUMNS, Item, check_columns, error_row, read_item, score_row
from app.formats.table_files import Row, TableReader, TableWriter
from app.inference.executor import LoadedModel
from app.inference.scoring import score_with_tails
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.errors import field_error

Json = dict[str, Any]
Report = Callable[[str, float], None]

BLOCK_ROWS = 1024  # scored in one vectorised call per model
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileRun:
    request_id: str
    rows: int
    succeeded: int
    failed: int
    models: tuple[ModelRef, ...]
    input_sha256: str
    output_sha256: str


async def score_file(
    runtime: Runtime, caller: Caller, source: Path, out: Path, site: str | None, report: Report
) -> FileRun:
    """`site` is for rows without one. Raises InvalidTable for a file that is not a table of measurements."""
    table_files.check_suffixes(source, out)
    scorer = _Scorer(runtime)
    try:
        with source.open("rb") as given, new_file(out) as made:
            before, size = _digest(given), source.stat().st_size
            with closing(table_files.table_writer(out, made, COLUMNS)) as writer:
                await scorer.run(table_files.table_reader(source, given, size), writer, site, report)
            run = FileRun(caller.request_id, *scorer.counts(), scorer.models(), before, _digest(made))
            await runtime.writer.write([_new_record(runtime, caller, run)])
    except OSError as error:
        raise InvalidTable([f"{source.name} cannot be read: {error.strerror}."]) from error
    return run


@dataclass(slots=True)
class _Scorer:
    runtime: Runtime
    succeeded: int = 0
    failed: int = 0
    found: dict[tuple[str, str], LoadedModel | FieldError] = field(default_factory=dict)  # by site and version
    used: set[ModelRef] = field(default_factory=set)

    def counts(self) -> tuple[int, int, int]:
        return self.succeeded + self.failed, self.succeeded, self.failed

    def models(self) -> tuple[ModelRef, ...]:
        return tuple(sorted(self.used, key=lambda ref: (ref.site, ref.version)))

    async def run(self, reader: TableReader, writer: TableWriter, site: str | None, report: Report) -> None:
        check_columns(reader.columns, site)
        seen = 0
        for block in _blocks(reader):
            items = [read_item(seen + k, row, site) for k, row in enumerate(block)]
            writer.write(await self._rows(items))
            seen += len(items)
            report(f"{seen} rows", reader.share())
            await asyncio.sleep(0)  # lets the audit writer check its connection

    async def _rows(self, items: Sequence[Item]) -> list[Json]:
        """One per item, in order. Items of one model are scored together."""
        rows: dict[int, Json] = {}
        together: dict[ModelRef, tuple[LoadedModel, list[Item]]] = {}
        for item in items:
            found = await self._model(item)
            if isinstance(found, LoadedModel):
                together.setdefault(found.ref, (found, []))[1].append(item)
            else:
                rows[item.index] = self._error_row(item, found)
        for model, alike in together.values():
            rows.update(self._score_rows(model, alike))
        return [rows[item.index] for item in items]

    async def _model(self, item: Item) -> LoadedModel | tuple[FieldError, ...]:
        if item.request is None:
            return item.errors
        name = (item.site, item.request.model_version)
        if name not in self.found:
            self.found[name] = await self._look_up(*name)
        found = self.found[name]
        return (found,) if isinstance(found, FieldError) else found

    async def _look_up(self, site: str, version: str) -> LoadedModel | FieldError:
        try:
            return await self.runtime.loaded_models.find(site, version)
        except SiteNotServed as error:
            return field_error(
                "version_refused", "model_version", f"model_version, the current one, cannot be used: {error}"
            )
        except (UnknownSite, NoModelLoaded):
            return field_error("unknown_site", "site", "site has no published model.")
        except UnknownVersion:
            return field_error("unknown_version", "model_version", "model_version is not published for the site.")
        except InvalidArtefact as error:
            return field_error("version_refused", "model_version", f"model_version cannot be used: {error}")

    def _score_rows(self, model: LoadedModel, alike: Sequence[Item]) -> dict[int, Json]:
        queries = [item.request.query for item in alike if item.request]
        try:
            answers = [body(scored.answer) for scored in score_with_tails(model, queries)]
        except NormalcyError as error:
            if len(alike) > 1:  # one measurement has no trustworthy score; the others do
                return {item.index: row for item in alike for row in self._score_rows(model, [item]).values()}
            return {alike[0].index: self._error_row(alike[0], (field_error("numbers_not_trusted", "", str(error)),))}
        self.succeeded += len(alike)
        self.used.add(model.ref)
        cohort = model.card.cohort.name
        return {
            item.index: score_row(item, model.ref, cohort, each) for item, each in zip(alike, answers, strict=True)
        }  # fmt: skip

    def _error_row(self, item: Item, errors: Sequence[FieldError]) -> Json:
        self.failed += 1
        return error_row(item, errors)


def _blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    each = iter(rows)
    while block := list(islice(each, BLOCK_ROWS)):
        yield block


def _digest(file: BinaryIO) -> str:
    """SHA-256 of the whole file, which is left at its start."""
    digest = hashlib.sha256()
    file.seek(0)
    while part := file.read(READ_BYTES):
        digest.update(part)
    file.seek(0)
    return digest.hexdigest()


def _new_record(runtime: Runtime, caller: Caller, run: FileRun) -> NewRecord:
    """The run, not its rows: digests of input and output. File names are left out, because they may name people."""
    summary = asdict(run)
    return caller.new_record(
        "score",
        runtime.clock(),
        model=run.models[0] if len(run.models) == 1 else None,
        input={"file_sha256": run.input_sha256, "rows": run.rows},
        output={
            "file_sha256": run.output_sha256,
            **{name: summary[name] for name in ("succeeded", "failed", "models")},
            "service": runtime.service_info,
        },
    )
