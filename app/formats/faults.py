"""The codes of errors; to be imported from app.schemas.errors."""

from app.schemas.errors import CODES, NOT_ACCEPTABLE, NOT_JSON, ROWS, unknown_site, unknown_version
from app.schemas.errors import UNIT_MISTAKES as SLIPS
from app.schemas.errors import field_error as fault

__all__ = ["CODES", "NOT_ACCEPTABLE", "NOT_JSON", "ROWS", "SLIPS", "fault", "unknown_site", "unknown_version"]
