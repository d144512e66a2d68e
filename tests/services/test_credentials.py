from datetime import UTC, datetime, timedelta

import pytest

from app.database.keys import make_key
from app.errors import SettingRefused
from app.services.credentials import Keyring, is_loopback, refuse_exposure

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def test_a_key_opens_with_its_own_text_until_it_expires() -> None:
    made = make_key("echo lab", ["score"], NOW, NOW + timedelta(days=1))
    keyring = Keyring([made.key])
    principal = keyring.principal(made.text, NOW)
    assert principal is not None
    assert (principal.name, principal.scopes) == (made.key.key_id, frozenset({"score"}))
    assert keyring.principal(made.text, NOW + timedelta(days=1)) is None
    assert keyring.principal(made.text[:-1], NOW) is None
    assert keyring.principal("", NOW) is None


def test_once_a_key_was_seen_a_credential_is_required_for_good() -> None:
    keyring = Keyring()
    assert not keyring.has_seen_keys
    keyring.replace([make_key("a", ["score"], NOW).key])
    keyring.replace([])
    assert keyring.has_seen_keys


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_this_machine_may_serve_without_a_key(host: str) -> None:
    assert is_loopback(host)
    refuse_exposure(host, Keyring())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "localhost.example", "example.org", ""])  # noqa: S104
def test_another_address_needs_a_key(host: str) -> None:
    with pytest.raises(SettingRefused, match="no API key exists"):
        refuse_exposure(host, Keyring())
    refuse_exposure(host, Keyring([make_key("a", ["score"], NOW).key]))
