from pathlib import Path

import pytest

from tests.fuzz.target import Target, make_target


@pytest.fixture
def target(tmp_path: Path, migrated_sqlite: Path) -> Target:
    return make_target(tmp_path, migrated_sqlite)
