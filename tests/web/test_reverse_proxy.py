"""The examples of a reverse proxy, run by the real programs in front of a real service."""

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from app.settings import Settings
from tests.web.serving import READING, SCORE, Running, bearer, create_key, serving

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "normalcy.example.org"
STARTS_WITHIN_SECONDS = 30
PROGRAMS = ["nginx", "caddy"]
pytestmark = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)


def program(name: str) -> str:
    found = shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        assert os.environ.get("CI") != "true", f"{name} must be installed here"
        pytest.skip(f"{name} is not installed")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def adapted(text: str, changes: Mapping[str, str]) -> str:
    """With what an operator sets: each change must find its place."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def nginx(folder: Path, upstream: str, port: int) -> list[str]:
    changes = {
        "127.0.0.1:8000;": f"{upstream};",
        "/etc/ssl/normalcy/fullchain.pem": str(folder / "certificate.pem"),
        "/etc/ssl/normalcy/privkey.pem": str(folder / "key.pem"),
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "    listen [::]:80;\n": "",
        "    listen [::]:443 ssl;\n": "",
    }
    site = folder / "site.conf"
    site.write_text(adapted((DEPLOY / "nginx.conf").read_text(), changes))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    own = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}} "
        f"http {{ access_log off; {own} include {site}; }}\n"
    )
    return [program("nginx"), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, upstream: str, port: int) -> list[str]:
    certificate = f"\ttls {folder}/certificate.pem {folder}/key.pem\n"
    changes = {
        "127.0.0.1:8000 {": f"{upstream} {{",
        f"{NAME} {{\n": f"{NAME} {{\n{certificate}\tbind 127.0.0.1\n",
        "\tservers {\n": f"\tadmin off\n\thttp_port {free_port()}\n\thttps_port {port}\n\tservers {{\n",
    }
    file = folder / "Caddyfile"
    file.write_text(adapted((DEPLOY / "Caddyfile").read_text(), changes))
    return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(file)]


COMMANDS: dict[str, Callable[[Path, str, int], list[str]]] = {"nginx": nginx, "caddy": caddy}


@contextmanager
def proxied(which: str, folder: Path, upstream: str) -> Iterator[httpx.Client]:
    """A client that asks the proxy by its public name and accepts only the certificate that was made for it."""
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run([*made, *names, *files], cwd=folder, check=True, capture_output=True)  # noqa: S603
    port = free_port()
    command = COMMANDS[which](folder, upstream.removeprefix("http://"), port)
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # noqa: S603
        try:
            _wait(port, running, folder / "log")
            trusted = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
            with httpx.Client(
                base_url=f"https://127.0.0.1:{port}", verify=trusted, headers={"Host": NAME}, timeout=30
            ) as client:
                yield client
        finally:
            running.terminate()
            running.wait(30)


def _wait(port: int, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_SECONDS
    while time.monotonic() < deadline and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(log.read_text())


def ask(client: httpx.Client, method: str, path: str, **more: object) -> httpx.Response:
    return client.request(method, path, extensions={"sni_hostname": NAME}, **more)  # type: ignore[arg-type]


@pytest.fixture
def keyed(settings: Settings, models_dir: Path) -> Iterator[tuple[Running, str]]:
    key = create_key(settings, ["score", "model:read"])
    with serving(settings, models_dir) as running:
        yield running, key


@pytest.mark.parametrize("which", PROGRAMS)
def test_a_score_comes_through_tls_and_metrics_do_not(which: str, keyed: tuple[Running, str], tmp_path: Path) -> None:
    running, key = keyed
    with proxied(which, tmp_path, running.url) as client:
        answer = ask(client, "POST", SCORE, json=READING, headers=bearer(key))
        assert answer.status_code == 200
        assert answer.json()["score"] == running.score(headers=bearer(key)).json()["score"]
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert ask(client, "POST", SCORE, json=READING).status_code == 401
        assert ask(client, "GET", "/metrics", headers=bearer(key)).status_code == 404
        blanks = {"content": b" " * 20_000, "headers": {**bearer(key), "Content-Type": "application/json"}}
        too_large = ask(client, "POST", SCORE, **blanks)
        assert (too_large.status_code, too_large.headers["content-type"]) == (413, "application/problem+json")


@pytest.mark.parametrize("which", PROGRAMS)
def test_without_a_key_the_proxy_does_not_open_the_service(
    which: str, settings: Settings, models_dir: Path, tmp_path: Path
) -> None:
    """To the service every caller is then this machine; what the caller asked for tells that it is not."""
    with serving(settings, models_dir) as running, proxied(which, tmp_path, running.url) as client:
        assert running.score().status_code == 200
        assert ask(client, "POST", SCORE, json=READING).status_code == 400
