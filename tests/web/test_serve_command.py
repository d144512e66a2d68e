"""`normalcy serve` as an operator meets it: in a process of its own, started, stopped, killed, and refused."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from app.settings import load_settings
from tests.web.serving import READING, SCORE, records

pytestmark = pytest.mark.slow

COMMAND = "from app.cli.serve import serve; from app.errors import NormalcyError\n{before}\ntry:\n    serve()\n"
COMMAND += "except NormalcyError as error:\n    raise SystemExit(f'normalcy: {{error}}')\n{after}"
SAY_MODULES = "import sys, json; print(json.dumps(sorted(sys.modules)))"


class Process:
    def __init__(self, running: subprocess.Popen[str], said: list[str]) -> None:
        self.running, self.said = running, said
        found = re.search(r"http://\S+:(\d+)", "".join(said))
        assert found, (said, running.communicate(timeout=60)[1])
        self.url = f"http://127.0.0.1:{found[1]}"

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.running.send_signal(number)
        out, errors = self.running.communicate(timeout=60)
        return self.running.returncode, out, errors


def launch(environment: dict[str, str], after: str = "") -> subprocess.Popen[str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("NORMALCY_")}
    command = [sys.executable, "-c", COMMAND.format(before="", after=after)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=given | environment, text=True, **pipes)  # type: ignore[call-overload, no-any-return]  # noqa: S603


@contextmanager
def process(environment: dict[str, str], after: str = "") -> Iterator[Process]:
    running = launch(environment, after)
    said: list[str] = []
    try:
        assert running.stdout is not None
        for line in running.stdout:
            said.append(line)
            if "No API key exists" in line:
                break
        yield Process(running, said)
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


@pytest.fixture
def environment(tmp_path: Path, models_dir: Path) -> dict[str, str]:
    return {
        "NORMALCY_PORT": "0",
        "NORMALCY_DATA_DIR": str(tmp_path / "var"),
        "NORMALCY_MODELS_DIR": str(models_dir),
    }


def kinds(environment: dict[str, str]) -> list[str]:
    return [record.kind for record in records(load_settings(environment))]


def test_it_says_where_and_what_and_stops_cleanly(environment: dict[str, str]) -> None:
    with process(environment) as service:
        assert httpx.post(service.url + SCORE, json=READING).status_code == 200
        status, out, errors = service.stop()
    said = "".join(service.said) + out
    assert status == 0
    assert re.search(r"Try it: +http://\S+:\d+/ ", said)
    assert "/docs" in said
    assert str(Path(environment["NORMALCY_DATA_DIR"]).resolve()) in said
    assert re.search(r"SoV 1\.1\.0.*[0-9a-f]{64}", said)
    assert re.search(r"Trained on simulated people, for evaluation, not for care: .*SoV 1\.1\.0", said)
    assert "Traceback" not in errors
    assert kinds(environment) == ["genesis", "score", "seal"]


def test_a_cpu_process_never_imports_tensorflow(environment: dict[str, str]) -> None:
    with process(environment, after=SAY_MODULES) as service:
        assert httpx.post(service.url + SCORE, json=READING).status_code == 200
        assert httpx.get(service.url + "/openapi.json").status_code == 200
        _, out, _ = service.stop(signal.SIGINT)
    modules = set(json.loads(out.splitlines()[-1]))
    assert "numpy" in modules
    unused = {
        "tensorflow",
        "gpflow",
        "keras",
        "tf_keras",
        "pandas",
        "matplotlib",
        "sklearn",
        "scipy.stats",
        "markdown_it",
    }
    assert not unused & modules


def test_a_second_one_on_the_same_file_is_refused_and_after_a_kill_it_starts_again(environment: dict[str, str]) -> None:
    with process(environment) as service:
        second = launch(environment)
        _, errors = second.communicate(timeout=60)
        assert second.returncode == 1
        assert "Another process serves from" in errors.splitlines()[-1]
        assert httpx.post(service.url + SCORE, json=READING).status_code == 200
        service.running.kill()
        service.running.wait()
    with process(environment) as service:
        assert httpx.post(service.url + SCORE, json=READING).status_code == 200
        assert service.stop()[0] == 0
    assert sorted(kinds(environment)) == ["genesis", "genesis", "score", "score", "seal"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"NORMALCY_HOST": "0.0.0.0"}, "no API key exists"),  # noqa: S104
        ({"NORMALCY_DEVICE": "GPU"}, "NORMALCY_DEVICE=GPU needs NORMALCY_BACKEND=tensorflow"),
        ({"NORMALCY_NONSENSE": "1"}, "There is no setting NORMALCY_NONSENSE"),
        ({"NORMALCY_HOST": "no.such.host.invalid"}, "NORMALCY_HOST"),
    ],
)
def test_a_refusal_to_start_is_one_sentence(environment: dict[str, str], given: dict[str, str], sentence: str) -> None:
    refused = launch(environment | given)
    _, errors = refused.communicate(timeout=60)
    assert refused.returncode == 1
    assert sentence in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_a_taken_port_is_reported(environment: dict[str, str], tmp_path: Path) -> None:
    with process(environment) as service:
        other = environment | {"NORMALCY_PORT": service.url.rsplit(":", 1)[1], "NORMALCY_DATA_DIR": str(tmp_path / "b")}
        refused = launch(other)
        _, errors = refused.communicate(timeout=60)
    assert refused.returncode == 1
    assert "cannot be listened on" in errors.splitlines()[-1]


@pytest.mark.req("REQ-111")
def test_no_request_is_lost_when_it_is_stopped(environment: dict[str, str]) -> None:
    """Clients that ask without pause see answers until the connection is closed between two of them."""
    failures: list[str] = []
    answered: list[str] = []

    def ask(url: str) -> None:
        with httpx.Client(base_url=url, timeout=30) as client:
            while True:
                try:
                    answer = client.post(SCORE, json=READING)
                except httpx.ConnectError:
                    return  # it listens no more
                except httpx.HTTPError as error:
                    failures.append(repr(error))
                    return
                if answer.status_code != 200:
                    failures.append(str(answer.status_code))
                answered.append(answer.json().get("request_id", ""))

    with process(environment) as service:
        threads = [threading.Thread(target=ask, args=(service.url,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(answered) < 20:
            pass
        status, _, _ = service.stop()
        for thread in threads:
            thread.join()
    assert status == 0
    assert failures == []
    recorded = {record.request_id for record in records(load_settings(environment)) if record.kind == "score"}
    assert set(answered) <= recorded


@pytest.mark.req("REQ-009")
def test_no_log_line_repeats_what_was_sent(environment: dict[str, str]) -> None:
    marks = ("canary-91", "271828.75", "nsk_canaryid")
    with process(environment | {"NORMALCY_LOG_LEVEL": "debug"}) as service:
        with httpx.Client(base_url=service.url) as client:
            client.post(SCORE, json={**READING, "subject": marks[0], "diameter_mm": 271828.75})
            client.post(SCORE, json={**READING, "subject": marks[0]}, headers={"Authorization": f"Bearer {marks[2]}"})
            client.post(f"/v1/sites/{marks[0]}/score", json=READING)
            client.post(SCORE, content=marks[0].encode(), headers={"Content-Type": "application/json"})
            client.get(f"/{marks[0]}", params={"q": marks[0]})
            client.get("/v1/sites", headers={"Host": marks[0]})
        _, out, errors = service.stop(signal.SIGINT)
    for mark in marks:
        assert mark not in out + errors
    for line in errors.splitlines():
        json.loads(line)


def test_a_secret_that_everybody_can_read_is_logged_and_served_with(environment: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "subject_key"
        file.write_text("kkkabcdefgh" * 3)
        file.chmod(0o444)
        with process(environment | {"NORMALCY_SUBJECT_KEY_FILE": str(file)}) as service:
            assert httpx.post(service.url + SCORE, json=READING, timeout=30).status_code == 200
            _, _, errors = service.stop()
    assert "risky setting" in errors
    assert "NORMALCY_SUBJECT_KEY_FILE" in errors
