"""Start-up check of the service's PostgreSQL login: what it may do beyond its grants, and who else has rights.

All of it is read from the catalogue, so a right counts however it was granted: directly, through a role that the login
inherits or could assume with SET ROLE, or to PUBLIC. What is allowed is in `roles.GRANTS`.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.roles import AUDITOR, GRANTS, WRITER
from app.database.schema_checks import query_our_objects

ATTRIBUTES = {
    "rolsuper": "SUPERUSER",
    "rolcreaterole": "CREATEROLE",
    "rolcreatedb": "CREATEDB",
    "rolreplication": "REPLICATION",
    "rolbypassrls": "BYPASSRLS",
}
# They see the state of the server, but cannot write, read files or tables, or act as others.
MONITORING = ("pg_monitor", "pg_read_all_settings", "pg_read_all_stats", "pg_stat_scan_tables")
ROLES = text("""
    SELECT rolname = current_user AS is_own, * FROM pg_roles
    WHERE pg_has_role(current_user, oid, 'MEMBER')
        AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls
            OR rolname LIKE 'pg\\_%' AND rolname <> ALL(:harmless))
    ORDER BY rolname <> current_user, rolname
""").bindparams(harmless=list(MONITORING))
# Each object, whether the login can act as its owner, and every right on it that anyone but its owner has.
RIGHTS = query_our_objects("""
    , objects (kind, name, owner, acl) AS (
        SELECT 'table', c.relname, relowner, relacl FROM tables JOIN pg_class c USING (oid)
        UNION ALL SELECT 'sequence', relname, relowner, relacl FROM sequences JOIN pg_class USING (oid)
        UNION ALL SELECT 'column', c.relname || '.' || attname, relowner, attacl
        FROM tables JOIN pg_class c USING (oid) JOIN pg_attribute ON attrelid = c.oid WHERE attacl IS NOT NULL
        UNION ALL SELECT 'view', name, relowner, relacl FROM views JOIN pg_class USING (oid)
        UNION ALL SELECT 'view column', name || '.' || attname, relowner, attacl
        FROM views JOIN pg_class USING (oid) JOIN pg_attribute ON attrelid = oid WHERE attacl IS NOT NULL
        UNION ALL SELECT 'function', proname || '(' || oidvectortypes(proargtypes) || ')', proowner,
            coalesce(proacl, acldefault('f', proowner))
        FROM functions JOIN pg_proc USING (oid)
        UNION ALL SELECT 'schema', nspname, nspowner, nspacl FROM our_schema JOIN pg_namespace USING (oid)
        UNION ALL SELECT 'database', datname, datdba, coalesce(datacl, acldefault('d', datdba))
        FROM pg_database WHERE datname = current_database()
        UNION ALL SELECT 'owner''s default for new', CASE defaclobjtype WHEN 'S' THEN 'sequences' ELSE 'tables' END,
            defaclrole, defaclacl
        FROM our_schema JOIN pg_default_acl ON defaclrole = our_schema.owner AND defaclnamespace IN (0, our_schema.oid)
        WHERE defaclobjtype IN ('r', 'S')
    )
    SELECT o.kind, o.name, pg_has_role(current_user, o.owner, 'MEMBER') AS is_owned, privilege_type AS privilege,
        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END AS grantee,
        is_grantable, grantee = 0 OR pg_has_role(current_user, nullif(grantee, 0), 'MEMBER') AS is_ours
    FROM our_schema, objects o
        LEFT JOIN LATERAL (
            SELECT * FROM aclexplode(o.acl) WHERE grantee NOT IN (o.owner, our_schema.owner)
        ) granted ON true
    ORDER BY o.kind, o.name, grantee, privilege
