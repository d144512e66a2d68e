import io
import pickle
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain.card import BmiCurve, Gate, ModelCard, Range
from app.errors import InvalidArtefact
from app.store.artefact import (
    SUMS,
    Artefact,
    NotCanonical,
    NotPlainArrays,
    check_sums,
    encode,
    read_json,
    read_npz,
    sha256,
    sums_of,
    write_json,
    write_npz,
)
from tests.samples import a_card, a_golden_case, a_posterior


def test_a_card_is_read_back_equal() -> None:
    card = a_card()
    assert read_json(write_json(card), ModelCard) == card


def test_the_body_mass_index_of_the_cohort_is_optional() -> None:
    without = write_json(a_card())
    assert b"median_bmi" not in without
    card = replace(a_card(), median_bmi={"male": BmiCurve((20.0, 60.0), (22.5, 26.5))})
    assert read_json(write_json(card), ModelCard) == card
    with pytest.raises(NotCanonical):
        read_json(without.replace(b"\n}\n", b',\n  "median_bmi": null\n}\n'), ModelCard)


@pytest.mark.parametrize("curve", [((), ()), ((20.0,), (22.0, 23.0)), ((60.0, 20.0), (22.0, 23.0)), ((20.0,), (0.0,))])
def test_a_body_mass_index_that_cannot_be_drawn_at_is_refused(curve: tuple[tuple[float, ...], ...]) -> None:
    card = replace(a_card(), median_bmi={"male": BmiCurve(*curve)})
    with pytest.raises(InvalidArtefact, match="rising ages"):
        encode(Artefact(card, a_posterior(), (a_golden_case(),)), "")


def test_numbers_are_written_as_they_will_be_read() -> None:
    high: Any = np.float64(85.0)
    assert write_json(Range(5, high)) == write_json(Range(5.0, 85.0))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused_with_its_place(number: float) -> None:
    with pytest.raises(NotCanonical, match="measured"):
        write_json(Gate("tail", number, 0.0, 1.0))


@pytest.mark.parametrize(
    "text",
    [
        b'{\n  "low": 1.0,\n  "high": 2.0,\n  "note": "x"\n}\n',
        b'{\n  "low": 1.0,\n  "low": 1.5,\n  "high": 2.0\n}\n',
        b'{\n  "low": 1.0,\n  "high": "2.0"\n}\n',
        b'{\n  "low": 1.0\n}\n',
        b'{"low": 1.0, "high": 2.0}',
        b'{\n  "low": NaN,\n  "high": 2.0\n}\n',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=[
        "unknown field",
        "duplicate key",
        "text for a number",
        "missing",
        "another form",
        "NaN",
        "no UTF-8",
        "too deep",
    ],
)
def test_any_other_form_is_refused(text: bytes) -> None:
    with pytest.raises(NotCanonical):
        read_json(text, Range)


def test_the_file_is_plain_json_for_other_readers() -> None:
    assert msgspec.json.decode(write_json(a_card()))["ranges"]["height_cm"]["male"]["high"] == 200.0


ARRAYS = {"b": np.arange(6.0).reshape(2, 3), "a": np.array(2.5), "empty": np.empty((0, 4))}


def npy(array: NDArray[np.generic], allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def test_what_is_written_is_read_back_to_the_bit() -> None:
    found = read_npz(write_npz(ARRAYS))
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
        assert not found[name].flags.writeable


def test_numpy_itself_opens_the_file(tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    path.write_bytes(write_npz(ARRAYS))
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["b"], ARRAYS["b"])


def test_bytes_depend_on_the_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_npz(ARRAYS)
    monkeypatch.setattr("time.time", lambda: 2e9)
    monkeypatch.setattr("sys.platform", "win32")
    reordered = {name: np.array(ARRAYS[name], order="F") for name in reversed(ARRAYS)}
    assert write_npz(reordered) == first


def test_no_cut_of_the_file_is_read() -> None:
    whole = write_npz(ARRAYS)
    for length in range(len(whole)):
        with pytest.raises(NotPlainArrays):
            read_npz(whole[:length])


class Trap:
    """Unpickled, this would raise something that no check expects."""

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return SystemExit, ("a pickle was loaded",)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Trap()),
        zipped([("a.npy", npy(np.array([Trap()], dtype=object), allow_pickle=True))]),
        zipped([("a.npy", pickle.dumps(Trap()))]),
        zipped([("a.npy", npy(np.zeros(2, dtype=[("f", "O")]), allow_pickle=True))]),
    ],
    ids=["bare pickle", "object array", "pickle for an array", "object field"],
)
@pytest.mark.req("REQ-051")
def test_a_pickle_is_refused_and_never_loaded(data: bytes) -> None:
    with pytest.raises(NotPlainArrays):
        read_npz(data)


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros(2, dtype=np.float32), "float64"),
        (np.zeros(2, dtype=np.int64), "float64"),
        (np.zeros(2, dtype=">f8"), "float64"),
        (np.asfortranarray(np.ones((2, 3))), "float64"),
        (np.array([1.0, np.nan]), "finite"),
        (np.array([np.inf]), "finite"),
    ],
)
def test_only_finite_float64_is_read(array: NDArray[np.generic], why: str) -> None:
    with pytest.raises(NotPlainArrays, match=why):
        read_npz(zipped([("a.npy", npy(array))]))


def test_a_compressed_member_is_refused() -> None:
    with pytest.raises(NotPlainArrays, match="compressed"):
        read_npz(zipped([("a.npy", npy(np.zeros(1000)))], zipfile.ZIP_DEFLATED))


def test_an_array_shorter_or_longer_than_its_shape_is_refused() -> None:
    content = npy(np.zeros(4))
    for wrong in (content[:-8], content + b"\0" * 8):
        with pytest.raises(NotPlainArrays, match="cut short, or longer"):
            read_npz(zipped([("a.npy", wrong)]))


def test_a_shape_that_no_memory_holds_takes_none() -> None:
    content = npy(np.zeros(4)).replace(b"(4,)", b"(9999999999999,)").replace(b" " * 12 + b"\n", b"\n", 1)
    with pytest.raises(NotPlainArrays):
        read_npz(zipped([("a.npy", content)]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused() -> None:
    with pytest.raises(NotPlainArrays, match="same name"):
        read_npz(zipped([("a.npy", npy(np.zeros(1))), ("a.npy", npy(np.ones(1)))]))


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
    with pytest.raises(InvalidArtefact, match=name) as error:
        check_sums(sums_of(FILES), FILES | {name: FILES[name] + b"x"})
    assert error.value.file == name


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
    with pytest.raises(InvalidArtefact) as error:
        check_sums(alter(sums_of(FILES)), FILES)
    assert error.value.file == SUMS
