"""The caller's patient reference is stored as a keyed hash only: whoever reads the audit cannot try out numbers."""

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import InvalidSettings
from app.settings import SHORTEST_KEY, Settings

KEY_FILE = "subject.key"


@dataclass(frozen=True, slots=True)
class SubjectHasher:
    key: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """Which key, without telling it: hashes under different keys cannot be compared."""
        return hmac.digest(self.key, b"normalcy subject key id", "sha256")[:4].hex()

    def hash(self, subject: str) -> dict[str, str]:
        digest = hmac.new(self.key, subject.encode(), hashlib.sha256).hexdigest()
        return {"key_id": self.key_id, "hmac_sha256": digest}


def subject_hasher(settings: Settings) -> SubjectHasher:
    """With the configured key, or with the one in the data folder, made there the first time."""
    if settings.subject_key:
        return SubjectHasher(settings.subject_key.encode())
    return SubjectHasher(_own_key(settings.data_dir / KEY_FILE))


def _own_key(file: Path) -> bytes:
    if not file.exists():
        _make_key(file)
    key = file.read_bytes().strip()
    if len(key) < SHORTEST_KEY:
        raise InvalidSettings([f"{file} holds no usable key: restore it, or set NORMALCY_SUBJECT_KEY."])
    return key


def _make_key(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{KEY_FILE}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as handle:
        handle.write(secrets.token_hex(32))
        handle.flush()
        os.fsync(handle.fileno())
    try:
        os.link(draft, file)  # whole or not at all, and never over the key of another process
    except FileExistsError:
        pass
    finally:
        draft.unlink()
