"""Which code made a number: a digest over a module and everything that it imports from the rooms of numbers.

Comments, docstrings and layout do not count; words of errors and the fields of a model's card do not either: a fit
fills a card's record and reads no number from it.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import app

ROOT = Path(app.__file__).parent.parent
ROOMS = ("app.benchmark.paper", "app.domain", "app.maths", "app.training")
WORDS = ("app.domain.card",)


@cache
def code_digest(*modules: str) -> str:
    """SHA-256 of the modules and of all that they import, directly or not."""
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name in WORDS or not name.startswith(ROOMS):
            continue
        tree = ast.parse(_file(name).read_text(encoding="utf-8"))
        waiting += _imported(tree)
        found[name] = ast.dump(_without_docstrings(tree))
    return hashlib.sha256("\n".join(f"{name} {found[name]}" for name in sorted(found)).encode()).hexdigest()


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in inside if _file(name).is_file())


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree
