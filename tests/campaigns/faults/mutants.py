"""Broken builds: `normalcy` with one promise broken. A campaign that does not notice them notices nothing.

    python -m tests.campaigns.faults.mutants NAME serve           the broken service
    python -m tests.campaigns.faults.mutants NAME pytest TESTS    the tests against the broken code

Each mutant is a function that changes the running code before it starts.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

OWN_COMMAND = (sys.executable, "-m", "tests.campaigns.faults.mutants")


@dataclass(frozen=True)
class Mutant:
    broken: str  # what is wrong with it
    caught_by: str  # the arguments of the command that must fail
    sign: str  # a regular expression in what the command prints, so that no other failure counts
    apply: Callable[[], None]
    owner_sql: str = ""  # run by the owner of a PostgreSQL database before the service starts

    @property
    def is_row(self) -> bool:
        """Caught by a row of the campaign, not by a test."""
        return self.caught_by.startswith("--only")


MUTANTS: dict[str, Mutant] = {}


def mutant(
    broken: str, caught_by: str, sign: str, owner_sql: str = ""
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(apply: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[apply.__name__] = Mutant(broken, caught_by, sign, apply, owner_sql)
        return apply

    return register


def program_of(name: str) -> tuple[str, ...]:
    return (*OWN_COMMAND, name)


@mutant(
    "a score is acknowledged just before its record is committed",
    "--only F4-file-size-limit --cycles 1",
    r"missing [1-9]",
)
def acknowledge_before_commit() -> None:
    from app.audit.writer import AuditWriter, Group

    commit = AuditWriter._commit

    async def acknowledge_first(self: AuditWriter, groups: list[Group]) -> bool:
        for group in groups:
            group.succeed()
        return await commit(self, groups)

    AuditWriter._commit = acknowledge_first  # type: ignore[method-assign]


@mutant(
    "a failed commit is logged, and the score is sent all the same",
    "--only F2 --cycles 1",
    r"missing [1-9]",
)
def swallow_audit_error() -> None:
    from app.audit.writer import Group

    Group.fail = Group.succeed  # type: ignore[method-assign]


@mutant(
    "the primary key that stops a second row with the same number is dropped, and the start does not notice",
    "--only F3-connections-freeze --cycles 2",
    r"broken chains [1-9]",
    owner_sql="ALTER TABLE activations DROP CONSTRAINT activations_record; "
    "ALTER TABLE audit_records DROP CONSTRAINT audit_records_pkey",
)
def no_fence() -> None:
    _without_schema_checks()


@mutant(
    "after a timeout the writer goes on with the same connection",
    "--only F3-connections-freeze --cycles 10",  # now and then the connection can be used again
    r"no score after the fault [1-9]",
)
def reuse_connection_after_timeout() -> None:
    from app.database.postgres import PostgresAppender

    def stay(self: PostgresAppender) -> None:
        """The connection stays."""

    async def connect(self: PostgresAppender) -> None:
        if self._connection is None:
            await original(self)

    original = PostgresAppender.connect
    PostgresAppender.drop = stay  # type: ignore[method-assign]
    PostgresAppender.connect = connect  # type: ignore[method-assign]


@mutant(
    "after a reconnection the head of the chain comes from memory instead of the database",
    "tests/audit/test_faults.py -k in_doubt -m 'not postgres'",
    r"FAILED .*::test_a_commit_in_doubt_is_refused_and_the_chain_goes_on\[sqlite-reply lost\]",
)
def head_in_memory() -> None:
    from app.audit.writer import AuditWriter

    reconnect = AuditWriter._reconnect

    async def remember(self: AuditWriter) -> None:
        head = self._head
        await reconnect(self)
        self._head = head

    AuditWriter._reconnect = remember  # type: ignore[method-assign]


@mutant("every score is recorded twice", "--only F2 --cycles 1", r"duplicated [1-9]")
def record_twice() -> None:
    from app.audit.records import NewRecord
    from app.audit.writer import AuditWriter

    write = AuditWriter.write

    async def twice(self: AuditWriter, records: Sequence[NewRecord], deadline: float | None = None) -> tuple[UUID, ...]:
        await write(self, records, deadline)
        return await write(self, records, deadline)

    AuditWriter.write = twice  # type: ignore[method-assign]


@mutant("a refusal repeats the input, as the framework's own does", "--only F6 --cycles 500", r"echo [1-9]")
def echo_input() -> None:
    from tests.fuzz import mutants

    mutants.echo(pytest.MonkeyPatch())


@mutant("a refusal with 503 repeats the input", "--only F9 --cycles 3000", r"in answers [1-9]")
def echo_input_in_503() -> None:
    from tests.fuzz import mutants

    mutants.echo(pytest.MonkeyPatch(), only_status=503)


@mutant("every body is logged", "--only F9 --cycles 300", r"in the log [1-9]")
def log_input() -> None:
    from tests.fuzz import mutants

    mutants.log(pytest.MonkeyPatch())


@mutant(
    "a connection may send requests without end before it reads an answer",
    "tests/web/test_pipelining.py -k 'endless or more_than_may_wait'",
    r"FAILED .*::test_an_endless_stream_is_neither_read_nor_held\S*",
)
def unbounded_pipelining() -> None:
    from app.web import server

    server.MAX_WAITING = sys.maxsize
    server.GuardedProtocol._may_read = lambda self: True  # type: ignore[method-assign]


@mutant(
    "slow clients have no deadline for their headers",
    "--only F10-slow-sockets --cycles 1 --database SQLite",
    r"no slow socket was closed",
)
def no_deadline_for_headers() -> None:
    from app.web import server

    server.HEADERS_SECONDS = 1e6


@mutant(
    "SIGTERM ends the process at once, without a time in which it is not ready",
    "--only F11-rolling-update --cycles 6",
    r"failed requests [1-9]",
)
def no_drain() -> None:
    from app.web import server

    server.DRAIN_SECONDS = server.LAST_REQUESTS_SECONDS = 0.0


@mutant(
    "a model is loaded without comparing its files with their digests",
    "--only F15 --cycles 20",
    r"\w+ \S+, cycle \d+: served",
)
def unchecked_models() -> None:
    from app.store import registry

    registry.check_sums = lambda sums, files: None  # type: ignore[attr-defined]


@mutant(
    "SQLite does not wait for the disk: the start must refuse it",
    "--only F1 --cycles 1 --database SQLite",
    r"synchronous=0",
)
def no_wait_for_the_disk() -> None:
    from app.database import sqlite

    sqlite.PRAGMAS = tuple(pragma.replace("synchronous = FULL", "synchronous = OFF") for pragma in sqlite.PRAGMAS)  # type: ignore[assignment]


@mutant(
    "no commit waits for the disk, and nothing checks it",
    "--only F5 --cycles 50",
    r"before they were on the disk [1-9]",
)
def no_wait_and_no_check() -> None:
    from app.database import schema_checks
    from app.database.postgres import PostgresAppender
    from app.database.sqlite import SqliteAppender

    connect = PostgresAppender.connect

    async def no_problem(self: object) -> None:
        """The check is gone."""

    async def without_waiting(self: PostgresAppender) -> None:
        await connect(self)
        await self._open().execute("SET synchronous_commit = off")

    no_wait_for_the_disk()
    schema_checks._check_durability = lambda connection: None
    PostgresAppender.connect = without_waiting  # type: ignore[method-assign]
    PostgresAppender.durability_problem = no_problem  # type: ignore[method-assign]
    SqliteAppender.durability_problem = no_problem  # type: ignore[method-assign]


@mutant(
    "the function that runs with the owner's rights has no search path of its own",
    "--only F2 --cycles 1",
    r"function audit_head\(text, uuid\) was changed",
    owner_sql="ALTER FUNCTION audit_head(text, uuid) RESET search_path",
)
def definer_without_search_path() -> None:
    """The database is broken, not the code: the start must refuse it."""


@mutant("every tenth request leaves an open file", "--only F14 --cycles 1 --database SQLite", r"files grew")
def leaked_files() -> None:
    import os

    from app.audit.records import NewRecord
    from app.audit.writer import AuditWriter

    write, counts = AuditWriter.write, [0]

    async def leak(self: AuditWriter, records: Sequence[NewRecord], deadline: float | None = None) -> tuple[UUID, ...]:
        counts[0] += 1
        if counts[0] % 10 == 0:
            os.open(os.devnull, os.O_RDONLY)
        return await write(self, records, deadline)

    AuditWriter.write = leak  # type: ignore[method-assign]


@mutant(
    "a checkpoint counts whether or not its signature is right",
    "tests/audit/test_signatures.py -m 'not postgres'",
    r"FAILED .*::test_a_damaged_or_missing_checkpoint_is_found_without_its_file\[sqlite-signature\]",
)
def unsigned_checkpoint() -> None:
    from app.audit.signing_key import PublicKey

    PublicKey.has_signed = lambda self, body, signature: True  # type: ignore[method-assign]


@mutant(
    "a token chooses its algorithm: with HS256 the public key of the issuer is the secret",
    "tests/runtime/test_tokens.py",
    r"DID NOT RAISE TokenRefused",
)
def algorithm_confusion() -> None:
    import base64
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    from app.runtime import tokens

    verify = tokens.TokenVerifier._verify

    async def trust_the_header(
        self: tokens.TokenVerifier, token: tokens.ParsedToken, now: float
    ) -> tokens.VerifiedToken:
        if not token.algorithm.startswith("HS"):
            return await verify(self, token, now)
        issuer = self._issuers[token.claims["iss"]]
        key = await issuer.find(token.key_id)
        assert key is not None
        secret = key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        signed, _, signature = token.text.rpartition(".")
        expected = base64.urlsafe_b64encode(hmac.digest(secret, signed.encode(), "sha256")).rstrip(b"=").decode()
        if not hmac.compare_digest(signature, expected):
            raise tokens.TokenRefused(tokens.TokenRefusal.SIGNATURE)
        expires = tokens.check_claims(token.claims, issuer.issuer, now)
        return tokens.VerifiedToken(tokens.principal_of(token.claims, issuer.issuer), issuer, issuer.keys, expires, "")

    tokens.ALGORITHMS = (*tokens.ALGORITHMS, "HS256", "HS384", "HS512")  # type: ignore[attr-defined,arg-type]
    tokens.TokenVerifier._verify = trust_the_header  # type: ignore[method-assign]


def _without_schema_checks() -> None:
    from app.runtime import runtime

    async def check_nothing(*_: object, **__: object) -> list[Any]:
        return []

    runtime.check_database = check_nothing  # type: ignore[attr-defined,assignment]


def main(arguments: Sequence[str]) -> int:
    name, program, *rest = arguments
    MUTANTS[name].apply()
    if program == "pytest":
        return int(pytest.main([*rest, "-W", "ignore::pytest.PytestAssertRewriteWarning"]))
    from app.cli.main import main as normalcy

    sys.argv = ["normalcy", program, *rest]
    normalcy()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
