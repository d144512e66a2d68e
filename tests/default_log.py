"""Where services that tests run in their own process log to: not to standard output, which is for commands."""

import sys
from typing import Any

import structlog


def reset_log() -> None:
    structlog.reset_defaults()
    structlog.configure(logger_factory=_to_standard_error)


def _to_standard_error(*_: Any) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.__stderr__)
