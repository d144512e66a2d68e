"""An older release and its database, upgraded under traffic; then dumped, restored elsewhere, verified, used again."""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from app.database.sqlite import FILE_NAME
from app.settings import load_settings
from tests.campaigns.faults.compare import Tally
from tests.campaigns.faults.cycles import as_finding, recorded
from tests.campaigns.faults.load import Load, Outcome
from tests.campaigns.faults.row import Context, Finding
from tests.campaigns.faults.target import migrate, running
from tests.campaigns.servers import COMMAND
from tests.campaigns.service_process import NORMALCY, ServiceProcess, Verdict
from tests.campaigns.trees import worktree
from tests.postgres import PrivateServer

OLDER = "232ea28"  # before signed checkpoints, stored payloads that are deflated, and the present names in the code
OLDER_PROGRAM = (sys.executable, "-P", *COMMAND)  # without -P it would be the code of the working directory: ours
LOADED_SECONDS = (0.5, 2.0)


@dataclass(frozen=True)
class Either:
    """The first of several services that listens."""

    services: Sequence[ServiceProcess]

    @property
    def port(self) -> int | None:
        return next((service.port for service in self.services if service.port is not None), None)


async def run_upgrade(context: Context) -> Finding:
    tally, verdicts, by_older, rng = Tally(), list[Verdict](), list[int](), context.rng()
    with worktree(OLDER, context.folder / "older") as tree:
        for number in context.each_cycle():
            label, folder = f"{context.seed}-{number}", context.folder / str(number)
            folder.mkdir()
            with installation(context, folder, "first") as first, installation(context, folder, "second") as second:
                older, newer = _older(tree, first), ServiceProcess(first, context.program)
                await _migrate_older(context, older)
                async with running(older), Load(Either((older, newer)), label) as load:
                    await load.served_after(0.0)
                    await asyncio.sleep(rng.uniform(*LOADED_SECONDS))
                    await older.end(signal.SIGTERM)
                    began = asyncio.get_running_loop().time()
                    await _migrate(context, first)
                    async with running(newer):
                        tally.returns.append(await load.served_after(began))
                        await asyncio.sleep(rng.uniform(*LOADED_SECONDS))
                        await newer.end(signal.SIGTERM)
                        await asyncio.to_thread(_move, context, first, second)
                        restored = ServiceProcess(second, NORMALCY)
                        async with running(restored), Load(restored, f"{label}-again") as after:
                            await after.served_after(0.0)
                outcomes = [*load.outcomes, *after.outcomes]
                tally.add(outcomes, await recorded(load_settings(_owner(context, second)), label))
                by_older.append(answered_by_older(outcomes))
                verdicts.append(await restored.verify(_owner(context, second)))
    return judge(tally, _worst(verdicts), by_older)


def answered_by_older(outcomes: Sequence[Outcome]) -> int:
    """How many scores name the older commit as their program."""
    answers = (msgspec.json.decode(outcome.answer) for outcome in outcomes if outcome.status == 200)
    return sum(answer["provenance"]["service"]["commit"].startswith(OLDER) for answer in answers)


def judge(tally: Tally, verdict: Verdict, by_older: Sequence[int]) -> Finding:
    """`by_older`: the scores of the older release in each cycle. Without any, nothing was upgraded."""
    finding = as_finding(tally, verdict)
    figures = {"by the older release": sum(by_older), **finding.figures}
    idle = sum(not count for count in by_older)
    unmet = [f"no score of the older release in {idle} of {len(by_older)} cycles"] if idle else []
    return replace(finding, figures=figures, unmet=[*finding.unmet, *unmet])


@contextmanager
def installation(context: Context, folder: Path, name: str) -> Iterator[Mapping[str, str]]:
    """The settings of a service; on PostgreSQL with an empty database of its own."""
    settings = {"NORMALCY_DATA_DIR": str(folder / name), "NORMALCY_LOG_LEVEL": "error"}
    if context.database == "SQLite":
        yield settings
        return
    with context.postgres.new_database() as database:
        yield settings | {"NORMALCY_DATABASE_URL": context.postgres.service_url(database)}


def _older(tree: Path, settings: Mapping[str, str]) -> ServiceProcess:
    service = ServiceProcess({**settings, "NORMALCY_MODELS_DIR": str(tree / "models_store")}, OLDER_PROGRAM)
    service.environment["PYTHONPATH"] = str(tree)
    return service


async def _migrate_older(context: Context, older: ServiceProcess) -> None:
    """As an operator did before the older release started: by its own command, as the owner."""
    if context.database == "PostgreSQL":
        done = await asyncio.create_subprocess_exec(
            *OLDER_PROGRAM, "db", "upgrade", env=_owner(context, older.environment), stdout=DEVNULL
        )
        if code := await done.wait():
            raise RuntimeError(f"the database could not be migrated by the older release: {code}")


def _owner(context: Context, settings: Mapping[str, str]) -> dict[str, str]:
    """The same settings with the login that owns the database."""
    if context.database == "SQLite":
        return dict(settings)
    name = settings["NORMALCY_DATABASE_URL"].partition("?")[0].rpartition("/")[2]
    return {**settings, "NORMALCY_DATABASE_URL": context.postgres.url(name)}


async def _migrate(context: Context, settings: Mapping[str, str]) -> None:
    """As an operator does before the new release starts; SQLite is migrated by the start itself."""
    if context.database == "PostgreSQL":
        await migrate(load_settings(_owner(context, settings)))


def _move(context: Context, first: Mapping[str, str], second: Mapping[str, str]) -> None:
    """A dump of the database, restored into an empty one; the secrets of the data folder go along."""
    source, target = (Path(settings["NORMALCY_DATA_DIR"]) for settings in (first, second))
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(f"{Path(FILE_NAME).stem}*"))
    if context.database == "SQLite":
        with closing(sqlite3.connect(source / FILE_NAME)) as old, closing(sqlite3.connect(target / FILE_NAME)) as new:
            old.backup(new)
        (target / FILE_NAME).chmod(0o600)
        return
    dump = target / "dump"
    urls = [_owner(context, settings)["NORMALCY_DATABASE_URL"] for settings in (first, second)]
    _postgres(context.postgres, "pg_dump", "--format=custom", f"--dbname={urls[0]}", f"--file={dump}")
    _postgres(context.postgres, "pg_restore", "--exit-on-error", f"--dbname={urls[1]}", str(dump))


def _postgres(server: PrivateServer, program: str, *arguments: str) -> None:
    subprocess.run([server.binaries / program, *arguments], check=True)  # noqa: S603 - programs of PostgreSQL


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Of all together, but without chains if one of them saw none."""
    code = max((one.code for one in verdicts), default=0)
    chains = sum(one.chains for one in verdicts) if all(one.chains for one in verdicts) else 0
    return Verdict(code, chains, sum(one.broken for one in verdicts))
