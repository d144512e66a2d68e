"""A .npz of float64 arrays whose bytes depend on the numbers alone, read without any way to a pickle.

`np.savez` stamps the hour into the zip; here the date is fixed, nothing is compressed and the members are
sorted, so that the same training gives the same digest. `np.load` opens the result like any other .npz.
"""

import io
import math
import zipfile
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DTYPE = np.dtype("<f8")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold
_SUFFIX = ".npy"


class NotPlainArrays(ValueError):
    """These bytes are not the .npz that `write` makes; the text says why."""


def write(arrays: Mapping[str, Array]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            archive.writestr(_member(name), _npy(arrays[name]))
    return buffer.getvalue()


def read(data: bytes) -> dict[str, Array]:
    """Every array, read-only. Raises NotPlainArrays for anything but finite float64 numbers."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            contents = {member.filename: _stored_bytes(archive, member) for member in members}
    # An archive cut short or altered can fail in any of these ways, depending on where.
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise NotPlainArrays("it is not a complete .npz file.") from error
    if len(contents) != len(members):
        raise NotPlainArrays("two of its arrays have the same name.")
    return {name.removesuffix(_SUFFIX): _array(name, content) for name, content in contents.items()}


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name + _SUFFIX, _EPOCH)
    member.create_system = 3  # as on Unix, wherever it is written
    member.external_attr = 0o644 << 16
    return member


def _npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    plain = np.asarray(array, dtype=_DTYPE, order="C")
    np.save(buffer, plain, allow_pickle=False)
    return buffer.getvalue()


def _stored_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Only uncompressed members: a few kilobytes cannot unfold into gigabytes."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise NotPlainArrays(f"{member.filename} is compressed.")
    return archive.read(member)


def _array(name: str, content: bytes) -> Array:
    shape, offset = _header(name, content)
    # The size is compared before any memory is taken for it, and a numeric dtype leaves nothing to unpickle.
    if len(content) - offset != math.prod(shape) * _DTYPE.itemsize:
        raise NotPlainArrays(f"{name} is cut short, or longer than its shape says.")
    array = np.frombuffer(content, _DTYPE, offset=offset).reshape(shape)
    if not np.isfinite(array).all():
        raise NotPlainArrays(f"{name} holds numbers that are not finite.")
    return array


def _header(name: str, content: bytes) -> tuple[tuple[int, ...], int]:
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):  # type: ignore[no-untyped-call]
            raise ValueError
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise NotPlainArrays(f"{name} is not a plain array.") from error
    if dtype != _DTYPE or fortran:
        raise NotPlainArrays(f"{name} does not hold plain float64 numbers.")
    return shape, stream.tell()
