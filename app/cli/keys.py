"""`normalcy keys`: create, list and revoke API keys."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.cli.common import JsonOption, principal, run, say, show, warn
from app.domain.scopes import Scope
from app.settings import Settings

if TYPE_CHECKING:
    from app.database.keys import ApiKey, NewKey

group = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)

MAX_NAME_LENGTH = 128


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
    from app.runtime.command import database_location
    from app.services.manage_keys import create_key

    if not (0 < len(name) <= MAX_NAME_LENGTH and name.isprintable()):
        raise typer.BadParameter(f"1 to {MAX_NAME_LENGTH} printable characters", param_hint="--name")

    async def work(settings: Settings) -> "NewKey":
        warn(f"Database: {database_location(settings)}")
        return await create_key(settings, principal(), name, scope, days, new_database)

    new = run(work)

    def print_text() -> None:
        typer.echo(new.text)
        until = f"valid until {new.key.expires_at}" if new.key.expires_at else "without expiry"
        warn(f"Key {new.key.key_id} for {name}: {', '.join(scope)}, {until}.")
        warn("It is not shown again. From now on every request to the service needs a key.")

    show({"key": new.text, **_describe(new.key, utc_now())}, json, print_text)
    if new.key.expires_at is None:
        warn("Warning: this key never expires. If it leaks, it can be used until it is revoked.")


@group.command("list")
def list_all(json: JsonOption = False) -> None:
    """List every key, including revoked and expired ones. Secrets are never shown."""
    from app.clock import utc_now
    from app.services.manage_keys import list_keys

    keys = [_describe(key, utc_now()) for key in run(list_keys)]

    def print_text() -> None:
        if not keys:
            say("No API key exists: requests are accepted from this machine only, without a key.")
            return
        table = Table("id", "name", "scopes", "created", "expires", "state")
        for key in keys:
            days = (key["created_at"][:10], (key["expires_at"] or "never")[:10])
            state = f"{key['state']}, expires soon" if key["expires_soon"] else key["state"]
            table.add_row(key["key_id"], escape(key["name"]), ", ".join(key["scopes"]), *days, state)
        Console().print(table)

    show(keys, json, print_text)


@group.command()
def revoke(key_id: Annotated[str, typer.Argument(help="The id of the key.")], json: JsonOption = False) -> None:
    """Revoke a key. Running services reject it within two seconds, permanently. The audit records who revoked it."""
    from app.clock import utc_now
    from app.services.manage_keys import revoke_key

    key = run(lambda settings: revoke_key(settings, principal(), key_id))
    show(
        _describe(key, utc_now()), json, lambda: say(f"Key {key.key_id} ({key.name}) was revoked at {key.revoked_at}.")
    )


def _describe(key: "ApiKey", now: datetime) -> dict[str, Any]:
    state = "revoked" if key.revoked_at else "live" if key.is_live(now) else "expired"
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "state": state,
        "expires_soon": key.expires_soon(now),
    }
