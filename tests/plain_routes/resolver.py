"""In place of app/web/resolver.py: it compiles no route, so FastAPI resolves all parameters and dependencies itself."""

from typing import Any

Endpoint = Any


def compile_route(*_: object) -> None:
    return None
