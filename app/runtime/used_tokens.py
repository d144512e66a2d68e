"""Which tokens for one use an issuer's callers have used, so that none is accepted twice.

Each issuer has a memory of its own, so that one that signs too many tokens fills nobody else's. A full one accepts no
further token: to forget one that is still valid would let it be used again.
"""

import hashlib
import math

from app.errors import TooManyTokens

# A token is remembered for up to seven minutes (it may expire six minutes ahead, and then there is the leeway), so this
# is enough for 230 requests a second without a pause. It takes about 12 MB.
MAX_USED = 100_000
BUCKET_SECONDS = 10.0  # tokens that expire within the same ones are forgotten together


class UsedTokens:
    """By a hash of `jti`, which may be of any length."""

    def __init__(self) -> None:
        self._hashes: set[bytes] = set()
        self._by_expiry: dict[int, list[bytes]] = {}  # by the number of a bucket: at its end all have expired

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, token_id: str) -> bool:
        return _hash(token_id) in self._hashes

    def add(self, token_id: str, expires: float, now: float) -> None:
        """Times are UNIX times. Raises TooManyTokens."""
        self._forget_expired(now)
        if len(self._hashes) >= MAX_USED:
            raise TooManyTokens
        used = _hash(token_id)
        self._hashes.add(used)
        self._by_expiry.setdefault(math.ceil(expires / BUCKET_SECONDS), []).append(used)

    def _forget_expired(self, now: float) -> None:
        """Costs little: there are 43 buckets at most, and each token is removed once."""
        for bucket in [each for each in self._by_expiry if each * BUCKET_SECONDS <= now]:
            self._hashes.difference_update(self._by_expiry.pop(bucket))


def _hash(token_id: str) -> bytes:
    return hashlib.blake2b(token_id.encode(), digest_size=16).digest()
