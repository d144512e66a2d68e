"""A real service for tests: uvicorn in a thread, a real database, small models, and a client."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

import httpx
import uvloop

from app.audit.author import open_author
from app.audit.changes import add_key, open_change
from app.clock import utc_now
from app.database import engine
from app.database.engine import Database, open_database
from app.database.keys import make_key
from app.database.records import stream_chains
from app.domain.golden import GoldenInput
from app.domain.patient import Patient, Sex
from app.formats.card_markdown import card_markdown
from app.inference.golden import golden_cases
from app.runtime import issuer_keys
from app.runtime.runtime import Runtime
from app.settings import Settings
from app.store import publish
from app.training.calibration import calibration_gates
from app.web.app import create_app
from app.web.server import Server, bind, make_server
from tests.postgres import as_service
from tests.samples import a_card, a_posterior

MAN: dict[str, Any] = {"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84}
STATED = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}
READING: dict[str, Any] = {**MAN, "diameter_mm": 41, "convention": STATED}
SCORE = "/v1/sites/SoV/score"

# Of a request, so that a busy machine does not fail a test; what happens after the real ones is tested with those.
PATIENT_SECONDS = 20.0

T = TypeVar("T")


class Record(SimpleNamespace):
    """What a payload says, by its keys."""


def publish_small(root: Path, site: str, version: str, seed: int) -> None:
    """A random model with golden cases that it reproduces."""
    card, posterior = a_card(site, version), a_posterior(seed)
    inputs = [
        GoldenInput(Patient(45.0, Sex.MALE, 175.0, 75.0), 1.5),
        GoldenInput(Patient(30.0, Sex.FEMALE, 165.0, 60.0), -2.5),
    ]
    golden = golden_cases(inputs, card.age_transform, posterior.predict)
    publish(root, card, posterior, golden, card_markdown(card, calibration_gates(card.calibration)))


@dataclass(frozen=True)
class Running:
    settings: Settings
    runtime: Runtime
    server: Server
    url: str
    client: httpx.Client
    loop: asyncio.AbstractEventLoop

    def score(self, body: object = READING, path: str = SCORE, **more: Any) -> httpx.Response:
        return self.client.post(path, json=body, **more)

    def inside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the loop of the service."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def records(self, kind: str | None = None) -> list[Record]:
        return [record for record in records(self.settings) if kind in (None, record.kind)]


@contextmanager
def _waiting(patient: bool) -> Iterator[None]:
    """For the database, and for the keys of an issuer."""
    with ExitStack() as stack:
        for module, name in ((engine, "SERVING_SECONDS"), (issuer_keys, "FETCH_SECONDS")) if patient else ():
            stack.enter_context(patch.object(module, name, PATIENT_SECONDS))
        yield


@contextmanager
def serving(
    settings: Settings, models_dir: Path, *, precompiled: bool = True, patient: bool = True
) -> Iterator[Running]:
    """On PostgreSQL by the login of a service; what a test does beside it takes the login of its own settings."""
    own = replace(settings, models_dir=models_dir, port=0)
    if patient:
        own = replace(own, audit_budget_seconds=PATIENT_SECONDS)
    chosen = replace(own, database_url=as_service(own.database_url))
    started: list[tuple[Runtime, Server, int, asyncio.AbstractEventLoop]] = []
    failures: list[BaseException] = []
    is_up = threading.Event()

    async def main() -> None:
        app = create_app(chosen, precompiled=precompiled)
        async with app.router.lifespan_context(app):
            listening = bind(chosen)
            server = make_server(app, chosen)
            started.append((app.state.runtime, server, listening.getsockname()[1], asyncio.get_running_loop()))
            is_up.set()
            await server.serve([listening])

    def run() -> None:
        try:
            with _waiting(patient), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(main())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failures.append(error)
        finally:
            is_up.set()

    thread = threading.Thread(target=run, name="service")
    thread.start()
    is_up.wait(60)
    if failures:
        thread.join()
        raise failures[0]
    runtime, server, port, loop = started[0]
    url = f"http://{chosen.host}:{port}"
    try:
        with httpx.Client(base_url=url, timeout=30) as client:
            yield Running(own, runtime, server, url, client, loop)
    finally:
        server.should_exit = True
        thread.join(60)
    if failures:
        raise failures[0]


def on_database(settings: Settings, work: Callable[[Database], Coroutine[Any, Any, T]]) -> T:
    """Run `work(database)` beside the service, as another process would."""

    async def run() -> T:
        database = open_database(settings, statement_seconds=None)
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(run())


def records(settings: Settings) -> list[Record]:
    """All that is on record, chain by chain."""

    async def read(database: Database) -> list[Record]:
        async with database.reading() as connection:
            return [Record(**json.loads(row.payload)) async for page in stream_chains(connection) for row in page]

    return on_database(settings, read)


def create_key(settings: Settings, scopes: Iterable[str], **more: Any) -> str:
    """The text of a new key."""

    async def save(database: Database) -> str:
        made = make_key("test", scopes, utc_now(), **more)
        async with open_change(database, await open_author(settings, database, {"command": "test"})) as change:
            await add_key(change, made.key, "test", utc_now())
        return made.text

    return on_database(settings, save)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
