"""Logs and metrics."""

import io
import json
import logging
from pathlib import Path

import pytest
import structlog
from prometheus_client import generate_latest

from app.observability import configure_logging, make_metrics
from tests.default_log import reset_log

FULL = Path("/dev/full")


def logged(log: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_our_lines_are_json_with_level_and_time(log: io.StringIO) -> None:
    structlog.get_logger().info("model loaded", site="SoV")
    structlog.get_logger().debug("not this")
    (line,) = logged(log)
    assert (line["event"], line["level"], line["site"]) == ("model loaded", "info", "SoV")
    assert line["timestamp"]


@pytest.mark.req("REQ-009")
def test_lines_of_libraries_lose_their_values(log: io.StringIO) -> None:
    logger = logging.getLogger("library")
    logger.warning("bad value %s", "CANARY")
    logger.warning(ValueError("CANARY"))
    try:
        raise ValueError("CANARY")
    except ValueError:
        logger.exception("it failed")
    lines = logged(log)
    assert [line["event"] for line in lines] == ["bad value %s", "ValueError", "it failed"]
    assert lines[2]["error"] == "ValueError"
    assert "test_observability.py" in lines[2]["where"]
    assert "CANARY" not in log.getvalue()


@pytest.mark.skipif(not FULL.exists(), reason="no device here that is always full")
def test_a_log_on_a_full_disk_stops_nothing() -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    full = FULL.open("w")
    try:
        configure_logging("info", full)
        structlog.get_logger().error("audit write failed")
        logging.getLogger("library").error("failed")
    finally:
        reset_log()
        root.handlers[:], root.level = handlers, level
        with pytest.raises(OSError, match="No space"):
            full.close()


def test_two_services_in_one_process_count_apart() -> None:
    first, second = make_metrics(), make_metrics()
    first.scores["SoV", "1.0.0"].inc()
    assert b'normalcy_scores_total{site="SoV",version="1.0.0"} 1.0' in generate_latest(first.registry)
    assert b"normalcy_scores_total{" not in generate_latest(second.registry)
