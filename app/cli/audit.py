"""`normalcy audit`: is the record what was written, what does it say, does it still hold?"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from app.cli.command import FromOption, ToOption, caller, counted, principal, run
from app.cli.output import JsonOption, errors, progress_bar, say, show
from app.errors import NormalcyError
from app.settings import Settings

if TYPE_CHECKING:
    from app.services.verify_audit import AuditVerification, CheckpointChoice, Tampering

group = typer.Typer(help="Verify, checkpoint, show, replay and export the audit.", no_args_is_help=True)

TAMPERED, COULD_NOT_CHECK = 1, 2
MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
COLUMNS = ("at", "kind", "request_id", "item", "principal", "route", "status", "model")
SiteOption = Annotated[str | None, typer.Option("--site", help="Of one site only.")]


def _month(text: str) -> str:
    """Anything else would leave out every chain, and nothing would look intact."""
    if text and not MONTH.fullmatch(text):
        raise ValueError("a month as 2026-11")
    return text


@group.command()
def verify(
    since: Annotated[
        str, typer.Option(parser=_month, metavar="YYYY-MM", help="Chains of this month and later only.")
    ] = "",
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Compare with this one; else with all that a service keeps in `checkpoints` of its folder."),
    ] = None,
    no_checkpoint: Annotated[bool, typer.Option("--no-checkpoint", help="Compare with none.")] = False,
    json: JsonOption = False,
) -> None:
    """Check every chain, and keys and activations against it. Exit 0: intact; 1: tampered with; 2: could not check."""
    from app.services.verify_audit import verify_audit

    if checkpoint and no_checkpoint:
        raise typer.BadParameter("--checkpoint and --no-checkpoint contradict each other.")
    choice: CheckpointChoice = checkpoint or ("none" if no_checkpoint else "folder")
    with _any_failure_exits_with_2(), progress_bar("verifying") as report:
        found = run(lambda settings: verify_audit(settings, report, since, choice))
    with _any_failure_exits_with_2():  # a verdict that nobody could read is none
        show(found, json, lambda: _verdict(found))
    if not found.intact:
        raise typer.Exit(TAMPERED)


@group.command()
def checkpoint(
    out: Annotated[Path, typer.Option(help="The file to write; never overwritten.")], json: JsonOption = False
) -> None:
    """Write where every chain stands now. Keep it outside the database: only against it is a lost end noticed."""
    from app.services.verify_audit import write_checkpoint

    taken = run(lambda settings: write_checkpoint(settings, out))
    told = {"taken_at": taken.taken_at, "chains": len(taken.ends), "root": taken.root}
    show(told, json, lambda: say(f"Wrote the ends of {counted(len(taken.ends), 'chain')} to {out}.\nRoot {taken.root}"))


@group.command("show")
def show_records(
    request_id: Annotated[str | None, typer.Argument(help="The request_id of an answer; else a list by time.")] = None,
    start: FromOption = None,
    end: ToOption = None,
    site: SiteOption = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many records.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Where an earlier list ended.")] = None,
    json: JsonOption = False,
) -> None:
    """The records of a request, or a list in the order of time. Reading is itself recorded.

    Exit 1: some of them are damaged, or there are none.
    """
    from app.database.records import Filter
    from app.errors import UnknownRecord
    from app.services import audit_records

    wanted = Filter(request_id, start, end, site)
    page = run(lambda settings: audit_records.show_records(settings, principal(), wanted, cursor, limit))
    if request_id is not None and not page.records:
        raise UnknownRecord

    def people() -> None:
        if request_id is not None:
            for record in page.records:
                Console().print_json(data=record)
            return
        for record in page.records:
            say(_line(record))
        if page.cursor:
            say(f"More: --cursor {page.cursor}")

    show({"records": page.records, "cursor": page.cursor}, json, people)
    _end_with_damage([record for record in page.records if record["damaged"]])


@group.command()
def replay(
    request_id: Annotated[str, typer.Argument(help="The request_id of an answer.")],
    item: Annotated[int | None, typer.Option(min=0, help="One item of a study or batch.")] = None,
    json: JsonOption = False,
) -> None:
    """Answer a recorded request again with the recorded version. Exit 0: identical; 1: not; 2: could not replay."""

    async def work(settings: Settings) -> dict[str, Any]:
        from app.runtime.command import command_runtime
        from app.services.replay import replay as answer_again

        async with command_runtime(settings, "audit replay") as service:
            return await answer_again(service, caller(settings, "audit replay"), request_id, item)

    with _any_failure_exits_with_2():
        found = run(work)

    def people() -> None:
        verdict = "Identical" if found["identical"] else "Not identical"
        largest = f"largest relative difference {found['max_relative_difference']:.1e}"
        say(f"{verdict}: {counted(found['replayed'], 'score')}, {largest}.")
        for name in found["fields"]:
            say(f"  {name}")
        for one in found["damaged"]:
            say(f"Damaged: {_damage(one, one)}")

    with _any_failure_exits_with_2():
        show(found, json, people)
    if not found["identical"]:
        raise typer.Exit(1)


@group.command()
def export(
    out: Annotated[Path, typer.Option(help="The file to write; never overwritten.")],
    kind: Annotated[
        Literal["csv", "fhir"],
        typer.Option("--format", help="csv: everything; fhir: AuditEvent (R4) as NDJSON, without values."),
    ] = "csv",
    start: FromOption = None,
    end: ToOption = None,
    site: SiteOption = None,
    json: JsonOption = False,
) -> None:
    """Write records to a file in the order of time. The CSV holds patients' values; exporting is itself recorded.

    Exit 1: some of them are damaged, and marked so in the file.
    """
    from app.database.records import Filter
    from app.formats import audit_csv, fhir_audit_event
    from app.services.audit_records import ExportFormat, export_records

    layout = (
        ExportFormat(audit_csv.header(), audit_csv.line) if kind == "csv" else ExportFormat(b"", fhir_audit_event.line)
    )
    wanted = Filter(None, start, end, site)

    with progress_bar("exporting") as report:
        exported = run(lambda settings: export_records(settings, principal(), wanted, out, layout, report))
    show(
        exported, json, lambda: say(f"Wrote {counted(exported.records, 'record')} to {out}.\nDigest {exported.sha256}")
    )
    if exported.damaged:
        errors.print(f"normalcy: {counted(exported.damaged, 'damaged record')}, marked so in the file.", markup=False)
        raise typer.Exit(TAMPERED)


@contextmanager
def _any_failure_exits_with_2() -> Iterator[None]:
    """Whatever goes wrong: an exit of 1 would say that something is known to be wrong."""
    try:
        yield
    except NormalcyError as error:
        errors.print(f"normalcy: {error}", markup=False)
        raise typer.Exit(COULD_NOT_CHECK) from error
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # the last: a reader who hung up
        errors.print(f"normalcy: Could not check: {type(error).__name__}.", markup=False)
        raise typer.Exit(COULD_NOT_CHECK) from error


def _verdict(found: "AuditVerification") -> None:
    for warning in found.warnings:
        say(f"Warning: {warning}")
    for chain in found.open_chains:
        say(f"Open: chain {chain.chain_id} ends with row {chain.seq} at {chain.at}; its writer still runs, or died.")
    for one in found.tampering:
        say(f"{one.damage}: {_where(one)}{one.detail}.")
    for row in found.rows:
        which = f"row {row.row} of {row.table}" if row.row else f"a row of {row.table}"
        on_record = f" (record {row.record_id})" if row.record_id else ""
        say(f"{row.damage}: {which}{on_record}: {row.detail}.")
    verdict = "Intact" if found.intact else "TAMPERED WITH"
    counts = f"{counted(found.records, 'record')} in {counted(found.chains, 'chain')}"
    say(f"{verdict}: {counts}, against {_checkpoints(found)}.")


def _where(one: "Tampering") -> str:
    if one.chain_id is None:
        return ""
    record = f"record {one.record_id}" if one.record_id else "a record that is missing"
    request = f", request {one.request_id}" if one.request_id else ""
    return f"{record}{request} (chain {one.chain_id} of {one.month}, row {one.seq}): "


def _checkpoints(found: "AuditVerification") -> str:
    if not found.checkpoints:
        return "no checkpoint"
    newest = found.checkpoints[-1]
    of = "of" if len(found.checkpoints) == 1 else "the newest of"
    return f"{counted(len(found.checkpoints), 'checkpoint')}, {of} {newest.taken_at}"


def _end_with_damage(damaged: list[dict[str, Any]]) -> None:
    for record in damaged:
        errors.print(f"normalcy: Damaged: {_damage(record, record['damage'])}", markup=False)
    if damaged:
        raise typer.Exit(TAMPERED)


def _damage(record: dict[str, Any], damage: dict[str, Any]) -> str:
    return f"record {record['record_id']}: {damage['kind']}, {damage['detail']}."


def _line(record: dict[str, Any]) -> str:
    model = record.get("model") or {}
    cells = {**record, "model": f"{model['site']} {model['version']}" if model else None}
    marked = ["DAMAGED"] if record["damaged"] else []
    return "  ".join(["-" if cells.get(name) is None else str(cells[name]) for name in COLUMNS] + marked)
