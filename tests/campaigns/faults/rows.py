"""All rows of the campaign, in the order in which they are reported."""

from functools import partial

from app.domain.scopes import Scope
from app.settings import load_settings
from tests.audit.tampering import TAMPERS
from tests.campaigns.faults import injection
from tests.campaigns.faults.artefacts import run_artefacts
from tests.campaigns.faults.broken_builds import run_broken_build
from tests.campaigns.faults.clock_jumps import run_clock_jumps
from tests.campaigns.faults.crowd import (
    ATTACKERS_NICENESS,
    HONEST_CLIENTS,
    INTERVAL_SECONDS,
    MEMORY_MB,
    OF_MANY_CALLERS,
    OF_ONE_CALLER,
    OVERLOAD_CONNECTIONS,
    SOCKETS,
    run_overload,
    run_slow_sockets,
)
from tests.campaigns.faults.cycles import REQUIRED, run_cycles
from tests.campaigns.faults.full_disk import run_full_disk
from tests.campaigns.faults.hostile_bytes import run_canaries, run_fuzz
from tests.campaigns.faults.leaving import run_leaving
from tests.campaigns.faults.load import CLIENTS
from tests.campaigns.faults.load_held import run_load_held
from tests.campaigns.faults.metamorphic import run_metamorphic
from tests.campaigns.faults.mutants import MUTANTS
from tests.campaigns.faults.power_loss import run_power_loss
from tests.campaigns.faults.rolling_update import run_alone, run_behind_balancer
from tests.campaigns.faults.row import POSTGRESQL, SQLITE, Row
from tests.campaigns.faults.soak import run_soak
from tests.campaigns.faults.tampering import WRITERS, run_clean, run_tampering
from tests.campaigns.faults.upgrade import OLDER, run_upgrade

refusing_cycles = partial(run_cycles, must_refuse=True)
HAS_EFFECT = "; some requests are refused: without any the fault had no effect"

UNDER_LOAD = (
    f"{CLIENTS} clients request scores without pause over keep-alive connections, each request with its own id and its "
    "own patient. At an instant drawn from the seed, "
)
COMPARED = (
    " The clients go on. When scores come again, every answer with status 200 is looked up in the audit: it must be "
    "there once, with the whole request and the whole answer. At the end `normalcy audit verify` checks every chain."
)
BOTH_VERIFIERS = "both `normalcy audit verify` and `tools/verify_audit.py`"

MACHINE_OF_A_CROWD = (
    "The service is pinned to one processor and all clients to another one; PostgreSQL is not pinned. The attackers "
    f"run at a lower priority (nice {ATTACKERS_NICENESS}) than the honest clients: in reality they are elsewhere, and "
    "that both share a processor here must not be measured."
)
MANY_KEYS, RATE_PER_SECOND = 16, load_settings({}).rate_per_second

