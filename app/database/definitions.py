"""The functions and triggers, as both databases have them after the last migration. The start compares them.

To guard another table, add it to `SAME_KEY` and write its triggers in the next revision; to change a function, change
it here and there. The grants are in `roles.py`.
"""

from typing import NamedTuple

# The tables that are only ever added to, with what makes a row the same one.
SAME_KEY = {
    "audit_records": "month = NEW.month AND chain_id = NEW.chain_id AND seq = NEW.seq",
    "activations": "id = NEW.id OR (month = NEW.month AND chain_id = NEW.chain_id AND seq = NEW.seq)",
}

SQLITE_TRIGGERS = {
    "no_update": "BEFORE UPDATE ON {table}",
    "no_delete": "BEFORE DELETE ON {table}",
    "no_replace": "BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})",
}
SQLITE_TRIGGER = "CREATE TRIGGER {table}_{guard} {when} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"

# Bits of pg_trigger.tgtype.
ROW, BEFORE, DELETE, UPDATE, TRUNCATE = 1, 2, 8, 16, 32
POSTGRES_TRIGGERS = {"no_change": ROW | BEFORE | DELETE | UPDATE, "no_truncate": BEFORE | TRUNCATE}
ALWAYS = "A"  # also in replication sessions


class Function(NamedTuple):
    """What makes a function do what it does. `{home}` is our schema, quoted."""

    name: str
    result: str
    language: str
    volatility: str
    runs_as_owner: bool
    settings: tuple[str, ...]
    body: str


SAFE_PATH = ("search_path=pg_catalog, pg_temp",)
POSTGRES_FUNCTIONS = (
    Function(
        "audit_head(text, uuid)",
        "TABLE(seq bigint, row_hash bytea)",
        "sql",
        "s",
        runs_as_owner=True,
        settings=SAFE_PATH,
        body="SELECT r.seq, r.row_hash FROM {home}.audit_records r "
        "WHERE r.month = of_month AND r.chain_id = of_chain ORDER BY r.seq DESC LIMIT 1",
    ),
    Function(
        "refuse_change()",
        "trigger",
        "plpgsql",
        "v",
        runs_as_owner=False,
        settings=SAFE_PATH,
        body="BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege'; END",
    ),
)
