import io
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.errors import InvalidArtefact, UnknownSite, UnknownVersion
from app.store import highest_version, load, verify, versions
from app.store.artefact import CARD, FILES, SUMS, sums_of
from app.store.registry import is_site, is_version, version_order
from tests.samples import a_card, a_golden_case, a_posterior, publish_a_model

EVERY_FILE = (*FILES, SUMS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish_a_model(tmp_path)
    return tmp_path


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "SoV" / "1.0.0"


def damaged_file(root: Path) -> str:
    with pytest.raises(InvalidArtefact) as error:
        load(root, "SoV", "1.0.0")
    return error.value.file


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def replace_and_sign(folder: Path, name: str, data: bytes) -> None:
    """What someone does who knows of SHA256SUMS: change a file and write new digests."""
    overwrite(folder / name, data)
    overwrite(folder / SUMS, sums_of({file: (folder / file).read_bytes() for file in FILES}))


def test_what_was_published_is_loaded(root: Path) -> None:
    model = load(root, "SoV", "1.0.0")
    assert model.card == a_card()
    assert model.golden == (a_golden_case(),)
    expected = a_posterior().arrays()
    found = model.posterior.arrays()
    assert found.keys() == expected.keys()
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def test_a_loaded_model_predicts_what_the_published_one_did(root: Path) -> None:
    x = np.array([[3.8, 1.0, 175.0, 75.0], [2.1, 0.0, 120.0, 22.0]])
    loaded, published = load(root, "SoV", "1.0.0").posterior.predict(x), a_posterior().predict(x)
    np.testing.assert_array_equal([loaded.m1, loaded.v1, loaded.m2, loaded.v2],
                                  [published.m1, published.v1, published.m2, published.v2])  # fmt: skip


@pytest.mark.parametrize("name", EVERY_FILE)
@pytest.mark.req("REQ-050")
def test_a_flipped_bit_anywhere_is_refused(root: Path, folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    for place in np.random.default_rng(3).integers(0, 8 * len(data), 60).tolist():
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        overwrite(folder / name, bytes(flipped))
        # A flipped digit in SHA256SUMS points at the file of its line.
        assert damaged_file(root) in (EVERY_FILE if name == SUMS else (name,))


@pytest.mark.parametrize("name", EVERY_FILE)
def test_a_file_cut_short_is_refused(root: Path, folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    overwrite(folder / name, data[: len(data) // 2])
    assert damaged_file(root) in ((SUMS, *FILES) if name == SUMS else (name,))


@pytest.mark.parametrize("name", EVERY_FILE)
def test_a_missing_file_is_named(root: Path, folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert damaged_file(root) == name


@pytest.mark.parametrize(
    "add",
    [
        lambda path: path.write_bytes(b"x"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("card.json"),
        lambda path: path.symlink_to("nowhere"),
    ],
    ids=["file", "folder", "link", "dead link"],
)
@pytest.mark.parametrize("name", ["notes.txt", ".hidden"])
def test_anything_surplus_is_named(root: Path, folder: Path, name: str, add: Callable[[Path], object]) -> None:
    add(folder / name)
    assert damaged_file(root) == name


@pytest.mark.parametrize("name", EVERY_FILE)
def test_a_link_in_place_of_a_file_is_refused_even_with_the_same_bytes(root: Path, folder: Path, name: str) -> None:
    (folder / name).rename(root / "elsewhere")
    (folder / name).symlink_to(root / "elsewhere")
    assert damaged_file(root) == name


def test_a_folder_in_place_of_a_file_is_refused(root: Path, folder: Path) -> None:
    (folder / "golden.json").unlink()
    (folder / "golden.json").mkdir()
    assert damaged_file(root) == "golden.json"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_place_of_a_file_is_refused_without_waiting(root: Path, folder: Path) -> None:
    (folder / "CARD.md").unlink()
    os.mkfifo(folder / "CARD.md")
    assert damaged_file(root) == "CARD.md"


def test_a_version_that_is_a_link_is_refused(root: Path, folder: Path) -> None:
    folder.rename(root / "elsewhere")
    folder.symlink_to(root / "elsewhere")
    assert damaged_file(root) == "1.0.0"


def test_a_student_t_model_of_an_older_program_is_refused_and_the_others_are_read(root: Path, folder: Path) -> None:
    publish_a_model(root, version="1.1.0")
    card = (folder / CARD).read_bytes()
    robust = card.replace(b'"robust": false', b'"robust": true')
    assert robust != card
    replace_and_sign(folder, CARD, robust)
    assert damaged_file(root) == CARD
    first, second = verify(root)
    assert "Student-t" in str(first.error)
    assert second.error is None


class Trap:
    def __reduce__(self) -> tuple[type, tuple[str]]:
        return SystemExit, ("a pickle was loaded",)


def with_member(data: bytes, name: str, content: bytes) -> bytes:
    """The same .npz with one member replaced or added."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for member in (m for m in old.namelist() if m != name):
            new.writestr(member, old.read(member))
        new.writestr(name, content)
    return buffer.getvalue()


def npy(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "alter",
    [
        lambda data: pickle.dumps(Trap()),
        lambda data: with_member(data, "f1_Z.npy", npy(np.array([Trap()], dtype=object))),
        lambda data: with_member(data, "f1_Z.npy", pickle.dumps(Trap())),
        lambda data: with_member(data, "surplus.npy", npy(np.zeros(3))),
        lambda data: with_member(data, "f1_Z.npy", npy(np.zeros((3, 3)))),
        lambda data: with_member(data, "f1_weights.npy", npy(np.zeros(10, dtype=np.float32))),
        lambda data: with_member(data, "f1_weights.npy", npy(np.full(10, np.nan))),
        lambda data: with_member(data, "f1_weights.npy", npy(np.zeros(10))[:-8]),
        lambda data: data[:-30],
        lambda data: b"",
    ],
    ids=[
        "pickle",
        "object array",
        "pickle member",
        "surplus array",
        "shape",
        "float32",
        "NaN",
        "cut array",
        "cut",
        "empty",
    ],
)
def test_a_bad_posterior_is_refused_even_when_the_digests_match(
    root: Path, folder: Path, alter: Callable[[bytes], bytes]
) -> None:
    replace_and_sign(folder, "posterior.npz", alter((folder / "posterior.npz").read_bytes()))
    assert damaged_file(root) == "posterior.npz"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"format": 1', b'"format": 2'),
        (b'"site": "SoV"', b'"site": "AA"'),
        (b'"version": "1.0.0"', b'"version": "1.0.1"'),
        (b'"log_age",', b'"age_years",'),
        (b'"age_transform": "log"', b'"age_transform": "exp"'),
        (b'"seed": 42', b'"seed": "42"'),
        (b'"seed": 42', b'"seed": 42, "seed": 42'),
        (b'"residual_sd_mm": 3.0', b'"residual_sd_mm": null'),
        (b'"coefficients": [', b'"coefficients": [ 1.0,'),
        (b'"width_quantiles": [', b'"width_quantiles": [ 9.0,'),
        (b"{", b""),
    ],
)
def test_a_card_that_says_something_else_is_refused_even_when_the_digests_match(
    root: Path, folder: Path, old: bytes, new: bytes
) -> None:
    data = (folder / "card.json").read_bytes()
    assert old in data
    replace_and_sign(folder, "card.json", data.replace(old, new, 1))
    assert damaged_file(root) == "card.json"


def test_a_kernel_that_nobody_knows_is_refused(root: Path, folder: Path) -> None:
    data = (folder / "card.json").read_bytes()
    replace_and_sign(folder, "card.json", data.replace(b'"kernel": "rational_quadratic"', b'"kernel": "cosine"'))
    assert damaged_file(root) == "posterior.npz"


def test_golden_cases_must_be_there_and_in_a_known_format(root: Path, folder: Path) -> None:
    for data in (b'{\n  "format": 1,\n  "cases": []\n}\n', b'{\n  "format": 9,\n  "cases": []\n}\n', b"[]\n", b"null"):
        replace_and_sign(folder, "golden.json", data)
        assert damaged_file(root) == "golden.json"


@pytest.mark.req("REQ-050")
def test_versions_exchanged_on_disk_are_refused(root: Path, folder: Path) -> None:
    publish_a_model(root, version="1.1.0", seed=1)
    other = root / "SoV" / "1.1.0"
    folder.rename(root / "SoV" / "aside")
    other.rename(folder)
    (root / "SoV" / "aside").rename(other)
    assert damaged_file(root) == "card.json"
    assert [bool(found.error) for found in verify(root)] == [True, True]


def test_one_file_taken_from_another_version_is_refused(root: Path, folder: Path) -> None:
    publish_a_model(root, version="1.1.0", seed=1)
    overwrite(folder / "posterior.npz", (root / "SoV" / "1.1.0" / "posterior.npz").read_bytes())
    assert damaged_file(root) == "posterior.npz"


def test_the_digest_changes_when_a_version_is_replaced_as_a_whole(root: Path, folder: Path) -> None:
    digest = load(root, "SoV", "1.0.0").ref.sha256
    assert load(root, "SoV", "1.0.0").ref.sha256 == digest
    shutil.rmtree(folder)
    publish_a_model(root, seed=9)
    assert load(root, "SoV", "1.0.0").ref.sha256 != digest


def test_versions_are_listed_in_order_and_the_highest_is_current(root: Path) -> None:
    for version in ("1.10.0", "1.2.0", "2.0.0-rc.1"):
        publish_a_model(root, version=version)
    publish_a_model(root, site="AA")
    assert versions(root) == {"AA": ("1.0.0",), "SoV": ("1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1")}
    assert highest_version(root, "SoV") == "2.0.0-rc.1"


def test_what_is_no_version_is_not_listed(root: Path) -> None:
    (root / "SoV" / ".1.1.0-abc").mkdir()
    (root / "SoV" / "latest").mkdir()
    (root / "README.md").write_text("A store.")
    (root / "empty").mkdir()
    assert versions(root) == {"SoV": ("1.0.0",)}


def test_a_store_that_does_not_exist_holds_nothing(tmp_path: Path) -> None:
    assert versions(tmp_path / "nowhere") == {}
    assert verify(tmp_path / "nowhere") == ()


@pytest.mark.parametrize("site", ["AA", "sov", "..", ".", "", "SoV/1.0.0", "/etc"])
def test_an_unknown_site_is_said_to_be_unknown(root: Path, site: str) -> None:
    for query in (
        lambda: load(root, site, "1.0.0"),
        lambda: highest_version(root, site),
        lambda: verify(root, site),
    ):
        with pytest.raises(UnknownSite):
            query()


@pytest.mark.parametrize("version", ["1.0.1", "..", "", "current", "1.0.0/", ".1.0.0-abc"])
def test_an_unknown_version_is_said_to_be_unknown(root: Path, version: str) -> None:
    (root / "SoV" / ".1.0.0-abc").mkdir()
    for query in (lambda: load(root, "SoV", version), lambda: verify(root, "SoV", version)):
        with pytest.raises(UnknownVersion):
            query()


def test_verify_tells_good_and_bad_versions_apart(root: Path, folder: Path) -> None:
    publish_a_model(root, version="1.1.0")
    (folder / "CARD.md").unlink()
    bad, good = verify(root)
    assert (bad.version, bad.sha256) == ("1.0.0", None)
    assert bad.error is not None
    assert bad.error.file == "CARD.md"
    assert (good.version, good.error) == ("1.1.0", None)
    assert verify(root, "SoV", "1.1.0") == (good,)


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
