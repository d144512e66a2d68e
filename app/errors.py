"""What can go wrong, in words of medicine and of models, never of HTTP.

    NormalcyError
    ├── MalformedJson           the bytes are not JSON that has one meaning (one error)
    ├── InvalidInput            a request that cannot be answered (every error at once)
    ├── UnknownSite             no model was ever published for this site
    ├── UnknownVersion          the site has no such version
    ├── UnknownRecord           the audit holds no such record
    ├── NoModelLoaded           no model is loaded, or not yet
    │   └── SiteNotServed       the current version of this one site cannot be used (says why)
    ├── ActivationFailed        a version cannot become current; the one before it keeps serving
    ├── ScoringQueueFull        too many readings wait to be scored
    ├── InvalidArtefact         a stored model is not what its digest says (names the file)
    ├── InvalidName             a site or version has a name that the store does not take
    ├── VersionExists           a published version is never overwritten
    ├── InvalidTable            a table of people cannot be used (every problem, with rows and columns)
    ├── GateFailed              a trained model did not pass its gates (which, and by how much)
    ├── TrainingFailed          the optimiser gave no usable model
    ├── FileExists              a command does not overwrite a file of yours
    ├── UnverifiedResult        the solver could not verify its own answer
    ├── InvalidSettings         the configuration cannot be used (every problem, by the setting's name)
    ├── DatabaseUnavailable     the database did not answer, or not in time
    │   ├── DatabaseNotTrusted  its certificate is not accepted
    │   └── NotDurable          it answers, and could lose what it acknowledges (says which setting is wrong)
    ├── DatabaseNotReady        the database answers and must not be used as it stands
    │   └── PendingMigrations   its tables are older than this program: `normalcy db upgrade`
    ├── AlreadyServing          another process serves from the same embedded database
    ├── AuditUnavailable        the record of an answer could not be made durable in time
    │   └── AuditQueueFull      too many records are waiting already
    ├── InvalidCursor           a page marker that did not come from an earlier page
    ├── InvalidCheckpoint       a checkpoint file is not what its own root says
    ├── UnknownKey              no API key has this id
    └── NotInstalled            this command needs parts that a serving installation leaves out

Each protocol has one table that turns the leaves into its own answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass


class NormalcyError(Exception):
    """Every failure that a user can meet. Its text is one clear sentence."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of a request. Never holds what the caller sent."""

    code: str  # for machines; the table of codes is in schemas/errors.py
    field: str  # dotted path such as measurements[1].diameter_mm; empty: the request as a whole
    message: str  # for people: the field, its unit, what is allowed


class MalformedJson(NormalcyError):
    def __init__(self, error: FieldError) -> None:
        super().__init__(error.message)
        self.error = error


class InvalidInput(NormalcyError):
    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(" ".join(error.message for error in errors))
        self.errors = tuple(errors)


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
        super().__init__("The audit holds no such record.")


class NoModelLoaded(NormalcyError):
    def __init__(self) -> None:
        super().__init__("No model is loaded.")


class SiteNotServed(NoModelLoaded):
    def __init__(self, site: str, reason: str) -> None:
        NormalcyError.__init__(self, f"{site} is not served: {reason}")
        self.site, self.reason = site, reason


class ActivationFailed(NormalcyError):
    def __init__(self, reason: str) -> None:
        self.reason = f"The version was not activated, and the one before it keeps serving: {reason}"
        super().__init__(self.reason)


class ScoringQueueFull(NormalcyError):
    def __init__(self) -> None:
        super().__init__("Too many readings wait to be scored. Try again in a moment.")


class InvalidArtefact(NormalcyError):
    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file, self.reason = file, reason


class InvalidName(NormalcyError):
    pass


class VersionExists(NormalcyError):
    def __init__(self, site: str, version: str) -> None:
        super().__init__(f"{site} {version} is published already; a version is never overwritten. Choose a new one.")
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
            "The certificate of the database server is not accepted: NORMALCY_DATABASE_TLS_CA must hold its authority, "
            "and the host of NORMALCY_DATABASE_URL must be a name in the certificate."
        )


class NotDurable(DatabaseUnavailable):
    def __init__(self, reason: str) -> None:
        NormalcyError.__init__(self, reason)
        self.reason = reason


class DatabaseNotReady(NormalcyError):
    pass


class PendingMigrations(DatabaseNotReady):
    def __init__(self, revisions: Sequence[str]) -> None:
        waiting = ", ".join(revisions)
        super().__init__(f"The database waits for {waiting}: run `normalcy db upgrade` once, then start again.")
        self.revisions = tuple(revisions)


class AlreadyServing(NormalcyError):
    def __init__(self, file: str) -> None:
        super().__init__(
            f"Another process serves from {file}. An embedded database serves one process: "
            "stop the other one, choose another NORMALCY_DATA_DIR, or set NORMALCY_DATABASE_URL."
        )
        self.file = file


class AuditUnavailable(NormalcyError):
    def __init__(self, reason: str = "The record of this answer could not be made durable in time.") -> None:
        super().__init__(reason)


class AuditQueueFull(AuditUnavailable):
    def __init__(self) -> None:
        super().__init__("Too many answers wait for their record. Try again in a moment.")


class InvalidCursor(NormalcyError):
    def __init__(self) -> None:
        super().__init__("The cursor does not come from an earlier page of this list.")


class InvalidCheckpoint(NormalcyError):
    pass


class UnknownKey(NormalcyError):
    def __init__(self, key_id: str) -> None:
        super().__init__(f"No API key has the id {key_id}.")
        self.key_id = key_id


class NotInstalled(NormalcyError):
    def __init__(self, what: str) -> None:
        super().__init__(f"This command needs {what}: install the training environment with `make train-env`.")


class FileExists(NormalcyError):
    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists already and is not overwritten. Choose another name.")
