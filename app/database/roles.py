"""The three PostgreSQL roles. Nobody logs in as one of them; logins are members of them.

    normalcy_owner     owns the tables; for migrations and key management
    normalcy_writer    the service: adds records and activations, reads keys; cannot read, change or remove records
    normalcy_auditor   reads records, keys and activations; a service that answers audit queries is a member of both

Where the migrating login may not create roles, it owns everything itself, and the operator gets a note.
"""

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from app.database.tables import activations

OWNER, WRITER, AUDITOR = "normalcy_owner", "normalcy_writer", "normalcy_auditor"

# Every column but the id: whoever could choose it could make an activation the newest for ever.
NEW_ACTIVATION = tuple(f"activations.{column.name}" for column in activations.c if column.name != "id")
ACTIVATION_IDS = "activations_id_seq"

# All that the service's login may do with our tables and functions. With any right beyond these it does not start.
GRANTS: dict[str, dict[str, tuple[str, ...]]] = {
    WRITER: {
        "audit_records": ("INSERT",),
        "audit_checkpoints": ("INSERT",),
        "audit_head(text, uuid)": ("EXECUTE",),
        "activations": ("SELECT",),
        **dict.fromkeys(NEW_ACTIVATION, ("INSERT",)),
        "api_keys": ("SELECT",),
        # Not part of the audit: whoever takes over the service can send wrong answers anyway.
        "idempotent_answers": ("SELECT", "INSERT", "UPDATE", "DELETE"),
        "key_uses": ("SELECT", "INSERT", "UPDATE"),
        "data_keys": ("SELECT", "INSERT"),  # destroying one is for the owner
        "alembic_version": ("SELECT",),
    },
    AUDITOR: {
        "audit_records": ("SELECT",),
        "audit_checkpoints": ("SELECT",),
        "activations": ("SELECT",),
        ACTIVATION_IDS: ("SELECT",),  # verification compares the ids of activations with it
        # So that verification can compare the keys with their records. Of a secret only the SHA-256 of 32 random bytes
        # is stored: it grants no access, and it cannot be guessed.
        "api_keys": ("SELECT",),
        "key_uses": ("SELECT",),  # for `normalcy keys list`
        "data_keys": ("SELECT",),  # wrapped: useless without the key that is not in the database
        "alembic_version": ("SELECT",),
    },
}
TABLE_OWNER = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass('audit_records')"


def become_owner(connection: Connection) -> tuple[str, ...]:
    """Create missing roles, then act as the owner until the end of the transaction. Returns notes for the operator."""
    not_created = [
        role for role in (OWNER, WRITER, AUDITOR) if not _exists(connection, role) and not _create(connection, role)
    ]
    if not_created:
        return (
            f"This login may not create the roles {', '.join(not_created)}: it owns the tables itself, and no role "
            "protects them.",
        )
    owner = connection.scalar(text(TABLE_OWNER)) or OWNER  # existing tables may have another owner
    acting = f"SET LOCAL ROLE {_quoted(connection, owner)}"
    if not _attempt(connection, *_owner_grants(connection), acting):
        return (f"This login may not act as {owner}: it owns the tables itself.",)
    return () if owner == OWNER else (f"The tables belong to {owner}, not to {OWNER}; this was not changed.",)


def grant_rights(connection: Connection) -> None:
    for role, grants in GRANTS.items():
        if _exists(connection, role):
            for name, privileges in grants.items():
                connection.execute(text(f"GRANT {_privileges_on(name, privileges)} TO {role}"))


def _privileges_on(name: str, privileges: tuple[str, ...]) -> str:
    table, _, column = name.partition(".")
    of_column = f" ({column})" if column else ""
    kind = "FUNCTION" if name.endswith(")") else "SEQUENCE" if name == ACTIVATION_IDS else "TABLE"
    return f"{', '.join(privilege + of_column for privilege in privileges)} ON {kind} {table}"


def _exists(connection: Connection, role: str) -> bool:
    return bool(connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}))


def _create(connection: Connection, role: str) -> bool:
    # Roles belong to the whole server: an upgrade of another database may have created it.
    return _attempt(connection, f"CREATE ROLE {role} NOLOGIN") or _exists(connection, role)


def _owner_grants(connection: Connection) -> tuple[str, ...]:
    if connection.scalar(text("SELECT to_regclass('audit_records')")) is not None:
        return ()  # granted when the tables were created
    schema = connection.scalar(text("SELECT quote_ident(current_schema())"))
    member = connection.scalar(text("SELECT pg_has_role(:role, 'MEMBER')"), {"role": OWNER})
    joining = () if member else (f"GRANT {OWNER} TO CURRENT_USER",)
    others = f"GRANT USAGE ON SCHEMA {schema} TO {WRITER}, {AUDITOR}"  # the owner of the tables could not grant this
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
