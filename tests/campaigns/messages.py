"""Score requests as bytes, for every load generator of the campaigns."""

import json
import random
import re
from typing import Any

PATH = "/v1/sites/SoV/score"
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)


def score_request(port: int, body: dict[str, Any], path: str = PATH, **headers: str) -> bytes:
    """An underscore in the name of a header stands for a hyphen."""
    content = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


def random_measurement(rng: random.Random) -> dict[str, Any]:
    """An adult of a common size. Three decimals make it unique, so that a mixed-up answer can be recognised."""
    return {
        "age_years": round(rng.uniform(20, 80), 3),
        "sex": rng.choice(("male", "female")),
        "height_cm": round(rng.uniform(150, 195), 2),
        "weight_kg": round(rng.uniform(55, 95), 2),
        "diameter_mm": round(rng.uniform(25, 48), 2),
    }
