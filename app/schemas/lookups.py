"""Responses of look-ups: sites, limits, models, health, self-test, audit."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.schemas.answers import AdvisoryCode
from app.schemas.base import SHA256, ResponseBody, Schema

SiteName = Annotated[str, Field(description="The site.", examples=["SoV"])]
Version = Annotated[str, Field(description="The version of the model.", examples=["1.0.0"])]
Sha256 = Annotated[str, Field(description="SHA-256 of the model's files.", pattern=SHA256)]
Timestamp = Annotated[str, Field(description="UTC, RFC 3339.", examples=["2026-11-15T10:30:00.123Z"])]
Count = Annotated[int, Field(ge=0)]
Message = Annotated[str, Field(description="The same for people.")]

WarningCode = Literal[
    "site_not_served",
    "activation_not_followed",
    "owner_login",
    "rights_of_other_roles",
    "audit_not_durable",
    "partitions_run_out",
    "no_live_key",
    "key_expires_soon",
    "issuer_keys_not_read",
    "checkpoint_failed",
    "checkpoint_late",
    "checkpoint_not_published",
    "audit_chains_lost",
    "audit_foreign_rows",
    "audit_not_verified",
    "audit_tampered",
]
DamageCode = Literal[
    "MUTATED",
    "GAP",
    "FORK",
    "AFTER_SEAL",
    "UNKNOWN_CHAIN",
    "TRUNCATED",
    "VANISHED",
    "REWRITTEN",
    "EMPTIED",
    "UNGUARDED",
    "UNSIGNED",
    "BAD_SIGNATURE",
    "CHECKPOINT_GONE",
]


class Site(Schema):
    """A site and the versions of its model."""

    site: SiteName
    name: str = Field(description="Its anatomical name.", examples=["sinus of Valsalva"])
    current: str | None = Field(
        description="The version that is used unless the request names one; null: it cannot be used (503)."
    )
    loaded: list[str] = Field(description="Versions in memory.")


class SiteList(ResponseBody):
    """The sites."""

    sites: list[Site] = Field(description="Every site, by name.")


class AllowedRange(Schema):
    """`low <= value <= high`. Outside, the request is rejected, or accepted with the advisory if there is one."""

    field: str = Field(description="Path of the field.", examples=["height_cm"])
    unit: str = Field(description="Unit of `low` and `high`.", examples=["cm"])
    low: float = Field(description="Smallest allowed value.")
    high: float = Field(description="Largest allowed value.")
    default: float | None = Field(description="Used if the field is not sent; null: there is no default.")
    from_age_years: float = Field(description="The range applies from this age.", ge=0)
    high_excluded: bool = Field(description="Whether `high` itself is outside the range.")
    advisory: AdvisoryCode | None = Field(description="The advisory outside the range; null: the request is rejected.")


class RequestLimits(ResponseBody):
    """What requests may contain."""

    limits: list[AllowedRange] = Field(description="Every range.")
    choices: dict[str, list[str]] = Field(description="The accepted values of text fields, by field.")


class PublishedModel(Schema):
    """A version in the model store."""

    site: SiteName
    version: Version
    sha256: Annotated[str, Field(pattern=SHA256)] | None = Field(description="SHA-256 of the model's files.")
    created_at: str | None = Field(description="When it was trained; UTC, RFC 3339.")
    cohort: str | None = Field(description="Name of the training cohort.")
    cohort_size: int | None = Field(description="Number of people in the training cohort.")
    status: Literal["current", "loaded", "published", "refused"] = Field(
        description="`current`: used by default; `loaded`: in memory; `published`: on disk; `refused`: unusable."
    )
    refused: str | None = Field(description="Why the files of this version cannot be used; otherwise null.")


class ModelList(ResponseBody):
    """The published versions."""

    models: list[PublishedModel] = Field(description="Every published version.")


class ActivePeriod(Schema):
    """From when to when a version was current."""

    version: Version
    sha256: Sha256
    from_: Timestamp = Field(alias="from")
    until: str | None = Field(description="UTC, RFC 3339; null: it is current.")
    by: str = Field(description="Who activated it: the id and name of an API key, or the command line.")


class ModelHistory(ResponseBody):
    """Which version of a site was current when."""

    site: SiteName
    current: str | None = Field(description="The version that is current in this process.")
    history: list[ActivePeriod] = Field(
        description="Oldest first. Before the first entry the highest version was current."
    )


class Activation(ResponseBody):
    """The version is current."""

    site: SiteName
    version: Version
    sha256: Sha256
    activated_at: Timestamp
    activated_by: str = Field(description="Id and name of the API key.")


class ModelRef(Schema):
    """A version of a model."""

    site: SiteName
    version: Version
    sha256: Sha256


class ModelTest(ModelRef):
    """The golden cases of one model."""

    passed: Count = Field(description="Golden cases that the model reproduces.")
    failed: Count = Field(description="Golden cases that it does not.")
    cases: Count = Field(description="All its golden cases.")


class SelfTest(ResponseBody):
    """The golden cases of all loaded models."""

    passed: Count = Field(description="Golden cases that passed, of all models.")
    failed: Count = Field(description="Golden cases that failed.")
    cases: Count = Field(description="All golden cases.")
    models: list[ModelTest] = Field(description="The counts of every loaded model.")


class Liveness(ResponseBody):
    """The process is alive."""

    status: Literal["alive"] = Field(description="Always `alive`.")


class ReadinessChecks(Schema):
    """What must be true for the process to take requests."""

    accepting: bool = Field(description="The process is not about to stop.")
    models_loaded: bool = Field(description="At least one model is loaded.")
    audit_writable: bool = Field(description="The audit can be written.")


class HealthWarning(Schema):
    """Something that an operator should look at while the service keeps serving."""

    code: WarningCode = Field(description="For programs.")
    message: Message


class Readiness(ResponseBody):
    """Whether the process takes requests."""

    ready: bool = Field(description="Whether all checks passed.")
    checks: ReadinessChecks
    models: list[ModelRef] = Field(description="The current model of every site.")
    backend: Literal["numpy", "tensorflow"] = Field(description="What computes the scores.")
    device: str = Field(description="The device that it runs on.", examples=["CPU"])
    audit_queue_depth: Count = Field(description="Records that wait to be written.")
    warnings: list[HealthWarning] = Field(description="Empty if there is nothing to look at.")


class ChainPosition(Schema):
    """Where a record stands in its hash chain."""

    month: str = Field(description="The month of the chain.", examples=["2026-11"])
    id: str = Field(description="Id of the chain.")
    seq: int = Field(description="Number of the record in its chain, from 1.", ge=1)
    row_hash: str = Field(description="Hash over this record and the one before.", pattern=SHA256)


class Damage(Schema):
    """How a record differs from what was hashed."""

    kind: DamageCode = Field(description="As `normalcy audit verify` names it.")
    detail: str = Field(description="The same for people.")


class AuditRecord(Schema):
    """The hashed payload and its position in its chain. A damaged record shows what the database holds now; if its
    payload cannot be read, only the columns of its row are there."""

    model_config = ConfigDict(extra="allow")

    record_id: str = Field(description="Id of the record (UUIDv7).")
    request_id: str | None = Field(description="Id of the request; null: the record concerns none, or several.")
    item: int | None = Field(default=None, description="Index in a study or a batch; null otherwise.")
    kind: str = Field(default="", description="What was recorded.", examples=["score", "refusal", "read"])
    at: str = Field(default="", description="When; UTC, RFC 3339.")
    principal: str = Field(default="", description="Id and name of the API key, or who else caused the record.")
    route: str | None = Field(default=None, description="Template of the route, or the command.")
    status: int | None = Field(default=None, description="Status of the response.")
    model: dict[str, Any] | None = Field(default=None, description="Site, version and SHA-256 of the model.")
    input: dict[str, Any] | None = Field(default=None, description="The request; `subject` only as a keyed hash.")
    output: dict[str, Any] | None = Field(default=None, description="What the response said.")
    content: Literal["clear", "decrypted", "erased", "unreadable"] = Field(
        description="How `input` and `output` are stored: in `clear`, or encrypted and shown here `decrypted`; both "
        "are null if they were `erased` with the key of their patient, or `unreadable` without the key of the service."
    )
    damaged: bool = Field(description="The row differs from what was hashed: do not rely on it.")
    damage: Damage | None = Field(default=None, description="Only in a damaged record.")
    chain: ChainPosition


class AuditPage(ResponseBody):
    """One page of audit records."""

    records: list[AuditRecord] = Field(description="The records of this page, oldest first.")
    cursor: str | None = Field(description="For the next page; null: this is the last one.")


class DamagedRecord(Damage):
    """A recorded score that differs from what was hashed."""

    record_id: str = Field(description="Id of the record (UUIDv7).")
    item: int | None = Field(description="Index in a study or a batch; null otherwise.")


class Replay(ResponseBody):
    """How the recomputed scores compare with the recorded ones."""

    identical: bool = Field(description="No number differs by more than 1e-8, relatively, and no record is damaged.")
    max_relative_difference: float = Field(description="The largest relative difference.", ge=0)
    fields: list[str] = Field(description="Fields whose difference exceeds 1e-8.")
    replayed: Count = Field(description="Records that were scored again.")
    damaged: list[DamagedRecord] = Field(description="Records that differ from what was hashed.")
    erased: Count = Field(description="Records that were left out, because their patient was erased.")
