"""`normalcy keys`: create, list, rotate and revoke API keys."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.cli.common import JsonOption, principal, printable, run, say, show, warn
from app.domain.scopes import Scope
from app.settings import Settings

if TYPE_CHECKING:
    from app.database.keys import ApiKey, NewKey

group = typer.Typer(help="Create, list, rotate and revoke API keys.", no_args_is_help=True)

KeyIdArgument = Annotated[str, typer.Argument(help="The id of the key.")]
NO_KEY = (
    "No API key exists. Unless issuers of tokens are configured, requests are accepted from this machine only, without "
    "a key."
)
NEVER_EXPIRES = "Warning: this key never expires. If it leaks, it can be used until it is revoked."


@group.command()
def create(
    name: Annotated[str, typer.Option(help="Whom the key is for, for example `ward 7 front end`.")],
    scope: Annotated[list[Scope], typer.Option(help="What the key may do. Repeat for several scopes.")],
    days: Annotated[int, typer.Option(min=0, max=36_500, help="Days until it expires; 0: it never expires.")] = 365,
    new_database: Annotated[
        bool, typer.Option("--new-database", help="Create an embedded database if the data folder has none.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Create a key. It is printed once, as the only line on standard output; only its hash is stored.

    The audit records who created it.
    """
    from app.clock import utc_now
    from app.database.keys import MAX_NAME_LENGTH
    from app.runtime.command import database_location
    from app.services.manage_keys import create_key

    if not (0 < len(name) <= MAX_NAME_LENGTH and name.isprintable()):
        raise typer.BadParameter(f"1 to {MAX_NAME_LENGTH} printable characters", param_hint="--name")

    async def work(settings: Settings) -> "NewKey":
        warn(f"Database: {database_location(settings)}")
        return await create_key(settings, principal(), name, scope, days, new_database)

    new = run(work)

    def print_text() -> None:
        _print_new(new)
        warn("It is not shown again. From now on every request to the service needs a key.")

    show({"key": new.text, **_describe(new.key, utc_now())}, json, print_text)
    if new.key.expires_at is None:
        warn(NEVER_EXPIRES)


@group.command("list")
def list_all(json: JsonOption = False) -> None:
    """List every key, including revoked and expired ones. Secrets are never shown.

    A running service writes the time of the last use once a minute.
    """
    from app.clock import utc_now
    from app.runtime.poller import DELETED
    from app.services.manage_keys import keys_were_deleted, list_keys

    keys = [_describe(key, utc_now()) | {"last_used_at": last_used} for key, last_used in run(list_keys)]

    def print_text() -> None:
        if not keys:
            say(DELETED if run(keys_were_deleted) else NO_KEY)
            return
        successors = {key["replaces"]: key["key_id"] for key in keys}
        table = Table("id", "name", "scopes", "created", "expires", "last used", "state")
        for key in keys:
            days = (key["created_at"][:10], (key["expires_at"] or "never")[:10], _minute(key["last_used_at"]))
            state = f"{key['state']}, expires soon" if key["expires_soon"] else key["state"]
            if key["key_id"] in successors:
                state += f", replaced by {successors[key['key_id']]}"
            cells = (key["key_id"], key["name"], ", ".join(key["scopes"]), *days, state)
            table.add_row(*(escape(printable(cell)) for cell in cells))
        Console().print(table)

    show(keys, json, print_text)


@group.command()
def rotate(
    key_id: KeyIdArgument,
    overlap_days: Annotated[
        int, typer.Option(min=0, max=365, help="Days until the old key expires; 0: it expires at once.")
    ] = 7,
    json: JsonOption = False,
) -> None:
    """Replace a key: create one with the same name, scopes and days of validity, and let the old one expire.

    The new key is printed once, as the only line on standard output. Until the old one expires both are valid. The
    audit records who rotated it.
    """
    from app.clock import utc_now
    from app.services.manage_keys import rotate_key

    old, new = run(lambda settings: rotate_key(settings, principal(), key_id, overlap_days))

    def print_text() -> None:
        _print_new(new)
        warn(f"It is not shown again. The old key {old.key_id} expires at {old.expires_at}.")

    now = utc_now()
    show({"key": new.text, **_describe(new.key, now), "old_key": _describe(old, now)}, json, print_text)
    if new.key.expires_at is None:
        warn(NEVER_EXPIRES)


@group.command()
def revoke(key_id: KeyIdArgument, json: JsonOption = False) -> None:
    """Revoke a key. Running services reject it within two seconds, permanently. The audit records who revoked it."""
    from app.clock import utc_now
    from app.services.manage_keys import revoke_key

    key = run(lambda settings: revoke_key(settings, principal(), key_id))
    show(
        _describe(key, utc_now()), json, lambda: say(f"Key {key.key_id} ({key.name}) was revoked at {key.revoked_at}.")
    )


def _print_new(new: "NewKey") -> None:
    typer.echo(new.text)
    until = f"valid until {new.key.expires_at}" if new.key.expires_at else "without expiry"
    warn(f"Key {new.key.key_id} for {new.key.name}: {', '.join(sorted(new.key.scopes))}, {until}.")


def _minute(at: str | None) -> str:
    return at[:16].replace("T", " ") if at else "never"


def _describe(key: "ApiKey", now: datetime) -> dict[str, Any]:
    state = "revoked" if key.revoked_at else "live" if key.is_live(now) else "expired"
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "replaces": key.replaces,
        "state": state,
        "expires_soon": key.expires_soon(now),
    }
