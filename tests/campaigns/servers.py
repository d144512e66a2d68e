"""The servers of the load campaigns: each a process of its own, on one processor, started in the same way."""

import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.load_client import measurement
from tests.campaigns.messages import PATH
from tests.postgres import PostgresServer

OUR_TREE = Path(__file__).parents[2]
TIMEOUT_SECONDS = 60
POLL_SECONDS = 0.005
KEY_POLL_SECONDS = 0.1
SERVER_CPU, CLIENT_CPU = 0, 1
COMMAND = ("-c", "from app.cli.main import main; main()")  # `normalcy`, of whatever source tree is on the path


@dataclass(frozen=True, slots=True)
class CommitTime:
    """Of the audit, since the server started."""

    commits: int
    seconds: float

    def __sub__(self, earlier: "CommitTime") -> "CommitTime":
        return CommitTime(self.commits - earlier.commits, self.seconds - earlier.seconds)


@dataclass(frozen=True, slots=True)
class Running:
    process: subprocess.Popen[bytes]
    port: int
    seconds: float  # from the start of the process to its first answer
    answer: dict[str, Any]  # the first

    @property
    def resident_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("VmRSS"))
        return int(kilobytes) / 1024

    @property
    def processor_seconds(self) -> float:
        """Taken so far, by all its threads."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def commit_time(self) -> CommitTime:
        """From /metrics."""
        _, content = get(self.port, "/metrics")
        count, total = (
            float(re.findall(rf"^normalcy_audit_commit_seconds_{part} (\S+)$", content.decode(), re.MULTILINE)[0])
            for part in ("count", "sum")
        )
        return CommitTime(int(count), total)


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of the load generator measured."""

    rate: float  # answers a second, every one of them a 200
    cost: float  # µs of the server's processor time per answer
    p50_ms: float  # from a request to its answer
    p99_ms: float


@contextmanager
def running(
    arguments: Sequence[str],
    port: int,
    environment: Mapping[str, str],
    tree: Path = OUR_TREE,
    python: str = sys.executable,
) -> Iterator[Running]:
    """Pinned to the servers' processor; killed at the end with all its processes: nothing is needed any more."""
    began = time.perf_counter()
    process = _start(arguments, environment, tree, python)
    try:
        first = _first_answer(port, process)
        yield Running(process, port, time.perf_counter() - began, first)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def service(
    folder: Path, database_url: str = "", arguments: Sequence[str] = (*COMMAND, "serve"), tree: Path = OUR_TREE
) -> Iterator[Running]:
    """Normalcy as `normalcy serve` starts it, with a new folder, from the code and the models of a source tree."""
    port = free_port()
    environment = {
        "NORMALCY_DATA_DIR": str(folder),
        "NORMALCY_MODELS_DIR": str(tree / "models_store"),
        "NORMALCY_DATABASE_URL": database_url,
        "NORMALCY_PORT": str(port),
        "NORMALCY_LOG_LEVEL": "warning",
        "NORMALCY_METRICS": "open",
        "NORMALCY_COMMIT": "unknown",  # else every tree says what our environment says
    }
    if tree == OUR_TREE:  # older ones do not have this setting
        environment["NORMALCY_RATE_PER_SECOND"] = "0"
    with running(arguments, port, environment, tree) as started:
        yield started


@contextmanager
def migrated(postgres: PostgresServer, tree: Path = OUR_TREE) -> Iterator[str]:
    """The URL of a new database, for a service."""
    with postgres.new_database() as name:
        migration = _start((*COMMAND, "db", "upgrade"), {"NORMALCY_DATABASE_URL": postgres.url(name)}, tree)
        if migration.wait(TIMEOUT_SECONDS):
            raise RuntimeError("The database could not be migrated.")
        yield postgres.service_url(name)


def create_key(port: int, environment: Mapping[str, str], scopes: Sequence[str], tree: Path = OUR_TREE) -> str:
    """The service has loaded it when this returns: anonymous callers may no longer score."""
    command = [sys.executable, *COMMAND, "keys", "create", "--name", "campaign"]
    done = subprocess.run(  # noqa: S603 - our own program
        [*command, *(word for scope in scopes for word in ("--scope", scope))],
        env=_environment(environment, tree),
        cwd=tree,
        capture_output=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    key = re.search(rb"nsk_[\w-]+", done.stdout)
    assert key is not None
    until = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < until:
        if get(port, "/v1/sites")[0] == 401:
            return key[0].decode()
        time.sleep(KEY_POLL_SECONDS)
    raise RuntimeError("The service did not load its key.")


def start_client(module: str, *arguments: object) -> subprocess.Popen[bytes]:
    """A load generator, pinned to the clients' processor."""
    command = [*pin(CLIENT_CPU), sys.executable, "-m", f"tests.campaigns.{module}", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment({}, OUR_TREE), cwd=OUR_TREE)  # noqa: S603


def client_result(client: subprocess.Popen[bytes], seconds: float = 0.0) -> dict[str, float]:
    """What the load generator measured, once it has ended. Raises if it failed or got any answer but 200."""
    output, _ = client.communicate(timeout=seconds + TIMEOUT_SECONDS)
    if client.returncode:
        raise RuntimeError("A client failed.")
    found: dict[str, float] = json.loads(output)
    if found.get("errors"):
        raise RuntimeError(f"{found['errors']} of {found['answers']} answers were not a 200.")
    return found


def run_load(server: Running, connections: int, seconds: float) -> Load:
    before = server.processor_seconds
    found = client_result(start_client("load_client", server.port, connections, seconds), seconds)
    took = server.processor_seconds - before
    rate, cost = found["answers"] / found["seconds"], took / found["answers"] * 1e6
    return Load(rate, cost, found["p50_ms"], found["p99_ms"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def pin(processor: int) -> Sequence[str]:
    """In front of a command; nothing where there is only one processor."""
    return ("taskset", "-c", str(processor)) if (os.cpu_count() or 1) > processor and shutil.which("taskset") else ()


def get(port: int, path: str) -> tuple[int, bytes]:
    """Status and body, on a new connection."""
    return _exchange(port, "GET", path)


def _exchange(port: int, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        with connection.getresponse() as response:
            return response.status, response.read()


def _start(
    arguments: Sequence[str], environment: Mapping[str, str], tree: Path, python: str = sys.executable
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own programs
        [*pin(SERVER_CPU), python, *arguments],
        env=_environment(environment, tree),
        cwd=tree,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def _environment(given: Mapping[str, str], tree: Path) -> dict[str, str]:
    """Ours, with a source tree's modules before any that are installed."""
    paths = [str(tree), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **given}


def _first_answer(port: int, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    body = json.dumps(measurement(random.Random(0)))  # noqa: S311 - not for secrets
    ends = time.perf_counter() + TIMEOUT_SECONDS
    while time.perf_counter() < ends and process.poll() is None:
        try:
            status, content = _exchange(port, "POST", PATH, body)
        except ConnectionRefusedError:
            time.sleep(POLL_SECONDS)
            continue
        assert status == 200, content
        return json.loads(content) if content.startswith(b"{") else {}
    raise RuntimeError("A server did not start.")
