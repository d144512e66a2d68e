"""Which refusal comes first: 404, 401 or 403, 415, 413, 400, 422; and nothing is read for a caller who is refused."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.settings import load_settings
from tests.web.serving import READING, SCORE, Running, bearer, create_key, serving
from tests.web.test_protocol import connect, head

JSON = {"Content-Type": "application/json"}
TOO_LARGE = b"{" + b" " * 20_000


WAYS = [pytest.param(True, id="precompiled", marks=pytest.mark.resolver), pytest.param(False, id="plain FastAPI")]


@pytest.fixture(scope="module", params=WAYS)
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, models_dir: Path
) -> Iterator[Running]:
    """A service that requires keys, with and without precompiled routes."""
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path_factory.mktemp("data"))})
    with serving(settings, models_dir, precompiled=request.param) as running:
        create_key(running.settings, ["score"])
        running.inside(running.runtime.poller.refresh())
        yield running


@pytest.fixture(scope="module")
def key(guarded: Running) -> str:
    key = create_key(guarded.settings, ["score"])
    guarded.inside(guarded.runtime.poller.refresh())
    return key


@pytest.fixture(scope="module")
def other_key(guarded: Running) -> str:
    key = create_key(guarded.settings, ["model:read"])
    guarded.inside(guarded.runtime.poller.refresh())
    return key


def test_each_refusal_comes_before_the_next(guarded: Running, key: str, other_key: str) -> None:
    """Every request has all the mistakes that the ones before it had corrected one by one."""
    text = {"Content-Type": "text/plain"}
    steps = [
        ("/v1/sites/SoV/nothing", {**text}, TOO_LARGE, 404),
        (SCORE, {**text}, TOO_LARGE, 401),
        (SCORE, {**text, **bearer(other_key)}, TOO_LARGE, 403),
        (SCORE, {**text, **bearer(key)}, TOO_LARGE, 415),
        (SCORE, {**JSON, **bearer(key)}, TOO_LARGE, 413),
        (SCORE, {**JSON, **bearer(key)}, b"{", 400),
        ("/v1/sites/none/score", {**JSON, **bearer(key)}, b"{}", 422),
        ("/v1/sites/none/score", {**JSON, **bearer(key)}, json.dumps(READING).encode(), 404),
        (SCORE, {**JSON, **bearer(key)}, json.dumps(READING).encode(), 200),
    ]
    for path, headers, body, status in steps:
        assert guarded.client.post(path, content=body, headers=headers).status_code == status, (path, headers)


@pytest.mark.parametrize("credential", ["", "Authorization: Bearer none\r\n"])
@pytest.mark.req("REQ-095")
def test_a_caller_is_refused_before_the_body_is_read(guarded: Running, credential: str) -> None:
    """The body that is announced never comes."""
    with closing(connect(guarded)) as connection:
        connection.settimeout(5.0)  # a service that waits for the body answers after 15 s, or not at all
        connection.sendall(head(guarded, 100).replace(b"\r\n\r\n", f"\r\n{credential}\r\n".encode()))
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")


def test_a_caller_without_the_scope_is_refused_before_the_body_is_read(guarded: Running, other_key: str) -> None:
    with closing(connect(guarded)) as connection:
        connection.settimeout(5.0)
        credential = f"\r\nAuthorization: Bearer {other_key}\r\n\r\n".encode()
        connection.sendall(head(guarded, 100).replace(b"\r\n\r\n", credential))
        assert connection.recv(65536).startswith(b"HTTP/1.1 403")


def test_a_wrong_query_is_refused_after_the_credential(guarded: Running, key: str) -> None:
    path = "/v1/audit/records/%00?cursor=&cursor=&unknown"
    assert guarded.client.get(path).status_code == 401
    assert guarded.client.get(path, headers=bearer(key)).status_code == 403
