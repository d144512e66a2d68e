"""The model store: published versions on disk, checked byte by byte, never overwritten.

    <root>/<site>/<version>/
        card.json       what the version is, from what it was made, how far to trust it
        posterior.npz   the arrays that predict: float64, nothing that could be executed
        golden.json     patients whose numbers the version must reproduce
        CARD.md         the card for human readers
        SHA256SUMS      one line per file above; the SHA-256 of these lines is the digest of the version

Not in this package: which version is current (a recorded activation, or the highest), the numbers (`app.maths`),
running the golden cases (`app.inference`). To change what a version holds, raise the format number in `app.domain`
and make `artefact` read both.
"""

from app.store.publish import check_new_version, publish
from app.store.registry import StoredModel, Verification, highest_version, load, sites, verify, versions, versions_of

__all__ = [
    "StoredModel",
    "Verification",
    "check_new_version",
    "highest_version",
    "load",
    "publish",
    "sites",
    "verify",
    "versions",
    "versions_of",
]
