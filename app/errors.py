"""Every failure that a user can meet, independent of HTTP.

    NormalcyError
    ├── MalformedJson           the request body is not valid JSON
    ├── InvalidInput            a request is invalid (with every error at once)
    ├── LineTooLong             a line of a stream exceeds its limit
    ├── UnknownSite             no model is published for this site
    ├── UnknownVersion          the site has no such version
    ├── UnknownRecord           the audit has no such record
    ├── UnknownSubject          no data key is stored for this patient reference
    ├── RecordErased            the key that encrypted a record was destroyed
    ├── RecordUnreadable        a record is encrypted, and its key is not available here
    ├── NoModelLoaded           no model is loaded, or not yet
    │   └── SiteNotServed       the current version of this site cannot be used (with the reason)
    ├── ActivationFailed        a version cannot become current; the earlier one stays current
    ├── ScoringQueueFull        too many measurements are waiting to be scored
    ├── InvalidArtefact         a stored model is damaged or does not match its digest (with the file)
    ├── InvalidName             not a valid name for a site or version
    ├── VersionExists           a published version is never overwritten
    ├── InvalidTable            a table of people cannot be used (with every problem, by row and column)
    ├── GateFailed              a trained model failed a publication gate (which, and by how much)
    ├── TrainingFailed          training gave no usable model
    ├── UnverifiedResult        a computed number could not be verified
    ├── InvalidSettings         the settings cannot be used (with every problem, by name)
    ├── DatabaseUnavailable     the database cannot be reached, or did not answer in time
    │   ├── DatabaseNotTrusted  the certificate of the database server is not accepted
    │   └── NotDurable          the database could lose what it commits (with the wrong setting)
    ├── DatabaseNotReady        the database can be reached and must not be used in its present state
    │   └── PendingMigrations   its tables are older than this program: `normalcy db upgrade`
    ├── AlreadyServing          another process serves from the same embedded database
    ├── AuditUnavailable        a record could not be written in time
    │   └── AuditQueueFull      too many records are waiting to be written
    ├── StillAnswering          the same Idempotency-Key is still being answered
    ├── IdempotencyKeyReused    the Idempotency-Key belongs to another request
    ├── InvalidCursor           a cursor that does not come from an earlier page
    ├── InvalidCheckpoint       a checkpoint file is damaged
    ├── UnknownKey              no API key has this id
    ├── FileExists              a command never overwrites a file
    └── NotInstalled            the command needs packages that are not installed

The table of HTTP responses is in `app.web.error_handlers`.
"""

import copyreg
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


class NormalcyError(Exception):
    """Its text is a clear sentence that can be shown to a user."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Passes from worker processes unchanged: else the text would be taken for the arguments of `__init__`."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of a request. Never contains the value that was sent."""

    code: str  # for programs; the table of codes is in schemas/validation.py
    field: str  # dotted path such as measurements[1].diameter_mm; empty: the whole request
    message: str  # for people: the field, its unit, what is allowed


class MalformedJson(NormalcyError):
    def __init__(self, error: FieldError) -> None:
        super().__init__(error.message)
        self.error = error


class InvalidInput(NormalcyError):
    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(" ".join(error.message for error in errors))
        self.errors = tuple(errors)


class LineTooLong(NormalcyError):
    def __init__(self) -> None:
        super().__init__("A line of the stream is too long.")


class UnknownSite(NormalcyError):
    def __init__(self, site: str) -> None:
        super().__init__(f"No model is published for the site {site}.")
        self.site = site


class UnknownVersion(NormalcyError):
    def __init__(self, site: str, version: str) -> None:
        super().__init__(f"The site {site} has no model version {version}.")
        self.site, self.version = site, version


class UnknownRecord(NormalcyError):
    def __init__(self) -> None:
        super().__init__("The audit has no such record.")


class UnknownSubject(NormalcyError):
    def __init__(self) -> None:
        super().__init__(
            "No data key is stored for this reference: nothing was recorded encrypted for it, or it was erased already."
        )


class RecordErased(NormalcyError):
    def __init__(self) -> None:
        super().__init__("What was recorded about this patient was erased: its key was destroyed.")


class RecordUnreadable(NormalcyError):
    def __init__(self) -> None:
        super().__init__("The record is encrypted, and its key is not available here: see NORMALCY_AUDIT_KEY.")


class NoModelLoaded(NormalcyError):
    def __init__(self) -> None:
        super().__init__("No model is loaded.")


class SiteNotServed(NoModelLoaded):
    def __init__(self, site: str, reason: str) -> None:
        NormalcyError.__init__(self, f"{site} is not served: {reason}")
        self.site, self.reason = site, reason


class ActivationFailed(NormalcyError):
    def __init__(self, reason: str) -> None:
        self.reason = f"The version was not activated, and the earlier one keeps serving: {reason}"
        super().__init__(self.reason)


