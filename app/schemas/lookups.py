"""Responses of look-ups: sites, limits, models, health, self-test, audit."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from app.schemas.answers import ModelConvention
from app.schemas.base import SHA256, ResponseBody, Schema

Timestamp = Field(description="UTC, RFC 3339.", examples=["2026-11-15T10:30:00.123Z"])


class Site(Schema):
    site: str
    name: str
    current: str | None = Field(
        description="The version that is used unless the request names one; null: it cannot be used (503)."
    )
    loaded: list[str] = Field(description="Versions in memory.")


class Sites(ResponseBody):
    sites: list[Site]


class AllowedRange(Schema):
    """`low <= value <= high`; outside, the request is rejected, or answered with the advisory if there is one."""

    field: str
    unit: str
    low: float
    high: float
    default: float | None
    from_age_years: float = Field(description="The range holds from this age on.")
    high_excluded: bool
    advisory: str | None


class Limits(ResponseBody):
    limits: list[AllowedRange]
    choices: dict[str, list[str]]


class PublishedModel(Schema):
    site: str
    version: str
    sha256: str | None = Field(pattern=SHA256)
    created_at: str | None
    cohort: str | None
    cohort_size: int | None
    status: Literal["current", "loaded", "published", "refused"]
    refused: str | None = Field(description="Why the files of this version are not used.")


class Models(ResponseBody):
    models: list[PublishedModel]


class Card(ResponseBody):
    """The model card: what a version is, how it was trained, and how reliable it is."""

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


class ActivePeriod(Schema):
    version: str
    sha256: str = Field(pattern=SHA256)
    from_: str = Field(alias="from", description="UTC, RFC 3339.")
    until: str | None = Field(description="null: it is current.")
    by: str


class History(ResponseBody):
    site: str
    current: str | None
    history: list[ActivePeriod] = Field(
        description="Oldest first. Before the first entry the highest version was current."
    )


class Activated(ResponseBody):
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)
    activated_at: str = Timestamp
    activated_by: str


class ModelTest(Schema):
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)
    passed: int
    failed: int
    cases: int


class SelfTest(ResponseBody):
    passed: int
    failed: int
    cases: int
    models: list[ModelTest]


class Alive(ResponseBody):
    status: Literal["alive"]


class ModelRef(Schema):
    site: str
    version: str
    sha256: str = Field(pattern=SHA256)


class HealthWarning(Schema):
    code: str
    message: str


class Ready(ResponseBody):
    ready: bool
    checks: dict[str, bool]
    models: list[ModelRef]
    backend: str
    device: str
    audit_queue_depth: int
    warnings: list[HealthWarning]


class ChainPosition(Schema):
    month: str
    id: str
    seq: int
    row_hash: str


class DamageFound(Schema):
    kind: str = Field(description="As `normalcy audit verify` names it.", examples=["MUTATED"])
    detail: str


class AuditRecord(Schema):
    """The hashed payload and its position in its chain. A damaged record shows what the database holds now."""

    model_config = ConfigDict(extra="allow")

    record_id: str
    request_id: str | None
    damaged: bool = Field(description="The row differs from what was hashed: do not rely on it.")
    damage: DamageFound | None = Field(default=None, description="Only in a damaged record.")
    chain: ChainPosition


class AuditPage(ResponseBody):
    records: list[AuditRecord]
    cursor: str | None = Field(description="For the next page; null: this is the last one.")


class DamagedRecord(DamageFound):
    record_id: str
    item: int | None


class Replayed(ResponseBody):
    identical: bool = Field(description="No number differs by more than 1e-8, relatively, and no record is damaged.")
    max_relative_difference: float = Field(ge=0)
    fields: list[str] = Field(description="Where the difference is larger.")
    replayed: int = Field(description="Records that were scored again.")
    damaged: list[DamagedRecord] = Field(description="Records that differ from what was hashed.")
