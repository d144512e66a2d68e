"""Score a file of measurements part by part. A bad row does not affect the rest; the run leaves one record.

"Current" is resolved once, at the first start of the run. The output appears under its name only after the record of
the run is durable. It holds nothing that changes from run to run: the same input and versions give the same digest.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from typing import NamedTuple

from app.audit.lookup import find_records
from app.audit.records import NewRecord
from app.database.records import Filter
from app.domain.card import ModelRef
from app.errors import FileExists, InvalidTable, NormalcyError
from app.files import HashedFile, publish_file, scratch_file, synchronise
from app.formats import table_files
from app.formats.score_table import ERROR_COLUMNS, SCORE_COLUMNS
from app.formats.table_parts import open_output
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.services.score_file import work_folder
from app.services.score_file.parts import Job, Source, inspect_source
from app.services.score_file.work_folder import Manifest, Receipt, errors_name, scores_name
from app.services.score_file.workers import ThisProcess, Workers, cluster, local_processes

Report = Callable[[int, int], None]  # rows that are done, and all rows

SCORES, ERRORS = "scores", "errors"  # in the work folder, until the run is recorded
PART_ROWS = 1 << 17  # what a stopped run has to do again, at most, for each worker: about two seconds' work


@dataclass(frozen=True, slots=True)
class FileOrder:
    """What to score, from the command line."""

    source: Path
    out: Path
    site: str | None = None  # for rows without one
    part_rows: int = PART_ROWS
    workers: int = 1
    scheduler: str | None = None  # address of a Dask cluster

    @property
    def errors_out(self) -> Path:
        """scores.errors.csv beside scores.csv"""
        return self.out.with_name(f"{self.out.stem}.errors{self.out.suffix}")


@dataclass(frozen=True, slots=True)
class FileRun:
    request_id: str
    rows: int
    succeeded: int
    failed: int
    models: tuple[ModelRef, ...]
    input_sha256: str
    output_sha256: str
    errors_sha256: str | None  # None: every row has an answer, and there is no second file


class Assembled(NamedTuple):
    succeeded: int
    failed: int
    models: tuple[ModelRef, ...]
    scores_sha256: str
    errors_sha256: str


async def score_file(runtime: Runtime, caller: Caller, order: FileOrder, report: Report) -> FileRun:
    """Raises InvalidTable for a file that is not a table of measurements."""
    table_files.check_suffixes(order.source, order.out)
    if order.out.exists():
        raise FileExists(str(order.out))
    is_stopped = Event()
    try:
        with _workers(runtime, order) as workers:
            source = await asyncio.to_thread(_inspect, order, workers)
            counter = Counter(source.rows, report, is_stopped)
            with work_folder.opened(order.out, _manifest(runtime, caller, order, source), order.errors_out) as manifest:
                job = _job(runtime, order, manifest)
                made = await asyncio.to_thread(_score_and_assemble, order, job, source, workers, counter)
                run = FileRun(
                    manifest.request_id, source.rows, made.succeeded, made.failed, made.models, source.sha256,
                    made.scores_sha256, made.errors_sha256 if made.failed else None,
                )  # fmt: skip
                if not await _is_recorded(runtime, run):
                    await runtime.writer.write([_new_record(runtime, replace(caller, request_id=run.request_id), run)])
                await asyncio.to_thread(_publish, order, job, run)
                work_folder.remove(order.out)
    finally:
        is_stopped.set()
    return run


@dataclass(slots=True)
class Counter:
    """Counts rows for the progress bar; ends the run, which happens in a thread, when the command is interrupted."""

    total: int
    report: Report
    is_stopped: Event
    done: int = 0

    def add(self, rows: int) -> None:
        if self.is_stopped.is_set():
            raise NormalcyError("The run was stopped.")
        self.done += rows
        self.report(self.done, self.total)


def _workers(runtime: Runtime, order: FileOrder) -> AbstractContextManager[Workers]:
    if order.scheduler is not None:
        return cluster(order.scheduler)
    if order.workers > 1:
        return local_processes(order.workers)
    return nullcontext(ThisProcess(tuple(runtime.loaded_models.current.values())))


def _inspect(order: FileOrder, workers: Workers) -> Source:
    try:
        return workers.call(inspect_source, order.source.absolute(), order.site, order.part_rows)
    except OSError as error:
        raise InvalidTable([f"{order.source.name} cannot be read: {error.strerror}."]) from error


def _manifest(runtime: Runtime, caller: Caller, order: FileOrder, source: Source) -> Manifest:
    """Of a run that starts now."""
    models, service = runtime.loaded_models, runtime.service_info
    return Manifest(
        caller.request_id,
        tuple(model.ref for model in models.current.values()),
        tuple(models.not_served.items()),
        source.sha256,
        (order.site or "", str(order.part_rows)),
        (service.version, service.commit, service.backend, service.device),
    )


def _job(runtime: Runtime, order: FileOrder, manifest: Manifest) -> Job:
    settings = runtime.settings
    return Job(
        order.source.absolute(),
        work_folder.folder_of(order.out.absolute()),
        order.out.suffix.lower(),
        order.site,
        settings.models_dir.absolute(),
        settings.backend,
        settings.device,
        manifest.current,
        manifest.not_served,
    )


def _score_and_assemble(order: FileOrder, job: Job, source: Source, workers: Workers, counter: Counter) -> Assembled:
    before = _version(order.source)
    try:
        receipts = workers.receipts(job, source.parts, counter.add)
        made = workers.call(assemble, job, list(receipts) if workers.is_remote else receipts)
    except InvalidTable:
        work_folder.remove(order.out)  # nothing can go on from here: the input has to change
        raise
    except OSError as error:
        raise NormalcyError(f"{order.out} cannot be written: {error.strerror}.") from error
    if _version(order.source) != before:
        work_folder.remove(order.out)
        raise InvalidTable([f"{order.source.name} changed while it was scored: run the command again."])
    return made


def assemble(job: Job, receipts: Iterable[Receipt]) -> Assembled:
    """Put the finished parts together in one file of scores and one of the rows without a score.

    A part is added as soon as its receipt comes, while workers score the next ones.
    """
    folder, succeeded, failed = job.folder, 0, 0
    used: set[ModelRef] = set()
    with (
        scratch_file(folder / SCORES) as score_file,
        scratch_file(folder / ERRORS) as error_file,
    ):
        hashed_scores, hashed_errors = HashedFile(score_file), HashedFile(error_file)
        with (
            closing(open_output(job.suffix, hashed_scores, SCORE_COLUMNS)) as scores,
            closing(open_output(job.suffix, hashed_errors, ERROR_COLUMNS)) as errors,
        ):
            for receipt in receipts:
                for output, name in ((scores, scores_name(receipt.number)), (errors, errors_name(receipt.number))):
                    with (folder / name).open("rb") as part:
                        output.append(part)
                succeeded, failed = succeeded + receipt.succeeded, failed + receipt.failed
                used.update(receipt.models)
    for name in (SCORES, ERRORS):
        synchronise(folder / name)
    models = tuple(sorted(used, key=lambda ref: (ref.site, ref.version)))
    return Assembled(succeeded, failed, models, hashed_scores.sha256, hashed_errors.sha256)


def _version(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _publish(order: FileOrder, job: Job, run: FileRun) -> None:
    """The scores last: when they are there, the run is complete."""
    if run.failed:
        publish_file(job.folder / ERRORS, order.errors_out)
    publish_file(job.folder / SCORES, order.out)


async def _is_recorded(runtime: Runtime, run: FileRun) -> bool:
    """By an earlier start, which was killed after the commit and before the output appeared."""
    async with runtime.database.reading() as connection:
        page = await find_records(connection, Filter(request_id=run.request_id))
    return any((record.get("output") or {}).get("file_sha256") == run.output_sha256 for record in page.records)


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
            **{name: summary[name] for name in ("errors_sha256", "succeeded", "failed", "models")},
            "service": runtime.service_info,
        },
    )
