"""The documents for people, as tests read them: those at the top, and docs/, which the service serves as its guide."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
DOCS = {f"docs/{file.name}": file.read_text("utf-8") for file in sorted((ROOT / "docs").glob("*.md"))}
GUIDE = "\n".join(DOCS.values())
AT_THE_TOP = {file.name: file.read_text("utf-8") for file in sorted(ROOT.glob("*.md"))}
WRITTEN = {**AT_THE_TOP, **DOCS}
ALL = "\n".join([README, GUIDE])

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
ADDRESS = re.compile(r"http://127\.0\.0\.1:8000")


class Block(NamedTuple):
    language: str
    text: str


def blocks(text: str) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(text)]


def spans(text: str) -> list[str]:
    """The text between backticks, outside code blocks."""
    return SPAN.findall(FENCE.sub("", text))


def commands(text: str) -> list[str]:
    """The lines of shell blocks, continued ones joined, without comments."""
    joined = "\n".join(block.text for block in blocks(text) if block.language in ("", "sh")).replace("\\\n", " ")
    return [line for line in (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in joined.splitlines()) if line]
