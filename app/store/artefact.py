"""A published version as files, and back: `card.json`, `posterior.npz`, `golden.json`, `CARD.md` and `SHA256SUMS`.

JSON has exactly one form: fields in their declared order, mappings sorted, indented by two spaces. Reading rejects
every other form. That catches what a lenient reader lets pass: unknown fields, missing ones that have a default,
duplicate keys. A change of the fields is therefore a new format number, or an optional field that is left out where it
is not set (`median_bmi`): cards without it keep their bytes, and an older program rejects a card that has it.

The .npz holds float64 arrays only; its bytes depend on the numbers alone, and reading it can never unpickle anything.
`np.savez` writes the time into the zip; here the date is fixed, nothing is compressed and the members are sorted, so
that the same training gives the same digest. `np.load` opens the result like any other .npz.

`SHA256SUMS` has one line per file, readable by `sha256sum --check`; its own SHA-256 is the digest of the version.
"""

import hashlib
import io
import math
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from app.domain.card import CARD_FORMAT, NOT_GAUSSIAN, BmiCurve, ModelCard
from app.domain.golden import GOLDEN_FORMAT, GoldenCase, GoldenFile
from app.domain.patient import Sex, covariate_names
from app.errors import InvalidArtefact
from app.maths.gp.posterior import HeteroscedasticPosterior

CARD, POSTERIOR, GOLDEN, CARD_FOR_PEOPLE = "card.json", "posterior.npz", "golden.json", "CARD.md"
FILES = (CARD, POSTERIOR, GOLDEN, CARD_FOR_PEOPLE)
WIDTH_QUANTILES = 201  # 0, 0.5, ..., 100 %
SUMS = "SHA256SUMS"

Array = NDArray[np.float64]
T = TypeVar("T")

_DTYPE = np.dtype("<f8")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold
_SUFFIX = ".npy"
_SUMS_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_.-]+)")


@dataclass(frozen=True, slots=True)
class Artefact:
    """What a version consists of, before and after it is on disk."""

    card: ModelCard
    posterior: HeteroscedasticPosterior
    golden: tuple[GoldenCase, ...]


def encode(artefact: Artefact, card_for_people: str) -> dict[str, bytes]:
    """The bytes of every file. They are read back at once: nothing is written that could not be loaded later."""
    files = {
        CARD: _naming_file(CARD, lambda: write_json(artefact.card)),
        POSTERIOR: write_npz(artefact.posterior.arrays()),
        GOLDEN: _naming_file(GOLDEN, lambda: write_json(GoldenFile(GOLDEN_FORMAT, artefact.golden))),
        CARD_FOR_PEOPLE: card_for_people.encode(),
    }
    decode(files)
    return files


def decode(files: Mapping[str, bytes]) -> Artefact:
    card = _card(files[CARD])
    return Artefact(card, _posterior(files[POSTERIOR], card), _golden(files[GOLDEN]))


def _card(data: bytes) -> ModelCard:
    _check_format(CARD, data, CARD_FORMAT)
    card = _naming_file(CARD, lambda: read_json(data, ModelCard))
    if card.training.has_student_t_noise:
        raise InvalidArtefact(CARD, f"its model must not be served. {NOT_GAUSSIAN}")
    names = covariate_names(card.age_transform)
    if card.covariates != names:
        raise InvalidArtefact(CARD, f"its covariates are not {', '.join(names)}.")
    quantiles = card.width_quantiles
    if len(quantiles) != WIDTH_QUANTILES or any(low > high for low, high in pairwise(quantiles)):
        raise InvalidArtefact(CARD, f"width_quantiles must be {WIDTH_QUANTILES} rising numbers.")
    linear = card.comparators
    if not len(linear.coefficients) == len(linear.absolute_residual_coefficients) == len(names) + 1:
        raise InvalidArtefact(CARD, f"the comparators need {len(names) + 1} coefficients each.")
    if card.median_bmi is not UNSET:
        _check_median_bmi(card.median_bmi)
    return card


