import shutil
import subprocess
from pathlib import Path

import pytest

from app.errors import InvalidArtefact
from app.store.digest import SUMS, check_sums, sha256, sums_of

FILES = {"b.json": b"{}\n", "a.npz": b"\0\1", "C.md": b"# C"}


def test_the_digest_of_nothing_is_the_published_one() -> None:
    assert sha256(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_matching_files_pass() -> None:
    check_sums(sums_of(FILES), FILES)


def test_sha256sum_can_check_the_file(tmp_path: Path) -> None:
    tool = shutil.which("sha256sum")
    if tool is None:
        pytest.skip("no sha256sum on this machine")
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / SUMS).write_bytes(sums_of(FILES))
    subprocess.run([tool, "--check", "--strict", SUMS], cwd=tmp_path, check=True, capture_output=True)  # noqa: S603


@pytest.mark.parametrize("name", FILES)
def test_the_file_that_changed_is_named(name: str) -> None:
    with pytest.raises(InvalidArtefact, match=name) as refused:
        check_sums(sums_of(FILES), FILES | {name: FILES[name] + b"x"})
    assert refused.value.file == name


@pytest.mark.parametrize(
    "alter",
    [
        lambda sums: b"",
        lambda sums: sums[:-1],
        lambda sums: sums + sums.splitlines(keepends=True)[0],
        lambda sums: b"".join(reversed(sums.splitlines(keepends=True))),
        lambda sums: sums + b"0" * 64 + b"  other.txt\n",
        lambda sums: sums.replace(b"  ", b" *"),
        lambda sums: sums.replace(b"\n", b"\r\n"),
        lambda sums: b"\xff" + sums,
    ],
    ids=["empty", "cut", "twice", "unsorted", "surplus line", "binary mark", "line ends", "not text"],
)  # fmt: skip
def test_sums_in_any_other_form_are_refused(alter) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidArtefact) as refused:
        check_sums(alter(sums_of(FILES)), FILES)
    assert refused.value.file == SUMS
