"""Publishing: a version appears whole, on disk for good, or not at all, and is never overwritten."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from errno import EACCES, ENOTDIR
from pathlib import Path

from app.domain.card import ModelCard, ModelRef
from app.domain.golden import GoldenCase
from app.errors import InvalidName, VersionExists
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.store.artefact import SUMS, Artefact, encode, sha256, sums_of
from app.store.registry import is_site, is_version


def publish(
    root: Path,
    card: ModelCard,
    posterior: HeteroscedasticPosterior,
    golden: tuple[GoldenCase, ...],
    card_for_people: str,
) -> ModelRef:
    """Write `<root>/<site>/<version>/`. Killed at any moment it leaves at most a hidden folder, which nothing lists."""
    check_new_version(root, card.site, card.version)
    folder = root / card.site
    target = folder / card.version
    files = encode(Artefact(card, posterior, golden), card_for_people)
    files[SUMS] = sums_of(files)
    folder.mkdir(parents=True, exist_ok=True)
    _appear_whole(files, target, card)
    for path in (folder, root):
        _sync(path)
    return ModelRef(card.site, card.version, sha256(files[SUMS]))


def check_new_version(root: Path, site: str, version: str) -> None:
    """Raise unless this version can be published. Checked before minutes of training, and again in `publish`."""
    if not is_site(site):
        raise InvalidName("The name of a site is a letter followed by up to 31 letters, digits, _ or -.")
    if not is_version(version):
        raise InvalidName("A version is MAJOR.MINOR.PATCH, such as 1.0.0, or a pre-release of it, such as 1.1.0-rc.1.")
    # Where the file system ignores case the two would share one folder.
    for entry in root.iterdir() if root.is_dir() else ():
        if entry.name != site and entry.name.casefold() == site.casefold():
            raise InvalidName(f"The site {site} differs from {entry.name} only by case.")
    if os.path.lexists(root / site / version):
        raise VersionExists(site, version)
    existing = next(path for path in (root, *root.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(existing))
    if not os.access(existing, os.W_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), str(existing))


def _appear_whole(files: Mapping[str, bytes], target: Path, card: ModelCard) -> None:
    hidden = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name, data in files.items():
            _write(hidden / name, data)
        hidden.chmod(0o755)
        _sync(hidden)
        try:
            # The rename fails if the version exists by now: of two publishers at once, one wins.
            os.rename(hidden, target)
        except OSError as error:
            if os.path.lexists(target):
                raise VersionExists(card.site, card.version) from error
            raise
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o444)


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
