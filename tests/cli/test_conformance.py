"""`normalcy conformance`: exit codes, the report as text and JSON, and the cases as a file."""

import json
from pathlib import Path

import pytest

from app.services.conformance.cases import cases_text, read_cases
from app.settings import load_settings
from tests.cli.running import Done, run_main
from tests.services.conformance.test_vendor import SCORED, in_case, wrong_in_the_7th_digit
from tests.services.conformance.vendor import Mistake, vendor
from tests.web.serving import serving

ROOT = Path(__file__).parents[2]


class Conformance:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> Done:
        return run_main(self.monkeypatch, self.capsys, ("conformance", *arguments))

    def against(self, mistake: Mistake, *arguments: str) -> Done:
        with vendor(read_cases(), mistake, keys=bool(arguments)) as running:
            return self("--url", running.url, *arguments)


@pytest.fixture
def conformance(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Conformance:
    return Conformance(monkeypatch, capsys)


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    path = tmp_path / "key"
    path.write_text("a-key\n")
    return str(path)


def test_a_service_that_conforms_is_exit_code_0(conformance: Conformance, key_file: str) -> None:
    done = conformance.against(lambda case, reply: None, "--key-file", key_file)
    assert done.code == 0, done.out
    cases = len(read_cases().cases)
    assert f"conforms: {cases} cases, {cases} passed, 0 failed, 0 skipped." in done.out
    assert "Not tried: 500, defect: " in done.out


def test_a_wrong_digit_is_exit_code_1_with_the_case_and_the_number(conformance: Conformance, key_file: str) -> None:
    mistake = in_case(SCORED, wrong_in_the_7th_digit)
    done = conformance.against(mistake, "--key-file", key_file)
    assert done.code == 1
    assert f"Failed: {SCORED}: SoV: an adult\n  score.expected_ns: it is 1.9382" in done.out
    assert "does not conform" in done.out
    done = conformance.against(mistake, "--key-file", key_file, "--json")
    assert (done.code, done.json["conforms"], done.json["failed"]) == (1, False, 1)
    [failed] = [case for case in done.json["cases"] if case["outcome"] == "failed"]
    assert failed["name"] == SCORED
    assert failed["mistakes"][0].startswith("score.expected_ns: it is 1.9382")


def test_what_is_skipped_is_counted_by_its_reason(conformance: Conformance) -> None:
    done = conformance.against(lambda case, reply: None)
    assert done.code == 0
    assert "Skipped: 9 cases, because the check runs without a key." in done.out


def test_our_own_service_conforms_and_the_document_shows_what_is_printed(
    conformance: Conformance, tmp_path: Path
) -> None:
    with serving(load_settings({"NORMALCY_DATA_DIR": str(tmp_path)}), ROOT / "models_store") as running:
        done = conformance("--url", running.url)
    assert done.code == 0, done.out
    printed = done.out.replace(running.url, "http://127.0.0.1:8000")
    assert f"```text\n{printed}```" in (ROOT / "docs" / "conformance.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--url", "http://127.0.0.1:1"), "normalcy: There was no response: Connection refused."),
        (("--url", "127.0.0.1:8000"), "normalcy: The address must be http://HOST"),
        (("--url", "http://127.0.0.1:1", "--key-file", "no-such-file"), "normalcy: no-such-file cannot be read."),
        (("--url", "http://127.0.0.1:1", "--key-file", "empty"), "normalcy: empty must contain one API key"),
        ((), "--url"),
    ],
)
def test_what_cannot_be_checked_is_exit_code_2(
    conformance: Conformance, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    conformance.monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("two words")
    done = conformance(*arguments)
    assert done.code == 2
    assert message in done.err


def test_the_cases_are_printed_byte_for_byte(conformance: Conformance) -> None:
    done = conformance("--cases")
    assert (done.code, done.out.encode()) == (0, cases_text())
    assert len(json.loads(done.out)["cases"]) >= 100


def test_every_field_of_the_file_is_documented() -> None:
    document = (ROOT / "docs" / "conformance.md").read_text("utf-8").partition("## For other languages")[2]
    case = read_cases().cases[0]
    parts = (case, case.request, case.expect, read_cases())
    names = {name for part in parts for name in part.__struct_fields__}
    parents = {"cases", "request", "expect"}  # named as a part of the others
    assert {name for name in names - parents if f"{name}`" not in document} == set()
    assert all(f"`{parent}" in document for parent in parents)
