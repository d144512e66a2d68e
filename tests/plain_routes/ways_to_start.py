"""Every way in which tests start a service. tests/test_plain_routes.py runs this file with a broken resolver."""

import asyncio
import signal
from pathlib import Path

import httpx

from app.settings import load_settings
from tests.campaigns import servers
from tests.campaigns.service_process import MODELS, ServiceProcess
from tests.web.serving import serving
from tests.web.test_serve_command import process


def assert_serves(url: str) -> None:
    assert [site["site"] for site in httpx.get(f"{url}/v1/sites").json()["sites"]] == ["AA", "SoV"]


def test_a_thread_of_this_process(tmp_path: Path) -> None:
    with serving(load_settings({"NORMALCY_DATA_DIR": str(tmp_path)}), MODELS) as running:
        assert_serves(running.url)


def test_a_process_that_calls_the_serve_command(tmp_path: Path) -> None:
    settings = {"NORMALCY_PORT": "0", "NORMALCY_DATA_DIR": str(tmp_path), "NORMALCY_MODELS_DIR": str(MODELS)}
    with process(settings) as service:
        assert_serves(service.url)


def test_the_installed_command(tmp_path: Path) -> None:
    async def run() -> None:
        service = ServiceProcess({"NORMALCY_DATA_DIR": str(tmp_path)})
        await service.start()
        try:
            await asyncio.to_thread(assert_serves, f"http://127.0.0.1:{service.port}")
        finally:
            await service.end(signal.SIGKILL)

    asyncio.run(run())


def test_a_server_of_the_load_campaigns(tmp_path: Path) -> None:
    with servers.service(tmp_path) as service:
        assert_serves(f"http://127.0.0.1:{service.port}")
