"""The key that signs checkpoints: export its public half, and replace it."""

import asyncio
from pathlib import Path

from app.audit.signed_checkpoint import Signer, checkpoint_hash
from app.audit.signing_key import KEY_FILE, PublicKey, SigningKey, load_signing_key
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
    """Replace the present key, in the data folder or in `out`, after each of the two has signed the other.

    So whoever trusts one of them trusts both. A running service signs with the old key until it is restarted.
    """
    if settings.signing_key and out is None:
        raise InvalidSettings([NEEDS_FILE])
    old, new = load_signing_key(settings), SigningKey.generate()
    async with command_database(settings) as database:
        author = await command_author(settings, database, "audit rotate-key")
        of_old = author.signer.sign_public_key(new.public.raw, utc_now())
        successor = Signer(new, author.signer.database, checkpoint_hash(of_old.body))
        signed = [of_old, successor.sign_public_key(old.public.raw, utc_now())]
        async with database.writing() as connection:
            await add_checkpoints(connection, signed)
    for row in signed:
        await asyncio.to_thread(author.log.append, row)
    if out is None:
        replace_file(settings.data_dir / KEY_FILE, new.pem)
    else:
        with new_file(out) as file:
            file.write(new.pem)
    return new.public
