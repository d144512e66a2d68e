"""Power loss: the system calls of the service and of PostgreSQL show that every score was on the disk when it left.

Every request has an id of its own. It stands in clear in the bytes that are written to the write-ahead log, and in the
headers of the response, so that the trace shows for each score: written, synchronised, acknowledged, in this order.
"""

import asyncio
import re
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from tests.campaigns.faults.cycles import verdict_unmet, verify
from tests.campaigns.faults.injection import postgres_processes
from tests.campaigns.faults.load import Load
from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import Target, started

CALLS = "write,writev,pwrite64,pwritev,pwritev2,send,sendto,sendmsg,fsync,fdatasync"
LONGEST = 2**20  # bytes of a call that are shown
LOGS = re.compile(r"-wal$|/pg_wal/")  # the write-ahead log of SQLite, of PostgreSQL
LINE = re.compile(r"(?P<process>\d+) +(?:(?P<call>\w+)\(\d+<(?P<file>[^>]*)>|<\.\.\. (?P<resumed>\w+) resumed>)")
ACKNOWLEDGED = "HTTP/1.1 200"
SUCCEEDED = re.compile(r"\) += 0\s*$")
UNFINISHED = "<unfinished ...>"
POLL_SECONDS = 0.05
ATTACHED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Trace:
    """Where in the trace each id was first written to a log, was then on the disk, and first left in a response."""

    written: dict[str, int]
    synchronised: dict[str, int]
    acknowledged: dict[str, int]
    synchronisations: int

    @property
    def too_early(self) -> list[str]:
        """The ids of scores that left before they were on the disk."""
        last = float("inf")
        return [name for name, when in self.acknowledged.items() if self.synchronised.get(name, last) > when]


def read_trace(lines: Iterable[str], ids: re.Pattern[str]) -> Trace:
    written, synchronised, acknowledged = dict[str, int](), dict[str, int](), dict[str, int]()
    waiting: dict[str, set[str]] = defaultdict(set)  # by log: ids that are written and not yet on the disk
    covered: dict[str, tuple[str, set[str]]] = {}  # by process: the log that it synchronises, and its ids until then
    count = 0
    for number, line in enumerate(lines):
        found = LINE.match(line)
        if found is None:
            continue
        process, call, file = found["process"], found["call"] or found["resumed"], found["file"] or ""
        if call in ("fsync", "fdatasync"):
            if found["call"] and LOGS.search(file):
                covered[process] = (file, set(waiting[file]))
            if process in covered and UNFINISHED not in line:
                log, on_disk = covered.pop(process)
                waiting[log] -= on_disk  # also by a failed one: a later success says nothing of what it dropped
                if SUCCEEDED.search(line):
                    count += 1
                    synchronised.update((name, number) for name in on_disk)
        elif LOGS.search(file):
            new = {name for name in ids.findall(line) if name not in written}
            written.update((name, number) for name in new)
            waiting[file] |= new
        elif ACKNOWLEDGED in line:
            for name in ids.findall(line):
                acknowledged.setdefault(name, number)
    return Trace(written, synchronised, acknowledged, count)


async def run_power_loss(context: Context) -> Finding:
    """A cycle is an acknowledged score."""
    label, file = f"p{context.seed}", context.folder / "trace"
    async with started(context) as target:
        async with traced(target, file), Load(target.service, label) as load:
            for number in context.each_cycle():
                while load.served <= number:
                    await asyncio.sleep(POLL_SECONDS)
        verdict = await verify(target)
    with file.open(errors="replace") as lines:
        trace = read_trace(lines, re.compile(rf"{label}-\d+-\d+(?!\d)"))
    served = [outcome.request_id for outcome in load.outcomes if outcome.status == 200]
    unseen = len(set(served) - trace.acknowledged.keys())
    figures: dict[str, Figure] = {
        "acknowledged": len(served),
        "synchronisations of the log": trace.synchronisations,
        "acknowledged before they were on the disk": len(trace.too_early),
        "not in the trace": unseen,
    }
    unmet = [f"{name} {count:,}" for name, count in list(figures.items())[2:] if count]
    unmet += verdict_unmet(verdict)
    return Finding(len(served), figures, unmet if served else ["nothing acknowledged"])


@asynccontextmanager
async def traced(target: Target, file: Path) -> AsyncIterator[None]:
    """By one strace, so that the order of its lines is the order of the calls of all processes."""
    program = shutil.which("strace")
    if program is None:
        raise RuntimeError("this row needs strace")
    processes = [target.service.process.pid, *(postgres_processes(target.postgres) if target.server else ())]
    options = ("-f", "-y", "-s", str(LONGEST), "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(file))
    attached = [word for pid in processes for word in ("-p", str(pid))]
    strace = await asyncio.create_subprocess_exec(program, *options, *attached, stdout=DEVNULL, stderr=PIPE)
    try:
        await _until_attached(strace, processes)
        yield
    finally:
        if strace.returncode is None:
            strace.send_signal(signal.SIGINT)
        await strace.communicate()


async def _until_attached(strace: Process, processes: list[int]) -> None:
    """Every thread of theirs has a tracer."""
    async with asyncio.timeout(ATTACHED_SECONDS):
        while not all(_is_traced(pid) for pid in processes):
            if strace.returncode is not None:
                raise RuntimeError(f"strace: {(await strace.communicate())[1].decode()}")
            await asyncio.sleep(POLL_SECONDS)


def _is_traced(pid: int) -> bool:
    states = (Path(f"/proc/{pid}/task/{thread.id}/status").read_text() for thread in psutil.Process(pid).threads())
    return all("\nTracerPid:\t0\n" not in state for state in states)
