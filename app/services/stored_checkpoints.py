"""Read checkpoints for verification: those of the data folder, or a file that an auditor has stored.

A data folder may have served several databases: a checkpoint of another one is skipped with a warning. Checkpoints of
the first release name no database and always count, because after everything was deleted they may be the only
evidence. Signed checkpoints are in files of lines; the older ones without signatures have a file each.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.audit import checkpoint as checkpoints
from app.audit.author import FOLDER, signed_files
from app.audit.chain import DamageKind
from app.audit.checkpoint import Checkpoint
from app.audit.signed_checkpoint import is_complete_line, is_signed_line, read_body, read_line
from app.audit.verify import Coverage
from app.audit.verify_signatures import CheckpointFinding
from app.database.checkpoints import CheckpointRow
from app.errors import InvalidCheckpoint
from app.runtime.checkpoints import checkpoint_files

CheckpointChoice = Path | Literal["folder", "none"]


@dataclass(frozen=True, slots=True)
class ComparedCheckpoint:
    file: str
    taken_at: str
    root: str


@dataclass(frozen=True, slots=True)
class StoredCheckpoints:
    coverage: Coverage  # of the months that are verified
    compared: tuple[ComparedCheckpoint, ...]  # without signatures, oldest first
    signed: tuple[tuple[str, CheckpointRow], ...]  # each with its file
    findings: tuple[CheckpointFinding, ...]
    cover_records: bool  # those without signatures; of any month
    warnings: tuple[str, ...]


def read_checkpoints(
    database: str, data_dir: Path, choice: CheckpointChoice, since_month: str = "", only_signed: bool = False
) -> StoredCheckpoints:
    """Read before the chains, which can then only be longer; one file at a time, because there may be many.

    `only_signed`: a file of the auditor's choice without signatures is a finding. Raises InvalidCheckpoint for a
    damaged file.
    """
    folder, chosen = data_dir / FOLDER, isinstance(choice, Path)
    signed_ones, others = _files(choice, folder)
    coverage, compared, cover_records = Coverage(), [], False
    for file in others:
        checkpoint = _read_checkpoint(file)
        if chosen or checkpoint.database in ("", database):
            coverage.add(checkpoint, since_month)
            compared.append(ComparedCheckpoint(str(file), checkpoint.taken_at, checkpoint.root))
            cover_records |= bool(checkpoint.ends)
    findings, signed, warnings = [], [], []
    for file in signed_ones:
        for number, line in enumerate(_content(file).splitlines(keepends=True), 1):
            try:
                row = read_line(line)
            except InvalidCheckpoint as error:
                where = f"line {number} of {file}"
                if line.endswith(b"\n") or is_complete_line(line):
                    findings.append(CheckpointFinding(DamageKind.BAD_SIGNATURE, where, str(error)))
                else:
                    warnings.append(
                        f"The last one, {where}, is unfinished: it is being written, or a crash cut it off."
                    )
                continue
            if chosen or read_body(row.body).database == database:
                signed.append((str(file), row))
    if only_signed and chosen and others:
        findings.append(CheckpointFinding(DamageKind.BAD_SIGNATURE, str(choice), "the checkpoint is not signed"))
    skipped = len(others) - len(compared)
    if skipped:
        among = f"{skipped} of {len(others)} checkpoints in {folder}"
        warnings.append(f"{among} are of another database and were not compared.")
    return StoredCheckpoints(
        coverage,
        tuple(sorted(compared, key=lambda each: each.taken_at)),
        tuple(signed),
        tuple(findings),
        cover_records,
        tuple(warnings),
    )


def _files(choice: CheckpointChoice, folder: Path) -> tuple[list[Path], list[Path]]:
    """Those of signed checkpoints, and the others."""
    if choice == "none":
        return [], []
    if choice == "folder":
        return signed_files(folder), checkpoint_files(folder)
    is_signed = any(is_signed_line(line) for line in _content(choice).splitlines()[:1])
    return ([choice], []) if is_signed else ([], [choice])


def _read_checkpoint(path: Path) -> Checkpoint:
    try:
        return checkpoints.parse(_content(path))
    except InvalidCheckpoint as error:
        raise InvalidCheckpoint(f"{path}: {error}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidCheckpoint(f"{path} cannot be read: {error.strerror}.") from error
