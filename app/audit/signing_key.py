"""The Ed25519 key that signs checkpoints: configured, or created once in the data folder. Its public half goes to
auditors; the private half never leaves the machine. Replicas that sign with keys of their own are given the public keys
of the others."""

import hashlib
import re
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.errors import InvalidPublicKey, InvalidSettings
from app.files import create_file, private_content
from app.settings import Settings

KEY_FILE = "signing.key"
PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
DOMAIN = b"normalcy checkpoint v1\0"  # so that no signature of anything else is ever one of a checkpoint


class PublicKey:
    def __init__(self, raw: bytes) -> None:
        """Raises ValueError unless these are the 32 bytes of a key."""
        self.raw = raw
        self._key = Ed25519PublicKey.from_public_bytes(raw)

    @property
    def key_id(self) -> str:
        """Names the key in checkpoints."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    @property
    def pem(self) -> bytes:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self._key.public_bytes(serialization.Encoding.PEM, form)

    def has_signed(self, body: bytes, signature: bytes) -> bool:
        try:
            self._key.verify(signature, DOMAIN + body)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = PublicKey(private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> "SigningKey":
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, content: bytes) -> "SigningKey":
        """Raises ValueError for anything but an unencrypted Ed25519 key."""
        try:
            private = serialization.load_pem_private_key(content, password=None)
        except (TypeError, ValueError) as error:  # TypeError: it is encrypted
            raise ValueError("not a private key in PEM without a password") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError("not an Ed25519 key")
        return cls(private)

    @property
    def pem(self) -> bytes:
        form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self._private.private_bytes(serialization.Encoding.PEM, form, encryption)

    def sign(self, body: bytes) -> bytes:
        return self._private.sign(DOMAIN + body)


def load_signing_key(settings: Settings) -> SigningKey:
    """The configured one, or the one in the data folder, created there the first time. Raises InvalidSettings."""
    if settings.signing_key:
        try:
            return SigningKey.from_pem(settings.signing_key.encode())
        except ValueError as error:
            raise InvalidSettings(["NORMALCY_SIGNING_KEY must be an Ed25519 key in PEM without a password."]) from error
    file = settings.data_dir / KEY_FILE
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_file(file, SigningKey.generate().pem)  # of several processes at once, the first one wins
    try:
        return SigningKey.from_pem(private_content(file))
    except ValueError as error:
        raise InvalidSettings(
            [f"{file} does not hold a usable key: restore it, or set NORMALCY_SIGNING_KEY."]
        ) from error


def trusted_keys(settings: Settings) -> list[PublicKey]:
    """Whose signatures count unless an auditor gives keys: that of this installation, and those of the setting."""
    own, file = own_public_key(settings), settings.audit_public_keys_file
    return [*([own] if own else []), *(read_public_keys(Path(file)) if file else [])]


def own_public_key(settings: Settings) -> PublicKey | None:
    """For verification, which creates nothing. None: this installation has no key yet."""
    if not settings.signing_key and not (settings.data_dir / KEY_FILE).exists():
        return None
    return load_signing_key(settings).public


def read_public_keys(path: Path) -> list[PublicKey]:
    """One or several in a file. Raises InvalidPublicKey."""
    try:
        blocks = PEM.findall(path.read_bytes())
        keys = [serialization.load_pem_public_key(block) for block in blocks]
    except OSError as error:
        raise InvalidPublicKey(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidPublicKey(f"{path} holds something that is not a public key in PEM.") from error
    if not keys:
        raise InvalidPublicKey(f"{path} is not a public key in PEM.")
    return [_public_key(key, path) for key in keys]


def _public_key(key: object, path: Path) -> PublicKey:
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidPublicKey(f"{path} holds a key that is not an Ed25519 key.")
    return PublicKey(key.public_bytes_raw())