""")
ALLOWED_TO_ALL = {"schema": {"USAGE"}, "database": {"CONNECT"}, "view": {"SELECT"}, "view column": {"SELECT"}}
# Code that runs with more rights than its caller has. `schema_checks` refuses such functions of our owner.
CODE_OF_OTHERS = query_our_objects("""
    SELECT format('the function %s runs with the rights of %s, and this login may execute it', p.oid::regprocedure,
        pg_get_userbyid(proowner))
    FROM our_schema, pg_proc p JOIN pg_roles owner ON owner.oid = proowner
    WHERE prosecdef AND proowner <> our_schema.owner AND (rolsuper OR pg_has_role(proowner, our_schema.owner, 'MEMBER'))
        AND pronamespace <> 'pg_catalog'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE')
        AND has_schema_privilege(pronamespace, 'USAGE')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e')
    UNION ALL SELECT format('the event trigger %s of %s runs when tables are changed', evtname,
        pg_get_userbyid(evtowner)) FROM pg_event_trigger WHERE evtenabled <> 'D'
    ORDER BY 1
""")


class LoginRights(NamedTuple):
    """In words: what the login has beyond its grants, and what others have, or run, on our tables."""

    excess: tuple[str, ...]
    of_others: tuple[str, ...]


class Right(NamedTuple):
    """One row of RIGHTS. `privilege` None: nobody but its owner has any right on the object."""

    kind: str
    name: str
    is_owned: bool
    privilege: str | None
    grantee: str | None
    is_grantable: bool | None
    is_ours: bool | None  # the login has it, or can get it

    @property
    def what(self) -> str:
        return f"{self.privilege} on the {self.kind} {self.name}" + (" with grant option" if self.is_grantable else "")

    @property
    def is_granted_to_us(self) -> bool:
        return bool(self.is_ours) and self.grantee != "PUBLIC"

    def is_granted_to(self, roles: Iterable[str]) -> bool:
        is_ours = not self.kind.startswith("view")
        expected = {privilege for role in roles for privilege in GRANTS[role].get(self.name, ()) if is_ours}
        return self.privilege in expected | ALLOWED_TO_ALL.get(self.kind, set()) and not self.is_grantable


async def login_rights(connection: AsyncConnection) -> LoginRights:
    """Of the login of this connection."""
    return await connection.run_sync(_login_rights)


def _login_rights(connection: Connection) -> LoginRights:
    found = [Right(*row) for row in connection.execute(RIGHTS)]
    attributes = _attributes(connection)
    if attributes[:1] == ["it is a superuser"]:
        return LoginRights(tuple(attributes[:1]), ())  # which includes everything else
    code = connection.scalars(CODE_OF_OTHERS)
    given = [right for right in found if right.privilege]
    excess = [right for right in given if right.is_ours and not right.is_granted_to(GRANTS)]
    of_others = [right for right in given if not right.is_granted_to_us and not _is_expected(right)]
    return LoginRights((*attributes, *_owned(found), *_described("it has", excess)), (*_of_others(of_others), *code))


def _attributes(connection: Connection) -> list[str]:
    found = []
    for row in connection.execute(ROLES).mappings():
        has = [word for column, word in ATTRIBUTES.items() if row[column]]
        if row["is_own"]:
            found += ["it is a superuser"] if row["rolsuper"] else [f"it has {word}" for word in has]
        else:
            found.append(f"it is a member of {row['rolname']}" + (f", which has {', '.join(has)}" if has else ""))
    return found


def _owned(found: list[Right]) -> list[str]:
    owned = [right for right in found if right.is_owned and right.kind != "owner's default for new"]
    kinds = list(dict.fromkeys(f"{right.kind} {right.name}" for right in owned if not right.kind.endswith("column")))
    more = f" and {len(kinds) - 3} more" if len(kinds) > 3 else ""
    return [f"it can act as the owner of the {', the '.join(kinds[:3])}{more}"] if kinds else []


def _described(beginning: str, rights: list[Right]) -> list[str]:
    return list(dict.fromkeys(f"{beginning} {right.what}" for right in rights))


def _is_expected(right: Right) -> bool:
    """A right on the database, or USAGE of the schema, gives no access to our tables."""
    if right.kind == "database" or (right.kind == "schema" and right.privilege == "USAGE"):
        return True
    return right.grantee in (WRITER, AUDITOR) and right.is_granted_to([right.grantee])


def _of_others(rights: list[Right]) -> tuple[str, ...]:
    by_role = defaultdict(list)
    for right in rights:
        by_role[right.grantee].append(right.what)
    return tuple(f"{role} has {', '.join(what)}" for role, what in by_role.items())
