"""An issuer of JWTs for tests: its own keys, a server for its key set, and tokens, honest ones and others."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "https://normalcy.example"
NAME = "https://login.example"
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

# Generated once: an RSA key takes a tenth of a second.
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
P256_KEY, P384_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
KEYS: dict[str, Private] = {"rsa": RSA_KEY, "p256": P256_KEY, "p384": P384_KEY}
KEY_OF = {"RS256": "rsa", "RS384": "rsa", "ES256": "p256", "ES384": "p384"}

# A certificate authority, of which nobody has the key.
AUTHORITY = """\
-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUbDeFUu1MIWMf5UyEUHMujtR7DLcwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTExNzIwMDEyMloYDzIxMjYxMDI0MjAw
MTIyWjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASA9wfLgUYqAViN/VzEluRzd0neLR2Fsf9cd2kPud9VdnKJt5FKXq/WtSCWT1U4
H925c6kXkFuvcs18YC4LW21Go1MwUTAdBgNVHQ4EFgQUTl7SST9z96Dw9sUm0Ax7
6qxMv7owHwYDVR0jBBgwFoAUTl7SST9z96Dw9sUm0Ax76qxMv7owDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAGzOx/+Oii0Iw55L6BdijqdBZzANKu
0JRjII7SduHeXAIgC96V6dGViq2d0PIonCT7ewX22F68mrMGNWkn2m5Mi5s=
-----END CERTIFICATE-----
"""


def public_jwk(key_id: str, key: Private, **more: str) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        public = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**public, "kid": key_id, "use": "sig", **more}


def key_set(keys: dict[str, Private] | None = None) -> bytes:
    return json.dumps({"keys": [public_jwk(key_id, key) for key_id, key in (keys or KEYS).items()]}).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """Honest ones, valid for five minutes; None removes a claim."""
    now = time.time()
    honest = {"iss": NAME, "sub": "dr-7", "aud": AUDIENCE, "iat": now, "exp": now + 300, "scope": "system/score.c"}
    return {name: value for name, value in (honest | changes).items() if value is not None}


def token(algorithm: str = "RS256", key: Any = None, headers: dict[str, Any] | None = None, **changes: Any) -> str:
    """Signed by the library, as an issuer would."""
    key_id = KEY_OF.get(algorithm, "rsa")
    return jwt.encode(claims(**changes), key or KEYS[key_id], algorithm, {"kid": key_id, **(headers or {})})


def encoded(part: object) -> str:
    content = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def forged(header: dict[str, Any], content: object, signature: bytes = b"signature") -> str:
    return ".".join([encoded(header), encoded(content), encoded(signature)])


def issuers_file(folder: Path, source: str, **more: object) -> str:
    """A file with one issuer; `source` is a line such as `jwks_file = "…"`."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in more.items()]
    path = folder / "issuers.toml"
    path.write_text(
        f'[[issuer]]\nissuer = "{NAME}"\naudiences = ["{AUDIENCE}"]\n{source}\n'
        + "\n".join(lines)
        + '\n[issuer.scopes]\n"system/score.c" = ["score"]\n"system/model.r" = ["model:read"]\n'
    )
    return str(path)


class KeyServer:
    """Serves a key set that a test may change or break, and counts how often it was read."""

    def __init__(self) -> None:
        self.content, self.status, self.reads, self.delay = key_set(), 200, 0, 0.0
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.reads += 1
        time.sleep(self.delay)
        handler.send_response(self.status)
        handler.send_header("Location", "/elsewhere")  # only a redirect makes anyone look at it
        handler.end_headers()
        handler.wfile.write(self.content)


@contextmanager
def key_server() -> Iterator[KeyServer]:
    served = KeyServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}/keys"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
