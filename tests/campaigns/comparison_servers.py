"""What the service is compared with: bare uvicorn, a bare FastAPI route, and the service without its audit.

    python -m tests.campaigns.comparison_servers hello PORT
    python -m tests.campaigns.comparison_servers route PORT ANSWER.json
    python -m tests.campaigns.comparison_servers unaudited
    python -m tests.campaigns.comparison_servers one-insert

The route does what its users do: pydantic reads the request, a constant answer of full size stands for the work, and
pydantic checks and writes the response. The garbage collector is set as the service sets its own. `unaudited` is
`normalcy serve` with a writer that records nothing, `one-insert` with one that commits each record by itself; there is
no setting for either.
"""

import gc
import json
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from app.audit import writer
from app.audit.writer import AuditWriter
from app.cli.serve import serve
from app.schemas.answers import ScoreResponse
from app.schemas.requests import ScoreRequest

HELLO = {"type": "http.response.body", "body": b"hello"}
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]}


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send(START)
    await send(HELLO)


def bare_route(answer: dict[str, Any]) -> FastAPI:
    app = FastAPI()

    @app.post("/v1/sites/{site}/score", response_model=ScoreResponse)
    async def score(site: str, body: ScoreRequest) -> dict[str, Any]:
        return answer

    return app


def serve_bare(app: ASGIApp, port: int) -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


async def _write_nothing(*_: object, **__: object) -> tuple[UUID, ...]:
    return ()


def serve_unaudited() -> None:
    AuditWriter.write = _write_nothing  # type: ignore[method-assign]
    serve()


def serve_one_insert() -> None:
    writer.BATCH = 1
    serve()


def main(kind: str, port: str = "0", *files: str) -> None:
    if kind == "unaudited":
        serve_unaudited()
    elif kind == "one-insert":
        serve_one_insert()
    elif kind == "route":
        serve_bare(bare_route(json.loads(Path(files[0]).read_text())), int(port))
    else:
        serve_bare(hello, int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
