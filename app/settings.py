"""What is configured: one table of settings, and the frozen value that is built from it at the edge.

`load_settings(os.environ)` is called once by a command; everything below receives the value. To add a
setting, add a field to `Settings` and a row of the same name to `TABLE`; the documents are checked against the table.
"""

import difflib
import hashlib
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from app.errors import InvalidSettings

PREFIX = "NORMALCY_"
ENV_FILE = "NORMALCY_ENV_FILE"
TEST_PREFIX = "NORMALCY_TEST_"  # read by the tests only

POSTGRES_SCHEMES = ("postgresql://", "postgres://")
ALIKE = 0.7  # of 1: PROT is like PORT, and hardly anything else is like anything
SHORTEST_KEY = 32  # characters; 128 bits even if written in hexadecimal


@dataclass(frozen=True, slots=True)
class Settings:
    host: str
    port: int
    database_url: str = field(repr=False)  # empty: embedded SQLite
    database_tls: Literal["prefer", "disable", "require", "verify-full"]
    database_tls_ca: str  # a file; empty unless verify-full
    data_dir: Path
    models_dir: Path
    backend: Literal["numpy", "tensorflow"]
    device: Literal["auto", "CPU", "GPU"]
    commit: str
    log_level: Literal["debug", "info", "warning", "error"]
    metrics: Literal["open", "closed"]
    subject_key: str = field(repr=False)  # empty: one is made in the data folder
    audit_budget_seconds: float
    allow_owner_login: bool

    def fingerprint(self) -> str:
        """SHA-256 of everything that is no secret, so that a record can say under which settings it was made."""
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
    def parse(text: str) -> float:
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
    _ = urlsplit(url).port  # raises ValueError for a port, or a host, that can be none
    return url


def _certificates(text: str) -> str:
    if text:
        try:
            ssl.create_default_context(cafile=text)
        except OSError as error:  # not there, not readable, or without a certificate
            raise ValueError from error
    return text


def _key(text: str) -> str:
    if text and len(text) < SHORTEST_KEY:
        raise ValueError
    return text


TABLE: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", "address to listen on", "an address"),
    Setting(
        "port",
        "8000",
        "port to listen on; 0 takes a free one",
        "a whole number from 0 to 65535 (Kubernetes overwrites it for a Service of the same name: "
        "set enableServiceLinks to false)",
        _number(int, 0, 65535),
    ),
    Setting(
        "database_url",
        "",
        "PostgreSQL of the audit, keys and activations; empty: an SQLite file under the data folder, one process",
        "empty or of the form postgresql://user:password@host:port/name",
        _postgres_url,
        secret=True,
    ),
    Setting(
        "database_tls",
        "prefer",
        "TLS to PostgreSQL: prefer encrypts if the server can, require refuses a server that cannot, verify-full also "
        "checks its certificate and name",
        "prefer, disable, require or verify-full",
        _one_of("prefer", "disable", "require", "verify-full"),
    ),
    Setting(
        "database_tls_ca",
        "",
        "file of the authorities whose certificates verify-full accepts (PEM)",
        "empty or a readable file of certificates",
        _certificates,
    ),
    Setting("data_dir", "var", "folder of the embedded database, secrets and checkpoints", "a folder", Path),
    Setting("models_dir", "models_store", "the model store, read only for the service", "a folder", Path),
    Setting("backend", "numpy", "what computes the posterior", "numpy or tensorflow", _one_of("numpy", "tensorflow")),
    Setting("device", "auto", "device of the tensorflow backend", "auto, CPU or GPU", _one_of("auto", "CPU", "GPU")),
    Setting("commit", "unknown", "commit of this build, repeated in every answer", "a commit"),
    Setting(
        "log_level",
        "info",
        "least level that is logged",
        "debug, info, warning or error",
        _one_of("debug", "info", "warning", "error"),
    ),
    Setting(
        "metrics",
        "closed",
        "whether /metrics answers without a credential",
        "open or closed",
        _one_of("open", "closed"),
    ),
    Setting(
        "subject_key",
        "",
        "key of the hash that stands for a patient reference; empty: made once in the data folder. "
        "Replicas must share one",
        f"empty or at least {SHORTEST_KEY} characters",
        _key,
        secret=True,
    ),
    Setting(
        "audit_budget_seconds",
        "2.0",
        "longest time from arrival to a durable record; after it the answer is refused",
        "a number of seconds from 0.1 to 2",
        _number(float, 0.1, 2.0),
    ),
    Setting(
        "allow_owner_login",
        "false",
        "true: serve although the login of the database URL could change or remove records (one login for everything, "
        "as on a developer's machine). What is given up: a service that was taken over could rewrite its own audit",
        "true or false",
        _true_or_false,
    ),
)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """The settings of this process. Every problem is named at once, and no value is repeated."""
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    path = given.pop(ENV_FILE, "")
    problems: list[str] = []
    given = (_env_file(path, problems) if path else {}) | given
    problems += _unknown(given)
    values = {setting.field: _value(setting, given, problems) for setting in TABLE}
    if not problems:
        problems += _tls_problems(values)
    if problems:
        raise InvalidSettings(problems)
    return Settings(**values)  # type: ignore[arg-type]  # each parser returns the type of its field


def _tls_problems(values: Mapping[str, object]) -> list[str]:
    """What is set must be what happens: a setting that something else overrules is refused."""
    mode, authorities = values["database_tls"], values["database_tls_ca"]
    problems = []
    if mode == "verify-full" and not authorities:
        problems.append("NORMALCY_DATABASE_TLS=verify-full needs NORMALCY_DATABASE_TLS_CA.")
    if authorities and mode != "verify-full":
        problems.append("NORMALCY_DATABASE_TLS_CA needs NORMALCY_DATABASE_TLS=verify-full.")
    if mode != "prefer" and "sslmode" in parse_qs(urlsplit(str(values["database_url"])).query):
        problems.append("NORMALCY_DATABASE_TLS and the sslmode of NORMALCY_DATABASE_URL are both set; keep one.")
    return problems


def _value(setting: Setting, given: Mapping[str, str], problems: list[str]) -> object:
    text = given.get(setting.name, "")
    file = given.get(setting.name + "_FILE", "") if setting.secret else ""
    if text and file:
        problems.append(f"{setting.name} and {setting.name}_FILE are both set; keep one.")
    elif file:
        text = _secret(file, setting.name + "_FILE", problems)
    try:
        return setting.parse(text or setting.default)
    except ValueError:
        problems.append(f"{setting.name} must be {setting.allowed}.")
        return None


def _secret(file: str, name: str, problems: list[str]) -> str:
    """An empty one would quietly mean the default: another database, another key."""
    before = len(problems)
    text = _read(file, name, problems).strip()
    if not text and len(problems) == before:
        problems.append(f"{name} names an empty file.")
    return text


def _unknown(given: Mapping[str, str]) -> list[str]:
    known = sorted({s.name for s in TABLE} | {s.name + "_FILE" for s in TABLE if s.secret})
    strangers = sorted(n for n in given if n not in known and not n.startswith(TEST_PREFIX))
    return [f"There is no setting {name}.{_meant(name, known)}" for name in strangers]


def _meant(name: str, known: Iterable[str]) -> str:
    """Compared without the prefix that all of them share."""
    fields = [each.removeprefix(PREFIX) for each in known]
    nearest = difflib.get_close_matches(name.removeprefix(PREFIX), fields, n=1, cutoff=ALIKE)
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
