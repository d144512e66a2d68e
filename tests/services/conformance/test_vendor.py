"""The checks find every kind of mistake and name its case: a server of another vendor makes one mistake at a time."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.errors import CouldNotCheck, InvalidUrl
from app.schemas import problem, validation
from app.services.conformance.cases import Case, CaseFile, read_cases
from app.services.conformance.run import Conformance, check_conformance
from tests.services.conformance.vendor import Mistake, Reply, Vendor, vendor

SCORED = "score-SoV-man"
REFUSED = "input-3-unknown_field"
STUDIED = "study-both-sites"


@pytest.fixture(scope="module")
def file() -> CaseFile:
    return read_cases()


def check(file: CaseFile, mistake: Mistake = lambda case, reply: None) -> Conformance:
    with vendor(file, mistake) as running:
        return _check(running, file)


def _check(running: Vendor, file: CaseFile) -> Conformance:
    return check_conformance(running.url, "a-key", file, lambda step, share: None)


def in_case(name: str, change: Callable[[Reply], Any]) -> Mistake:
    def mistake(case: Case, reply: Reply) -> None:
        if case.name == name:
            change(reply)

    return mistake


def test_a_server_without_a_mistake_conforms(file: CaseFile) -> None:
    found = check(file)
    assert [case for case in found.cases if case.outcome == "failed"] == []
    assert (found.conforms, found.failed, found.skipped) == (True, 0, 0)
    assert found.passed == len(file.cases) >= 100


def wrong_in_the_7th_digit(reply: Reply) -> None:
    score = reply.body["score"]
    digits = f"{score['expected_ns']:.8e}"
    score["expected_ns"] = float(digits[:7] + str((int(digits[7]) + 1) % 10) + digits[8:])


def all_digits(reply: Reply) -> None:
    reply.body["reference"]["percentile"] += 1e-11


def without(header: str) -> Callable[[Reply], None]:
    return lambda reply: reply.headers.__delitem__(header)


def as_defect(reply: Reply) -> None:
    reply.status = reply.body["status"] = 500


def rename_error(reply: Reply) -> None:
    reply.body["errors"][0]["code"] = "other"


def another_error(reply: Reply) -> None:
    reply.body["errors"].append({"code": "missing", "field": "sex", "message": "Wrong."})


def swap_sites(reply: Reply) -> None:
    reply.body["results"].reverse()


def as_html(reply: Reply) -> None:
    reply.headers["Content-Type"], reply.raw = "text/html", b"<p>No.</p>"


def echo(reply: Reply) -> None:
    reply.body["detail"] = "Zyxomma-Petiolatum is unknown."


def echo_in_header(reply: Reply) -> None:
    reply.headers["X-Field"] = "Zyxomma-Petiolatum"


MISTAKES: dict[str, tuple[str, Callable[[Reply], Any], str]] = {
    "a wrong 7th digit": (SCORED, wrong_in_the_7th_digit, "score.expected_ns: it is "),
    "more than nine digits": (SCORED, all_digits, "reference.percentile: it has more than 9 digits."),
    "a number as text": (SCORED, lambda r: r.body["score"].update(expected_ns="1.9"), "score.expected_ns: it is"),
    "a number that is missing": (SCORED, lambda r: r.body["score"].pop("expected_ns"), "score.expected_ns: it is"),
    "another verdict": (
        SCORED,
        lambda r: r.body["reliability"].update(verdict="caution"),
        'reliability.verdict: it is "caution", expected "ok".',
    ),
    "another order": (STUDIED, swap_sites, "results[].site: it is"),
    "status 500": (
        SCORED,
        lambda r: setattr(r, "status", 500),
        "status: it is 500, expected 200; 500 is always a defect.",
    ),
    "500 instead of a refusal": (REFUSED, as_defect, "status: it is 500, expected 422; 500 is always a defect."),
    "an echoed name": (REFUSED, echo, "response: it repeats a value that was sent."),
    "a name echoed in a header": (REFUSED, echo_in_header, "response: it repeats a value that was sent."),
    "no X-Request-ID": (SCORED, without("X-Request-ID"), "X-Request-ID: the header is missing."),
    "another X-Request-ID": (
        SCORED,
        lambda r: r.headers.update({"X-Request-ID": "other"}),
        "X-Request-ID: it is not the one that was sent.",
    ),
    "an invalid X-Request-ID repeated": (
        "request-id-too-long-200",
        lambda r: r.headers.update({"X-Request-ID": "x" * 65}),
        "X-Request-ID: it is the one that was sent, which is not valid.",
    ),
    "no UUID in place of an invalid X-Request-ID": (
        "request-id-too-long-200",
        lambda r: r.headers.update({"X-Request-ID": "0"}),
        "X-Request-ID: it is not a UUIDv7.",
    ),
    "another request_id in the body": (
        SCORED,
        lambda r: r.body.update(request_id="other"),
        "request_id: it is not that of the X-Request-ID header.",
    ),
    "a problem as plain JSON": (
        REFUSED,
        lambda r: r.headers.update({"Content-Type": "application/json"}),
        'Content-Type: it is "application/json", not application/problem+json.',
    ),
    "a problem as HTML": (
        REFUSED,
        as_html,
        'Content-Type: it is "text/html", not JSON.',
    ),
    "a problem without a title": (REFUSED, lambda r: r.body.pop("title"), "title: the problem has no such text."),
    "a problem with another status": (
        REFUSED,
        lambda r: r.body.update(status=400),
        "status: the problem names another one than the response.",
    ),
    "another kind of problem": (REFUSED, lambda r: r.body.update(type="/x#problem-no"), "type: it is"),
    "another error code": (REFUSED, rename_error, "errors: unknown_field is missing for (unknown)."),
    "an error too many": (REFUSED, another_error, 'errors: "missing" for "sex" is not expected.'),
    "an error without a message": (
        REFUSED,
        lambda r: r.body["errors"][0].pop("message"),
        "errors: one has no message.",
    ),
    "NaN": (
        SCORED,
        lambda r: setattr(r, "raw", b'{"score": NaN}'),
        "body: it is not valid JSON (NaN is not JSON).",
    ),
    "a key twice": (
        SCORED,
        lambda r: setattr(r, "raw", b'{"score": 1, "score": 2}'),
        "body: it is not valid JSON (an object has the same key twice).",
    ),
    "no Allow header": ("method-score", without("Allow"), "Allow: the header is missing"),
    "accepted without a key": ("credential-score-none", lambda r: setattr(r, "status", 200), "status: it is 200"),
}


ALL_CHANGED = {case for case, _, _ in MISTAKES.values()}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_found_in_its_case(file: CaseFile, name: str) -> None:
    case, change, message = MISTAKES[name]
    few = msgspec.structs.replace(file, cases=tuple(one for one in file.cases if one.name in ALL_CHANGED))
    found = check(few, in_case(case, change))
    failed = [result for result in found.cases if result.outcome == "failed"]
    assert [result.name for result in failed] == [case]
    assert any(mistake.startswith(message) for mistake in failed[0].mistakes), failed[0].mistakes
    assert (found.conforms, found.failed) == (False, 1)


def test_numbers_of_other_models_are_skipped_and_counted(file: CaseFile) -> None:
    other = msgspec.structs.replace(file, models={name: file.models[name] for name in ("AA 1.0.0",)})
    found = check(other)
    skipped = [case for case in found.cases if case.outcome == "skipped"]
    assert found.conforms
    assert found.skipped == len(skipped) == sum("SoV 1.0.0" in case.models for case in file.cases) > 10
    assert "lookup-selftest" in {case.name for case in found.cases if case.outcome == "passed"}
    assert {case.reason for case in skipped} == {"SoV 1.0.0 as shipped is not published here"}


def test_the_key_is_sent_only_where_the_case_says(file: CaseFile) -> None:
    with vendor(file) as running:
        _check(running, file)
    assert set(running.seen) == {"Bearer a-key", "", "Bearer nsk_conformance_this-key-does-not-exist"}


def test_a_busy_service_is_asked_again(file: CaseFile) -> None:
    attempts: list[str] = []

    def busy_once(case: Case, reply: Reply) -> None:
        if case.name == SCORED and len(attempts) < 2:
            attempts.append(case.name)
            reply.status, reply.headers["Retry-After"] = 503, "0"

    assert check(file, busy_once).conforms
    assert len(attempts) == 2


def test_what_cannot_be_checked(file: CaseFile) -> None:
    with vendor(file) as running:
        url = running.url
    for address in (url, "ftp://host", "http://", "http://host:port", "http://name:secret@host"):
        with pytest.raises((CouldNotCheck, InvalidUrl), match=r"no response|must be http") as error:
            check_conformance(address, None, file, lambda step, share: None)
        assert "secret" not in str(error.value)
    with vendor(file, is_ready=False) as running, pytest.raises(CouldNotCheck, match="not ready"):
        _check(running, file)


def test_the_file_covers_the_contract(file: CaseFile) -> None:
    codes = {error.code for case in file.cases for error in case.expect.errors or ()}
    kinds = {case.expect.problem for case in file.cases}
    not_tried = " ".join(file.not_tried)
    assert {code for code in validation.CODES if code not in codes and code not in not_tried} == set()
    slugs = {kind.slug for kind in problem.PROBLEMS}
    assert {slug for slug in slugs if slug not in kinds and slug not in not_tried} == set()
    assert len({case.name for case in file.cases}) == len(file.cases)
