import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import RSAAlgorithm

from app.errors import InvalidSettings
from app.runtime import issuer_keys
from app.runtime.issuer_keys import MAX_SET_BYTES, MIN_SECONDS_BETWEEN, IssuerKeys, UnusableKeySet, read_key_set
from app.runtime.issuers import Issuer
from tests.issuers import AUDIENCE, KEYS, NAME, OTHER_RSA_KEY, RSA_KEY, key_server, key_set, public_jwk

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def keys_of(clock: Clock | None = None, **source: str) -> IssuerKeys:
    return IssuerKeys(Issuer(issuer=NAME, audiences=(AUDIENCE,), **source), clock or Clock())  # type: ignore[arg-type]


async def test_a_set_is_read_from_its_address_once_for_all_who_wait() -> None:
    with key_server() as served:
        keys = keys_of(jwks_url=served.url)
        found = await asyncio.gather(*(keys.find("rsa") for _ in range(20)))
    assert served.reads == 1
    assert all(key is not None and key.algorithms == {"RS256", "RS384"} for key in found)


async def test_an_unknown_key_is_looked_for_at_most_every_ten_seconds() -> None:
    clock = Clock()
    with key_server() as served:
        keys = keys_of(clock, jwks_url=served.url)
        await keys.start()
        served.content = key_set({"new": OTHER_RSA_KEY})
        assert await keys.find("new") is None
        clock.now += MIN_SECONDS_BETWEEN - 0.1
        assert await keys.find("new") is None
        assert served.reads == 1
        clock.now += 0.2
        assert await keys.find("new") is not None
        assert served.reads == 2
        assert await keys.find("rsa") is None  # rotated away


@pytest.mark.parametrize("broken", ["status", "redirect", "content", "no list", "large"])
async def test_an_issuer_that_is_down_does_not_take_its_keys_along(broken: str) -> None:
    clock = Clock()
    with key_server() as served:
        keys = keys_of(clock, jwks_url=served.url)
        await keys.start()
        before = keys.keys
        served.status = {"status": 500, "redirect": 302}.get(broken, 200)
        served.content = {"content": b"<html>", "no list": b'{"keys": {}}', "large": b" " * (MAX_SET_BYTES + 1)}.get(
            broken, served.content
        )
        clock.now += MIN_SECONDS_BETWEEN
        assert await keys.find("other") is None
        assert served.reads == 2
        assert keys.has_failed
        assert keys.keys is before
        assert keys.age_seconds == MIN_SECONDS_BETWEEN


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "ed"}],
        [public_jwk("a", RSA_KEY), {"kty": "oct", "k": "c2VjcmV0", "kid": "b"}],
        [public_jwk("a", RSA_KEY), public_jwk("a", OTHER_RSA_KEY)],
    ],
    ids=["empty", "other types", "secret", "ambiguous"],
)
async def test_a_set_without_a_usable_key_ends_the_keys_before_it(entries: list[object]) -> None:
    """An issuer whose key was stolen may take it away before it has another one."""
    clock = Clock()
    with key_server() as served:
        keys = keys_of(clock, jwks_url=served.url)
        await keys.start()
        before, served.content = served.content, json.dumps({"keys": entries}).encode()
        for _ in range(2):
            clock.now += MIN_SECONDS_BETWEEN
            await keys.refresh()
            assert keys.keys == {}
            assert keys.has_failed
        clock.now += MIN_SECONDS_BETWEEN
        served.content = before
        assert await keys.find("rsa") is not None
        assert not keys.has_failed


async def test_an_unreachable_issuer_does_not_stop_the_start() -> None:
    keys = keys_of(jwks_url="http://127.0.0.1:1/keys")
    await keys.start()
    assert keys.has_failed
    assert keys.keys == {}


async def test_a_file_must_be_usable_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    with pytest.raises(InvalidSettings, match="jwks_file"):
        await keys_of(jwks_file=str(file)).start()
    file.write_bytes(key_set())
    keys = keys_of(jwks_file=str(file))
    await keys.start()
    assert set(keys.keys) == set(KEYS)


