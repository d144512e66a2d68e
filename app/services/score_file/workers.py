"""Where parts are scored: in this process, in others of this machine, or on a Dask cluster. Receipts come in order."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, Protocol, TypeVar

from app.errors import NormalcyError, NotInstalled
from app.formats.table_files import Part
from app.inference.executor import LoadedModel
from app.services.score_file.parts import Job, PartScorer, score_part
from app.services.score_file.work_folder import Receipt

T = TypeVar("T")
Count = Callable[[int], None]
CONNECT_SECONDS = 10
WORKER_ENDED = (
    "A worker ended before its part was scored, perhaps for lack of memory. Run the same command again, with fewer "
    "workers: parts that are finished are not scored again."
)


class Workers(Protocol):
    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Run it where the files are."""

    def receipts(self, job: Job, parts: Sequence[Part], count: Count) -> Iterator[Receipt]:
        """As parts are finished, in their order. `count` is called with the number of rows that were scored."""

    @property
    def is_remote(self) -> bool:
        """This process may be far from the files: what reads them is passed to `call`."""


class ThisProcess:
    is_remote = False

    def __init__(self, loaded: Sequence[LoadedModel]) -> None:
        self._loaded = loaded

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        return function(*arguments)

    def receipts(self, job: Job, parts: Sequence[Part], count: Count) -> Iterator[Receipt]:
        scorer = PartScorer(job, self._loaded)
        return (scorer.score(part, count) for part in parts)


class Processes:
    """Spawned: a fork would copy the threads of the database in an unknown state."""

    is_remote = False

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        return function(*arguments)

    def receipts(self, job: Job, parts: Sequence[Part], count: Count) -> Iterator[Receipt]:
        with _reporting(BrokenProcessPool):
            yield from _results([self._pool.submit(score_part, job, part) for part in parts], count)


class Cluster:
    """Tasks are a path and a range of rows; results are receipts. No measurement passes through this process."""

    is_remote = True

    def __init__(self, client: Any, killed: type[Exception]) -> None:
        """`killed` is what Dask raises for a task whose workers ended."""
        self._client, self._killed = client, killed

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        with _reporting(self._killed, CancelledError):  # the latter if the scheduler ended
            result: T = self._client.submit(function, *arguments, pure=False).result()
            return result

    def receipts(self, job: Job, parts: Sequence[Part], count: Count) -> Iterator[Receipt]:
        with _reporting(self._killed, CancelledError):
            yield from _results([self._client.submit(score_part, job, part, pure=False) for part in parts], count)


@contextmanager
def _reporting(*ended: type[Exception]) -> Iterator[None]:
    try:
        yield
    except ended as error:
        raise NormalcyError(WORKER_ENDED) from error


def _results(futures: Sequence[Any], count: Count) -> Iterator[Receipt]:
    for future in futures:
        receipt: Receipt = future.result()
        count(receipt.rows)
        yield receipt


@contextmanager
def local_processes(count: int) -> Iterator[Processes]:
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_parent)
    try:
        yield Processes(pool)
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for its next part forever. Ctrl-C is for the parent alone: the worker
    finishes its part."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


@contextmanager
def cluster(address: str) -> Iterator[Cluster]:
    """Raises NotInstalled without Dask, and NormalcyError if there is no scheduler at the address."""
    try:
        import distributed
    except ImportError as error:
        raise NotInstalled("Dask (distributed) for --scheduler", "files") from error
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise NormalcyError("No Dask scheduler answers at the address of --scheduler.") from error
    with client:
        yield Cluster(client, distributed.KilledWorker)
