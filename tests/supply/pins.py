"""The hash-pinned requirements files, as data."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.markers import Marker

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
BLOCK = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
HEAD = re.compile(r"([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\\n]+?))? *\\")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
# Either `# via NAME` or `# via` and a name on each of the following lines.
VIA = re.compile(r"^    # +(?:via +)?(\S.*)$", re.MULTILINE)
DIRECT = "-r "


@dataclass(frozen=True)
class Pin:
    name: str
    version: str
    marker: str  # the Pythons and systems that it is for
    hashes: tuple[str, ...]  # of every file that may be installed
    needed_by: tuple[str, ...]  # other packages; empty if only our own `.in` files name it
    direct: bool  # an `.in` file names it


@cache
def pins(part: str) -> tuple[Pin, ...]:
    """Those of requirements/PART.txt. A name appears twice where its version depends on that of Python."""
    return tuple(map(_pin, BLOCK.split((REQUIREMENTS / f"{part}.txt").read_text("utf-8"))[1:]))


def installed_on(found: Iterable[Pin], **environment: str) -> tuple[Pin, ...]:
    """Those that an environment gets, given as names of PEP 508: python_full_version, sys_platform, …"""
    return tuple(pin for pin in found if not pin.marker or Marker(pin.marker).evaluate(environment))


def _pin(block: str) -> Pin:
    head = HEAD.match(block)
    if not head:
        raise ValueError(f"not a pin: {block.splitlines()[0]}")
    via = [name for name in VIA.findall(block) if name != "via"]
    needed_by = tuple(name for name in via if not name.startswith("-"))
    direct = any(name.startswith(DIRECT) for name in via)
    return Pin(head[1], head[2], head[3] or "", tuple(HASH.findall(block)), needed_by, direct)
