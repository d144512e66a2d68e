"""Does the service log in to PostgreSQL as somebody who can do no more than add and read records?

A service that was taken over can do what its login can. With the login that `deploy/create-service-login.sh` makes,
that is to add records; with the owner's, it is to rewrite the audit.
"""

import structlog

from app.database.engine import Database
from app.database.rights import Rights, login_rights
from app.errors import DatabaseNotReady
from app.settings import Settings

GIVEN_UP = (
    "NORMALCY_ALLOW_OWNER_LOGIN is true: whoever takes over the service can change and remove records, keys and "
    "activations, and only a checkpoint that is kept elsewhere shows it."
)
ENOUGH = 5  # so many reasons are told


async def check_login(database: Database, settings: Settings) -> tuple[dict[str, str], ...]:
    """What should be looked at, for readiness. Raises DatabaseNotReady for a login with more rights than it needs."""
    if database.dialect == "sqlite":
        return ()  # no logins: whoever reads the file can write it
    async with database.reading() as connection:
        rights = await connection.run_sync(login_rights)
    if rights.excess and not settings.allow_owner_login:
        raise DatabaseNotReady(_refusal(rights))
    return (*_owner_login(rights), *_others(rights))


def _refusal(rights: Rights) -> str:
    return (
        f"The service's PostgreSQL login could do more than add and read records: {_listed(rights.excess)}. "
        "Give it a login as deploy/create-service-login.sh makes one (it also says REVOKE TEMPORARY ON DATABASE … FROM "
        "PUBLIC), or set NORMALCY_ALLOW_OWNER_LOGIN to true and give up that the service cannot change its own records."
    )


def _owner_login(rights: Rights) -> tuple[dict[str, str], ...]:
    if not rights.excess:
        return ()
    structlog.get_logger("start").warning("one login for everything", given_up=GIVEN_UP, login=_listed(rights.excess))
    return ({"code": "owner_login", "message": GIVEN_UP},)


def _others(rights: Rights) -> tuple[dict[str, str], ...]:
    if not rights.of_others:
        return ()
    message = f"Other roles have rights on the tables of the audit: {_listed(rights.of_others)}."
    structlog.get_logger("start").warning("rights of other roles", roles=_listed(rights.of_others))
    return ({"code": "rights_of_other_roles", "message": message},)


def _listed(reasons: tuple[str, ...]) -> str:
    more = f"; and {len(reasons) - ENOUGH} more" if len(reasons) > ENOUGH else ""
    return "; ".join(reasons[:ENOUGH]) + more
