import pytest

from app.benchmark.report_header import git


@pytest.fixture
def earlier() -> str:
    """The commit before, or this one in a clone without history."""
    found = git("rev-parse", "--short=12", "HEAD~1") or git("rev-parse", "--short=12", "HEAD")
    if not found:
        pytest.skip("not a git checkout")
    return found
