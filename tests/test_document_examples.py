"""The examples of the README and of the documents, run as a reader would run them: by a shell, Python and Node, against
a real service with the shipped models. What they are shown to print is compared with what they print.

A block marked `sh`, `python` or `javascript` is run, each document from its beginning to its end in one terminal. A
`json` or `text` block after it shows what it prints. Blocks without a mark are for machines that we do not have here
(containers, database servers); a `csharp` block cannot be compiled here, so its address, its JSON and its fields are
checked.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import playwright
import pytest

from app.settings import load_settings
from tests.documents import ADDRESS, DOCS, README, ROOT, WRITTEN, blocks, commands
from tests.web.serving import Running, serving

pytestmark = pytest.mark.slow

# Not run: they install, or take minutes. That their commands and options exist is seen by tests/test_documents.py.
# Goes on until it is stopped: a test of its own.
SERVE_YOUR_OWN = "NORMALCY_DATA_DIR=my_data NORMALCY_MODELS_DIR=my_models normalcy serve"
TOO_LONG = ("make ", "source ", "normalcy train ", SERVE_YOUR_OWN)
# Carries variables from one block to the next, as one terminal would: only exported ones reach programs. Those of the
# shell itself, which are arrays or read-only, are left out.
SHELL = """set -euo pipefail
touch .variables; . ./.variables
{block}
declare -p | grep -v "^declare -[a-zA-Z]*[ar]" > .variables
"""


CLIENTS = ("python", "javascript")


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


def walk(terminal: Terminal, document: str) -> list[str]:
    """Run the blocks in order and compare what they print. Returns the languages of those that were run or compared."""
    done: list[str] = []
    printed = ""
    for language, text in blocks(document):
        if language == "sh":
            printed = terminal.shell(runnable(text))
        elif language in CLIENTS:
            ran = run_client(terminal, language, text)
            assert ran.returncode == 0, ran.stderr
            printed = ran.stdout
        elif language == "json":
            assert is_part(json.loads(text), json.loads(printed)), printed
        elif language == "text" and done and done[-1] in CLIENTS:
            assert text == printed
        else:
            continue
        done.append(language)
    return done


# The documents with examples that run in one terminal, and how many blocks of each language they are known to have.
FOLLOWED = {
    "README.md": {"sh": 6, "json": 1},
    "docs/integrators.md": {"sh": 9, "json": 2, "python": 1, "javascript": 1},
    "docs/statisticians.md": {"sh": 4, "python": 1, "text": 1},
    "docs/operators.md": {"sh": 4},
    "docs/auditors.md": {"sh": 2},
    "docs/reference.md": {"sh": 1},
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_document_can_be_followed_from_its_beginning_to_its_end(terminal: Terminal, name: str) -> None:
    shutil.copytree(ROOT / "models_store", terminal.folder / "my_models")  # in place of the training
    (terminal.folder / "tools").symlink_to(ROOT / "tools")
    assert Counter(walk(terminal, WRITTEN[name])) == FOLLOWED[name]
    if name in AFTERWARDS:
        AFTERWARDS[name](terminal)


def is_recorded(terminal: Terminal) -> None:
    [record] = [r for r in terminal.running.records("score") if r.request_id == "my-first-call"]
    assert record.input["diameter_mm"] == 41


def plots_are_drawn(terminal: Terminal) -> None:
    assert len(list((terminal.folder / "plots").glob("*.svg"))) > 0


def events_are_exported(terminal: Terminal) -> None:
    assert (terminal.folder / "events.ndjson").stat().st_size > 0


def a_picture_is_drawn(terminal: Terminal) -> None:
    assert (terminal.folder / "chart.svg").read_text().startswith("<svg ")


AFTERWARDS = {
    "docs/integrators.md": a_picture_is_drawn,
    "README.md": is_recorded,
    "docs/statisticians.md": plots_are_drawn,
    "docs/auditors.md": events_are_exported,
}


def test_no_document_with_examples_is_left_out() -> None:
    with_examples = {
        name for name, text in WRITTEN.items() if any(block.language in ("sh", *CLIENTS) for block in blocks(text))
    }
    with_own_test = {"docs/score-files.md", "docs/conformance.md"}
    assert with_examples - FOLLOWED.keys() == {"CONTRIBUTING.md", *with_own_test}


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


INTEGRATORS = DOCS["docs/integrators.md"]


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_the_clients_score_and_say_what_is_wrong(terminal: Terminal, language: str) -> None:
    [client] = [block.text for block in blocks(INTEGRATORS) if block.language == language]
    [keys] = [block.text for block in blocks(INTEGRATORS) if "keys create" in block.text]
    terminal.shell(runnable(keys))
    assert terminal.running.client.get("/v1/sites").status_code == 401  # a credential is needed now
    done = run_client(terminal, language, client)
    assert done.stdout.strip() == quoted(README) == quoted(INTEGRATORS)
    mistaken = run_client(terminal, language, client.replace(" 41", " 4.1"))
    assert re.search(r"Invalid input\. diameter_mm .* cm\?", mistaken.stderr)
    (terminal.folder / ".variables").write_text("export KEY=nsk_unknown\n")
    assert "Authentication required." in run_client(terminal, language, client).stderr


def run_client(terminal: Terminal, language: str, text: str) -> subprocess.CompletedProcess[str]:
    file = terminal.folder / f"client.{language}"
    file.write_text(terminal.here(text))
    program = sys.executable if language == "python" else node()
    return terminal.run("bash", "-c", f"touch .variables; . ./.variables; exec '{program}' '{file}'")


class Refusing(BaseHTTPRequestHandler):
    """Answers 503 once, then passes the request on."""

    target = ""
    refused = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if type(self).refused == 0:
            type(self).refused += 1
            self.send_response(503)
            self.send_header("Retry-After", "1")
            self.end_headers()
            return
        answer = httpx.post(self.target + self.path, content=body, headers={"Content-Type": "application/json"})
        self.send_response(answer.status_code)
        self.end_headers()
        self.wfile.write(answer.content)


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_the_clients_repeat_a_request_as_they_are_asked_to(terminal: Terminal, language: str) -> None:
    [client] = [block.text for block in blocks(INTEGRATORS) if block.language == language]
    handler = type("Handler", (Refusing,), {"target": terminal.running.url, "refused": 0})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        (terminal.folder / ".variables").write_text("export KEY=none\n")
        client = client.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{proxy.server_port}")
        done = run_client(terminal, language, client)
        proxy.shutdown()
    assert handler.refused == 1  # type: ignore[attr-defined]
    assert done.stdout.strip() == quoted(INTEGRATORS)


def test_the_csharp_client_sends_and_reads_what_the_service_understands(terminal: Terminal) -> None:
    """No compiler: the address, the JSON, the header and the names of the fields."""
    [client] = [block.text for block in blocks(INTEGRATORS) if block.language == "csharp"]
    [path] = re.findall(r'PostAsync\(\s*"([^"]+)"', client)
    [body] = re.findall(r'"""\s*(\{.*?\})\s*"""', client, re.DOTALL)
    assert re.search(r'new Uri\("http://127\.0\.0\.1:8000"\)', client)
    posted = terminal.running.client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert posted.json()["summary"]["clinician"] == quoted(INTEGRATORS)
    wrong = terminal.running.client.post(path, json={}).json()
    read = re.findall(r'[. ]GetProperty\("(\w+)"\)', client)
    assert set(read) == {"summary", "clinician", "title", "field", "message"}
    assert {"field", "message"} <= wrong["errors"][0].keys()
    other = terminal.running.client.get("/nothing").json()
    assert "title" in other
    assert "errors" not in other  # so it is read only where it is
    assert 'TryGetProperty("errors", ' in client
    assert "(429 or 503)" in client
    assert "Headers.RetryAfter" in client


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
    files = [(terminal.folder / name).read_text().splitlines()[1:] for name in ("scores.csv", "scores.errors.csv")]
    assert [len(lines) for lines in files] == [2, 1]
