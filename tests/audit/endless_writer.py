"""A process that writes records until it is killed, and says which ones were acknowledged.

python -m tests.audit.endless_writer     with the settings of the database in the environment
"""

import asyncio
import os
import sys

from app.audit.writer import AuditWriter
from app.database.engine import open_database
from app.observability import configure_logging, make_metrics
from app.settings import load_settings
from tests.audit.recording import author, score

CONCURRENT = 16


async def main() -> None:
    configure_logging("error", sys.stderr)  # standard output is for the records' ids
    writer = AuditWriter(open_database(load_settings(os.environ)).appender(), author(), make_metrics())
    await writer.start()
    await asyncio.gather(*(_write_for_ever(writer) for _ in range(CONCURRENT)))


async def _write_for_ever(writer: AuditWriter) -> None:
    while True:
        (record_id,) = await writer.write([score()])
        sys.stdout.write(f"{record_id}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