def test_a_key_has_the_algorithm_of_its_set_or_of_its_type() -> None:
    entries = [public_jwk("narrow", RSA_KEY, alg="RS384"), public_jwk("p256", KEYS["p256"])]
    keys = read_key_set(json.dumps({"keys": entries}).encode())
    assert keys["narrow"].algorithms == {"RS384"}
    assert keys["p256"].algorithms == {"ES256"}


def test_keys_for_other_purposes_or_too_weak_are_left_out() -> None:
    small = rsa.generate_private_key(65537, 1024)  # noqa: S505 - the point of the test
    entries = [
        public_jwk("good", RSA_KEY),
        public_jwk("encrypts", RSA_KEY) | {"use": "enc"},
        public_jwk("signs", RSA_KEY) | {"key_ops": ["sign"]},
        public_jwk("hmac", RSA_KEY, alg="HS256"),
        public_jwk("small", small),
        public_jwk("p521", ec.generate_private_key(ec.SECP521R1())),
        {**public_jwk("broken", RSA_KEY), "n": "%"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "ed"},
        {key: value for key, value in public_jwk("", RSA_KEY).items() if key != "kid"},
        "not an object",
    ]
    assert set(read_key_set(json.dumps({"keys": entries}).encode())) == {"good"}


@pytest.mark.parametrize(
    "entries",
    [
        [public_jwk("a", RSA_KEY), {"kty": "oct", "k": "c2VjcmV0", "kid": "b"}],
        [{**RSAAlgorithm.to_jwk(RSA_KEY, as_dict=True), "kid": "a"}],
        [public_jwk("a", RSA_KEY), public_jwk("a", OTHER_RSA_KEY)],
        [],
    ],
)
def test_a_set_with_a_secret_or_an_ambiguous_key_is_not_used(entries: list[object]) -> None:
    with pytest.raises(UnusableKeySet):
        read_key_set(json.dumps({"keys": entries}).encode())


@pytest.mark.parametrize(
    "odd",
    [
        {"key_ops": None},
        {"key_ops": 1},
        {"alg": []},
        {"alg": {}},
        {"use": []},
        {"kty": []},
        {"kty": "EC", "crv": [], "x": None, "y": {}},
        {"e": 5},
        {"n": ["AQAB"]},
        {"e": "A" * 2000},
    ],
    ids=str,
)
def test_an_odd_key_is_left_out_and_the_others_stay_in_use(odd: dict[str, object]) -> None:
    entries = [{**public_jwk("odd", RSA_KEY), **odd}, public_jwk("good", RSA_KEY)]
    assert set(read_key_set(json.dumps({"keys": entries}).encode())) == {"good"}


@contextmanager
def dripping_server() -> Iterator[tuple[str, list[socket.socket]]]:
    """Sends a header a letter at a time and never ends it; the connections that it has."""
    connections: list[socket.socket] = []
    is_over = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        with suppress(OSError):
            while not is_over.wait(0.02):
                connection.sendall(b"x")
        connection.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                connections.append(listening.accept()[0])
                threading.Thread(target=drip, args=(connections[-1],)).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/keys", connections
        finally:
            is_over.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


async def test_an_issuer_that_never_answers_occupies_one_thread_and_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(issuer_keys, "FETCH_SECONDS", 0.2)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    clock = Clock()
    with dripping_server() as (url, connections):
        keys = keys_of(clock, jwks_url=url)
        for _ in range(3):
            clock.now += MIN_SECONDS_BETWEEN
            await keys.refresh()
            assert keys.has_failed
        assert len(connections) == 1
        async with asyncio.timeout(10):
            assert await asyncio.to_thread(lambda: "others go on") == "others go on"
    with key_server() as served:  # once the attempt that hung has ended, the keys are read again
        keys.issuer = msgspec.structs.replace(keys.issuer, jwks_url=served.url)
        for _ in range(100):
            clock.now += MIN_SECONDS_BETWEEN
            await keys.refresh()
            if not keys.has_failed:
                break
            await asyncio.sleep(0.05)
    assert set(keys.keys) == set(KEYS)
