import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.store import npz

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
    found = npz.read(npz.write(ARRAYS))
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
        assert not found[name].flags.writeable


def test_numpy_itself_opens_the_file(tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    path.write_bytes(npz.write(ARRAYS))
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["b"], ARRAYS["b"])


def test_bytes_depend_on_the_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = npz.write(ARRAYS)
    monkeypatch.setattr("time.time", lambda: 2e9)
    monkeypatch.setattr("sys.platform", "win32")
    reordered = {name: np.array(ARRAYS[name], order="F") for name in reversed(ARRAYS)}
    assert npz.write(reordered) == first


def test_no_cut_of_the_file_is_read() -> None:
    whole = npz.write(ARRAYS)
    for length in range(len(whole)):
        with pytest.raises(npz.NotPlainArrays):
            npz.read(whole[:length])


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
def test_a_pickle_is_refused_and_never_loaded(data: bytes) -> None:
    with pytest.raises(npz.NotPlainArrays):
        npz.read(data)


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
    with pytest.raises(npz.NotPlainArrays, match=why):
        npz.read(zipped([("a.npy", npy(array))]))


def test_a_compressed_member_is_refused() -> None:
    with pytest.raises(npz.NotPlainArrays, match="compressed"):
        npz.read(zipped([("a.npy", npy(np.zeros(1000)))], zipfile.ZIP_DEFLATED))


def test_an_array_shorter_or_longer_than_its_shape_is_refused() -> None:
    content = npy(np.zeros(4))
    for wrong in (content[:-8], content + b"\0" * 8):
        with pytest.raises(npz.NotPlainArrays, match="cut short, or longer"):
            npz.read(zipped([("a.npy", wrong)]))


def test_a_shape_that_no_memory_holds_takes_none() -> None:
    content = npy(np.zeros(4)).replace(b"(4,)", b"(9999999999999,)").replace(b" " * 12 + b"\n", b"\n", 1)
    with pytest.raises(npz.NotPlainArrays):
        npz.read(zipped([("a.npy", content)]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused() -> None:
    with pytest.raises(npz.NotPlainArrays, match="same name"):
        npz.read(zipped([("a.npy", npy(np.zeros(1))), ("a.npy", npy(np.ones(1)))]))
