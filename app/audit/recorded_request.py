"""A request as its audit record stores it, and back: every field in clear, except the patient reference.

The reference is stored as a keyed hash only, so that nobody can find it by trying numbers.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.domain.query import CONVENTIONS, Convention
from app.errors import InvalidSettings
from app.files import create_file, private_content
from app.formats.block_columns import Column, chosen, same
from app.schemas.request_columns import Options, RequestColumns
from app.schemas.requests import ScoreRequest, SiteRequest
from app.schemas.validation import parse
from app.settings import MIN_KEY_LENGTH, Settings

Json = dict[str, Any]

KEY_FILE = "subject.key"
SUBJECT = "subject"  # the field


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

    def digest(self, purpose: bytes, content: bytes) -> bytes:
        """Of anything else that contains a reference, or that others could find by trying values.

        It is never the hash of a reference, which a caller may choose: no UTF-8 text begins with this byte.
        """
        return hmac.digest(self.key, b"\xff" + purpose + b"\0" + content, "sha256")


def subject_hasher(settings: Settings) -> SubjectHasher:
    """With the configured key, or with the one in the data folder, created there the first time."""
    if settings.subject_key:
        return SubjectHasher(settings.subject_key.encode())
    return SubjectHasher(own_key(settings.data_dir / KEY_FILE, "NORMALCY_SUBJECT_KEY"))


def own_key(file: Path, setting: str) -> bytes:
    """A key of the data folder, created there the first time. Raises InvalidSettings, and NormalcyError if others can
    read it."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_file(file, secrets.token_hex(32).encode())  # of several processes at once, the first one wins
    key = private_content(file).strip()
    if len(key) < MIN_KEY_LENGTH:
        raise InvalidSettings([f"{file} does not hold a usable key: restore it, or set {setting}."])
    return key


def recorded_input(request: SiteRequest, hasher: SubjectHasher) -> Json:
    """The fields of the request with their defaults filled in. The reference is stored as a keyed hash only."""
    stored = request.body.model_dump(exclude_none=True)
    return {**stored, SUBJECT: hasher.hash(request.subject) if request.subject else None}


def recorded_columns(requests: RequestColumns, rows: Sequence[int], hasher: SubjectHasher) -> dict[str, Column]:
    """The same of some rows of a block, as columns."""
    here = np.asarray(rows)
    numbers = {name: column[here] for name, column in requests.numbers.items()}
    found: dict[str, Column] = {
        name: msgspec.Raw(msgspec.json.encode(column.tolist())) if column.any() else same(0.0)
        for name, column in numbers.items()
    }
    used, each = np.unique(requests.options.codes[here], return_inverse=True)
    options = [requests.options.values[code] for code in used.tolist()]
    for name in Options._fields:
        values = [getattr(one, name) for one in options]
        if name == "convention":
            values = [_stated(CONVENTIONS[convention]) for convention in values]
        found[name] = chosen(values, each.tolist())
    found["sex"] = _sexes(requests.male[here])
    subjects = [requests.subjects[row] for row in rows]
    if not any(subjects):
        return found | {SUBJECT: same(None)}
    hashes = [hasher.hash(subject) if subject else {} for subject in subjects]
    return found | {f"{SUBJECT}.{part}": [one.get(part) for one in hashes] for part in ("key_id", "hmac_sha256")}


def _sexes(male: NDArray[np.bool_]) -> Column:
    """In the order in which they appear."""
    sexes = ("male", "female") if male[0] else ("female", "male")
    return same(sexes[0]) if (male == male[0]).all() else chosen(sexes, (male != male[0]).astype(np.int8).tolist())


def _stated(convention: Convention) -> dict[str, str]:
    return {name: value for name, value in asdict(convention).items() if value is not None}


def request_from_record(site: str, record: Json) -> SiteRequest:
    """The request that was recorded, without its patient reference. A column has null where a field was not sent."""
    given = {name: value for name, value in record.items() if name != SUBJECT and value is not None}
    return parse(ScoreRequest, given).for_site(site)
