"""`normalcy audit`: verify the audit, write checkpoints, show, replay and export records, erase a patient."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from app.cli.common import (
    FromOption,
    JsonOption,
    ToOption,
    caller,
    counted,
    principal,
    progress_bar,
    run,
    say,
    say_json,
    show,
    warn,
)
from app.clock import parse_timestamp, utc_now
from app.errors import NormalcyError
from app.settings import Settings, load_settings

if TYPE_CHECKING:
    from app.services.stored_checkpoints import CheckpointChoice
    from app.services.verify_audit import AuditVerification, Tampering

group = typer.Typer(
    help="Verify, checkpoint, show, replay, export and retire the audit; erase a patient; public-key and rotate-key "
    "for its signatures.",
    no_args_is_help=True,
)

DAMAGED, COULD_NOT_CHECK = 1, 2  # exit codes
MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
HIDDEN = ("erased", "unreadable")  # contents that cannot be shown
COLUMNS = ("at", "kind", "request_id", "item", "principal", "route", "status", "model")
SiteOption = Annotated[str | None, typer.Option("--site", help="Only records of this site.")]
NewFileOption = Annotated[Path, typer.Option("--out", help="The file to write. An existing file is never overwritten.")]


def _month(text: str) -> str:
    """Rejects anything else, which would exclude every chain and so find nothing wrong."""
    if text and not MONTH.fullmatch(text):
        raise typer.BadParameter("A month is needed here, such as 2026-11.")
    return text


@group.command()
def verify(
    since: Annotated[
        str, typer.Option(parser=_month, metavar="YYYY-MM", help="Only chains of this month and later.")
    ] = "",
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Compare with this checkpoint. Default: all checkpoints in the data folder."),
    ] = None,
    no_checkpoint: Annotated[bool, typer.Option("--no-checkpoint", help="Compare with no checkpoint.")] = False,
    public_key: Annotated[
        list[Path] | None,
        typer.Option(
            help="Accept only checkpoints signed by the keys in this file (PEM), and by keys that they vouch for; may "
            "be repeated. Default: the key of this installation and those of NORMALCY_AUDIT_PUBLIC_KEYS_FILE."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Verify every chain of records with its signatures, and compare keys and activations with their records.

    Exit code 0: intact; 1: tampered with; 2: could not check.
    """
    from app.audit.signing_key import read_public_keys
    from app.services.verify_audit import verify_audit

    if checkpoint and no_checkpoint:
        raise typer.BadParameter("--checkpoint and --no-checkpoint contradict each other.")
    choice: CheckpointChoice = checkpoint or ("none" if no_checkpoint else "folder")
    with _any_failure_exits_with_2(), progress_bar("verifying") as report:
        keys = [key for path in public_key or () for key in read_public_keys(path)]
        found = run(lambda settings: verify_audit(settings, report, since, choice, keys))
    with _any_failure_exits_with_2():  # a result that could not be printed must not look like tampering
        show(found, json, lambda: _show_verification(found))
    if not found.intact:
        raise typer.Exit(DAMAGED)


@group.command()
def checkpoint(out: NewFileOption, json: JsonOption = False) -> None:
    """Write the current end of every chain to a file.

    Store it outside the database: removed records at the end of a chain are detected only by comparison with it.
    """
    from app.services.verify_audit import write_checkpoint

    taken = run(lambda settings: write_checkpoint(settings, out))
    chains = len(taken.ends)
    report = {"taken_at": taken.taken_at, "chains": chains, "root": taken.root}

    def print_text() -> None:
        say(f"Wrote the ends of {counted(chains, 'chain')} to {out}.")
        say(f"Root {taken.root}")

    show(report, json, print_text)


@group.command("public-key")
def public_key(
    out: Annotated[Path | None, typer.Option("--out", help="Write it to this file. Default: print it.")] = None,
) -> None:
    """Export the public key of this installation, with which auditors verify its signed checkpoints."""
    from app.files import new_file
    from app.services import signing_keys

    key = signing_keys.public_key(load_settings(os.environ))
    if out is None:
        typer.echo(key.pem.decode(), nl=False)
        return
    with new_file(out) as file:
        file.write(key.pem)
    say(f"Wrote the public key {key.key_id} to {out}.")


@group.command("rotate-key")
def rotate_key(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The file for the new private key. Default: replace the one in the data folder."),
    ] = None,
) -> None:
    """Replace the key that signs checkpoints. Both keys sign each other; restart the service to use the new one."""
    from app.services.signing_keys import rotate_signing_key

    key = run(lambda settings: rotate_signing_key(settings, out))
    say(f"The new key is {key.key_id}. Restart the service; `normalcy audit public-key` exports the public key.")


