"""Requests that two services are compared with: valid and mutated scores, every route by every method, odd bodies."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

Json = dict[str, Any]

SITES = ("SoV", "AA")
CONVENTION = {
    "edge": ("leading", "inner", "outer"),
    "phase": ("end-diastole", "mid-systole"),
    "modality": ("TTE", "CT", "MR"),
}
BAD_VALUES: tuple[Any, ...] = (
    None, True, False, "", "30", "1,5", -1, 0, 1e9, 1e-9, [], {}, [1], "x" * 200, "a\u0007b", 3.5e2, 1.76, 69, 180, 5.9,
)  # fmt: skip
OTHER_FIELDS = (
    "diamter", "Age", "thresholds", "subject", "convention", "model_version", "hdi_probability", "measurement_sd_mm",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE")
# What the OpenAPI document does not list, or lists with parameters that have further cases.
MORE_PATHS = (
    "/", "/guide", "/docs", "/redoc", "/openapi.json", "/metrics", "/assets/page.css", "/assets/none", "/nothing",
    "/v1/sites/", "/v1/sites?x=1", "/v1/limits?a=b&a=c", "/v1/models/SoV/1.0.0?x=1", "/models/SoV/1.0.0",
)  # fmt: skip
PARAMETERS = {"site": ("SoV", "none"), "version": ("1.0.0", "9.0.0"), "request_id": ("compared-0", "none")}
VALID = json.dumps({"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41}).encode()
BODIES = (
    b"", b"{", b"[]", b"null", b'{"a":NaN}', b'{"a":1,"a":2}', b"\xef\xbb\xbf{}", b'"\\ud800"', b"[" * 200,
    b'{"a":1e999}', b"9" * 5000, b" " * 20_000, b'{"version":"1.0.0"}',
)  # fmt: skip
HEADERS: tuple[Mapping[str, str], ...] = (
    {"Content-Type": "text/plain"},
    {"Content-Type": ""},
    {"Content-Type": "application/json; charset=utf-8"},
    {"Content-Type": "application/json; charset=latin-1"},
    {"Content-Encoding": "gzip"},
    {"Host": "evil.example"},
    {"Authorization": ""},  # none
    {"Authorization": "Bearer nsk_x"},
    {"X-Request-ID": "bad id"},
    {"X-Request-ID": "x" * 65},
    {"X-A": "y" * 17_000},
    {"Expect": "100-continue"},
    {"Idempotency-Key": "a"},
)
QUERIES = (
    "?from=2026", "?from=x", "?to=2026-01-01T00:00:00Z", "?site=SoV", "?site=..", "?cursor=x", "?cursor=",
    "?from=2026-01-01&from=2027", "?item=0", "?item=-1", "?item=x", "?item=99999999999",
)  # fmt: skip
RECORDS = "/v1/audit/records"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """For a report: short enough to read, long enough to try again."""
        headers = "".join(f" {name}: {value[:24]}" for name, value in self.headers.items())
        body = f" {self.body[:240].decode(errors='replace')}" if self.body else ""
        return f"{self.path} by {self.method}{headers}{body}"


def all_requests(templates: Iterable[str], count: int, seed: int) -> list[Request]:
    """`templates`: the paths of both services' OpenAPI documents; `count`: of random scores, and as many studies."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    paths = sorted({path for template in templates for path in _filled(template)} | set(MORE_PATHS))
    with_body = [path for path in paths if path.endswith(("/score", "/activate", "/replay"))]
    return [
        Request("POST", "/v1/sites/SoV/score", VALID),  # its id is the one in PARAMETERS
        *(request for _ in range(count) for request in _random_scores(rng)),
        *(Request(method, path) for path, method in product(paths, METHODS)),
        *(Request("POST", path, body) for path, body in product(with_body, BODIES)),
        *(Request("POST", path, VALID, headers) for path, headers in product(with_body, HEADERS)),
        *(Request("GET", RECORDS + query) for query in QUERIES),
        *(Request("POST", f"{RECORDS}/compared-0/replay{query}") for query in QUERIES),
    ]


def _filled(template: str) -> Iterator[str]:
    """The path with one known and one unknown value of each of its parameters."""
    names = [part[1:-1] for part in template.split("/") if part.startswith("{")]
    for values in product(*(PARAMETERS.get(name, ("1",)) for name in names)):
        path = template
        for name, value in zip(names, values, strict=True):
            path = path.replace(f"{{{name}}}", value)
        yield path


def _random_scores(rng: random.Random) -> Iterator[Request]:
    single = {**_patient(rng), **_measurement(rng), **_options(rng)}
    yield _post(f"/v1/sites/{_site(rng)}/score", _mutated(single, rng) if rng.random() < 0.5 else single)
    measurements = [{"site": _site(rng), **_measurement(rng)} for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        measurements[0] = _mutated(measurements[0], rng)
    study = {**_patient(rng), **_options(rng), "measurements": measurements}
    yield _post("/v1/studies/score", _mutated(study, rng) if rng.random() < 0.5 else study)


def _post(path: str, body: Json) -> Request:
    return Request("POST", path, json.dumps(body).encode())


def _site(rng: random.Random) -> str:
    return rng.choice(SITES) if rng.random() < 0.97 else "LV"


def _patient(rng: random.Random) -> Json:
    """Everybody from common to barely acceptable, and the limits of the models themselves."""
    age = rng.choice([rng.uniform(0, 120), rng.uniform(5, 82), rng.uniform(18, 80), rng.choice([0, 4.99, 5, 18, 81.6])])
    height = min(max(rng.choice([rng.gauss(170, 10), rng.uniform(40, 250), rng.gauss(120, 20)]), 41), 249)
    body_mass_index = rng.choice([rng.gauss(24, 4), rng.uniform(8, 100)])
    weight = min(max(body_mass_index * (height / 100) ** 2, 1.6), 349)
    return {
        "age_years": round(age, rng.choice([0, 1, 3])),
        "sex": rng.choice(["male", "female"]),
        "height_cm": round(height, 1),
        "weight_kg": round(weight, 1),
    }


def _measurement(rng: random.Random) -> Json:
    found: Json = {"diameter_mm": round(rng.choice([rng.gauss(34, 5), rng.uniform(3, 120), rng.uniform(10, 60)]), 1)}
    if rng.random() < 0.3:
        found["measurement_sd_mm"] = rng.choice([0, 0.5, 1.5, 5])
    if rng.random() < 0.4:
        found["convention"] = {name: rng.choice(values) for name, values in CONVENTION.items() if rng.random() < 0.7}
    if rng.random() < 0.1:
        found["model_version"] = rng.choice(["1.0.0", "current", "9.9.9"])
    return found


def _options(rng: random.Random) -> Json:
    found: Json = {}
    if rng.random() < 0.3:
        found["thresholds"] = [round(rng.uniform(-10, 10), 2) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.3:
        found["hdi_probability"] = rng.choice([0.5, 0.8, 0.9, 0.95, 0.99])
    if rng.random() < 0.4:
        found["include_unreliable"] = rng.choice([True, False])
    if rng.random() < 0.2:
        found["subject"] = "case-7"
    return found


def _mutated(body: Json, rng: random.Random) -> Json:
    """With one to three fields missing, misspelt or of a value that is not acceptable."""
    body = dict(body)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([*body, *OTHER_FIELDS])
        if rng.random() < 0.25:
            body.pop(name, None)
        else:
            body[name] = rng.choice(BAD_VALUES)
    return body
