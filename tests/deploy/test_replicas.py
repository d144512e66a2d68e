"""Two service processes on one PostgreSQL, behind nginx and Caddy, restarted one after the other under load.

It runs once, and each test looks at one side of what happened.
"""

import asyncio
import json
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.audit.signing_key import KEY_FILE
from app.database.engine import Database
from app.database.records import stream_chains
from app.runtime import poller
from app.runtime.command import upgrade_database
from app.settings import Settings, load_settings
from tests.campaigns.messages import random_measurement
from tests.campaigns.service_process import ServiceProcess, Verdict
from tests.deploy.proxies import NAME, PROXIES, Proxy, free_port, proxied
from tests.postgres import PostgresServer
from tests.web.serving import SCORE, bearer, create_key, on_database

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

CLIENTS = 4  # of each proxy
DIRECT = 20  # requests to each replica without a proxy
SETTLED_SECONDS = 2.0  # as docs/operators.md says: ready for so long before the next one stops
ACTIVATION_SECONDS = 2.0  # the contract's limit
POLL_SECONDS = 0.02
PAUSE_SECONDS = 0.01  # of a client between requests: enough load for every moment of a restart, not all of the machine


@dataclass(frozen=True)
class Outcome:
    """Of one request through a proxy."""

    proxy: str
    request_id: str
    status: int | str  # the name of the exception if there was no answer
    expected_ns: float | None = None


@dataclass
class History:
    """What happened."""

    following: set[str] = field(default_factory=set)  # replicas that use a version after its activation at the first
    direct_process: dict[str, int] = field(default_factory=dict)  # id of a direct request -> process that answered it
    outcomes: list[Outcome] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    verdict: Verdict | None = None
    records: list[tuple[UUID, dict[str, Any]]] = field(default_factory=list)  # with their chains


@asynccontextmanager
async def replicas(settings: Settings, models: Path, folder: Path) -> AsyncIterator[dict[str, ServiceProcess]]:
    """Each with a port, so that it comes back where the proxies look for it, and a data folder of its own."""
    made = {
        name: ServiceProcess(
            {
                "NORMALCY_DATABASE_URL": settings.database_url,
                "NORMALCY_DATA_DIR": str(folder / name),
                "NORMALCY_MODELS_DIR": str(models),
                "NORMALCY_PORT": str(free_port()),
                "NORMALCY_RATE_PER_SECOND": "0",
                "NORMALCY_SUBJECT_KEY": "a key of tests, long enough to be one",
                "NORMALCY_SIGNING_KEY_FILE": str(folder / KEY_FILE),  # that of the owner, who made the first API key
            }
        )
        for name in ("first", "second")
    }
    try:
        await asyncio.gather(*(replica.start() for replica in made.values()))
        yield made
    finally:
        running = [replica for replica in made.values() if replica.port is not None]
        await asyncio.gather(*(replica.end(signal.SIGTERM) for replica in running))


async def send(client: httpx.AsyncClient, proxy: str, request_id: str, body: dict[str, Any]) -> Outcome:
    wanted, named = body | {"include_unreliable": True}, {"sni_hostname": NAME}  # the small models know few people
    try:
        answer = await client.post(SCORE, json=wanted, headers={"X-Request-ID": request_id}, extensions=named)
    except httpx.HTTPError as error:
        return Outcome(proxy, request_id, type(error).__name__)
    score = answer.json()["score"]["expected_ns"] if answer.status_code == 200 else None
    return Outcome(proxy, request_id, answer.status_code, score)


async def keep_sending(proxy: str, where: Proxy, key: str, number: int, stop: asyncio.Event, history: History) -> None:
    rng, sent = random.Random(f"{proxy}-{number}"), 0  # noqa: S311 - no secret
    async with where.async_client() as client:
        client.headers.update(bearer(key))
        while not stop.is_set():
            sent += 1
            outcome = await send(client, proxy, f"{proxy}-{number}-{sent}", random_measurement(rng))
            history.outcomes.append(outcome)
            await asyncio.sleep(PAUSE_SECONDS)


async def wait_for(client: httpx.AsyncClient, path: str, is_so: Callable[[httpx.Response], bool]) -> None:
    until = time.monotonic() + 30
    while not is_so(await client.get(path)):
        assert time.monotonic() < until
        await asyncio.sleep(POLL_SECONDS)


def direct(replica: ServiceProcess, key: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{replica.port}", headers=bearer(key), timeout=30)


async def activate(services: dict[str, ServiceProcess], key: str, history: History) -> None:
    """At the first replica. Every replica must come to use the version."""

    def follows(ready: httpx.Response) -> bool:
        return "1.0.0" in [model["version"] for model in ready.json()["models"] if model["site"] == "SoV"]

    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(direct(one, key)) for name, one in services.items()}
        for client in clients.values():
            assert not follows(await client.get("/health/ready"))
        done = await clients["first"].post("/v1/models/SoV/activate", json={"version": "1.0.0"})
        assert done.status_code == 200, done.text
        for name, client in clients.items():
            await wait_for(client, "/health/ready", follows)
            history.following.add(name)


