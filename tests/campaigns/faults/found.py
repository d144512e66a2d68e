"""Every fault that was found so far, by whatever means, with the command that looks for it again."""

from typing import NamedTuple


class Found(NamedTuple):
    fault: str
    fixed: str  # commit, or that it is not
    replay: str


FOUND = (
    Found(
        "The service's PostgreSQL login could act as the owner through a function without a search path of its own.",
        "51e62b6",
        "python -m pytest tests/database/test_login_attacks.py",
    ),
    Found(
        "One connection with millions of pipelined requests used up the memory of the service.",
        "8e55dc0",
        "python -m pytest tests/web/test_pipelining.py",
    ),
    Found(
        "A flood of refused requests wrote one audit record each.",
        "f6c5e9a",
        "python -m tests.campaigns.hostile_load --out build/hostile-load.md",
    ),
    Found(
        "Trailers of a chunked body counted as headers, and repeated headers were accepted.",
        "8e55dc0",
        "python -m pytest tests/web/test_header_tricks.py",
    ),
    Found(
        "An activation or a key was acknowledged although its record could be lost.",
        "959e6ca",
        "python -m pytest tests/audit/test_durability.py",
    ),
    Found(
        "A log that could not be written took the service down.",
        "a737ee8",
        "python -m pytest tests/test_observability.py",
    ),
    Found(
        "A site whose version could not be used stopped all the others.",
        "b52c43d",
        "python -m tests.campaigns.faults --only F15",
    ),
    Found(
        "After kill -9 on PostgreSQL one return of 50 took 5.38 s where 5 s are allowed; starts are shorter since.",
        "1a50e22",
        "python -m tests.campaigns.faults --only F1 --database PostgreSQL",
    ),
    Found(
        "`audit verify` reported a chain whose writer's clock was set back by more than two intervals between signed "
        "checkpoints: rows without a signature looked older than the writer's last one. A false alarm; nothing was "
        "lost.",
        "1a50e22",
        "python -m tests.campaigns.faults --only F12 --cycles 1",
    ),
    Found(
        "`audit verify` without a public key, on schedule too, accepted a forged chain if a checkpoint of any unknown "
        "key named it; the service's own login may add such a checkpoint.",
        "2887934",
        "python -m pytest tests/audit/test_signatures.py -k unknown_key",
    ),
    Found(
        "A chain that nobody signed was accepted if its times were before the first signed checkpoint, and no process "
        "with a login that may read records had signed what it found.",
        "b895063",
        "python -m pytest tests/audit/test_signatures.py -k dated_before",
    ),
    Found(
        "After a signature whose reply was lost, a clock set back and a crash, both verifiers reported `UNSIGNED` in "
        "an intact audit.",
        "e1fce77",
        "python -m pytest tests/audit/test_clock_jumps.py -k reply_was_lost",
    ),
    Found(
        "A full disk left a part of a line in a file of signed checkpoints, the next line was joined to it, and "
        "verification reported it for ever.",
        "e3609d2",
        "python -m pytest tests/test_files.py tests/audit/test_signatures.py -k 'line or unfinished'",
    ),
    Found(
        "A malformed checkpoint, which the service's own login may add, stopped verification: the independent verifier "
        "if a field had another type, `audit verify` if a row number did not fit 64 bits. Both could not check then.",
        "9542878",
        "python -m pytest tests/audit/test_malformed_rows.py -k malformed_checkpoint",
    ),
    Found(
        "The independent verifier printed texts of the database unchanged: a line break in one forged the line "
        "`intact`, and half of a character ended the program.",
        "9542878",
        "python -m pytest tests/audit/test_malformed_rows.py -k 'prints or printed'",
    ),
    Found(
        "In SQLite the independent verifier accepted an identifier with hyphens, which `audit verify` reported: to the "
        "database it is another record.",
        "9542878",
        "python -m pytest tests/audit/test_malformed_rows.py -k spelling",
    ),
    Found(
        "`audit verify`, `audit show` and `keys list` printed control characters from the database to the terminal.",
        "bc0d75c",
        "python -m pytest tests/cli/test_printed_text.py",
    ),
    Found(
        "Whoever could write the SQLite file could delete all API keys; after a restart nobody needed one.",
        "45393c9",
        "python -m pytest tests/web/test_security.py -k deleted",
    ),
    Found(
        "A batch whose items had hundreds of different options, or long records, got 500; a stream of them ended "
        "without a problem line. Nothing unrecorded left.",
        "219df8f",
        "python -m pytest tests/web/test_batch.py -k 'whatever_size or that_fails'",
    ),
    Found(
        "With an Idempotency-Key and a database that hangs, a refusal took 4.2 s where 2.5 s are allowed.",
        "219df8f",
        "python -m pytest tests/web/test_idempotency.py -k hangs",
    ),
    Found(
        "A stream went on with a key that was revoked after it had begun.",
        "219df8f",
        "python -m pytest tests/web/test_batch.py -k revoked",
    ),
    Found(
        "On SIGTERM a connection made between the last `accept` and the end of the port was reset: one request of 26 "
        "restarts without a balancer had no answer.",
        "ce8ce90",
        "python -m tests.campaigns.faults --only F11-sigterm-alone",
    ),
    Found(
        "The refusals of a caller with 640 connections left all at one instant and came back together, which delayed "
        "others.",
        "15f6771",
        "python -m pytest tests/web/test_floods.py -k one_instant",
    ),
    Found(
        "An activation accepted a version in memory whose files were damaged or gone: the site was not served after "
        "the next start.",
        "29b9c00",
        "python -m pytest tests/web/test_activation.py -k spoilt",
    ),
    Found(
        "`normalcy score --in` turned whole numbers in a Parquet column of ids into floating-point numbers: different "
        "patients could get the same id.",
        "4cd46f5",
        "python -m pytest tests/cli/test_score.py tests/formats/test_score_table.py",
    ),
    Found(
        "The independent verifier found a retired month intact if whole chains were missing from its archive.",
        "78d14c9",
        "python -m pytest tests/services/test_retire_months.py",
    ),
    Found(
        "An owner of the database who removed the checkpoint of kind `found`, added a forged chain and waited for the "
        "start of a process got that chain signed; with the removed row back, both verifiers reported the audit as "
        "intact.",
        "496ea71",
        "python -m pytest tests/audit/test_found_checkpoints.py -k later_process",
    ),
    Found(
        "Rows that somebody added to an unsealed chain of before the first signature were a remark, whatever their "
        "time.",
        "496ea71",
        "python -m pytest tests/audit/test_found_checkpoints.py -k added",
    ),
    Found(
        "The independent verifier did not distinguish NULL and an empty text in psql's CSV, nor in the archive of a "
        "month: a column that was changed from one to the other was found by `audit verify` alone.",
        "0a5b242",
        "python -m pytest tests/audit/test_malformed_rows.py -k 'empty or survives'",
    ),
    Found(
        "Of payloads with right hashes, each verifier accepted some that the other one reported, and both accepted "
        "some that the format forbids.",
        "0a5b242",
        "python -m pytest tests/audit/test_payload_agreement.py",
    ),
    Found(
        "A caller with a valid key could flood the service with requests that its key does not allow, or for addresses "
        "that do not exist.",
        "ff678ae",
        "python -m pytest tests/web/test_floods.py tests/web/test_limits.py -k 'throttled or scope'",
    ),
    Found(
        "Many large batches at the same time used up the memory of the service.",
        "330ea55",
        "python -m pytest tests/web/test_batch_slots.py",
    ),
    Found(
        "One caller with a high rate, or without one, filled the queues that all callers share.",
        "c88ea50",
        "python -m pytest tests/web/test_limits.py -k 'in_flight or queue'",
    ),
    Found(
        "The examples for nginx, Caddy and Ingress cut off long streams, and Caddy dropped items of them.",
        "9f2042e",
        "python -m pytest tests/deploy/test_reverse_proxy.py -k stream",
    ),
    Found(
        "A process that stalled longer than its claim of an Idempotency-Key sent its own answer, although another one "
        "had stored one meanwhile.",
        "6f5a1fe",
        "python -m pytest tests/web/test_idempotency.py -k stalls",
    ),
    Found(
        "One odd key in the set of an issuer made all its keys unusable.",
        "a0e5d98",
        "python -m pytest tests/runtime/test_issuer_keys.py -k odd",
    ),
    Found(
        "On SQLite the commit that found a thousand pages in the write-ahead log moved them all, and every request "
        "whose record it held waited for that.",
        "1ec0e02",
        "python -m tests.campaigns.faults --only F10",
    ),
    Found(
        "A batch went on after the token with which it was opened had expired, and a JSON batch was scored although "
        "its key was revoked while it arrived.",
        "cee9c70",
        "python -m pytest tests/web/test_batch_credentials.py",
    ),
    Found(
        "10,000 tokens for one use within six minutes made the service reject every further one, of all issuers.",
        "cee9c70",
        "python -m pytest tests/runtime/test_used_tokens.py tests/web/test_tokens.py -k 'memory or one_use'",
    ),
    Found(
        "A JSON batch that arrived a byte at a time kept its slot for days, and two callers could take all slots so.",
        "61e5824",
        "python -m pytest tests/web/test_batch.py -k deadline",
    ),
    Found(
        "An issuer whose keys were never answered occupied more and more threads that checkpoints and activations "
        "need.",
        "a6c637d",
        "python -m pytest tests/runtime/test_issuer_keys.py -k never_answers",
    ),
    Found(
        "With an Idempotency-Key the database held a plain hash of the request, from which a patient reference could "
        "be found by trying.",
        "8547fed",
        "python -m pytest tests/web/test_idempotency.py -k guessing",
    ),
    Found(
        "The start did not find a trigger on SQLite that spells the name of its table in capitals, and that discarded "
        "records of scores that were sent.",
        "dbe527b",
        "python -m pytest tests/database/test_schema_checks.py -k each_missing",
    ),
    Found(
        "A backlog of stored answers that had expired was never deleted, which nothing reported; on SQLite each "
        "attempt kept scores waiting.",
        "30538b8",
        "python -m pytest tests/runtime/test_idempotent_answers.py tests/database/test_idempotent_answers.py",
    ),
    Found(
        "A key that an issuer had withdrawn stayed valid for as long as its key set had no usable key.",
        "e9363af",
        "python -m pytest tests/runtime/test_issuer_keys.py -k ends_the_keys",
    ),
    Found(
        "With encryption on, a repeated request could wait 4 s for the key of its stored answer, where 2.5 s are "
        "allowed.",
        "a3c5a13",
        "python -m pytest tests/web/test_erasure.py -k waited_for",
    ),
    Found(
        "Behind 640 new connections of 16 callers the first requests of others waited 14 s, because one connection was "
        "accepted in each round of the event loop.",
        "7f5852a",
        "python -m pytest tests/web/test_connections.py",
    ),
    Found(
        "Connections that had ended stayed in memory until a garbage collection, which runs seldom: 1,000 slow "
        "sockets, opened again whenever they were closed, took 67 MB where 50 are allowed.",
        "797a2d5",
        "python -m pytest tests/web/test_connections.py -k memory",
    ),
    Found(
        "A thread that moved SQLite's write-ahead log beside the commits made it possible that SQLite before 3.51.3 "
        "loses committed records (its WAL-reset bug). It was in no release.",
        "1ec0e02",
        "python -m pytest tests/database/test_sqlite.py -k 'log or moves'",
    ),
    Found(
        "`audit verify` reported no forged chain if somebody had added copies of the checkpoints under other writers "
        "and the auditor gave no file of them: it counted no signature any more. The independent verifier did.",
        "c819fc0",
        "python -m pytest tests/audit/test_signatures.py -k copies",
    ),
    Found(
        "`audit verify` took an edited last line of a file of checkpoints without a line feed for an unfinished one.",
        "652120d",
        "python -m pytest tests/audit/test_signatures.py -k edited_last",
    ),
    Found(
        "The independent verifier inflated a payload without limit: a row of 2 MB, which the service's login may add, "
        "took 2 GB of memory.",
        "3041c49",
        "python -m pytest tests/audit/test_payload_agreement.py -k 'inflate or any_size'",
    ),
    Found(
        "A scheduled verification that found tampering was reported as failed if its own record could not be written.",
        "ec3f497",
        "python -m pytest tests/services/test_verify_audit.py -k reported",
    ),
    Found(
        "On SQLite a retirement that failed before its commit left files with patients' values, and could not be tried "
        "again because of them.",
        "4d5532a",
        "python -m pytest tests/services/test_retire_months.py -k 'commit or killed'",
    ),
    Found(
        "Of an audit without any record, `audit verify` reported EMPTIED also if no checkpoint was signed by a trusted "
        "key; the independent verifier did not.",
        "2c3a540",
        "python -m pytest tests/audit/test_signatures.py -k emptied",
    ),
)
