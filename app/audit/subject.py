"""The caller's patient reference is stored as a keyed hash only, so that nobody can find it by trying numbers."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import InvalidSettings
from app.files import create_file
from app.settings import MIN_KEY_LENGTH, Settings

KEY_FILE = "subject.key"


@dataclass(frozen=True, slots=True)
class SubjectHasher:
    key: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """Identifies the key without revealing it: hashes under different keys cannot be compared."""
        return hmac.digest(self.key, b"normalcy subject key id", "sha256")[:4].hex()

    def hash(self, subject: str) -> dict[str, str]:
        digest = hmac.new(self.key, subject.encode(), hashlib.sha256).hexdigest()
        return {"key_id": self.key_id, "hmac_sha256": digest}


def subject_hasher(settings: Settings) -> SubjectHasher:
    """With the configured key, or with the one in the data folder, created there the first time."""
    if settings.subject_key:
        return SubjectHasher(settings.subject_key.encode())
    return SubjectHasher(_own_key(settings.data_dir / KEY_FILE))


def _own_key(file: Path) -> bytes:
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_file(file, secrets.token_hex(32).encode())  # of several processes at once, the first one wins
    key = file.read_bytes().strip()
    if len(key) < MIN_KEY_LENGTH:
        raise InvalidSettings([f"{file} does not hold a usable key: restore it, or set NORMALCY_SUBJECT_KEY."])
    return key
