"""Every fault that was found so far, by whatever means, with the command that looks for it again."""

from typing import NamedTuple


class Found(NamedTuple):
    fault: str
    fixed: str  # commit, or that it is not
    replay: str


FOUND = (
    Found(
        "The service's PostgreSQL login could act as the owner through a function without a search path of its own.",
        "51e62b6",
        "python -m pytest tests/database/test_login_attacks.py",
    ),
    Found(
        "One connection with millions of pipelined requests used up the memory of the service.",
        "8e55dc0",
        "python -m pytest tests/web/test_pipelining.py",
    ),
    Found(
        "A flood of refused requests wrote one audit record each.",
        "f6c5e9a",
        "python -m tests.campaigns.hostile_load --out build/hostile-load.md",
    ),
    Found(
        "Trailers of a chunked body counted as headers, and repeated headers were accepted.",
        "8e55dc0",
        "python -m pytest tests/web/test_header_tricks.py",
    ),
    Found(
        "An activation or a key was acknowledged although its record could be lost.",
        "959e6ca",
        "python -m pytest tests/audit/test_durability.py",
    ),
    Found(
        "A log that could not be written took the service down.",
        "a737ee8",
        "python -m pytest tests/test_observability.py",
    ),
    Found(
        "A site whose version could not be used stopped all the others.",
        "b52c43d",
        "python -m tests.campaigns.faults --only F15",
    ),
    Found(
        "After kill -9 on PostgreSQL one return of 50 took 5.38 s where 5 s are allowed; starts are shorter since.",
        "efc5a3a",
        "python -m tests.campaigns.faults --only F1 --database PostgreSQL",
    ),
    Found(
        "`audit verify` reports a chain whose writer's clock was set back by more than two intervals between signed "
        "checkpoints: rows without a signature look older than the writer's last one. A false alarm; nothing is lost.",
        "not yet",
        "python -m tests.campaigns.faults --only F12 --cycles 1",
    ),
)
