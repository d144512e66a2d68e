"""The published versions in a folder: their names, which there are, and one of them loaded with every byte checked.

Names of sites and versions are safe as folder names; versions are ordered as semantic versions are.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from app.domain.card import ModelCard, ModelRef
from app.domain.golden import GoldenCase
from app.errors import InvalidArtefact, UnknownSite, UnknownVersion
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.store.artefact import CARD, FILES, SUMS, check_sums, decode, sha256

SITE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PRERELEASE_PART = r"(?:0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
VERSION = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PRERELEASE_PART}(?:\.{_PRERELEASE_PART})*))?")
MAX_VERSION_LENGTH = 64  # characters; leaves room for the temporary folder's name on every file system

VersionOrder = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One version, read from disk, its digest verified."""

    ref: ModelRef
    card: ModelCard
    posterior: HeteroscedasticPosterior
    golden: tuple[GoldenCase, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """One version with its digest, or with what is wrong with it."""

    site: str
    version: str
    sha256: str | None
    error: InvalidArtefact | None


def is_site(name: str) -> bool:
    return SITE.fullmatch(name) is not None


def is_version(name: str) -> bool:
    return len(name) <= MAX_VERSION_LENGTH and VERSION.fullmatch(name) is not None


def version_order(version: str) -> VersionOrder:
    """A sort key by the precedence of semver 2.0.0: 1.0.0-2 < 1.0.0-10 < 1.0.0-rc < 1.0.0 < 1.0.1."""
    match = VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is not a semantic version")
    parts = match[4].split(".") if match[4] else []
    prerelease = tuple((False, int(p), "") if p.isdigit() else (True, 0, p) for p in parts)
    return tuple(int(match[k]) for k in (1, 2, 3)), not parts, prerelease


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


def load(root: Path, site: str, version: str) -> StoredModel:
    """Each file is read once, compared with its digest, and only then parsed."""
    if version not in versions_of(root, site):
        raise UnknownVersion(site, version)
    files = _read_files(root / site / version)
    sums = files.pop(SUMS)
    check_sums(sums, files)
    ref = ModelRef(site, version, sha256(sums))
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
    except InvalidArtefact as error:
        return Verification(site, version, None, error)


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
