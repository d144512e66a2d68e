"""The tests have the same tree as the code, no file is too long to read, and few serve only one other."""

from pathlib import Path

from tests.tree_figures import MAX_HELPERS, MAX_LINES, measure

ROOT = Path(__file__).parent.parent


def test_every_package_has_a_folder_of_tests() -> None:
    packages = {file.parent.name for file in (ROOT / "app").glob("*/__init__.py")}
    assert len(packages) >= 14
    assert {name for name in packages if not any((ROOT / "tests" / name).rglob("test_*.py"))} == set()


def test_no_module_is_too_long() -> None:
    assert measure().too_long == {}


def test_few_modules_have_a_single_importer() -> None:
    helpers = measure().helpers
    assert len(helpers) <= MAX_HELPERS, "Merge a module into the one that imports it:\n" + "\n".join(
        f"{name} is imported only by {importer}" for name, importer in helpers.items()
    )


def test_what_is_measured(tmp_path: Path) -> None:
    modules = {
        "app/__init__.py": "",
        "app/a.py": "from app.b import helper\nimport app.c\n",
        "app/b.py": "from app import c\n\n\ndef helper(): ...\n",
        "app/c.py": "x = 1\n" * (MAX_LINES + 1),
        "app/cli/__init__.py": "",
        "app/cli/main.py": "from app.cli import serve\n",
        "app/cli/serve.py": "from app import a\n",
        "app/guide.md": "# Guide\n",
    }
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    figures = measure(tmp_path)
    assert (figures.files, figures.modules, figures.median_lines) == (8, 7, 1)
    assert figures.too_long == {"app.c": MAX_LINES + 1}
    assert figures.single_importers == {"app.a": "app.cli.serve", "app.b": "app.a", "app.cli.serve": "app.cli.main"}
    assert figures.helpers == {"app.a": "app.cli.serve", "app.b": "app.a"}
