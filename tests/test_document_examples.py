"""The examples of the README and of the guide, run as a reader would run them: by a shell, Python and Node, against a
real service with the shipped models. What they are shown to print is compared with what they print."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import playwright
import pytest

from app.settings import load_settings
from tests.documents import ADDRESS, DOCS, GUIDE, README, ROOT, blocks, commands
from tests.web.serving import Running, serving

pytestmark = pytest.mark.slow

# Not run: they install, or take minutes. That their commands and options exist is seen by tests/test_documents.py.
# Goes on until it is stopped: a test of its own.
SERVE_YOUR_OWN = "NORMALCY_DATA_DIR=my_data NORMALCY_MODELS_DIR=my_models normalcy serve"
TOO_LONG = ("make ", "source ", "normalcy train ", SERVE_YOUR_OWN)
# Carries variables from one block to the next, as one terminal would.
SHELL = "set -euo pipefail -o allexport\ntouch .variables; . ./.variables\n{block}\nexport -p > .variables\n"


class Terminal:
    """A folder, a service, and a shell that finds `normalcy`."""

    def __init__(self, running: Running, folder: Path) -> None:
        self.running, self.folder = running, folder
        others = {name: value for name, value in os.environ.items() if not name.startswith("NORMALCY_")}
        self.environment = others | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "NORMALCY_DATA_DIR": str(running.settings.data_dir),
            "NORMALCY_MODELS_DIR": str(ROOT / "models_store"),
            "CURL_HOME": str(folder),
        }
        (folder / ".curlrc").write_text("retry = 3\n")  # a 503 on a busy machine: as its Retry-After asks

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own documents
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )

    def shell(self, block: str) -> str:
        done = self.run("bash", "-c", SHELL.format(block=self.here(block)))
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        self.running.inside(self.running.runtime.poller.refresh())  # a key or an activation holds from now on
        return done.stdout

    def here(self, text: str) -> str:
        """With the port of this service."""
        return ADDRESS.sub(self.running.url, text)

    def variable(self, name: str) -> str:
        return self.run("bash", "-c", f'. ./.variables; printf %s "${name}"').stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path / "var")})
    folder = tmp_path / "work"
    folder.mkdir()
    with serving(settings, ROOT / "models_store") as running:
        yield Terminal(running, folder)


def runnable(block: str) -> str:
    """Without the commands that take too long; a continued line goes with its command."""
    lines = [line for line in block.replace("\\\n", "\\\0").splitlines() if not line.startswith(TOO_LONG)]
    return "\n".join(lines).replace("\0", "\n")


def is_part(shown: Any, given: Any) -> bool:
    """All that is shown is given, number by number; objects may be shortened."""
    if isinstance(shown, dict):
        return isinstance(given, dict) and all(name in given and is_part(shown[name], given[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(given, list) and len(shown) == len(given) and all(map(is_part, shown, given))
    return bool(shown == given)


def walk(terminal: Terminal, document: str) -> int:
    """Every shell block in order; a JSON block tells what the one before it prints. How many were compared."""
    compared, printed = 0, ""
    for language, text in blocks(document):
        if language == "sh":
            printed = terminal.shell(runnable(text))
        elif language == "json":
            assert is_part(json.loads(text), json.loads(printed)), printed
            compared += 1
    return compared


def test_the_guide_can_be_followed_from_its_beginning_to_its_end(terminal: Terminal) -> None:
    assert walk(terminal, GUIDE) == 2
    assert (terminal.folder / "events.ndjson").stat().st_size > 0


def test_the_readme_can_be_followed_from_its_beginning_to_its_end(terminal: Terminal) -> None:
    shutil.copytree(ROOT / "models_store", terminal.folder / "my_models")  # in place of the training
    assert walk(terminal, README) == 1
    assert len(list((terminal.folder / "plots").glob("*.svg"))) > 0
    [record] = [r for r in terminal.running.records("score") if r.request_id == "my-first-call"]
    assert record.input["diameter_mm"] == 41


def test_a_model_of_ones_own_is_served_as_the_readme_says(tmp_path: Path) -> None:
    assert SERVE_YOUR_OWN in commands(README)
    shutil.copytree(ROOT / "models_store" / "AA", tmp_path / "my_models" / "AA")
    others = {name: value for name, value in os.environ.items() if not name.startswith("NORMALCY_")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = others | {"PATH": path, "NORMALCY_PORT": "0"}
    command = ["bash", "-c", SERVE_YOUR_OWN.replace("normalcy", "exec normalcy")]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as running:  # noqa: S603
        try:
            assert running.stdout is not None
            [url] = islice((found[0] for line in running.stdout if (found := re.search(r"http://\S+:\d+", line))), 1)
            sites = httpx.get(f"{url}/v1/sites").json()["sites"]
        finally:
            running.terminate()
            running.communicate(timeout=60)
    assert [site["site"] for site in sites] == ["AA"]


def quoted(document: str) -> str:
    """The quotation that begins as a sentence for clinicians."""
    [quotation] = re.findall(r"^> Evaluation model(?:.|\n> )*$", document, re.MULTILINE)
    return str(quotation).removeprefix("> ").replace("\n> ", " ")


@pytest.mark.parametrize("language", ["python", "js"])
def test_the_clients_of_the_readme_score_and_tell_what_is_wrong(terminal: Terminal, language: str) -> None:
    [client] = [block.text for block in blocks(README) if block.language == language]
    [keys] = [block.text for block in blocks(README) if "keys create" in block.text]
    terminal.shell(runnable(keys))
    assert terminal.running.client.get("/v1/sites").status_code == 401  # a credential is needed now
    terminal.environment["KEY"] = terminal.variable("KEY")
    done = run_client(terminal, language, client)
    assert done.stdout.strip() == quoted(README)
    mistaken = run_client(terminal, language, client.replace(" 41", " 4.1"))
    assert re.search(r"Invalid input\. diameter_mm .* cm\?", mistaken.stderr)
    terminal.environment["KEY"] = "nsk_unknown"
    assert "Authentication required." in run_client(terminal, language, client).stderr


def run_client(terminal: Terminal, language: str, text: str) -> subprocess.CompletedProcess[str]:
    file = terminal.folder / f"client.{language}"
    file.write_text(terminal.here(text))
    return terminal.run(sys.executable if language == "python" else node(), file)


def node() -> Path:
    """Of this machine, or the one that Playwright brings along."""
    found = Path(shutil.which("node") or Path(playwright.__file__).parent / "driver" / "node")
    if subprocess.run([found, "--version"], capture_output=True, check=False).returncode:  # noqa: S603
        assert os.environ.get("CI") != "true", "CI must have a Node that runs"
        pytest.skip("the Node of Playwright does not run on this machine, which lacks libraries that it needs")
    return found


REQUEST_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # another one at every run


def test_a_table_can_be_scored_as_its_document_says(terminal: Terminal) -> None:
    table, command, answer = (block.text for block in blocks(DOCS["docs/score-files.md"]))
    (terminal.folder / "measurements.csv").write_text(table)
    shown, printed = (
        {REQUEST_ID.sub("ID", line) for line in text.splitlines()} for text in (answer, terminal.shell(command))
    )
    assert shown <= printed
    assert len((terminal.folder / "scores.csv").read_text().splitlines()) == len(table.splitlines())
