"""The settings, read from environment variables (NORMALCY_…), an optional settings file, and files for secrets.

A command calls `load_settings(os.environ)` once and passes the result on. To add a setting, add a field to `Settings`
and a row of the same name to `TABLE`; a test compares the documentation with the table.
"""

import difflib
import hashlib
import ipaddress
import re
import ssl
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from app.errors import InvalidSettings

PREFIX = "NORMALCY_"
ENV_FILE = "NORMALCY_ENV_FILE"
TEST_PREFIX = "NORMALCY_TEST_"  # read by the tests only

POSTGRES_SCHEMES = ("postgresql://", "postgres://")
DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")
SIMILARITY = 0.7  # for suggestions (0 to 1): finds PORT for PROT, and hardly any false match
MIN_KEY_LENGTH = 32  # characters: 128 bits even in hexadecimal
MIN_KEY_LETTERS = 8  # different ones: a random key has more, `changeme` four times has not
GUESSED_PASSWORDS = {"", "admin", "changeme", "normalcy", "password", "postgres", "secret", "test"}
OTHER_CREDENTIALS = {"passfile", "sslcert"}  # of a database URL, in place of a password
WEAK_LOGIN = "The password in NORMALCY_DATABASE_URL is empty, a common default, or the same as the user name."


@dataclass(frozen=True, slots=True)
class Settings:
    host: str
    port: int
    database_url: str = field(repr=False)  # empty: embedded SQLite
    database_tls: Literal["prefer", "disable", "require", "verify-full"]
    database_tls_ca: str  # path of a file; empty unless verify-full
    data_dir: Path
    models_dir: Path
    backend: Literal["numpy", "tensorflow"]
    device: Literal["auto", "CPU", "GPU"]
    commit: str
    log_level: Literal["debug", "info", "warning", "error"]
    metrics: Literal["open", "closed"]
    rate_per_second: float  # 0: no limit
    rate_burst: int
    cors_origins: tuple[str, ...]
    jwt_issuers_file: str  # empty: no JWT is accepted
    subject_key: str = field(repr=False)  # empty: created in the data folder
    signing_key: str = field(repr=False)  # empty: created in the data folder
    audit_encryption: Literal["off", "on"]
    audit_key: str = field(repr=False)  # empty: created in the data folder
    audit_public_keys_file: str  # empty: only the public half of the signing key is trusted
    checkpoint_file: str  # empty: none beside the one in the data folder; -: standard output
    audit_verify_hours: float
    audit_retention_months: int
    audit_budget_seconds: float
    allow_owner_login: bool

    def fingerprint(self) -> str:
        """SHA-256 of all settings except secrets, so that the audit can show under which settings a record was made."""
        public = [f"{s.name}={getattr(self, s.field)}" for s in TABLE if not s.secret]
        return hashlib.sha256("\n".join(public).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Setting:
    field: str
    default: str
    meaning: str
    allowed: str
    parse: Callable[[str], object] = str
    secret: bool = False
    may_be_empty: bool = True  # set to nothing, as a variable of the shell that does not exist does

    @property
    def name(self) -> str:
        return PREFIX + self.field.upper()


def _one_of(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError
        return text

    return parse


def _number(kind: Callable[[str], float], low: float, high: float) -> Callable[[str], float]:
    """Plain decimals: Python's own syntax also allows 1_0, 1e1, nan and the digits of other scripts."""

    def parse(text: str) -> float:
        if not DECIMAL.fullmatch(text.strip()):
            raise ValueError
        value = kind(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return parse


def _true_or_false(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _postgres_url(text: str) -> str:
    url = text.replace("postgresql+asyncpg://", "postgresql://", 1)
    if url and not url.startswith(POSTGRES_SCHEMES):
        raise ValueError
    _ = urlsplit(url).port  # raises ValueError if the port or host is impossible
    return url


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(origin.strip() for origin in text.split(",")) if text else ()
    for origin in origins:
        parts = urlsplit(origin)
        _ = parts.port  # raises ValueError if it is impossible
        host = parts.netloc
        if parts.scheme not in ("http", "https") or not host or "*" in host or "@" in host or origin != origin.lower():
            raise ValueError
        if origin != f"{parts.scheme}://{host}":
            raise ValueError
    return origins


def readable_certificates(text: str) -> str:
    if text:
        try:
            ssl.create_default_context(cafile=text)
        except OSError as error:  # missing, not readable, or without a certificate
            raise ValueError from error
    return text


def _key(text: str) -> str:
    if text and (len(text) < MIN_KEY_LENGTH or len(set(text)) < MIN_KEY_LETTERS):
        raise ValueError
    return text


TABLE: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", "address to listen on", "an address"),
    Setting(
        "port",
        "8000",
        "port to listen on; 0: any free port",
        "a whole number from 0 to 65535 (Kubernetes overwrites the variable if a Service is called normalcy: "
        "set enableServiceLinks to false)",
        _number(int, 0, 65535),
    ),
    Setting(
        "database_url",
        "",
        "PostgreSQL database of audit, keys and activations; empty: an SQLite file in the data folder, for one process",
        "empty or postgresql://user:password@host:port/name",
        _postgres_url,
        secret=True,
    ),
    Setting(
        "database_tls",
        "prefer",
        "TLS to PostgreSQL. prefer: encrypted if the server supports it; require: always encrypted; verify-full: also "
        "checks the certificate and host name of the server",
        "prefer, disable, require or verify-full",
        _one_of("prefer", "disable", "require", "verify-full"),
    ),
    Setting(
        "database_tls_ca",
        "",
        "file with the certificate authorities that verify-full accepts (PEM)",
        "empty or a readable file of certificates",
        readable_certificates,
    ),
    Setting("data_dir", "var", "folder for the embedded database, secrets and checkpoints", "a folder", Path),
    Setting("models_dir", "models_store", "folder of the model store; the service only reads it", "a folder", Path),
    Setting(
        "backend", "numpy", "library that computes predictions", "numpy or tensorflow", _one_of("numpy", "tensorflow")
    ),
    Setting("device", "auto", "device for the tensorflow backend", "auto, CPU or GPU", _one_of("auto", "CPU", "GPU")),
    Setting("commit", "unknown", "commit of this build, repeated in every response", "a commit"),
    Setting(
        "log_level",
        "info",
        "lowest level that is logged",
        "debug, info, warning or error",
        _one_of("debug", "info", "warning", "error"),
    ),
    Setting(
        "metrics",
        "closed",
        "open: /metrics needs no API key",
        "open or closed",
        _one_of("open", "closed"),
    ),
    Setting(
        "rate_per_second",
        "50",
        "requests a second that the holder of a key or token may send on average to one process; 0: no limit. Callers "
        "without a credential on this machine are not limited",
        "a number from 0 to 100000",
        _number(float, 0, 100_000),
    ),
    Setting(
        "rate_burst",
        "100",
        "requests that each of them may send at once after a pause",
        "a whole number from 1 to 100000",
        _number(int, 1, 100_000),
    ),
    Setting(
        "cors_origins",
        "",
        "origins whose web pages may call the service from a browser, separated by commas; empty: none",
        "empty or origins such as https://app.example, without a path and without *",
        _origins,
    ),
    Setting(
        "jwt_issuers_file",
        "",
        "file (TOML) of the issuers whose JWTs are accepted beside API keys; empty: none",
        "empty or a readable file",
    ),
    Setting(
        "subject_key",
        "",
        "key for hashing patient references; without it: created once in the data folder. "
        "All replicas must use the same key",
        f"at least {MIN_KEY_LENGTH} characters, at least {MIN_KEY_LETTERS} of them different",
        _key,
        secret=True,
        may_be_empty=False,
    ),
    Setting(
        "signing_key",
        "",
        "key that signs checkpoints of the audit (Ed25519); without it: created once in the data folder",
        "a private key in PEM without a password",
        secret=True,
        may_be_empty=False,
    ),
    Setting(
        "audit_encryption",
        "off",
        "on: new records store patients' values encrypted, each patient's under a key of its own that "
        "`normalcy audit erase` destroys. Records that exist stay as they are",
        "off or on",
        _one_of("off", "on"),
    ),
    Setting(
        "audit_key",
        "",
        "key under which the keys of patients are stored; without it: created once in the data folder when encryption "
        "is on. All replicas must use the same key. If it is lost, nobody can read encrypted records",
        f"at least {MIN_KEY_LENGTH} characters, at least {MIN_KEY_LETTERS} of them different",
        _key,
        secret=True,
        may_be_empty=False,
    ),
    Setting(
        "audit_public_keys_file",
        "",
        "file (PEM) of further public keys whose checkpoints the verification of the audit accepts beside those of the "
        "own signing key: those of replicas that have other signing keys. Keys before and after a rotation are "
        "accepted without it",
        "empty or a readable file of Ed25519 public keys",
    ),
    Setting(
        "checkpoint_file",
        "",
        "file to which every signed checkpoint is appended in addition to the one in the data folder, for example on "
        "another machine; -: standard output",
        "empty, - or a file",
    ),
    Setting(
        "audit_verify_hours",
        "24",
        "interval at which the running service verifies the whole audit, the first time ten minutes after its start; "
        "0: never",
        "a number of hours from 0 to 744",
        _number(float, 0.0, 744.0),
    ),
    Setting(
        "audit_retention_months",
        "72",
        "months for which records stay in the database at least: `normalcy audit retire` refuses to remove younger "
        "ones, except with --below-minimum",
        "a whole number of months from 0 to 1200",
        _number(int, 0, 1200),
    ),
    Setting(
        "audit_budget_seconds",
        "2.0",
        "longest time from the arrival of a request to its durable record; after that the response is 503",
        "a number of seconds from 0.1 to 2",
        _number(float, 0.1, 2.0),
    ),
    Setting(
        "allow_owner_login",
        "false",
        "true: serve even if the login of the database URL can change or remove records (for example on a developer's "
        "machine). A service that is taken over could then rewrite its own audit",
        "true or false",
        _true_or_false,
    ),
)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Raises InvalidSettings with every problem at once. Messages never contain a value."""
    problems: list[str] = []
    given = _given(environ, problems)
    problems += _unknown(given)
    values = {setting.field: _value(setting, given, problems) for setting in TABLE}
    if not problems:
        problems += _tls_problems(values)
        problems += _password_problems(str(values["database_url"]))
    if problems:
        raise InvalidSettings(problems)
    return Settings(**values)  # type: ignore[arg-type]  # each parser returns the type of its field


def setting_warnings(environ: Mapping[str, str], settings: Settings) -> list[str]:
    """What a service may start with, but its operator should look at. Never contains a value."""
    given = _given(environ, []) | {ENV_FILE: environ.get(ENV_FILE, "")}
    files = {name: given.get(name, "") for name in (ENV_FILE, *(f"{one.name}_FILE" for one in TABLE if one.secret))}
    found = [
        f"The file that {name} names can be read by every user of this machine."
        for name, file in files.items()
        if file and _is_readable_by_all(Path(file))
    ]
    return found + ([WEAK_LOGIN] if _has_weak_password(settings.database_url) else [])


def _given(environ: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    path = given.pop(ENV_FILE, "")
    return (_env_file(path, problems) if path else {}) | given


def _is_readable_by_all(file: Path) -> bool:
    """Mounted secrets belong to whoever mounts them, and often have a group that reads them: only others count."""
    folders = file.resolve().parents
    return bool(file.stat().st_mode & stat.S_IROTH) and all(each.stat().st_mode & stat.S_IXOTH for each in folders)


def _password_problems(database_url: str) -> list[str]:
    """On this machine a weak password is only a warning: somebody tries the service out."""
    if is_loopback(_database_host(database_url)) or not _has_weak_password(database_url):
        return []
    return [f"{WEAK_LOGIN} Set another one; other machines may reach the database."]


def _has_weak_password(database_url: str) -> bool:
    """At a socket PostgreSQL can check the user of the process, and needs no password."""
    url, host = urlsplit(database_url), _database_host(database_url)
    if not host or host.startswith("/") or parse_qs(url.query).keys() & OTHER_CREDENTIALS:
        return False
    user = unquote(url.username or "") or _parameter(database_url, "user")
    password = unquote(url.password or "") or _parameter(database_url, "password")
    return password.lower() in GUESSED_PASSWORDS or password == user


def _database_host(database_url: str) -> str:
    """Empty, or the folder of a socket, if the database is not reached by an address."""
    return urlsplit(database_url).hostname or _parameter(database_url, "host")


def _parameter(database_url: str, name: str) -> str:
    """Of several with this name the driver takes the last."""
    return parse_qs(urlsplit(database_url).query).get(name, [""])[-1]


@lru_cache(maxsize=8)  # called for every request while no credential is required
def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls_problems(values: Mapping[str, object]) -> list[str]:
    """A setting that another one would override is an error, so that what is set is what happens."""
    mode, authorities = values["database_tls"], values["database_tls_ca"]
    problems = []
    if mode == "verify-full" and not authorities:
        problems.append("NORMALCY_DATABASE_TLS=verify-full needs NORMALCY_DATABASE_TLS_CA.")
    if authorities and mode != "verify-full":
        problems.append("NORMALCY_DATABASE_TLS_CA needs NORMALCY_DATABASE_TLS=verify-full.")
    if mode != "prefer" and "sslmode" in parse_qs(urlsplit(str(values["database_url"])).query):
        problems.append("NORMALCY_DATABASE_TLS and the sslmode of NORMALCY_DATABASE_URL are both set; remove one.")
    return problems


def _value(setting: Setting, given: Mapping[str, str], problems: list[str]) -> object:
    text = given.get(setting.name, "")
    file = given.get(setting.name + "_FILE") if setting.secret else None
    if text and file:
        problems.append(f"{setting.name} and {setting.name}_FILE are both set; remove one.")
    elif file is not None and not text:
        text = _secret(file, setting.name + "_FILE", problems)
    elif not text and setting.name in given and not setting.may_be_empty:
        problems.append(f"{setting.name} is empty: set it to a key, or remove the setting.")
    try:
        return setting.parse(text or setting.default)
    except ValueError:
        problems.append(f"{setting.name} must be {setting.allowed}.")
        return None


def _secret(file: str, name: str, problems: list[str]) -> str:
    """No name, or an empty file, is an error: the default would silently be another database, or another key."""
    if not file:
        problems.append(f"{name} is empty: name a file, or remove the setting.")
        return ""
    before = len(problems)
    text = _read(file, name, problems).strip()
    if not text and len(problems) == before:
        problems.append(f"{name} names an empty file.")
    return text


def _unknown(given: Mapping[str, str]) -> list[str]:
    known = sorted({s.name for s in TABLE} | {s.name + "_FILE" for s in TABLE if s.secret})
    unknown = sorted(name for name in given if name not in known and not name.startswith(TEST_PREFIX))
    return [f"There is no setting {name}.{_suggestion(name, known)}" for name in unknown]


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Names are compared without their common prefix."""
    fields = [each.removeprefix(PREFIX) for each in known]
    nearest = difflib.get_close_matches(name.removeprefix(PREFIX), fields, n=1, cutoff=SIMILARITY)
    return f" Did you mean {PREFIX}{nearest[0]}?" if nearest else ""


def _env_file(path: str, problems: list[str]) -> dict[str, str]:
    found = {}
    for number, line in enumerate(_read(path, ENV_FILE, problems).splitlines(), start=1):
        name, equals, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not equals:
            problems.append(f"Line {number} of the file named by {ENV_FILE} is not of the form NAME=value.")
            continue
        found[name.strip()] = value.strip().strip("\"'")
    return found


def _read(path: str, name: str, problems: list[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        problems.append(f"{name} names a file that cannot be read as text.")
        return ""
