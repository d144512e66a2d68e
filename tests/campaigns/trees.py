"""Source trees to compare: this one, and that of another commit as a temporary worktree; services that run them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.campaigns.servers import OUR_TREE, Running, service


@contextmanager
def worktree(revision: str, folder: Path) -> Iterator[Path]:
    """The files of a commit, for as long as the block runs."""
    _git("worktree", "add", "--detach", str(folder), revision)
    try:
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))


@contextmanager
def service_of_tree(tree: Path, data: Path, database_url: str = "") -> Iterator[Running]:
    """Raises if the process serves another tree, for instance because that is the one installed."""
    with service(data, database_url, tree=tree) as server:
        served = server.answer["provenance"]["service"]["commit"]
        if served != head_commit(tree):
            raise RuntimeError(f"A server runs commit {served} instead of {head_commit(tree)}.")
        yield server


def head_commit(tree: Path) -> str:
    return _git("rev-parse", "--short=12", "HEAD", tree=tree)


def _git(*arguments: str, tree: Path = OUR_TREE) -> str:
    done = subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.strip()
