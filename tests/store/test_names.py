import numpy as np
import pytest

from app.store.names import is_site, is_version, version_order

ASCENDING = (
    "0.9.10",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-rc.2",
    "1.0.0-rc.11",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0",
)


def test_versions_sort_by_semver_precedence_not_by_text() -> None:
    shuffled = np.random.default_rng(1).permutation(ASCENDING).tolist()
    assert tuple(sorted(shuffled, key=version_order)) == ASCENDING


@pytest.mark.parametrize(
    "name",
    [
        *("1", "1.0", "1.0.0.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0+build"),
        *("1.0.0\n", "..", "1.0.0-" + "a" * 60, "１.0.0"),
    ],
)
def test_only_strict_semantic_versions_are_versions(name: str) -> None:
    assert not is_version(name)


@pytest.mark.parametrize("name", ["SoV", "AA", "a", "Left_atrium-2", "x" * 32])
def test_any_plain_word_may_name_a_site(name: str) -> None:
    assert is_site(name)


@pytest.mark.parametrize("name", ["", "2AA", ".hidden", "a/b", "..", "a b", "Süd", "x" * 33, "SoV\n"])
def test_a_site_never_leads_out_of_the_store(name: str) -> None:
    assert not is_site(name)
