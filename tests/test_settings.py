"""Settings: every problem named at once, no value repeated."""

from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.errors import InvalidSettings
from app.settings import TABLE, WEAK_LOGIN, Settings, load_settings, setting_warnings
from tests.issuers import AUTHORITY


def refused(**given: str) -> tuple[str, ...]:
    with pytest.raises(InvalidSettings) as caught:
        load_settings({f"NORMALCY_{name}": value for name, value in given.items()})
    return caught.value.problems


def test_the_defaults_are_those_of_the_contract() -> None:
    settings = load_settings({})
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8000, "")
    assert (settings.data_dir, settings.models_dir) == (Path("var"), Path("models_store"))
    assert (settings.backend, settings.device) == ("numpy", "auto")


def test_the_table_lists_every_setting_once_with_its_meaning() -> None:
    assert [setting.field for setting in TABLE] == [field.name for field in fields(Settings)]
    assert all(setting.meaning and setting.allowed for setting in TABLE)


@pytest.mark.req("REQ-112")
def test_an_unknown_name_is_refused_and_named() -> None:
    assert refused(PROT="8000") == ("There is no setting NORMALCY_PROT. Did you mean NORMALCY_PORT?",)
    assert refused(MODEL_DIR="x") == ("There is no setting NORMALCY_MODEL_DIR. Did you mean NORMALCY_MODELS_DIR?",)
    assert refused(NONSENSE="x") == ("There is no setting NORMALCY_NONSENSE.",)
    assert refused(HOST_FILE="x") == ("There is no setting NORMALCY_HOST_FILE.",)


def test_names_of_the_tests_and_of_other_programs_are_left_alone() -> None:
    assert load_settings({"NORMALCY_TEST_DATABASE_URL": "x", "PATH": "/bin", "PORT": "x"}) == load_settings({})


def test_every_problem_is_named_at_once() -> None:
    problems = refused(PORT="tcp://10.0.0.1:80", BACKEND="torch", DEVICE="gpu", AUDIT_BUDGET_SECONDS="nan", X="1")
    assert [problem.split()[0] for problem in problems[1:]] == [
        "NORMALCY_PORT",
        "NORMALCY_BACKEND",
        "NORMALCY_DEVICE",
        "NORMALCY_AUDIT_BUDGET_SECONDS",
    ]
    assert "numpy or tensorflow" in problems[2]
    assert "tcp" not in " ".join(problems)


@pytest.mark.parametrize("port", ["-1", "65536", "80.5", "eighty"])
def test_a_port_is_a_port(port: str) -> None:
    assert len(refused(PORT=port)) == 1


NUMBERS = ("PORT", "RATE_PER_SECOND", "RATE_BURST", "AUDIT_VERIFY_HOURS", "AUDIT_RETENTION_MONTHS")


@pytest.mark.parametrize("name", [*NUMBERS, "AUDIT_BUDGET_SECONDS"])
@pytest.mark.parametrize("text", ["1_0", "1e0", "+1", "-0", "\u0661", "0x1", "1.", ".5", "inf", "nan", "1,0", "1 0"])
def test_a_number_is_a_plain_decimal(name: str, text: str) -> None:
    [problem] = refused(**{name: text})
    assert f"NORMALCY_{name} must be a" in problem


def test_a_number_may_have_blanks_around_it_and_a_fraction_where_it_is_not_counted() -> None:
    settings = load_settings({"NORMALCY_PORT": " 08000 ", "NORMALCY_AUDIT_VERIFY_HOURS": "0.5"})
    assert (settings.port, settings.audit_verify_hours) == (8000, 0.5)


@pytest.mark.parametrize("key", ["0" * 64, "changeme" * 4, "secret" * 8, "k" * 31])
@pytest.mark.req("REQ-118")
def test_a_secret_that_looks_like_a_default_is_refused(key: str) -> None:
    [problem] = refused(SUBJECT_KEY=key)
    assert problem.startswith("NORMALCY_SUBJECT_KEY must be at least 32 characters")
    assert key not in problem


