"""What a worker is given, plain values without a connection or a secret, and what it does: score one part of the input
into files of the work folder. All workers see the files under the paths of the job."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from app.domain.card import ModelRef
from app.errors import FieldError, NormalcyError, SiteNotServed, UnknownSite
from app.files import file_digest, scratch_file
from app.formats.score_table import ERROR_COLUMNS, SCORE_COLUMNS, check_columns, validate_table
from app.formats.table_files import Flat, Part, read_table
from app.formats.table_parts import part_writer
from app.inference.executor import LoadedModel
from app.runtime.models import choose_backend, load_model
from app.schemas.request_columns import RequestColumns
from app.schemas.requests import CURRENT
from app.services.score_block import SiteVersion, asked_models, model_error, score_block
from app.services.score_file import work_folder
from app.services.score_file.work_folder import Receipt
from app.settings import load_settings

BLOCK_ROWS = 4096  # scored in one vectorised call per model


@dataclass(frozen=True, slots=True)
class Job:
    source: Path
    folder: Path  # of the parts
    suffix: str  # of the output
    site: str | None  # for rows without one
    models_dir: Path
    backend: str
    device: str
    current: tuple[ModelRef, ...]  # resolved once, at the start of the run
    not_served: tuple[tuple[str, str], ...]  # sites whose current version cannot be used, and why


class Source(NamedTuple):
    """The input, read once."""

    sha256: str
    parts: list[Part]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


def inspect_source(path: Path, site: str | None, part_rows: int) -> Source:
    """Raises InvalidTable for a file that is not a table of measurements."""
    with path.open("rb") as file:
        table = read_table(path, file)
        check_columns(table.columns, site)
        return Source(file_digest(path), table.parts(part_rows))


def score_part(job: Job, part: Part) -> Receipt:
    """In a process of its own, which keeps its models for the next part."""
    return _part_scorer(job).score(part)


@lru_cache(maxsize=1)
def _part_scorer(job: Job) -> "PartScorer":
    return PartScorer(job)


class PartScorer:
    def __init__(self, job: Job, loaded: Sequence[LoadedModel] = ()) -> None:
        """`loaded` are models that need not be read from disk again."""
        self._job = job
        self._current = {ref.site: ref for ref in job.current}
        self._not_served = dict(job.not_served)
        settings = load_settings({"NORMALCY_BACKEND": job.backend, "NORMALCY_DEVICE": job.device})
        self._backend = choose_backend(settings)
        self._found: dict[SiteVersion, LoadedModel | FieldError] = {
            (model.ref.site, CURRENT): model for model in loaded if model.ref in job.current
        }

    def score(self, part: Part, report: Callable[[int], None] = lambda rows: None) -> Receipt:
        """Unless it is finished. Raises InvalidTable if not all of its rows can be read."""
        folder = self._job.folder
        done = work_folder.finished(folder, part)
        if done is None:
            done = self._score(part, report)
            work_folder.save_receipt(folder, part, done)
        else:
            report(done.rows)
        return done

    def _score(self, part: Part, report: Callable[[int], None]) -> Receipt:
        job, seen = self._job, part.first
        used: set[ModelRef] = set()
        succeeded = 0
        names = (work_folder.scores_name(part.number), work_folder.errors_name(part.number))
        files = [job.folder / name for name in names]
        with (
            job.source.open("rb") as source,
            scratch_file(files[0]) as score_file,
            scratch_file(files[1]) as error_file,
            closing(part_writer(job.suffix, score_file, SCORE_COLUMNS)) as scores,
            closing(part_writer(job.suffix, error_file, ERROR_COLUMNS)) as errors,
        ):
            for columns in read_table(job.source, source).blocks(part, BLOCK_ROWS):
                requests = validate_table(columns, job.site)
                block = score_block(requests, self._models(requests))
                answered, rejected = _split(block.flat(seen), list(block.errors))
                scores.write(answered)
                errors.write(rejected)
                used.update(group.model.ref for group in block.groups)
                succeeded += block.succeeded
                seen += len(requests)
                report(len(requests))
        digests = {file.name: file_digest(file) for file in files}
        models_used = tuple(sorted(used, key=lambda ref: (ref.site, ref.version)))
        return Receipt(part.number, succeeded, seen - part.first - succeeded, models_used, digests)

    def _models(self, requests: RequestColumns) -> Mapping[SiteVersion, LoadedModel | FieldError]:
        for site, version in asked_models(requests):
            if (site, version) not in self._found:
                self._found[site, version] = self._load(site, version)
        return self._found

    def _load(self, site: str, version: str) -> LoadedModel | FieldError:
        """Raises InvalidArtefact if a version that was current at the start of the run cannot be used any more."""
        models_dir, backend = self._job.models_dir, self._backend
        if version == CURRENT and site in self._current:
            ref = self._current[site]
            return load_model(models_dir, backend, site, ref.version, ref.sha256)
        try:
            if version != CURRENT:
                return load_model(models_dir, backend, site, version)
            if site in self._not_served:
                raise SiteNotServed(site, self._not_served[site])
            raise UnknownSite(site)
        except NormalcyError as error:
            return model_error(error)


def _split(flat: Flat, failed: list[int]) -> tuple[Flat, Flat]:
    """The rows with an answer, and those without."""
    rejected = {column.name: flat[column.name][failed] for column in ERROR_COLUMNS}
    if not failed:
        return flat, rejected
    return {column.name: np.delete(flat[column.name], failed) for column in SCORE_COLUMNS}, rejected
