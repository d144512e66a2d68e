"""MLflow's scoring server. Its path and its form of requests are others: a few lines of ASGI translate."""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from mlflow.pyfunc.scoring_server import init

from tests.campaigns.peers.predictor import Predictor


class NoSchema:
    def get_input_schema(self) -> None:
        """Inputs are passed on unchanged."""

    def get_params_schema(self) -> None:
        """No parameters."""


class Model:
    """What the scoring server needs of a model that was loaded."""

    metadata = NoSchema()

    def __init__(self) -> None:
        self._predictor = Predictor()

    def predict(self, data: Any, params: Any = None) -> list[dict[str, Any]]:
        return [self._predictor(row) for row in data.to_dict("records")]


def translated(app: Any) -> Callable[..., Awaitable[None]]:
    async def run(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        async def wrapped() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                message = message | {"body": b'{"dataframe_records": [' + message["body"] + b"]}"}
            return message

        if scope["type"] == "http":
            headers = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
            changed = scope | {"path": "/invocations", "raw_path": b"/invocations", "headers": headers}
            await app(changed, wrapped, send)
        else:
            await app(scope, receive, send)

    return run


if __name__ == "__main__":
    port = int(sys.argv[1])
    uvicorn.run(translated(init(Model())), host="127.0.0.1", port=port, log_level="error", access_log=False)