def _check_median_bmi(curves: Mapping[str, BmiCurve]) -> None:
    for sex, curve in curves.items():
        ages, medians = curve.age_years, curve.bmi_kg_m2
        is_rising = all(low <= high for low, high in pairwise(ages))
        if sex not in set(Sex) or not ages or len(ages) != len(medians) or not is_rising or min(medians) <= 0:
            raise InvalidArtefact(
                CARD, "median_bmi needs, for male or female, rising ages and a positive body mass index for each."
            )


def _posterior(data: bytes, card: ModelCard) -> HeteroscedasticPosterior:
    arrays = _naming_file(POSTERIOR, lambda: read_npz(data))
    posterior = _naming_file(POSTERIOR, lambda: HeteroscedasticPosterior.from_arrays(arrays, card.kernel))
    if posterior.covariates != len(card.covariates):
        raise InvalidArtefact(
            POSTERIOR, f"it takes {posterior.covariates} covariates, the card {len(card.covariates)}."
        )
    return posterior


def _golden(data: bytes) -> tuple[GoldenCase, ...]:
    _check_format(GOLDEN, data, GOLDEN_FORMAT)
    golden = _naming_file(GOLDEN, lambda: read_json(data, GoldenFile))
    if not golden.cases:
        raise InvalidArtefact(GOLDEN, "it holds no case.")
    return golden.cases


def _check_format(file: str, data: bytes, known: int) -> None:
    found = _naming_file(file, lambda: read_json_field(data, "format"))
    if found != known:
        raise InvalidArtefact(file, f"its format is not {known}, the one that this program reads.")


def _naming_file(file: str, step: Callable[[], T]) -> T:
    """Run one step; raise what it finds wrong as InvalidArtefact, with the file's name."""
    try:
        return step()
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArtefact(file, str(error)) from error


class NotCanonical(ValueError):
    """These bytes are not what `write_json` makes of such a value; the text says why."""


def write_json(value: T) -> bytes:
    """Written, read and written again: an int where a float belongs becomes the float it will be read as."""
    return _encode_json(_decode_json(_encode_json(value), type(value)))


def read_json(data: bytes, kind: type[T]) -> T:
    value = _decode_json(data, kind)
    if _encode_json(value) != data:
        raise NotCanonical("it has fields or a form that this program does not write.")
    return value


def read_json_field(data: bytes, name: str) -> Any:
    """One field of an object whose other fields may be unknown, or None."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotCanonical("it is not JSON.") from error
    return value.get(name) if isinstance(value, dict) else None


def _encode_json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain, order="deterministic"), indent=2) + b"\n"


def _decode_json(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    # msgspec's sentence names the place, as in "Expected `float`, got `null` - at `$.gates[0].measured`".
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotCanonical(f"it cannot be read: {error}.") from error


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a stored model")


class NotPlainArrays(ValueError):
    """These bytes are not the .npz that `write_npz` makes; the text says why."""


def write_npz(arrays: Mapping[str, Array]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            archive.writestr(_member(name), _npy(arrays[name]))
    return buffer.getvalue()


def read_npz(data: bytes) -> dict[str, Array]:
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


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """The text of SHA256SUMS for these files, sorted by name. Its own SHA-256 is the digest of the version."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files)).encode()


def check_sums(sums: bytes, files: Mapping[str, bytes]) -> None:
    """Raise InvalidArtefact for the first file whose bytes are not those that were published."""
    published = _parse_sums(sums)
    for name in sorted(files):
        if published.get(name) != sha256(files[name]):
            raise InvalidArtefact(name, f"its bytes do not match {SUMS}.")
    if sums != sums_of(files):
        raise InvalidArtefact(SUMS, "it does not list exactly the files of a version, sorted by name.")


def _parse_sums(sums: bytes) -> dict[str, str]:
    lines = [_SUMS_LINE.fullmatch(line) for line in sums.decode("ascii", errors="replace").splitlines()]
    if not lines or None in lines:
        raise InvalidArtefact(SUMS, "it is not a list of SHA-256 digests and file names.")
    return {line[2]: line[1] for line in lines if line}
