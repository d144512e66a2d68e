"""LitServe with one worker, as its documentation starts it."""

import sys
from typing import Any

import litserve

from tests.campaigns.peers.predictor import PATH, Predictor


class Api(litserve.LitAPI):  # type: ignore[misc]
    def setup(self, device: str) -> None:
        self.predictor = Predictor()

    def predict(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.predictor(request)


if __name__ == "__main__":
    server = litserve.LitServer(Api(api_path=PATH), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="error")
