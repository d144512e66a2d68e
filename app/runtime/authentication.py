"""From the text of a bearer credential, an API key or a JWT, to a principal. Every refusal is counted by its reason."""

from datetime import datetime

from app.database.keys import KEY_PREFIX
from app.observability import Metrics
from app.runtime.credentials import LOOPBACK, KeyRefusal, Keyring, KeyUses, Principal
from app.runtime.tokens import TokenRefusal, TokenRefused, TokenVerifier


class Authenticator:
    def __init__(self, keyring: Keyring, uses: KeyUses, tokens: TokenVerifier, metrics: Metrics) -> None:
        self._keyring, self._uses, self._tokens, self._metrics = keyring, uses, tokens, metrics

    @property
    def is_required(self) -> bool:
        """Whether callers need a credential: not while neither a key nor an issuer exists."""
        return self._keyring.has_seen_keys or bool(self._tokens.issuers)

    async def principal(self, presented: str, now: datetime) -> Principal | None:
        found = await self._find(presented, now)
        if isinstance(found, Principal):
            if presented.startswith(KEY_PREFIX):
                self._uses.note(presented)
            return found
        self.count(found)
        return None

    async def owner(self, presented: str, now: datetime) -> Principal | None:
        """Whose credential it is, without using it: nothing is counted, and a token for one use is not used up."""
        if presented.startswith(KEY_PREFIX):
            found = self._keyring.principal(presented, now)
            return found if isinstance(found, Principal) else None
        try:
            return (await self._tokens.verify(presented, now)).principal
        except TokenRefused:
            return None

    def still_admits(self, principal: Principal, presented: str, now: datetime) -> bool:
        """Whether a credential that was accepted when its request began has not been revoked since."""
        if principal is LOOPBACK:
            return not self.is_required
        return not presented.startswith(KEY_PREFIX) or self._keyring.principal(presented, now) == principal

    def count(self, reason: str) -> None:
        self._metrics.credential_refusals[reason,].inc()

    async def _find(self, presented: str, now: datetime) -> Principal | KeyRefusal | TokenRefusal:
        if presented.startswith(KEY_PREFIX):
            return self._keyring.principal(presented, now)
        try:
            return await self._tokens.use(presented, now)
        except TokenRefused as refused:
            return refused.reason