@pytest.mark.req("REQ-113")
def test_secrets_are_never_repeated() -> None:
    problems = refused(DATABASE_URL="mysql://someone:hidden@host/db", SUBJECT_KEY="hidden")
    assert len(problems) == 2
    assert "hidden" not in " ".join(problems)
    key = "kkkabcdefgh" * 3
    settings = load_settings({"NORMALCY_DATABASE_URL": "postgresql://a:hidden@h/d", "NORMALCY_SUBJECT_KEY": key})
    assert "hidden" not in repr(settings)
    assert "kkk" not in repr(settings)


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://a:b@h/d\n")
    assert load_settings({"NORMALCY_DATABASE_URL_FILE": str(file)}).database_url == "postgresql://a:b@h/d"
    assert "both set" in refused(DATABASE_URL_FILE=str(file), DATABASE_URL="postgresql://h/d")[0]
    assert "cannot be read" in refused(DATABASE_URL_FILE=str(tmp_path / "nothing"))[0]


def test_a_file_of_settings_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text('# the ward\n\nNORMALCY_PORT=9000\nNORMALCY_HOST = "::1"\n')
    settings = load_settings({"NORMALCY_ENV_FILE": str(file), "NORMALCY_PORT": "9001"})
    assert (settings.host, settings.port) == ("::1", 9001)


def test_a_file_of_settings_is_checked_like_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("NORMALCY_PORT=x\nPORT=1\nno equals sign\n")
    problems = refused(ENV_FILE=str(file))
    assert [any(word in p for p in problems) for word in ("Line 3", "setting PORT", "NORMALCY_PORT must")] == [True] * 3
    assert "cannot be read" in refused(ENV_FILE=str(tmp_path / "nothing"))[0]


def test_an_empty_value_is_the_default() -> None:
    assert load_settings({"NORMALCY_PORT": "", "NORMALCY_DATABASE_URL": ""}) == load_settings({})


def test_the_drivers_name_in_a_url_is_understood() -> None:
    assert (
        load_settings({"NORMALCY_DATABASE_URL": "postgresql+asyncpg://a:b@h/d"}).database_url == "postgresql://a:b@h/d"
    )


def test_the_fingerprint_changes_with_settings_and_not_with_secrets() -> None:
    plain = load_settings({}).fingerprint()
    assert load_settings({"NORMALCY_PORT": "1"}).fingerprint() != plain
    assert load_settings({"NORMALCY_SUBJECT_KEY": "kkkabcdefgh" * 3}).fingerprint() == plain


def test_tls_to_the_database_is_said_once_and_completely(tmp_path: Path) -> None:
    (tmp_path / "empty.crt").write_text("no certificate\n")
    for file in ("empty.crt", "nothing.crt"):
        (problem,) = refused(DATABASE_TLS="verify-full", DATABASE_TLS_CA=str(tmp_path / file))
        assert problem == "NORMALCY_DATABASE_TLS_CA must be empty or a readable file of certificates."
    assert refused(DATABASE_TLS="verify-full") == ("NORMALCY_DATABASE_TLS=verify-full needs NORMALCY_DATABASE_TLS_CA.",)
    url = "postgresql://a:b@h/d?sslmode=disable"
    assert "both set" in refused(DATABASE_TLS="require", DATABASE_URL=url)[0]
    assert load_settings({"NORMALCY_DATABASE_URL": url}).database_tls == "prefer"


def test_an_authority_that_nothing_would_ask_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "authority.crt"
    file.write_text(AUTHORITY)
    assert "needs NORMALCY_DATABASE_TLS=verify-full" in refused(DATABASE_TLS="require", DATABASE_TLS_CA=str(file))[0]
    full = {"NORMALCY_DATABASE_TLS": "verify-full", "NORMALCY_DATABASE_TLS_CA": str(file)}
    assert load_settings(full).database_tls_ca == str(file)


@pytest.mark.req("REQ-118")
def test_an_empty_secret_is_no_default(tmp_path: Path) -> None:
    """A forgotten secret must not start a service on another database, or with a key of its own."""
    (tmp_path / "secret").write_text(" \n")
    for name in ("DATABASE_URL", "SUBJECT_KEY"):
        assert refused(**{f"{name}_FILE": str(tmp_path / "secret")}) == (f"NORMALCY_{name}_FILE names an empty file.",)
        assert refused(**{f"{name}_FILE": ""}) == (
            f"NORMALCY_{name}_FILE is empty: name a file, or remove the setting.",
        )


