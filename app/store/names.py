"""The names of sites and versions: safe as folder names, and ordered as semantic versions are."""

import re

SITE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PRERELEASE_PART = r"(?:0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
VERSION = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PRERELEASE_PART}(?:\.{_PRERELEASE_PART})*))?")
LONGEST_VERSION = 64  # characters; leaves room for the temporary folder's name on every file system

VersionOrder = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


def is_site(name: str) -> bool:
    return SITE.fullmatch(name) is not None


def is_version(name: str) -> bool:
    return len(name) <= LONGEST_VERSION and VERSION.fullmatch(name) is not None


def version_order(version: str) -> VersionOrder:
    """A sort key by the precedence of semver 2.0.0: 1.0.0-2 < 1.0.0-10 < 1.0.0-rc < 1.0.0 < 1.0.1."""
    match = VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is not a semantic version")
    parts = match[4].split(".") if match[4] else []
    prerelease = tuple((False, int(p), "") if p.isdigit() else (True, 0, p) for p in parts)
    return tuple(int(match[k]) for k in (1, 2, 3)), not parts, prerelease