class ScoringQueueFull(NormalcyError):
    def __init__(self) -> None:
        super().__init__("Too many measurements are waiting to be scored. Try again in a moment.")


class TooManyBatches(NormalcyError):
    def __init__(self) -> None:
        super().__init__("Too many batches are in progress. Try again when one of them has ended.")


class TooManyTokens(NormalcyError):
    def __init__(self) -> None:
        super().__init__("An issuer's callers use more tokens for one use than can be remembered. Try again shortly.")


class InvalidArtefact(NormalcyError):
    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file, self.reason = file, reason


class InvalidName(NormalcyError):
    pass


class VersionExists(NormalcyError):
    def __init__(self, site: str, version: str) -> None:
        super().__init__(
            f"{site} {version} is already published, and a version is never overwritten. Choose a new one."
        )
        self.site, self.version = site, version


class InvalidTable(NormalcyError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("The table cannot be used. " + " ".join(problems))
        self.problems = tuple(problems)


class GateFailed(NormalcyError):
    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("The model is not published. " + " ".join(failures))
        self.failures = tuple(failures)


class TrainingFailed(NormalcyError):
    pass


class UnverifiedResult(NormalcyError):
    pass


class InvalidSettings(NormalcyError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("The settings cannot be used. " + " ".join(problems))
        self.problems = tuple(problems)


class DatabaseUnavailable(NormalcyError):
    def __init__(self, why: str = "The database cannot be reached, or did not answer in time.") -> None:
        super().__init__(why)


class DatabaseNotTrusted(DatabaseUnavailable):
    def __init__(self) -> None:
        super().__init__(
            "The certificate of the database server is not accepted: NORMALCY_DATABASE_TLS_CA must contain the "
            "authority that issued it, and the certificate must name the host of NORMALCY_DATABASE_URL."
        )


class NotDurable(DatabaseUnavailable):
    def __init__(self, reason: str) -> None:
        NormalcyError.__init__(self, reason)
        self.reason = reason


class DatabaseNotReady(NormalcyError):
    pass


class PendingMigrations(DatabaseNotReady):
    def __init__(self, revisions: Sequence[str]) -> None:
        pending = ", ".join(revisions)
        super().__init__(f"The database needs the migrations {pending}: run `normalcy db upgrade`, then start again.")
        self.revisions = tuple(revisions)


class AlreadyServing(NormalcyError):
    def __init__(self, file: str) -> None:
        super().__init__(
            f"Another process serves from {file}. Only one process can serve from an embedded database: "
            "stop the other one, choose another NORMALCY_DATA_DIR, or set NORMALCY_DATABASE_URL."
        )
        self.file = file


class AuditUnavailable(NormalcyError):
    def __init__(self, reason: str = "The audit record could not be written in time.") -> None:
        super().__init__(reason)


class AuditQueueFull(AuditUnavailable):
    def __init__(self) -> None:
        super().__init__("Too many audit records are waiting to be written. Try again in a moment.")


class StillAnswering(NormalcyError):
    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key is still being answered.")


class IdempotencyKeyReused(NormalcyError):
    def __init__(self) -> None:
        super().__init__("This Idempotency-Key belongs to another request.")


class InvalidCursor(NormalcyError):
    def __init__(self) -> None:
        super().__init__("The cursor does not come from an earlier page of this list.")


class InvalidCheckpoint(NormalcyError):
    pass


class RetirementRefused(NormalcyError):
    """Months of the audit that cannot leave the database, and why."""


class InvalidPublicKey(NormalcyError):
    """A file that should hold the public key of a signer holds something else."""


class UnknownKey(NormalcyError):
    def __init__(self, key_id: str) -> None:
        super().__init__(f"No API key has the id {key_id}.")
        self.key_id = key_id


class KeyNotRotated(NormalcyError):
    def __init__(self, key_id: str, reason: str) -> None:
        super().__init__(f"Key {key_id} was not rotated: {reason}.")


class NotInstalled(NormalcyError):
    """With the environment that has what is missing; the one of the paper has all that the others have, and more."""

    def __init__(self, what: str, environment: Literal["files", "train", "paper"] = "train") -> None:
        commands = f"run `make {environment}-env`, then `source .venv/{environment}/bin/activate`"
        super().__init__(f"This command needs {what}: {commands}.")


class FileExists(NormalcyError):
    def __init__(self, path: str) -> None:
        super().__init__(f"{path} already exists and is not overwritten. Choose another name.")


class InvalidUrl(NormalcyError):
    def __init__(self) -> None:
        super().__init__("The address must be http://HOST or https://HOST, with an optional port and path.")


class NoResponse(NormalcyError):
    """Of a deployment whose conformance is checked."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"There was no response: {reason}.")


class CouldNotCheck(NormalcyError):
    """A deployment cannot be judged: it is not reachable or not ready, or the key is not sufficient."""