ROWS: tuple[Row, ...] = (
    Row(
        "F1",
        "kill -9",
        UNDER_LOAD + "the process is killed and started again." + COMPARED,
        f"{REQUIRED} (the {CLIENTS} requests in flight when the process dies, and no others, may get no answer). 300 "
        "cycles; 1,000 with `--only F1-kill-9 --again --cycles 1000`",
        partial(run_cycles, inject=injection.kill_9, drops_connections=True),
        300,
    ),
    Row(
        "F2",
        "database crashes",
        UNDER_LOAD + "PostgreSQL is stopped in immediate mode, and started again after up to a second." + COMPARED,
        REQUIRED + HAS_EFFECT,
        partial(refusing_cycles, inject=injection.database_crashes),
        100,
        POSTGRESQL,
    ),
    Row(
        "F3",
        "connections freeze",
        UNDER_LOAD + f"the processes that serve our connections stop for {injection.FROZEN_SECONDS} s (SIGSTOP); new "
        "connections can be made." + COMPARED,
        REQUIRED + HAS_EFFECT,
        partial(refusing_cycles, inject=injection.backends_freeze),
        100,
        POSTGRESQL,
    ),
    Row(
        "F3",
        "database freezes",
        UNDER_LOAD + f"all processes of PostgreSQL stop for {injection.FROZEN_SECONDS} s." + COMPARED,
        REQUIRED + HAS_EFFECT,
        partial(refusing_cycles, inject=injection.database_freezes),
        100,
        POSTGRESQL,
    ),
    Row(
        "F3",
        "black hole",
        UNDER_LOAD
        + f"a proxy between the service and PostgreSQL swallows every byte for {injection.FROZEN_SECONDS} s."
        + COMPARED,
        REQUIRED + HAS_EFFECT,
        partial(refusing_cycles, inject=injection.network_black_hole, behind_proxy=True),
        100,
        POSTGRESQL,
    ),
    Row(
        "F3",
        "latency",
        UNDER_LOAD + f"the proxy adds 2 s to every round trip for {injection.SLOW_SECONDS:.0f} s." + COMPARED,
        REQUIRED + HAS_EFFECT,
        partial(refusing_cycles, inject=injection.network_slow, behind_proxy=True),
        100,
        POSTGRESQL,
    ),
    Row(
        "F3",
        "reset",
        UNDER_LOAD + "the proxy resets every connection, also new ones, for up to a second." + COMPARED,
        REQUIRED + HAS_EFFECT,
        partial(refusing_cycles, inject=injection.network_reset, behind_proxy=True),
        100,
        POSTGRESQL,
    ),
    Row(
        "F4",
        "file size limit",
        UNDER_LOAD + "no file of the service may grow for a second (RLIMIT_FSIZE): needs no root." + COMPARED,
        REQUIRED + HAS_EFFECT,
        partial(refusing_cycles, inject=injection.disk_fills),
        50,
        SQLITE,
    ),
    Row(
        "F4",
        "full disk",
        UNDER_LOAD + "another file fills the small file system (tmpfs) of the database for a second. PostgreSQL is "
        "started again if it stopped; the service is not." + COMPARED,
        REQUIRED + HAS_EFFECT,
        run_full_disk,
        50,
    ),
    Row(
        "F5",
        "power loss",
        f"{CLIENTS} clients request scores without pause while `strace` shows the system calls of the service and of "
        "PostgreSQL. The id of each request is looked up in what was written to the write-ahead log and in what left "
        "the service.",
        "0 scores leave before an `fdatasync` or `fsync` of the log that began after they were written has returned",
        run_power_loss,
        1_000,
        unit="scores",
    ),
    Row(
        "F6",
        "hostile bytes",
        "The fuzzer of `tests/fuzz`: mutated JSON, numbers, text, headers, chunks and content types on raw sockets, "
        "two at a time: one caller may have two batches in progress, and a third one gets 503. `make fuzz` sends as "
        "many to SQLite, and ten times the documented requests.",
        "0 of 5xx (a 503 counts, also if a second try succeeds), 0 resets, 0 bytes of input in answers or in the log, "
        "every refusal is problem+json",
        run_fuzz,
        100_000,
        unit="requests",
    ),
    Row(
        "F7",
        "properties of scores",
        "Batches of patients from nearly the whole range that is accepted, each with ten ascending diameters. All go "
        "to one process, to it again after a restart, and on PostgreSQL to another process.",
        "every number finite, every interval in order, every probability from 0 to 1, scores monotone in the diameter "
        "(probabilities to 1e-12), the same bytes from every process",
        run_metamorphic,
        100_000,
        unit="inputs",
    ),
    *(
        Row(
            "F8",
            f"tampering by the {who}",
            f"Random changes of signed rows and checkpoints, in turn of {len(TAMPERS)} kinds, with the rights of "
            f"{rights}.",
            f"{required} with a copy of the signed checkpoints and the public key, name its kind, and name the same "
            "rows",
            partial(run_tampering, as_owner=who == "owner"),
            cycles,
            unit="tampers",
        )
        for who, rights, required, cycles in (
            ("owner", "the owner of the tables", f"{BOTH_VERIFIERS} find it", 4_000),
            (
                "service",
                "the service (SQLite has no logins: with the triggers in place)",
                "the database refuses every change of a stored row, by its rights or its triggers (another error does "
                f"not count); {BOTH_VERIFIERS} find every row that was added",
                1_000,
            ),
        )
    ),
    Row(
        "F8",
        "clean runs",
        f"Both verifiers check an audit while {WRITERS} writers write, seal, crash and come back.",
        "0 false alarms",
        run_clean,
        500,
        unit="runs",
    ),
    Row(
        "F9",
        "canaries",
        "The same requests, each with markers of its own in place of a patient's name and values, while the database "
        "crashes again and again (SQLite: while its files may not grow), at log level debug.",
        "0 markers in answers (also in those with 503, after which the request is sent again), log and metrics (the "
        "service sends no traces); the database fails often enough that some requests are refused",
        run_canaries,
        20_000,
        unit="requests",
    ),
    Row(
        "F10",
        "slow sockets",
        f"{HONEST_CLIENTS} honest clients with a key send {HONEST_CLIENTS / INTERVAL_SECONDS:.0f} requests a second "
        f"together, alone and beside {SOCKETS:,} sockets that send their headers byte by byte and come back when they "
        f"are closed. {MACHINE_OF_A_CROWD}",
        "at least 95% of the honest requests served, their p99 at most "
        f"{OF_ONE_CALLER.slower:.0f} times that without the attack, memory at most +{MEMORY_MB:.0f} MB of what it was "
        "before the first attack; the worst cycle counts, and each must have an attack",
        run_slow_sockets,
        5,
    ),
    Row(
        "F10",
        "overload",
        f"The same honest clients beside another caller with one key on {OVERLOAD_CONNECTIONS} connections, ten times "
        "as many as saturate the service, each of which sends its next request on every answer. The service throttles "
        f"this caller. {MACHINE_OF_A_CROWD}",
        "as for slow sockets",
        run_overload,
        5,
    ),
    Row(
        "F10",
        "overload by many keys",
        f"As overload, but the connections are those of {MANY_KEYS} callers, each with a key of its own.",
        f"at least 95% of the honest requests served, every honest answer within {OF_MANY_CALLERS.slowest:.0f} s, "
        f"memory at most +{MEMORY_MB:.0f} MB; the p99 is reported only, because these callers together may have "
        f"{MANY_KEYS * RATE_PER_SECOND:.0f} scores a second, a large part of what one process can serve",
        partial(run_overload, keys=MANY_KEYS, bounds=OF_MANY_CALLERS),
        2,
    ),
    Row(
        "F10",
        "overload without the scope",
        "As overload, but the other caller's key lacks the scope: it is refused with 403, then with 429.",
        "as for slow sockets",
        partial(run_overload, scope=Scope.MODEL_READ),
        2,
    ),
    Row(
        "F10",
        "overload of unknown addresses",
        "As overload, but the other caller's requests are for an address that does not exist (404).",
        "as for slow sockets",
        partial(run_overload, path="/v1/sites/SoV/scores"),
        2,
    ),
    Row(
        "F11",
        "rolling update",
        UNDER_LOAD + "one of two replicas gets SIGTERM, ends and is started again. The clients' requests go through a "
        "small balancer that checks readiness every 0.5 s and repeats no request.",
        "0 failed requests (a refusal counts), and as above; *return* is the time from the start of the replica to "
        "its readiness",
        run_behind_balancer,
        50,
        POSTGRESQL,
    ),
    Row(
        "F11",
        "SIGTERM alone",
        UNDER_LOAD + "the only process gets SIGTERM and is started again; there is no balancer." + COMPARED,
        REQUIRED,
        run_alone,
        50,
        SQLITE,
    ),
    Row(
        "F12",
        "clock jumps",
        UNDER_LOAD
        + "the clock of the service jumps by ±1 s, ±1 day and ±31 days, in an order drawn from the seed: our "
        "code takes the time from `app/clock.py` alone, and the campaign shifts it there. Libraries (record ids, times "
        "of log lines, the header `Date`) read the clock of the machine, which does not jump." + COMPARED,
        REQUIRED + "; the records have at least three dates: with fewer the clock did not jump",
        run_clock_jumps,
        50,
    ),
    Row(
        "F13",
        "clients leave",
        "In turn after connecting, half the headers, the headers, half the body, the whole request, the whole request "
        "and a moment, a byte of the answer, and the answer; half of them by a reset. The service writes down every "
        "score that it computes, before it records it.",
        "every computed score recorded once; open files and connections to PostgreSQL back to what they were within "
        "5 s",
        run_leaving,
        10_000,
        unit="clients",
    ),
    Row(
        "F14",
        "soak",
        "16 clients send five requests a second each. Memory, open files, threads, tasks of the event loop and "
        "connections to PostgreSQL are counted every 5 s; the first third of the time is not judged.",
        "memory grows by at most 3 MB an hour, nothing else that is counted grows, every request is served",
        run_soak,
        30,
        unit="minutes",
    ),
    Row(
        "F15",
        "damaged models",
        "In turn a flipped bit, a truncated, a missing and a swapped file, and pickled objects in `posterior.npz`, "
        "each in a copy of the shipped models; then the service starts.",
        "it refuses to start, or refuses that site with 503 and serves the other, and names the file; no pickle is "
        "loaded",
        run_artefacts,
        100,
        SQLITE,
    ),
    Row(
        "F16",
        "upgrade and restore",
        f"A service of commit {OLDER} fills its database under load. It gets SIGTERM, the database is migrated, this "
        "release starts on it, and the clients go on. Then the database is dumped and restored into an empty one, and "
        "a service goes on there. Every answer of all three is looked up in the restored database.",
        REQUIRED
        + " (*return*: from the end of the older process to the first score of the newer); some scores of each "
        "cycle name the older commit as their program: without any nothing was upgraded",
        run_upgrade,
        10,
    ),
    Row(
        "F17",
        "load held",
        "64 connections send their next request on every answer: to the service, to the service without its audit, and "
        "to the service with one commit for each record, all in each round, in turn in another order.",
        "medians of the rounds: at least 70% of the rate without the audit, at least 150% of that with one commit for "
        "each record, p99 at most 25 ms above that without the audit",
        run_load_held,
        5,
        unit="rounds",
    ),
    *(
        Row(
            "F18",
            name.replace("_", " "),
            f"A build that is broken on purpose: {mutant.broken}.",
            "the command that must notice it fails, and prints the sign of this very defect",
            partial(run_broken_build, name=name),
            1,
            ("both",),
            unit="build",
        )
        for name, mutant in MUTANTS.items()
    ),
)
