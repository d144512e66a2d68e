"""`normalcy` with one promise broken: a score is acknowledged before its record is committed.

python -m tests.campaigns.faults_mutant serve     the campaign must notice it, or it notices nothing
"""

from app.audit.writer import AuditWriter, Group
from app.cli.main import main

commit = AuditWriter._commit


async def acknowledge_first(self: AuditWriter, groups: list[Group]) -> bool:
    for group in groups:
        group.succeed()
    return await commit(self, groups)


if __name__ == "__main__":
    AuditWriter._commit = acknowledge_first  # type: ignore[method-assign]
    main()
