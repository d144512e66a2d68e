"""The folder of models, read: which versions there are, and one of them with every byte checked."""

from dataclasses import dataclass
from pathlib import Path

from app.domain.card import ModelCard, ModelRef
from app.domain.golden import GoldenCase
from app.errors import InvalidArtefact, UnknownSite, UnknownVersion
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.store.artefact import CARD, FILES, decode
from app.store.digest import SUMS, check_sums, sha256
from app.store.names import is_site, is_version, version_order


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One version, read from disk, its digest verified."""

    ref: ModelRef
    card: ModelCard
    posterior: HeteroscedasticPosterior
    golden: tuple[GoldenCase, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """One version and its digest, or why it is refused."""

    site: str
    version: str
    sha256: str | None
    refused: InvalidArtefact | None


def versions(root: Path) -> dict[str, tuple[str, ...]]:
    """Site -> its versions, lowest first; without an activation on record the last one is current."""
    found = ((site, _versions_in(root / site)) for site in sites(root))
    return {site: numbers for site, numbers in found if numbers}


def sites(root: Path) -> tuple[str, ...]:
    """Every folder with the name of a site, whatever is in it."""
    if not root.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in root.iterdir() if entry.is_dir() and is_site(entry.name)))


def versions_of(root: Path, site: str) -> tuple[str, ...]:
    """Of one site, lowest first. Whatever is wrong with another site does not matter here."""
    numbers = _versions_in(root / site) if site in sites(root) else ()
    if not numbers:
        raise UnknownSite(site)
    return numbers


def highest_version(root: Path, site: str) -> str:
    return versions_of(root, site)[-1]


def load(root: Path, site: str, version: str, expected_sha256: str | None = None) -> StoredModel:
    """Each file is read once, compared with its digest, and only then parsed.

    `expected_sha256` is the digest on record elsewhere, if there is one: it shows that a whole version was replaced.
    """
    if version not in versions_of(root, site):
        raise UnknownVersion(site, version)
    files = _read_files(root / site / version)
    sums = files.pop(SUMS)
    check_sums(sums, files)
    ref = ModelRef(site, version, sha256(sums))
    if expected_sha256 not in (None, ref.sha256):
        raise InvalidArtefact(SUMS, "the digest of this version is not the one on record.")
    artefact = decode(files)
    _check_identity(artefact.card, ref)
    return StoredModel(ref, artefact.card, artefact.posterior, artefact.golden)


def verify(root: Path, site: str | None = None, version: str | None = None) -> tuple[Verification, ...]:
    """Every version (of a site), loaded as for use. A name that is unknown is an error, a bad version an entry."""
    known = versions(root)
    if site is not None and site not in known:
        raise UnknownSite(site)
    if site is not None and version is not None and version not in known[site]:
        raise UnknownVersion(site, version)
    wanted = ((s, v) for s, numbers in known.items() for v in numbers)
    return tuple(_verify_one(root, s, v) for s, v in wanted if site in (None, s) and version in (None, v))


def _verify_one(root: Path, site: str, version: str) -> Verification:
    try:
        return Verification(site, version, load(root, site, version).ref.sha256, None)
    except InvalidArtefact as refused:
        return Verification(site, version, None, refused)


def _versions_in(folder: Path) -> tuple[str, ...]:
    return tuple(sorted((entry.name for entry in _entries(folder) if is_version(entry.name)), key=version_order))


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise InvalidArtefact(folder.name, f"it cannot be read ({error.strerror}).") from error


def _read_files(folder: Path) -> dict[str, bytes]:
    if folder.is_symlink() or not folder.is_dir():
        raise InvalidArtefact(folder.name, "it is not a folder.")
    expected = {*FILES, SUMS}
    found = {entry.name: entry for entry in _entries(folder)}
    for name in sorted(expected - found.keys()):
        raise InvalidArtefact(name, "it is missing.")
    for name in sorted(found.keys() - expected):
        raise InvalidArtefact(name, "it does not belong to a version.")
    for name in sorted(expected):
        # A link could lead out of the store, and what it leads to could change after the check.
        if found[name].is_symlink() or not found[name].is_file():
            raise InvalidArtefact(name, "it is not a plain file.")
    return {name: _read(found[name]) for name in sorted(expected)}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArtefact(path.name, f"it cannot be read ({error.strerror}).") from error


def _check_identity(card: ModelCard, ref: ModelRef) -> None:
    if (card.site, card.version) != (ref.site, ref.version):
        raise InvalidArtefact(CARD, "it belongs to another site or version.")