async def send_directly(services: dict[str, ServiceProcess], key: str, history: History) -> None:
    rng = random.Random(0)  # noqa: S311 - no secret
    for name, replica in services.items():
        async with direct(replica, key) as client:
            for number in range(DIRECT):
                outcome = await send(client, "none", f"direct-{name}-{number}", random_measurement(rng))
                assert outcome.status == 200
                history.direct_process[outcome.request_id] = replica.process.pid


async def restart_one_by_one(services: dict[str, ServiceProcess], key: str, history: History) -> None:
    for replica in services.values():
        history.exits.append(await replica.end(signal.SIGTERM))
        await replica.start()
        async with direct(replica, key) as client:
            await wait_for(client, "/health/ready", lambda answer: answer.status_code == 200)
        await asyncio.sleep(SETTLED_SECONDS)


async def run(settings: Settings, key: str, models: Path, folder: Path) -> History:
    history, stop = History(), asyncio.Event()
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(replicas(settings, models, folder))
        await activate(services, key, history)
        await send_directly(services, key, history)
        upstreams = [f"127.0.0.1:{replica.port}" for replica in services.values()]
        clients = []
        for name in PROXIES:
            (folder / name).mkdir()
            proxy = stack.enter_context(proxied(name, folder / name, *upstreams))
            sending = (keep_sending(name, proxy, key, number, stop, history) for number in range(CLIENTS))
            clients += [asyncio.create_task(one) for one in sending]
        await asyncio.sleep(1)
        await restart_one_by_one(services, key, history)
        stop.set()
        await asyncio.gather(*clients)
        history.verdict = await services["first"].verify()
    return history


@pytest.fixture(scope="module")
def history(server: PostgresServer, models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder = tmp_path_factory.mktemp("replicas")
    with server.new_database() as name:
        owner = load_settings({"NORMALCY_DATABASE_URL": server.url(name), "NORMALCY_DATA_DIR": str(folder)})
        asyncio.run(upgrade_database(owner))
        key = create_key(owner, ["score", "model:read", "admin"])
        service = load_settings({"NORMALCY_DATABASE_URL": server.service_url(name)})
        found = asyncio.run(run(service, key, models_dir, folder))
        found.records = on_database(owner, read_all)
        yield found


async def read_all(database: Database) -> list[tuple[UUID, dict[str, Any]]]:
    async with database.reading() as connection:
        return [(row.chain_id, json.loads(row.payload)) async for page in stream_chains(connection) for row in page]


def chain_processes(history: History) -> dict[UUID, int]:
    """Chain -> the process that opened it, for the chains with scores. An activation has a chain of its own."""
    opened = {chain: record["input"] for chain, record in history.records if record["kind"] == "genesis"}
    return {chain: opened[chain]["process"] for chain, record in history.records if record["kind"] == "score"}


@pytest.mark.req("REQ-056")
def test_an_activation_reaches_every_replica_in_time(history: History) -> None:
    """How long it took is not judged, because the machine may be busy; that each process looks often enough is."""
    assert history.following == {"first", "second"}
    assert poller.INTERVAL_SECONDS <= ACTIVATION_SECONDS / 4


def test_every_replica_has_a_chain_of_its_own(history: History) -> None:
    processes = chain_processes(history)
    assert len(processes) == len(set(processes.values())) == 4  # two replicas, each started twice
    direct = [(chain, record["request_id"]) for chain, record in history.records]
    found = {request_id: processes[chain] for chain, request_id in direct if request_id in history.direct_process}
    assert found == history.direct_process


@pytest.mark.req("REQ-111")
def test_a_rolling_restart_fails_no_request(history: History) -> None:
    assert history.exits == [0, 0]
    for proxy in PROXIES:
        statuses = Counter(outcome.status for outcome in history.outcomes if outcome.proxy == proxy)
        assert statuses.keys() == {200}, statuses
        assert statuses[200] > 200


def test_both_proxies_use_both_replicas_before_and_after(history: History) -> None:
    for proxy in PROXIES:
        ids = {outcome.request_id for outcome in history.outcomes if outcome.proxy == proxy}
        assert len({chain for chain, record in history.records if record["request_id"] in ids}) == 4


@pytest.mark.req("REQ-029")
def test_every_answer_is_on_record_once_with_its_number(history: History) -> None:
    answered = {outcome.request_id: outcome.expected_ns for outcome in history.outcomes if outcome.status == 200}
    scores = [record for _, record in history.records if record["kind"] == "score"]
    counts = Counter(record["request_id"] for record in scores)
    assert set(counts.values()) == {1}
    recorded = {record["request_id"]: record["output"]["score"]["expected_ns"] for record in scores}
    assert {request_id: recorded.get(request_id) for request_id in answered} == answered


def test_verification_sees_every_chain(history: History) -> None:
    assert history.verdict is not None
    assert (history.verdict.code, history.verdict.broken) == (0, 0)
    assert history.verdict.chains == 4 + 2  # and those of the key and of the activation
    sealed = {chain for chain, record in history.records if record["kind"] == "seal"}
    assert chain_processes(history).keys() <= sealed
