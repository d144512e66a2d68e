"""How finely app/ is cut: `python -m tests.tree_figures` prints the figures, and lists the modules behind them.

With a folder as argument it measures another working tree, to compare.

A module with a single importer may be a helper that would be easier to find inside its importer. Routers and commands
are counted apart: each is imported once, by the application or by the command line, because that is how they are
registered.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
MAX_LINES = 500
MAX_HELPERS = 40  # modules with a single importer
ROUTERS_AND_COMMANDS = ("app.web.routes.", "app.web.routers.", "app.cli.")


@dataclass(frozen=True)
class Figures:
    files: int  # of every kind
    modules: int  # Python files
    median_lines: float
    too_long: dict[str, int]
    single_importers: dict[str, str]  # module: the one that imports it

    @property
    def helpers(self) -> dict[str, str]:
        """Without routers and commands."""
        found = self.single_importers.items()
        return {name: importer for name, importer in found if not name.startswith(ROUTERS_AND_COMMANDS)}


def measure(root: Path = ROOT) -> Figures:
    sources = {_module(root, file): file for file in sorted((root / "app").rglob("*.py"))}
    lengths = {name: len(file.read_text("utf-8").splitlines()) for name, file in sources.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, file in sources.items():
        for imported in _imports(ast.parse(file.read_text("utf-8")), set(sources)):
            if imported != name:
                importers[imported].add(name)
    everything = [file for file in (root / "app").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return Figures(
        files=len(everything),
        modules=len(sources),
        median_lines=median(lengths.values()),
        too_long={name: length for name, length in lengths.items() if length > MAX_LINES},
        single_importers={
            name: next(iter(found))
            for name, found in sorted(importers.items())
            if len(found) == 1 and sources[name].name != "__init__.py"
        },
    )


def _module(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, known: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                if below in known or node.module in known:
                    yield below if below in known else node.module


def main() -> None:
    figures = measure(*map(Path, sys.argv[1:]))
    lines = [
        f"files in app/                    {figures.files} ({figures.modules} of them Python)",
        f"median length                    {figures.median_lines:g} lines",
        f"longer than {MAX_LINES} lines           {len(figures.too_long)}",
        f"modules with a single importer   {len(figures.helpers)} "
        f"({len(figures.single_importers)} with routers and commands)",
        "",
        *(f"{name}: {length} lines" for name, length in figures.too_long.items()),
        *(f"{name} is imported only by {importer}" for name, importer in figures.helpers.items()),
    ]
    print("\n".join(lines))  # noqa: T201 - this is a command


if __name__ == "__main__":
    main()
