"""`normalcy serve` whose audit writes nothing and keeps nobody waiting: for the measurement of what the audit costs.

    python -m tests.campaigns.http_load_unaudited

There is no setting for this; only the campaign starts it, and only on a database of its own.
"""

from collections.abc import Sequence
from uuid import UUID

from app.audit.records import NewRecord
from app.audit.writer import AuditWriter
from app.cli.serve import serve


async def _write_nothing(
    self: AuditWriter, drafts: Sequence[NewRecord], deadline: float | None = None
) -> tuple[UUID, ...]:
    return ()


if __name__ == "__main__":
    AuditWriter.write = _write_nothing  # type: ignore[method-assign]
    serve()
