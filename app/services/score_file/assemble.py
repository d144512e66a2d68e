"""Puts the finished parts together in one file of scores and one of the rows without a score."""

import os
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple

from app.domain.card import ModelRef
from app.files import file_digest
from app.formats.score_table import ERROR_COLUMNS, SCORE_COLUMNS
from app.formats.table_parts import open_output
from app.services.score_file.job import Job
from app.services.score_file.work_folder import Receipt, errors_name, scores_name, whole_file

SCORES, ERRORS = "scores", "errors"  # in the work folder, until the run is recorded


class Assembled(NamedTuple):
    succeeded: int
    failed: int
    models: tuple[ModelRef, ...]
    scores_sha256: str
    errors_sha256: str


def assemble(job: Job, receipts: Iterable[Receipt]) -> Assembled:
    """A part is added as soon as its receipt comes, while workers score the next ones."""
    folder, succeeded, failed = job.folder, 0, 0
    used: set[ModelRef] = set()
    with (
        whole_file(folder / SCORES) as score_file,
        whole_file(folder / ERRORS) as error_file,
        closing(open_output(job.suffix, score_file, SCORE_COLUMNS)) as scores,
        closing(open_output(job.suffix, error_file, ERROR_COLUMNS)) as errors,
    ):
        for receipt in receipts:
            for output, name in ((scores, scores_name(receipt.number)), (errors, errors_name(receipt.number))):
                with (folder / name).open("rb") as part:
                    output.append(part)
            succeeded, failed = succeeded + receipt.succeeded, failed + receipt.failed
            used.update(receipt.models)
    for name in (SCORES, ERRORS):
        _synchronise(folder / name)
    models = tuple(sorted(used, key=lambda ref: (ref.site, ref.version)))
    return Assembled(succeeded, failed, models, file_digest(folder / SCORES), file_digest(folder / ERRORS))


def _synchronise(path: os.PathLike[str]) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