@pytest.mark.parametrize("name", ["SUBJECT_KEY", "SIGNING_KEY", "AUDIT_KEY"])
@pytest.mark.req("REQ-118")
def test_an_empty_key_is_refused(name: str) -> None:
    """From a variable of the shell that does not exist, for example: the service would make another key."""
    assert refused(**{name: ""}) == (f"NORMALCY_{name} is empty: set it to a key, or remove the setting.",)
    assert load_settings({"NORMALCY_DATABASE_URL": ""}).database_url == ""  # documented: the embedded database


@pytest.mark.parametrize("url", ["postgresql://h:abc/d", "postgresql://h:99999/d", "postgresql://[::1/d"])
def test_a_url_that_names_no_place_is_refused(url: str) -> None:
    assert refused(DATABASE_URL=url)[0].startswith("NORMALCY_DATABASE_URL must be")


WEAK = ["postgresql://{}/d", "postgresql://me@{}/d", "postgresql://me:me@{}/d", "postgresql://me:Postgres@{}:5432/d"]


def test_the_parameters_of_a_url_count_too() -> None:
    for url in (
        "postgresql://me:me@/d?host=db.example.org",
        "postgresql://me:me@/d?host=localhost&host=db.example.org",  # of several the driver takes the last
        "postgresql:///d?host=db.example.org&user=me&password=me",
        "postgresql://db.example.org/d?user=me&password=postgres",
        "postgresql://me:me@db.example.org/d?password=X9-quite-random",  # the driver takes the other one
    ):
        assert refused(DATABASE_URL=url)[0].startswith(WEAK_LOGIN)


@pytest.mark.parametrize("url", [*WEAK, "postgresql://me%40x:me%40x@{}/d", "postgresql://a:normalcy@{}/d"])
@pytest.mark.req("REQ-117")
def test_a_password_that_can_be_guessed_is_refused_unless_the_database_is_on_this_machine(url: str) -> None:
    for host in ("db.example.org", "10.0.0.5", "[2001:db8::1]"):
        (problem,) = refused(DATABASE_URL=url.format(host))
        assert problem.startswith(WEAK_LOGIN)
    for host in ("localhost", "127.0.0.1", "[::1]"):
        settings = load_settings({"NORMALCY_DATABASE_URL": url.format(host)})
        assert setting_warnings({}, settings) == [WEAK_LOGIN]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "postgresql://me:X9-quite-random@db.example.org/d",
        "postgresql://me@/d",
        "postgresql://me@/d?host=/run/postgresql",
        "postgresql://db.example.org/d?user=me&password=X9-quite-random",
        "postgresql://me:@db.example.org/d?password=me&password=X9-quite-random",
        "postgresql://me@db.example.org/d?sslcert=/run/me.crt&sslkey=/run/me.key",
        "postgresql://me@db.example.org/d?passfile=/run/pgpass",
    ],
)
def test_a_good_password_or_another_credential_is_accepted_without_a_warning(url: str) -> None:
    assert setting_warnings({}, load_settings({"NORMALCY_DATABASE_URL": url})) == []


@pytest.mark.parametrize("name", ["NORMALCY_SUBJECT_KEY_FILE", "NORMALCY_ENV_FILE"])
@pytest.mark.parametrize(("mode", "warns"), [(0o400, False), (0o440, False), (0o640, False), (0o444, True)])
def test_a_mounted_secret_that_everybody_can_read_is_a_warning(name: str, mode: int, warns: bool) -> None:
    with TemporaryDirectory() as private:  # of pytest's own folders, those above are closed to others
        folder, file = Path(private), Path(private) / "key"
        folder.chmod(0o755)
        file.write_text("kkkabcdefgh" * 3 if name.startswith("NORMALCY_SUBJECT") else "NORMALCY_PORT=8001")
        file.chmod(mode)
        given = {name: str(file)}
        found = setting_warnings(given, load_settings(given))
        expected = f"The file that {name} names can be read by every user of this machine."
        assert found == ([expected] if warns else [])
        folder.chmod(0o700)  # nobody else gets there
        assert setting_warnings(given, load_settings(given)) == []
