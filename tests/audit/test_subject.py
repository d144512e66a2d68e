"""The keyed hash of a patient reference."""

import hmac
from pathlib import Path

import pytest

from app.audit.recorded_request import KEY_FILE, SubjectHasher, subject_hasher
from app.errors import InvalidSettings, NormalcyError
from app.settings import Settings, load_settings


def _settings(folder: Path, **more: str) -> Settings:
    return load_settings({"NORMALCY_DATA_DIR": str(folder), **more})


def test_a_hash_is_the_same_for_the_same_key_and_no_other() -> None:
    first, second = SubjectHasher(b"a" * 32), SubjectHasher(b"b" * 32)
    assert first.hash("MRN 1") == first.hash("MRN 1") != first.hash("MRN 2")
    assert first.hash("MRN 1")["hmac_sha256"] != second.hash("MRN 1")["hmac_sha256"]
    assert first.key_id != second.key_id


@pytest.mark.req("REQ-079")
def test_neither_reference_nor_key_can_be_read_off() -> None:
    hasher = SubjectHasher(b"k" * 32)
    assert "MRN" not in str(hasher.hash("MRN 1"))
    assert "kkkk" not in f"{hasher} {hasher.key_id}"


def test_a_key_of_our_own_is_made_once_and_private(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    first = subject_hasher(_settings(folder))
    assert subject_hasher(_settings(folder)) == first
    assert (folder / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [file.name for file in folder.iterdir()] == [KEY_FILE]


def test_the_configured_key_wins(tmp_path: Path) -> None:
    subject_hasher(_settings(tmp_path))
    own = "another key, long enough to be one"
    assert subject_hasher(_settings(tmp_path, NORMALCY_SUBJECT_KEY=own)) == SubjectHasher(own.encode())


def test_a_cut_key_file_is_refused_rather_than_replaced(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_text("short")
    (tmp_path / KEY_FILE).chmod(0o600)
    with pytest.raises(InvalidSettings, match=KEY_FILE):
        subject_hasher(_settings(tmp_path))


@pytest.mark.req("REQ-118")
def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    subject_hasher(_settings(tmp_path))
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(NormalcyError, match="chmod 600"):
        subject_hasher(_settings(tmp_path))


def test_no_reference_has_the_digest_of_something_else() -> None:
    """Otherwise a caller who may choose references could try out what a digest is of."""
    hasher = SubjectHasher(b"k" * 32)
    hashed = b"\xffpurpose\0content"
    assert hasher.digest(b"purpose", b"content") == hmac.digest(hasher.key, hashed, "sha256")
    with pytest.raises(UnicodeDecodeError):
        hashed.decode()
