"""What each outcome of each route leaves on record. A route that is added without a decision fails here."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.settings import Settings
from app.web.app import ROUTES
from tests.web.serving import MAN, READING, SCORE, Running, bearer, create_key, serving

STUDY = {**MAN, "measurements": [{"site": "SoV", "diameter_mm": 41}, {"site": "AA", "diameter_mm": 38}]}
RECORD = "/v1/audit/records/{request_id}"
KNOWN = "known-request"

Outcome = tuple[Callable[[httpx.Client], httpx.Response], int, list[str]]  # what is asked, the status, kinds on record


def get(path: str, status: int, *kinds: str) -> Outcome:
    return lambda client: client.get(path), status, list(kinds)


def post(path: str, body: object, status: int, *kinds: str) -> Outcome:
    return lambda client: client.post(path, json=body), status, list(kinds)


def without_key(path: str, method: str = "GET") -> Outcome:
    return lambda client: client.request(method, path, headers={"Authorization": "Bearer none"}), 401, ["refusal"]


def text(path: str) -> Outcome:
    return lambda client: client.post(path, content=b"x", headers={"Content-Type": "text/plain"}), 415, ["refusal"]


DECISIONS: dict[tuple[str, str], list[Outcome]] = {
    ("POST", "/v1/sites/{site}/score"): [
        post(SCORE, READING, 200, "score"),
        post(SCORE, {**MAN, "age_years": 0.1, "height_cm": 55, "weight_kg": 4, "diameter_mm": 9}, 200, "score"),
        post(SCORE, {}, 422, "refusal"),
        post("/v1/sites/none/score", READING, 404, "refusal"),
        text(SCORE),
        without_key(SCORE, "POST"),
        get(SCORE, 405),
    ],
    ("POST", "/v1/studies/score"): [
        post("/v1/studies/score", STUDY, 200, "score", "score"),
        post("/v1/studies/score", {}, 422, "refusal"),
        without_key("/v1/studies/score", "POST"),
    ],
    ("POST", "/v1/batch/score"): [
        post(
            "/v1/batch/score", {"items": [{**READING, "site": "SoV"}, {**READING, "site": "AA"}]}, 200, "score", "score"
        ),
        post("/v1/batch/score", {}, 422, "refusal"),
        text("/v1/batch/score"),
        without_key("/v1/batch/score", "POST"),
    ],
    ("POST", "/v1/sites/{site}/chart"): [
        post("/v1/sites/SoV/chart", READING, 200, "score"),
        post("/v1/sites/SoV/chart", {}, 422, "refusal"),
        post("/v1/sites/none/chart", READING, 404, "refusal"),
        without_key("/v1/sites/SoV/chart", "POST"),
    ],
    ("GET", "/v1/sites/{site}/reliability-map"): [
        get("/v1/sites/SoV/reliability-map?sex=male", 200),
        get("/v1/sites/SoV/reliability-map?sex=none", 422, "refusal"),
        without_key("/v1/sites/SoV/reliability-map?sex=male"),
    ],
    ("GET", "/v1/sites"): [get("/v1/sites", 200), without_key("/v1/sites")],
    ("GET", "/v1/limits"): [get("/v1/limits", 200), without_key("/v1/limits")],
    ("GET", "/v1/models"): [get("/v1/models", 200), without_key("/v1/models")],
    ("GET", "/v1/models/{site}/{version}"): [
        get("/v1/models/SoV/1.0.0", 200),
        get("/v1/models/SoV/9.0.0", 404, "refusal"),
        without_key("/v1/models/SoV/1.0.0"),
    ],
    ("GET", "/models/{site}/{version}"): [get("/models/SoV/1.0.0", 200), get("/models/none/9.0.0", 404)],
    ("GET", "/models/{site}/{version}/content"): [
        get("/models/SoV/1.0.0/content", 200),
        get("/models/SoV/9.0.0/content", 404, "refusal"),
        get("/models/none/1.0.0/content", 404, "refusal"),
        without_key("/models/SoV/1.0.0/content"),
    ],
    ("GET", "/v1/models/{site}/history"): [
        get("/v1/models/SoV/history", 200),
        get("/v1/models/none/history", 404, "refusal"),
        without_key("/v1/models/SoV/history"),
    ],
    ("POST", "/v1/models/{site}/activate"): [
        post("/v1/models/SoV/activate", {"version": "1.0.0"}, 200, "activation"),
        post("/v1/models/SoV/activate", {"version": "9.0.0"}, 404, "refusal"),
        post("/v1/models/SoV/activate", {"version": 1}, 422, "refusal"),
        without_key("/v1/models/SoV/activate", "POST"),
    ],
    ("GET", "/v1/selftest"): [get("/v1/selftest", 200), without_key("/v1/selftest")],
    ("GET", "/metrics"): [get("/metrics", 200), without_key("/metrics")],
    ("GET", RECORD): [
        get(f"/v1/audit/records/{KNOWN}", 200, "read"),
        get("/v1/audit/records/none", 404, "refusal"),
        without_key("/v1/audit/records/none"),
    ],
    ("GET", "/v1/audit/records"): [
        get("/v1/audit/records", 200, "read"),
        get("/v1/audit/records?from=soon", 422, "refusal"),
        get("/v1/audit/records?cursor=x", 422, "refusal"),
        without_key("/v1/audit/records"),
    ],
    ("POST", RECORD + "/replay"): [
        post(f"/v1/audit/records/{KNOWN}/replay", {}, 200, "read"),
        post("/v1/audit/records/none/replay", {}, 404, "refusal"),
        post(f"/v1/audit/records/{KNOWN}/replay?item=x", {}, 422, "refusal"),
        without_key(f"/v1/audit/records/{KNOWN}/replay", "POST"),
    ],
    # Open to all, about nobody: they leave nothing, whatever happens.
    ("GET", "/health/live"): [get("/health/live", 200)],
    ("GET", "/health/ready"): [get("/health/ready", 200)],
    ("GET", "/"): [get("/", 200)],
    ("GET", "/guide"): [get("/guide", 200)],
    ("GET", "/guide/{page}"): [get("/guide/clinicians", 200), get("/guide/none", 404)],
    ("GET", "/guide/pictures/{picture}"): [
        get("/guide/pictures/uncertain-reference.svg", 200),
        get("/guide/pictures/none", 404),
    ],
    ("GET", "/docs"): [get("/docs", 200)],
    ("GET", "/redoc"): [get("/redoc", 200)],
    ("GET", "/openapi.json"): [get("/openapi.json", 200)],
    ("GET", "/assets/{name}"): [get("/assets/page.css", 200), get("/assets/none", 404)],
}
NO_ROUTE = [get("/none", 404), get("/v1/none", 404)]


def test_every_route_has_a_decision() -> None:
    assert {(route.method, route.path) for route in ROUTES} == DECISIONS.keys()


def test_every_outcome_leaves_exactly_what_was_decided(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score", "model:read", "audit:read", "admin"])
    outcomes = [(route, outcome) for route, given in DECISIONS.items() for outcome in given]
    outcomes += [(("GET", "none"), outcome) for outcome in NO_ROUTE]
    with serving(settings, models_dir) as running:
        running.client.headers.update(bearer(key))
        assert running.score(headers={"X-Request-ID": KNOWN}).status_code == 200
        for number, (_, (ask, status, _)) in enumerate(outcomes):
            running.client.headers["X-Request-ID"] = f"outcome-{number}"
            assert ask(running.client).status_code == status
    kinds: dict[str, list[str]] = {}
    for record in running.records():
        kinds.setdefault(record.request_id or "", []).append(record.kind)
    anonymous = 0
    for number, (route, (_, status, expected)) in enumerate(outcomes):
        found = kinds.pop(f"outcome-{number}", [])
        if status == 401:  # of a caller who is not known: in a sum, unless it was alone in its second
            assert found in ([], ["refusal"]), route
            anonymous += 1
        else:
            assert found == expected, (route, status)
    in_sums = [record for record in running.records("refusal") if record.principal in ("nobody", "several")]
    assert sum(record.output.get("count", 1) for record in in_sums) == anonymous
    without_request = kinds.pop("")
    assert without_request.count("refusal") == sum(record.request_id is None for record in in_sums)
    others = [kind for kind in without_request if kind != "refusal"]
    assert sorted(others) == sorted(["key", *["genesis"] * 3, *["seal"] * 3])  # of the service, its key, the activation
    assert kinds == {KNOWN: ["score"]}


def test_a_score_is_recorded_so_that_it_can_be_shown_and_replayed(running: Running) -> None:
    answer = running.score(READING | {"subject": "patient-4711"}, headers={"X-Request-ID": "shown-again"}).json()
    [record] = running.records("score")
    model = answer["provenance"]["model"]
    assert (record.request_id, record.item, record.status) == ("shown-again", None, 200)
    assert (record.principal, record.route) == ("loopback", "/v1/sites/{site}/score")
    assert record.model == {name: model[name] for name in ("site", "version", "sha256")}
    assert record.at == answer["provenance"]["computed_at"]
    assert record.input["diameter_mm"] == 41.0
    assert record.input["subject"] == running.runtime.hasher.hash("patient-4711")
    for name in ("score", "reference", "comparators", "reliability", "advisories", "summary"):
        assert record.output[name] == answer[name]


def test_the_items_of_a_study_are_recorded_one_by_one(running: Running) -> None:
    running.score(STUDY, "/v1/studies/score", headers={"X-Request-ID": "study"})
    found = running.records("score")
    assert [(r.request_id, r.item, r.model["site"]) for r in found] == [
        ("study", 0, "SoV"),
        ("study", 1, "AA"),
    ]


@pytest.mark.parametrize("body", [{**READING, "diameter_mm": 271828.5, "subject": "canary"}, {"canary": 271828.5}])
@pytest.mark.req("REQ-078")
def test_a_refusal_is_recorded_without_values(settings: Settings, models_dir: Path, body: object) -> None:
    with serving(settings, models_dir) as running:
        assert running.score(body, "/v1/sites/canary/score", headers={"X-Request-ID": "alone"}).status_code == 422
    [record] = running.records("refusal")  # the stop writes what waits
    assert (record.status, record.route, record.input, record.model) == (422, "/v1/sites/{site}/score", None, None)
    assert (record.request_id, record.principal) == ("alone", "loopback")
    assert record.output["problem"] == "input-refused"
    assert "canary" not in str(record)
    assert "271828" not in str(record)
