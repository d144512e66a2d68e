"""The answers to look-ups: sites, limits, models, health, self-test, audit."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from app.schemas.answers import ModelConvention
from app.schemas.base import SHA256, Described, Traced

Moment = Field(description="UTC, RFC 3339.", examples=["2026-11-15T10:30:00.123Z"])


class Site(Described):
    site: str
    name: str
    current: str | None = Field(
        description="The version that answers when the caller names none; null: it cannot be used, and scores are 503."
    )
    loaded: list[str] = Field(description="Versions in memory.")


class Sites(Traced):
    sites: list[Site]


class AllowedRange(Described):
    """`low <= value <= high`; outside, the request is refused, or answered with the advisory if one is named."""

    field: str
    unit: str
    low: float
    high: float
    default: float | None
    from_age_years: float = Field(description="The range holds from this age on.")
    high_excluded: bool
    advisory: str | None


class Limits(Traced):
    limits: list[AllowedRange]
    choices: dict[str, list[str]]


class PublishedModel(Described):
    site: str
    version: str
    sha256: str | None = Field(pattern=SHA256)
    created_at: str | None
    cohort: str | None
    cohort_size: int | None
    status: Literal["current", "loaded", "published", "refused"]
    refused: str | None = Field(description="Why the files of this version are not used.")


class Models(Traced):
    models: list[PublishedModel]


class Card(Traced):
    """The model card: what a version is, what it was made from, and how far to trust it."""

    model_config = ConfigDict(extra="allow")

    format: int
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)
    created_at: str
    cohort: dict[str, Any]
    convention: ModelConvention
    age_transform: Literal["log", "identity"]
    covariates: list[str]
    kernel: str
    ranges: dict[str, Any]
    training: dict[str, Any]
    calibration: dict[str, Any]
    gates: list[dict[str, Any]]
    width_quantiles: list[float]
    comparators: dict[str, Any]
    reliability: dict[str, Any]


class ActivePeriod(Described):
    version: str
    sha256: str = Field(pattern=SHA256)
    from_: str = Field(alias="from", description="UTC, RFC 3339.")
    until: str | None = Field(description="null: it still is.")
    by: str


class History(Traced):
    site: str
    current: str | None
    history: list[ActivePeriod] = Field(
        description="Oldest first. Before the first entry the highest version was current."
    )


class Activated(Traced):
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)
    activated_at: str = Moment
    activated_by: str


class ModelTest(Described):
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)
    passed: int
    failed: int
    cases: int


class SelfTest(Traced):
    passed: int
    failed: int
    cases: int
    models: list[ModelTest]


class Alive(Traced):
    status: Literal["alive"]


class ModelRef(Described):
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)


class Warned(Described):
    code: str
    message: str


class Ready(Traced):
    ready: bool
    checks: dict[str, bool]
    models: list[ModelRef]
    backend: str
    device: str
    audit_queue_depth: int
    warnings: list[Warned]


class ChainPlace(Described):
    month: str
    id: str
    seq: int
    row_hash: str


class DamageFound(Described):
    kind: str = Field(description="As `normalcy audit verify` names it.", examples=["MUTATED"])
    detail: str


class AuditRecord(Described):
    """What was hashed, and its place in its chain. A damaged one says what stands in the database now."""

    model_config = ConfigDict(extra="allow")

    record_id: str
    request_id: str | None
    damaged: bool = Field(description="The row is not what was hashed: do not rely on what it says.")
    damage: DamageFound | None = Field(default=None, description="Only of a damaged record.")
    chain: ChainPlace


class AuditPage(Traced):
    records: list[AuditRecord]
    cursor: str | None = Field(description="Of the next page; null: this is the last one.")


class DamagedRecord(DamageFound):
    record_id: str
    item: int | None


class Replayed(Traced):
    identical: bool = Field(description="No number differs by more than 1e-8, relatively, and no record is damaged.")
    max_relative_difference: float = Field(ge=0)
    fields: list[str] = Field(description="Where the difference is larger.")
    replayed: int = Field(description="Records that were answered again.")
    damaged: list[DamagedRecord] = Field(description="Records that are not what was hashed.")
