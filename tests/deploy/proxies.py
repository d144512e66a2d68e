"""nginx and Caddy with the example files of deploy/, in front of one or several services."""

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "normalcy.example.org"
STARTS_WITHIN_SECONDS = 30
PROXIES = ["nginx", "caddy"]
SERVER = "    server 127.0.0.1:8000 max_fails=1 fail_timeout=1s;\n"


@dataclass(frozen=True)
class Proxy:
    """To be asked by its public name; its certificate was made for that name."""

    url: str
    trusted: ssl.SSLContext

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, verify=self.trusted, headers={"Host": NAME}, timeout=30)

    def async_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, verify=self.trusted, headers={"Host": NAME}, timeout=30)


def program(name: str) -> str:
    """Where it is installed. On CI it must be."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
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


def nginx(folder: Path, upstreams: Sequence[str], port: int) -> list[str]:
    changes = {
        SERVER: "".join(SERVER.replace("127.0.0.1:8000", upstream) for upstream in upstreams),
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


def caddy(folder: Path, upstreams: Sequence[str], port: int) -> list[str]:
    certificate = f"\ttls {folder}/certificate.pem {folder}/key.pem\n"
    changes = {
        "127.0.0.1:8000 {": f"{' '.join(upstreams)} {{",
        f"{NAME} {{\n": f"{NAME} {{\n{certificate}\tbind 127.0.0.1\n",
        "\tservers {\n": f"\tadmin off\n\thttp_port {free_port()}\n\thttps_port {port}\n\tservers {{\n",
    }
    if len(upstreams) > 1:
        changes |= {"\t\t#": "\t\t"}
    file = folder / "Caddyfile"
    file.write_text(adapted((DEPLOY / "Caddyfile").read_text(), changes))
    return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(file)]


COMMANDS: dict[str, Callable[[Path, Sequence[str], int], list[str]]] = {"nginx": nginx, "caddy": caddy}


@contextmanager
def proxied(which: str, folder: Path, *upstreams: str) -> Iterator[Proxy]:
    """Runs until the block ends, in front of the services with these addresses."""
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    files = ["-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run([*made, *names, *files], cwd=folder, check=True, capture_output=True)  # noqa: S603
    port = free_port()
    command = COMMANDS[which](folder, [upstream.removeprefix("http://") for upstream in upstreams], port)
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # noqa: S603
        try:
            _wait(port, running, folder / "log")
            trusted = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
            yield Proxy(f"https://127.0.0.1:{port}", trusted)
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
