"""The key that signs checkpoints: export its public half, and replace it."""

import asyncio
from pathlib import Path

from app.audit.signed_checkpoint import Signer
from app.audit.signing_key import KEY_FILE, PublicKey, SigningKey, load_signing_key
from app.audit.verify_signatures import retired_ends
from app.clock import utc_now
from app.database.checkpoints import add_checkpoints
from app.errors import InvalidSettings
from app.files import new_file, replace_file
from app.runtime.command import command_author, command_database
from app.settings import Settings

NEEDS_FILE = "The key comes from NORMALCY_SIGNING_KEY: --out must name a file for the new one."


def public_key(settings: Settings) -> PublicKey:
    """Creates the key if this installation has none yet."""
    return load_signing_key(settings).public


async def rotate_signing_key(settings: Settings, out: Path | None = None) -> PublicKey:
    """Announce a new key with a checkpoint that the present one signs, then replace it, in the data folder or in `out`.

    A running service signs with the old key until it is restarted; both are valid.
    """
    if settings.signing_key and out is None:
        raise InvalidSettings([NEEDS_FILE])
    old, new = load_signing_key(settings), SigningKey.generate()
    async with command_database(settings) as database:
        author = await command_author(settings, database, "audit rotate-key")
        signed = [author.signer.new_key(new.public.raw, utc_now())]
        async with database.writing() as connection:
            retired = await retired_ends(connection, old.public)
            if retired:  # else the new key would not vouch for them
                signer = Signer(new, author.signer.database)
                signed.append(signer.retired(list(retired.values()), utc_now(), signed[0]))
            await add_checkpoints(connection, signed)
    for row in signed:
        await asyncio.to_thread(author.log.append, row)
    if out is None:
        replace_file(settings.data_dir / KEY_FILE, new.pem)
    else:
        with new_file(out) as file:
            file.write(new.pem)
    return new.public
