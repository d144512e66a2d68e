"""Every package that we deliver, or test and build with, has a licence of the allow-list or a reason."""

import json
import os
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.supply.components import entries
from tests.supply.licences import EXCEPTIONS, is_allowed, licence_of

ROOT = Path(__file__).parents[2]
NODE = [ROOT / "tests/openapi/package-lock.json", ROOT / "tests/web/package-lock.json"]


def not_allowed(found: Iterator[Distribution]) -> dict[str, str]:
    licences = {str(canonicalize_name(one.name)): licence_of(one) for one in found}
    assert len(licences) > 20
    return {name: licence for name, licence in licences.items() if not is_allowed(name, licence)}


@pytest.mark.req("REQ-121")
def test_installed_packages() -> None:
    assert not_allowed(iter(distributions())) == {}


def test_packages_of_the_client_generators() -> None:
    folders = list((ROOT / ".venv/openapi/lib").glob("python*/site-packages"))
    if not folders and not os.environ.get("CI"):
        pytest.skip("make openapi-tools installs them")
    assert not_allowed(iter(distributions(path=[str(folder) for folder in folders]))) == {}


@pytest.mark.parametrize("file", NODE, ids=lambda file: file.parent.name)
def test_node_packages(file: Path) -> None:
    packages = {
        name.rpartition("node_modules/")[2]: one for name, one in json.loads(file.read_text())["packages"].items()
    }
    licences = {name: one.get("license", "") for name, one in packages.items() if name}
    assert licences
    assert {name: licence for name, licence in licences.items() if not is_allowed(name, licence)} == {}


@pytest.mark.parametrize("name", entries())
@pytest.mark.req("REQ-121")
def test_delivered_components(name: str) -> None:
    """The licence that the SBOM states is allowed, and is that of the package where it is installed."""
    stated = entries()[name].licence
    if name in EXCEPTIONS:
        assert EXCEPTIONS[name][0] in ("", stated)
    else:
        assert is_allowed(name, stated)
    try:
        found = licence_of(distribution(name))
    except PackageNotFoundError:  # for another system or Python
        return
    said = set(found.replace(" OR ", " AND ").split(" AND ")) - {""}
    of_one_family = {part.replace("BSD-2-Clause", "BSD-3-Clause") for part in said}
    parts = stated.replace(" WITH LLVM-exception", "").replace(" OR ", " AND ").split(" AND ")
    assert of_one_family <= {part.replace("BSD-2-Clause", "BSD-3-Clause") for part in parts}


OTHERS = ["", "GPL-3.0-only", "MIT AND GPL-2.0-only", "Proprietary", "MPL-2.0", "(GPL-3.0-only)"]
ENCLOSED = [
    "(MIT OR Apache-2.0) AND GPL-3.0-only",
    "(MIT OR Apache-2.0) AND Proprietary",
    "GPL-3.0-only AND (MIT OR Apache-2.0)",
    "MIT OR (GPL-3.0-only AND MIT)",
]


@pytest.mark.parametrize("licence", [*OTHERS, *ENCLOSED])
def test_other_licences_are_noticed(licence: str) -> None:
    assert not is_allowed("a-new-package", licence)


@pytest.mark.parametrize("licence", ["MIT", "MIT OR GPL-3.0-only", "(MIT OR CC0-1.0)", "Apache-2.0 AND BSD-2-Clause"])
def test_these_are_allowed(licence: str) -> None:
    assert is_allowed("a-new-package", licence)


def test_an_exception_holds_for_its_licence_only() -> None:
    assert is_allowed("certifi", "MPL-2.0")
    assert not is_allowed("certifi", "GPL-3.0-only")
