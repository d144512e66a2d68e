"""What a credential may do."""

from enum import StrEnum


class Scope(StrEnum):
    SCORE = "score"
    MODEL_READ = "model:read"
    AUDIT_READ = "audit:read"
    ADMIN = "admin"