@group.command("show")
def show_records(
    request_id: Annotated[
        str | None, typer.Argument(help="The request_id of a response. Default: list records by time.")
    ] = None,
    start: FromOption = None,
    end: ToOption = None,
    site: SiteOption = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show at most this many records.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Continue where an earlier list ended.")] = None,
    json: JsonOption = False,
) -> None:
    """Show the records of a request, or list records by time. Reading is itself recorded.

    Exit code 1 if a record is damaged, or if the request has none.
    """
    from app.database.records import Filter
    from app.errors import UnknownRecord
    from app.services import audit_records

    wanted = Filter(request_id, start, end, site)
    page = run(lambda settings: audit_records.show_records(settings, principal(), wanted, cursor, limit))
    if request_id is not None and not page.records:
        raise UnknownRecord

    def print_text() -> None:
        if request_id is not None:
            for record in page.records:
                say_json(record)
            return
        for record in page.records:
            say(_line(record))
        if page.cursor:
            say(f"More: --cursor {page.cursor}")

    show({"records": page.records, "cursor": page.cursor}, json, print_text)
    damaged = [record for record in page.records if record["damaged"]]
    for record in damaged:
        warn(f"normalcy: Damaged: {_damage(record, record['damage'])}")
    if damaged:
        raise typer.Exit(DAMAGED)


@group.command()
def replay(
    request_id: Annotated[str, typer.Argument(help="The request_id of a response.")],
    item: Annotated[int | None, typer.Option(min=0, help="Only this item of a study or batch.")] = None,
    json: JsonOption = False,
) -> None:
    """Score a recorded request again with the recorded model version, and compare.

    Exit code 0: identical; 1: different; 2: could not replay.
    """

    async def work(settings: Settings) -> dict[str, Any]:
        from app.runtime.command import command_runtime
        from app.schemas.base import plain
        from app.services.replay import replay as replay_request

        async with command_runtime(settings, "audit replay") as runtime:
            found = plain(await replay_request(runtime, caller("audit replay"), request_id, item))
        del found["request_id"]  # of this command, not of the request that was replayed
        return found

    with _any_failure_exits_with_2():
        found = run(work)

    def print_text() -> None:
        verdict = "Identical" if found["identical"] else "Not identical"
        largest = f"largest relative difference {found['max_relative_difference']:.1e}"
        say(f"{verdict}: {counted(found['replayed'], 'score')}, {largest}.")
        for name in found["fields"]:
            say(f"  {name}")
        if found["erased"]:
            say(f"Left out: {counted(found['erased'], 'score')} of patients who were erased.")
        for damaged in found["damaged"]:
            say(f"Damaged: {_damage(damaged, damaged)}")

    with _any_failure_exits_with_2():
        show(found, json, print_text)
    if not found["identical"]:
        raise typer.Exit(1)


@group.command()
def export(
    out: NewFileOption,
    kind: Annotated[
        Literal["csv", "fhir"],
        typer.Option("--format", help="csv: everything; fhir: AuditEvent (R4) as NDJSON, without patients' values."),
    ] = "csv",
    start: FromOption = None,
    end: ToOption = None,
    site: SiteOption = None,
    json: JsonOption = False,
) -> None:
    """Write records to a file, in order of time. The export is itself recorded. The CSV contains patients' values.

    Exit code 1 if a record is damaged; it is marked in the file.
    """
    from app.database.records import Filter
    from app.formats.audit_export import csv_header, csv_line, fhir_line
    from app.services.audit_records import ExportFormat, export_records

    layout = ExportFormat(csv_header(), csv_line) if kind == "csv" else ExportFormat(b"", fhir_line)
    wanted = Filter(None, start, end, site)

    with progress_bar("exporting") as report:
        exported = run(lambda settings: export_records(settings, principal(), wanted, out, layout, report))

    def print_text() -> None:
        say(f"Wrote {counted(exported.records, 'record')} to {out}.")
        say(f"Digest {exported.sha256}")

    show(exported, json, print_text)
    if exported.damaged:
        warn(f"normalcy: {counted(exported.damaged, 'damaged record')}, marked so in the file.")
        raise typer.Exit(DAMAGED)


