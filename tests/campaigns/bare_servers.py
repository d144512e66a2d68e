"""What the service is measured against: bare uvicorn, and a bare FastAPI route with the same bodies.

    python -m tests.campaigns.bare_servers hello PORT
    python -m tests.campaigns.bare_servers route PORT ANSWER.json

The route does what its users do: pydantic reads the request, a constant answer of full size is the work, and pydantic
checks and writes the response. The collector is settled as the service settles its own.
"""

import gc
import json
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

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


def main(kind: str, port: str, *files: str) -> None:
    app: ASGIApp = bare_route(json.loads(Path(files[0]).read_text())) if kind == "route" else hello
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(port),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
