"""The three roles on PostgreSQL. Nobody logs in as one of them; a login is made a member.

    normalcy_owner     owns the tables; for migrations and key management
    normalcy_writer    the service: adds records and activations, reads keys; cannot read, change or remove records
    normalcy_auditor   reads records, keys and activations; a service that answers audit queries is a member of both

Where the migrating login may not create roles, everything stays its own, and the operator is told.
"""

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from app.database.tables import activations

OWNER, WRITER, AUDITOR = "normalcy_owner", "normalcy_writer", "normalcy_auditor"

# Every column but the number: whoever chose it could place an activation before all later ones.
NEW_ACTIVATION = tuple(f"activations.{column.name}" for column in activations.c if column.name != "id")
ACTIVATIONS_COUNTER = "activations_id_seq"

# All that the service's login may do with our tables and functions: what it has beyond this refuses its start.
GRANTS: dict[str, dict[str, tuple[str, ...]]] = {
    WRITER: {
        "audit_records": ("INSERT",),
        "audit_head(text, uuid)": ("EXECUTE",),
        "activations": ("SELECT",),
        **dict.fromkeys(NEW_ACTIVATION, ("INSERT",)),
        "api_keys": ("SELECT",),
        "alembic_version": ("SELECT",),
    },
    AUDITOR: {
        "audit_records": ("SELECT",),
        "activations": ("SELECT",),
        ACTIVATIONS_COUNTER: ("SELECT",),  # verification compares the numbers of activations with it
        # So that verification can compare the keys with their records. What is kept of a secret is the SHA-256 of 32
        # random bytes: it opens nothing, and there is nothing to guess.
        "api_keys": ("SELECT",),
        "alembic_version": ("SELECT",),
    },
}
TABLE_OWNER = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass('audit_records')"


def become_owner(connection: Connection) -> tuple[str, ...]:
    """Create what is missing, then act as the owner until the end of the transaction."""
    refused = [
        role for role in (OWNER, WRITER, AUDITOR) if not _exists(connection, role) and not _create(connection, role)
    ]
    if refused:
        return (
            f"This login may not create the roles {', '.join(refused)}: the tables are its own, unguarded by roles.",
        )
    owner = connection.scalar(text(TABLE_OWNER)) or OWNER  # they may be there, and somebody else's
    acting = f"SET LOCAL ROLE {_quoted(connection, owner)}"
    if not _attempt(connection, *_owner_grants(connection), acting):
        return (f"This login may not act as {owner}: the tables are its own.",)
    return () if owner == OWNER else (f"The tables belong to another role than {OWNER}; they were left so.",)


def grant(connection: Connection) -> None:
    for role, grants in GRANTS.items():
        if _exists(connection, role):
            for name, privileges in grants.items():
                connection.execute(text(f"GRANT {_privileges_on(name, privileges)} TO {role}"))


def _privileges_on(name: str, privileges: tuple[str, ...]) -> str:
    table, _, column = name.partition(".")
    of_column = f" ({column})" if column else ""
    kind = "FUNCTION" if name.endswith(")") else "SEQUENCE" if name == ACTIVATIONS_COUNTER else "TABLE"
    return f"{', '.join(privilege + of_column for privilege in privileges)} ON {kind} {table}"


def _exists(connection: Connection, role: str) -> bool:
    return bool(connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}))


def _create(connection: Connection, role: str) -> bool:
    # Roles belong to the whole server: an upgrade of another database may have come first.
    return _attempt(connection, f"CREATE ROLE {role} NOLOGIN") or _exists(connection, role)


def _owner_grants(connection: Connection) -> tuple[str, ...]:
    if connection.scalar(text("SELECT to_regclass('audit_records')")) is not None:
        return ()  # granted when the tables were made
    schema = connection.scalar(text("SELECT quote_ident(current_schema())"))
    member = connection.scalar(text("SELECT pg_has_role(:role, 'MEMBER')"), {"role": OWNER})
    joining = () if member else (f"GRANT {OWNER} TO CURRENT_USER",)
    others = f"GRANT USAGE ON SCHEMA {schema} TO {WRITER}, {AUDITOR}"  # the owner of tables could not grant this
    return (*joining, f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {OWNER}", others)


def _quoted(connection: Connection, name: str) -> str:
    return str(connection.scalar(text("SELECT quote_ident(:name)"), {"name": name}))


def _attempt(connection: Connection, *statements: str) -> bool:
    try:
        with connection.begin_nested():
            for statement in statements:
                connection.execute(text(statement))
    except DBAPIError:
        return False
    return True