@group.command()
def retire(
    before: Annotated[str, typer.Option(parser=_month, metavar="YYYY-MM", help="Retire all months before this one.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Default: a dry run, which changes nothing.")] = False,
    below_minimum: Annotated[
        bool, typer.Option("--below-minimum", help="Also months younger than NORMALCY_AUDIT_RETENTION_MONTHS.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Remove old months from the database after signing the ends of their chains, so that verification stays intact.

    PostgreSQL detaches their partitions, which stay as tables; SQLite writes each month to a file of the data folder
    and deletes its rows, while no service runs. The whole audit is verified first. Export or dump what you must store.
    """
    from app.services.retire_months import retire_months

    with progress_bar("verifying") as report:
        done = run(
            lambda settings: retire_months(settings, principal(), before, report, below_minimum, dry_run=not yes)
        )

    def print_text() -> None:
        for month in done.months:
            what = f"{counted(month.records, 'record')} in {counted(month.chains, 'chain')}"
            say(f"{month.month}: {what}, {'now' if done.retired else 'then'} in {month.stored_in}.")
        if not done.months:
            say("There is no record of an earlier month.")
        elif not done.retired:
            say("Nothing was changed: add --yes to retire them.")

    show(done, json, print_text)


@group.command()
def erase(
    subject: Annotated[
        str,
        typer.Option(help="The patient reference that callers sent in `subject`; -: read it from standard input."),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Erase. Without it, only show what would be erased.")] = False,
    json: JsonOption = False,
) -> None:
    """Make everything that was recorded encrypted about a patient unreadable, for ever, by destroying its key.

    The chain stays intact, and the erasure is itself recorded. Records that were stored in clear stay as they are.
    """
    from app.services.audit_records import erase_subject

    reference = typer.get_text_stream("stdin").readline().rstrip("\r\n") if subject == "-" else subject
    with progress_bar("counting") as report:
        found = run(lambda settings: erase_subject(settings, principal(), reference, report, really=yes))

    def print_text() -> None:
        done = "Erased" if found.erased else "Would erase"
        say(f"{done}: {counted(found.records, 'record')} of this patient, by destroying the data key {found.data_key}.")
        if found.in_clear:
            say(f"Not erased: {counted(found.in_clear, 'record')} stored in clear while encryption was off.")
        if not found.erased:
            say("Nothing was changed. To erase, add --yes.")

    show(found, json, print_text)
    if found.erased and not found.log_emptied:
        warn("normalcy: The database was busy: its write-ahead log may hold the wrapped key until it is written on.")


@contextmanager
def _any_failure_exits_with_2() -> Iterator[None]:
    """Exit code 1 is reserved for results: the audit is damaged, the replay differs."""
    try:
        yield
    except NormalcyError as error:
        warn(f"normalcy: {error}")
        raise typer.Exit(COULD_NOT_CHECK) from error
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # SystemExit: nobody reads the output
        warn(f"normalcy: Could not check: {type(error).__name__}.")
        raise typer.Exit(COULD_NOT_CHECK) from error


def _show_verification(found: "AuditVerification") -> None:
    for warning in found.warnings:
        say(f"Warning: {warning}")
    for chain in found.open_chains:
        say(f"Open: chain {chain.chain_id} ends with row {chain.seq} at {chain.at}; its writer still runs, or crashed.")
    for tail in found.unsigned:
        rows = f"{counted(tail.rows, 'row')} of chain {tail.chain_id} from row {tail.seq} on"
        say(f"Unsigned: {rows}, {_age(tail.since)}.")
    for month, chains in found.retired.items():
        say(f"Retired: {counted(chains, 'chain')} of {month}, removed from the database on purpose.")
    for tampering in found.tampering:
        say(f"{tampering.damage}: {_where(tampering)}{tampering.detail}.")
    for row in found.rows:
        which = f"row {row.row} of {row.table}" if row.row else f"a row of {row.table}"
        on_record = f" (record {row.record_id})" if row.record_id else ""
        say(f"{row.damage}: {which}{on_record}: {row.detail}.")
    verdict = "Intact" if found.intact else "TAMPERED WITH"
    counts = f"{counted(found.records, 'record')} in {counted(found.chains, 'chain')}"
    say(f"{verdict}: {counts}, compared with {_checkpoints(found)}.")


def _age(since: str) -> str:
    """Of a time that somebody may have changed."""
    try:
        seconds = (utc_now() - parse_timestamp(since)).total_seconds()
    except ValueError:
        return "of an unknown time"
    return f"the oldest {seconds:.0f} s old"


def _where(tampering: "Tampering") -> str:
    if tampering.chain_id is None:
        return ""
    record = f"record {tampering.record_id}" if tampering.record_id else "a missing record"
    request = f", request {tampering.request_id}" if tampering.request_id else ""
    return f"{record}{request} (chain {tampering.chain_id} of {tampering.month}, row {tampering.seq}): "


def _checkpoints(found: "AuditVerification") -> str:
    signed = counted(found.signed_checkpoints, "signed checkpoint")
    return signed if not found.checkpoints else f"{signed} and {_unsigned_checkpoints(found)}"


def _unsigned_checkpoints(found: "AuditVerification") -> str:
    newest = found.checkpoints[-1].taken_at
    if len(found.checkpoints) == 1:
        return f"1 checkpoint of {newest}"
    return f"{len(found.checkpoints)} checkpoints, the newest of {newest}"


def _damage(record: dict[str, Any], damage: dict[str, Any]) -> str:
    return f"record {record['record_id']}: {damage['kind']}, {damage['detail']}."


def _line(record: dict[str, Any]) -> str:
    model = record.get("model") or {}
    cells = {**record, "model": f"{model['site']} {model['version']}" if model else None}
    mark = ["DAMAGED"] if record["damaged"] else [record["content"]] if record["content"] in HIDDEN else []
    return "  ".join(["-" if cells.get(name) is None else str(cells[name]) for name in COLUMNS] + mark)
