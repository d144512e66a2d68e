"""From the text of a bearer credential, an API key or a JWT, to a principal. Every refused request counts once, by its
reason."""

from datetime import datetime
from typing import NamedTuple

from app.database.keys import KEY_PREFIX
from app.errors import TooManyTokens
from app.observability import Metrics
from app.runtime.credentials import LOOPBACK, KeyRefusal, Keyring, KeyUses, Principal
from app.runtime.tokens import TokenRefusal, TokenRefused, TokenVerifier, VerifiedToken

MISSING, SCOPE_MISSING, LOCKED_OUT = "none", "scope_missing", "locked_out"  # reasons beside those of keys and tokens


class Credential(NamedTuple):
    """A valid one."""

    principal: Principal
    text: str
    token: VerifiedToken | None  # None: it is an API key


class Authenticator:
    def __init__(self, keyring: Keyring, uses: KeyUses, tokens: TokenVerifier, metrics: Metrics) -> None:
        self._keyring, self._uses, self._tokens, self._metrics = keyring, uses, tokens, metrics

    @property
    def is_required(self) -> bool:
        """Whether callers need a credential: not while neither a key nor an issuer exists."""
        return self._keyring.has_seen_keys or bool(self._tokens.issuers)

    async def find(self, presented: str, now: datetime) -> Credential | KeyRefusal | TokenRefusal:
        """A credential that may be used, or the reason why it may not, which the caller has to count."""
        if presented.startswith(KEY_PREFIX):
            found = self._keyring.principal(presented, now)
            return Credential(found, presented, None) if isinstance(found, Principal) else found
        try:
            token = await self._tokens.find(presented, now)
        except TokenRefused as refused:
            return refused.reason
        return Credential(token.principal, presented, token)

    def use(self, credential: Credential, now: datetime) -> None:
        """Raises TooManyTokens, and counts it."""
        if credential.token is None:
            self._uses.note(credential.text)
            return
        try:
            self._tokens.use(credential.token, now)
        except TooManyTokens:
            self.count(TokenRefusal.MEMORY_FULL)
            raise

    async def owner(self, presented: str, now: datetime) -> Principal | None:
        """Whose valid credential it is, without using it: nothing is counted."""
        found = await self._owner(presented, now)
        return found if isinstance(found, Principal) else None

    async def still_admits(self, principal: Principal, presented: str, now: datetime) -> bool:
        """Whether a credential that was accepted when its request began is still valid. Counts it if it is not."""
        if principal is LOOPBACK:
            reason = MISSING if self.is_required else ""
        else:
            found = await self._owner(presented, now)
            # Another principal: somebody has changed the key in the database.
            reason = "" if found == principal else SCOPE_MISSING if isinstance(found, Principal) else found
        if reason:
            self.count(reason)
        return not reason

    def count(self, reason: str) -> None:
        self._metrics.credential_refusals[reason,].inc()

    async def _owner(self, presented: str, now: datetime) -> Principal | KeyRefusal | TokenRefusal:
        """Also of a token for one use that was used."""
        if presented.startswith(KEY_PREFIX):
            return self._keyring.principal(presented, now)
        try:
            return (await self._tokens.verify(presented, now)).principal
        except TokenRefused as refused:
            return refused.reason
