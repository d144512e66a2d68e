"""Loads the `resolver` of this folder instead of app/web/resolver.py.

`pytest --plain-routes` puts this folder on PYTHONPATH, and Python imports a module of this name whenever it starts: so
every service that a test starts, by whatever command, runs without the real resolver.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

STAND_IN = Path(__file__).with_name("resolver.py")


class WithoutResolver(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_file_location(fullname, STAND_IN) if fullname == "app.web.resolver" else None


sys.meta_path.insert(0, WithoutResolver())
