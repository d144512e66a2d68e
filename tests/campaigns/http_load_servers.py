"""The servers of the campaign: each a process of its own, on one processor, started in the same way."""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.http_load_client import reading
from tests.postgres import PostgresServer

MODELS = Path(__file__).parents[2] / "models_store"
PATIENCE_SECONDS = 60
POLL_SECONDS = 0.005
SERVER_CPU, CLIENT_CPU = 0, 1
PATH = "/v1/sites/SoV/score"

SERVE = ("-c", "from app.cli.main import main; main()", "serve")
MIGRATE = ("-c", "from app.cli.main import main; main()", "db", "upgrade")


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


@contextmanager
def running(arguments: Sequence[str], port: int, environment: Mapping[str, str]) -> Iterator[Running]:
    """Pinned to the processor of servers; killed at the end, as nothing of it is needed any more."""
    began = time.perf_counter()
    process = _start(arguments, environment)
    try:
        first = _first_answer(port, process)
        yield Running(process, port, time.perf_counter() - began, first)
    finally:
        process.kill()
        process.wait()


@contextmanager
def service(folder: Path, database_url: str = "", audited: bool = True) -> Iterator[Running]:
    """Normalcy as `normalcy serve` starts it, with a new folder."""
    port = free_port()
    environment = {
        "NORMALCY_DATA_DIR": str(folder),
        "NORMALCY_MODELS_DIR": str(MODELS),
        "NORMALCY_DATABASE_URL": database_url,
        "NORMALCY_PORT": str(port),
        "NORMALCY_LOG_LEVEL": "warning",
    }
    arguments = SERVE if audited else ("-m", "tests.campaigns.http_load_unaudited")
    with running(arguments, port, environment) as started:
        yield started


@contextmanager
def bare(kind: str, *files: Path) -> Iterator[Running]:
    port = free_port()
    with running(("-m", "tests.campaigns.bare_servers", kind, str(port), *map(str, files)), port, {}) as started:
        yield started


@contextmanager
def contestants(folder: Path, postgres: PostgresServer) -> Iterator[dict[str, Running]]:
    """All five at once; those that nobody asks are idle."""
    with migrated(postgres) as url, ExitStack() as stack:
        found = {
            "audit off": stack.enter_context(service(folder / "off", audited=False)),
            "SQLite": stack.enter_context(service(folder / "sqlite")),
            "PostgreSQL": stack.enter_context(service(folder / "postgres", url)),
        }
        answer = folder / "answer.json"
        answer.write_text(json.dumps(found["audit off"].answer))
        found["hello"] = stack.enter_context(bare("hello"))
        found["FastAPI route"] = stack.enter_context(bare("route", answer))
        yield found


@contextmanager
def migrated(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a new database, for a service."""
    with postgres.new_database() as name:
        if _start(MIGRATE, {"NORMALCY_DATABASE_URL": postgres.url(name)}).wait(PATIENCE_SECONDS):
            raise RuntimeError("The database could not be migrated.")
        yield postgres.service_url(name)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def pin(processor: int) -> Sequence[str]:
    """In front of a command; nothing where there is one processor only."""
    return ("taskset", "-c", str(processor)) if (os.cpu_count() or 1) > processor and processor_tool() else ()


def processor_tool() -> bool:
    return any(os.access(Path(folder) / "taskset", os.X_OK) for folder in os.environ.get("PATH", "").split(":"))


def _start(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own programs
        [*pin(SERVER_CPU), sys.executable, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
    )


def _first_answer(port: int, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    body = json.dumps(reading(random.Random(0)))  # noqa: S311 - not for secrets
    ends = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < ends and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("POST", PATH, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
            assert response.status == 200, content
            return json.loads(content) if content.startswith(b"{") else {}
        except ConnectionRefusedError:
            time.sleep(POLL_SECONDS)
        finally:
            connection.close()
    raise RuntimeError("A server did not start.")
