"""`normalcy keys`: who may ask the service for what."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.cli.command import principal, run
from app.cli.output import JsonOption, errors, say, show
from app.domain.scopes import Scope
from app.settings import Settings

if TYPE_CHECKING:
    from app.database.keys import ApiKey, NewKey

group = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)

LONGEST_NAME = 128


@group.command()
def create(
    name: Annotated[str, typer.Option(help="Whom the key is for, as `ward 7 front end`.")],
    scope: Annotated[list[Scope], typer.Option(help="What it may do; repeat for several.")],
    days: Annotated[int, typer.Option(min=0, max=36_500, help="Valid for so long; 0: it never expires.")] = 365,
    new_database: Annotated[
        bool, typer.Option("--new-database", help="Make an embedded database where the data folder has none.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make a key. It is printed once, alone on standard output, and kept as a hash only. Making it is recorded."""
    from app.clock import utc_now
    from app.runtime.command import database_location
    from app.services.manage_keys import create_key

    if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
        raise typer.BadParameter(f"1 to {LONGEST_NAME} printable characters", param_hint="--name")

    async def work(settings: Settings) -> "NewKey":
        errors.print(f"Database: {database_location(settings)}", markup=False)
        return await create_key(settings, principal(), name, scope, days, new_database)

    made = run(work)

    def people() -> None:
        typer.echo(made.text)
        until = f"until {made.key.expires_at}" if made.key.expires_at else "for ever"
        errors.print(f"Key {made.key.key_id} for {name}: {', '.join(scope)}, {until}.", markup=False)
        errors.print("It is not shown again. Every caller of the service needs a key from now on.", markup=False)

    show({"key": made.text, **_told(made.key, utc_now())}, json, people)
    if made.key.expires_at is None:
        errors.print("Warning: this key never expires. Should it leak, it opens the service until it is revoked.")


@group.command("list")
def list_all(json: JsonOption = False) -> None:
    """Every key, the revoked and expired ones too, and how soon a live one expires. Never a secret."""
    from app.clock import utc_now
    from app.services.manage_keys import list_keys

    keys = [_told(key, utc_now()) for key in run(list_keys)]

    def people() -> None:
        if not keys:
            say("No API key exists: the service answers this machine only, without a credential.")
            return
        table = Table("id", "name", "scopes", "created", "expires", "state")
        for key in keys:
            days = (key["created_at"][:10], (key["expires_at"] or "never")[:10])
            state = f"{key['state']}, expires soon" if key["expires_soon"] else key["state"]
            table.add_row(key["key_id"], escape(key["name"]), ", ".join(key["scopes"]), *days, state)
        Console().print(table)

    show(keys, json, people)


@group.command()
def revoke(key_id: Annotated[str, typer.Argument(help="The id of the key.")], json: JsonOption = False) -> None:
    """End a key, at once and for good. Running services notice within a second. Revoking is recorded."""
    from app.clock import utc_now
    from app.services.manage_keys import revoke_key

    key = run(lambda settings: revoke_key(settings, principal(), key_id))
    show(_told(key, utc_now()), json, lambda: say(f"Key {key.key_id} ({key.name}) is revoked since {key.revoked_at}."))


def _told(key: "ApiKey", now: datetime) -> dict[str, Any]:
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
