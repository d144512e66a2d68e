"""Each kind of difference is noticed, and two services of one tree have none."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.benchmark.report_header import git
from tests.campaigns.answer_differences import Answer, Difference, differences
from tests.campaigns.compare_trees import main
from tests.campaigns.comparison_requests import METHODS, all_requests

BODY: dict[str, Any] = {
    "score": {"ns": 1.25, "hdi": [0.5, 2.0]},
    "text": "expected",
    "is_final": True,
    "errors": [{"field": "a", "code": "missing"}, {"field": "b", "code": "wrong_type"}],
}


def answer(body: object = BODY, status: int = 200, **headers: str) -> Answer:
    return Answer(status, {"content-type": "application/json", **headers}, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (answer(), []),
        (answer({**BODY, "score": {"ns": 1.25 * (1 + 9e-9), "hdi": [0.5, 2.0]}}), []),
        (answer(date="tomorrow"), []),
        (answer({**BODY, "score": {"ns": 1.25 * (1 + 2e-8), "hdi": [0.5, 2.0]}}), [("number", ".score.ns")]),
        (answer({**BODY, "score": {"ns": 1.25, "hdi": [0.5, 2.1]}}), [("number", ".score.hdi[]")]),
        (answer({**BODY, "score": {"ns": 1.25, "hdi": [0.5]}}), [("length", ".score.hdi[]")]),
        (answer({**BODY, "score": {"ns": None, "hdi": [0.5, 2.0]}}), [("value", ".score.ns")]),
        (answer({**BODY, "is_final": 1}), [("value", ".is_final")]),
        (answer({**BODY, "text": "edited"}), [("text", ".text")]),
        (answer({**BODY, "new": 1}), [("field", "")]),
        (answer({name: BODY[name] for name in BODY if name != "text"}), [("field", "")]),
        (answer(dict(reversed(BODY.items()))), [("order of fields", "")]),
        (answer({**BODY, "errors": BODY["errors"][::-1]}), [("order", ".errors")]),
        (answer({**BODY, "errors": BODY["errors"][:1]}), [("member", ".errors")]),
        (answer(status=422), [("status", "")]),
        (answer(etag="x"), [("header", "etag")]),
    ],
)
def test_every_kind_of_difference_is_noticed(now: Answer, expected: list[tuple[str, str]]) -> None:
    assert [(each.kind, each.where) for each in differences(answer(), now)] == expected


def test_pages_and_metrics_are_compared_as_texts() -> None:
    one, other = (Answer(200, {"content-type": "text/html"}, text) for text in (b"<p>a</p>", b"<p>an a</p>"))
    assert differences(one, other) == [Difference("page", "(body)", "8 characters", "11 characters")]
    one, other = (
        Answer(200, {"content-type": "text/plain"}, text)
        for text in (b"# TYPE a counter\na 1\n", b"# TYPE a counter\na 2\n# TYPE b gauge\nb 1\n")
    )
    assert differences(one, other) == [Difference("metric", "(metrics)", "(absent)", "# TYPE b gauge")]


def test_of_the_openapi_document_the_responses_are_compared() -> None:
    def document(status: str, text: str) -> Answer:
        paths = {"/v1/sites": {"get": {"summary": text, "responses": {status: {}}}}}
        return answer({"openapi": "3.1.0", "paths": paths})

    found = [(each.kind, each.before, each.now) for each in differences(document("200", "a"), document("201", "b"))]
    assert found == [
        ("response", "GET /v1/sites: 200", "(absent)"),
        ("response", "(absent)", "GET /v1/sites: 201"),
    ]


def test_every_route_is_requested_by_every_method() -> None:
    requests = all_requests(["/v1/things/{site}/{other}"], 0, 1)
    for path in ("/v1/things/SoV/1", "/v1/things/none/1", "/metrics"):
        assert {each.method for each in requests if each.path == path and each.body is None} >= set(METHODS)


def test_random_requests_are_the_same_in_every_run() -> None:
    assert all_requests([], 20, 1) == all_requests([], 20, 1) != all_requests([], 20, 2)


def test_a_tree_does_not_differ_from_itself(tmp_path: Path) -> None:
    head = git("rev-parse", "--short=12", "HEAD")
    if not head or git("status", "--porcelain", "app", "models_store", "migrations"):
        pytest.skip("not a git checkout without changes")
    out = tmp_path / "compared.md"
    main(["--against", head, "--out", str(out), "--every", "25"])
    text = out.read_text(encoding="utf-8")
    assert f"# Answers of this tree and of commit {head}" in text
    assert str(tmp_path) not in text
    assert "##" not in text
    assert "`text .provenance.computed_at`" in text
