"""Cases of refusals: every status and error code that can be provoked without harm, their order, and headers."""

import base64
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import UNSET

from app.services.conformance.cases import Case, CaseRequest, Expected, ExpectedError, Header

Json = dict[str, Any]
SCORE, STUDY = "/v1/sites/SoV/score", "/v1/studies/score"
SECRET = "Zyxomma-Petiolatum"  # noqa: S105 - stands for a patient's name; no response may contain it
NUMBER = "27182.81828"
MAN: Json = {"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84}
BODY: Json = {**MAN, "diameter_mm": 41}
TEXT = '{"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41}'
TOO_LARGE = 20_000  # bytes of a body or of headers; allowed are 16 KiB
PLAIN = Header("Content-Type", "text/plain")
NO_VALID_KEY: tuple[Literal["none", "wrong"], ...] = ("none", "wrong")

NOT_TRIED = {
    "400, bad-request": "It needs bytes that are not HTTP, or a header twice, which proxies refuse by themselves.",
    "409, still-answering and 422, key-reused": "They need requests that share an Idempotency-Key.",
    "410, erased": "It needs records that are encrypted, and a patient who was erased.",
    "413, line-too-long": "It needs a stream of items.",
    "429, over-rate": "It needs a flood of requests.",
    "500, defect": "There is no request that should lead to it.",
    "503, not-audited, queue-full, stopping and no-model": "They need a service that is out of order or overloaded.",
    "ragged_row, version_refused, numbers_not_trusted": "They concern rows of tables, or damaged models.",
}

# code, body (text, or bytes that are not UTF-8)
NOT_JSON: tuple[tuple[str, str, str | bytes], ...] = (
    ("empty_body", "an empty body", ""),
    ("syntax", "a body that ends early", TEXT[:-1]),
    ("syntax", "two values", TEXT + "{}"),
    ("syntax", "text that is not JSON", f'{{"{SECRET}": {SECRET}}}'),
    ("not_finite", "NaN", TEXT.replace("41", "NaN")),
    ("not_finite", "Infinity", TEXT.replace("41", "-Infinity")),
    ("number_too_large", "a number too large for a double", TEXT.replace("41", "1e400")),
    ("duplicate_key", "a key twice", TEXT[:-1] + ', "age_years": 5}'),
    ("lone_surrogate", "half a surrogate pair", TEXT[:-1] + ', "subject": "\\ud800"}'),
    ("too_deep", "a body nested too deeply", "[" * 64 + "]" * 64),
    ("wrong_encoding", "a byte order mark", b"\xef\xbb\xbf" + TEXT.encode()),
    ("wrong_encoding", "UTF-16", TEXT.encode("utf-16")),
    ("wrong_encoding", "Latin-1", TEXT[:-1].encode() + b', "subject": "\xe9"}'),
)

# errors as (code, field), about, body
INVALID: tuple[tuple[tuple[tuple[str, str], ...], str, Any], ...] = (
    ((("wrong_type", ""),), "an array", []),
    ((("missing", "age_years"), ("missing", "sex"), ("missing", "height_cm"), ("missing", "weight_kg"),
      ("missing", "diameter_mm")), "an empty object: every missing field at once", {}),
    ((("unknown_field", "(unknown)"),), "an unknown field", {**BODY, SECRET: 1}),
    ((("wrong_type", "age_years"),), "a number in quotes", {**BODY, "age_years": SECRET}),
    ((("wrong_type", "age_years"),), "true is not a number", {**BODY, "age_years": True}),
    ((("wrong_type", "measurement_sd_mm"),), "null is not a way to leave a field out",
     {**BODY, "measurement_sd_mm": None}),
    ((("not_a_choice", "sex"),), "another sex", {**BODY, "sex": SECRET}),
    ((("out_of_range", "age_years"),), "an age above 120", {**BODY, "age_years": 27182.81828}),
    ((("out_of_range", "age_years"),), "an age below 0", {**BODY, "age_years": -0.001}),
    ((("out_of_range", "diameter_mm"),), "a diameter above 120", {**BODY, "diameter_mm": 120.001}),
    ((("out_of_range", "measurement_sd_mm"),), "a measurement error above 5", {**BODY, "measurement_sd_mm": 5.001}),
    ((("out_of_range", "hdi_probability"),), "an interval above 99%", {**BODY, "hdi_probability": 0.991}),
    ((("out_of_range", "thresholds[1]"),), "a threshold above 10", {**BODY, "thresholds": [2, 10.001]}),
    ((("too_short", "thresholds"),), "no threshold", {**BODY, "thresholds": []}),
    ((("too_long", "thresholds"),), "nine thresholds", {**BODY, "thresholds": [1, 2, 3, 4, 5, 6, 7, 8, 9]}),
    ((("not_a_choice", "convention.edge"),), "another edge", {**BODY, "convention": {"edge": SECRET}}),
    ((("too_long", "subject"),), "a subject of 129 characters", {**BODY, "subject": (SECRET * 9)[:129]}),
    ((("too_short", "subject"),), "an empty subject", {**BODY, "subject": ""}),
    ((("control_character", "subject"),), "a control character", {**BODY, "subject": f"{SECRET}\n"}),
    ((("implausible_bmi", "weight_kg"),), "a body mass index below 8", {**BODY, "height_cm": 200, "weight_kg": 30}),
    ((("given_in_cm", "diameter_mm"),), "a diameter in cm", {**BODY, "diameter_mm": 4.1}),
    ((("given_in_m", "height_cm"),), "a height in m", {**BODY, "height_cm": 1.76}),
    ((("given_in_inches", "height_cm"),), "a height in inches", {**BODY, "height_cm": 69}),
    ((("given_in_feet", "height_cm"),), "a height in feet", {**BODY, "height_cm": 5.8}),
    ((("given_in_pounds", "weight_kg"),), "a weight in pounds", {**BODY, "height_cm": 150, "weight_kg": 240}),
    ((("given_in_inches_and_pounds", "height_cm"),), "inches and pounds", {**BODY, "height_cm": 69, "weight_kg": 185}),
    ((("given_in_feet_and_pounds", "height_cm"),), "feet and pounds", {**BODY, "height_cm": 5.8, "weight_kg": 185}),
    ((("height_weight_exchanged", "height_cm"),), "height and weight exchanged",
     {**BODY, "height_cm": 84, "weight_kg": 176}),
    ((("out_of_range", "age_years"), ("not_a_choice", "sex"), ("wrong_type", "diameter_mm")),
     "several errors at once", {**BODY, "age_years": 121, "sex": SECRET, "diameter_mm": SECRET}),
)  # fmt: skip
SOV, AA = {"site": "SoV", "diameter_mm": 41}, {"site": "AA", "diameter_mm": 38.5}
INVALID_STUDIES: tuple[tuple[tuple[tuple[str, str], ...], str, Any], ...] = (
    ((("missing", "measurements"),), "a study without measurements", MAN),
    ((("too_short", "measurements"),), "an empty list of measurements", {**MAN, "measurements": []}),
    ((("duplicate_site", "measurements[1].site"),), "a site twice", {**MAN, "measurements": [SOV, SOV]}),
    ((("given_in_cm", "measurements[1].diameter_mm"),), "one wrong measurement rejects the study, by its path",
     {**MAN, "measurements": [SOV, {**AA, "diameter_mm": 3.85}]}),
    ((("unknown_site", "measurements[0].site"),), "a site without a model",
     {**MAN, "measurements": [{**SOV, "site": SECRET}]}),
    ((("unknown_version", "measurements[0].model_version"),), "a version that does not exist",
     {**MAN, "measurements": [{**SOV, "model_version": "999.0.0"}]}),
)  # fmt: skip

# Without these models a case would get further errors, or others.
MODELS_OF = {("study", "unknown_version"): ("SoV 1.0.0",), ("study", "given_in_cm"): ("SoV 1.0.0", "AA 1.0.0")}


def refusal_cases() -> Iterator[Case]:
    yield from _not_json()
    yield from _invalid("input", SCORE, INVALID)
    yield from _invalid("study", STUDY, INVALID_STUDIES)
    yield from _addresses()
    yield from _sizes_and_types()
    yield from _credentials()
    yield from _order()
    yield from _request_ids()


def _not_json() -> Iterator[Case]:
    for index, (code, about, body) in enumerate(NOT_JSON):
        if isinstance(body, bytes):
            request = CaseRequest("POST", SCORE, base64=base64.b64encode(body).decode())
        else:
            request = CaseRequest("POST", SCORE, text=body)
        expect = Expected(400, "not-json", (ExpectedError(code, ""),))
        yield _case(f"not-json-{index + 1}-{code}", f"400: {about}", request, expect)


def _invalid(group: str, path: str, rows: tuple[tuple[tuple[tuple[str, str], ...], str, Any], ...]) -> Iterator[Case]:
    for index, (errors, about, body) in enumerate(rows):
        wanted = tuple(ExpectedError(code, field) for code, field in errors)
        yield _case(
            f"{group}-{index + 1}-{errors[0][0]}",
            f"422: {about}",
            CaseRequest("POST", path, json=body),
            Expected(422, "input-refused", wanted),
            models=MODELS_OF.get((group, errors[0][0]), ()),
        )


def _addresses() -> Iterator[Case]:
    for name, about, method, path, body, kind, models in (
        ("route", "404: an unknown address", "GET", f"/v1/{SECRET}?q={SECRET}", UNSET, "unknown-route", ()),
        ("slash", "404: no redirect from a trailing slash", "POST", f"{SCORE}/", BODY, "unknown-route", ()),
        ("site", "404: a site without a model", "POST", f"/v1/sites/{SECRET}/score", BODY, "unknown-site", ()),
        ("case", "404: sites are spelled exactly", "POST", "/v1/sites/sov/score", BODY, "unknown-site", ()),
        ("version", "404: a version that does not exist", "POST", SCORE, {**BODY, "model_version": SECRET},
         "unknown-version", ("SoV 1.0.0",)),
        ("card", "404: the card of an unknown version", "GET", f"/v1/models/SoV/{SECRET}", UNSET, "unknown-version",
         ("SoV 1.0.0",)),
    ):  # fmt: skip
        request = CaseRequest(method, path, json=body)
        yield _case(f"not-found-{name}", about, request, Expected(404, kind), models=models)
    for name, method, path, allowed in (("score", "GET", SCORE, "POST"), ("health", "DELETE", "/health/live", "GET")):
        expect = Expected(405, "method-not-allowed", headers={"Allow": allowed})
        yield _case(f"method-{name}", f"405: {method} {path}", CaseRequest(method, path), expect)


def _sizes_and_types() -> Iterator[Case]:
    limit = 16 * 1024
    request = CaseRequest("POST", SCORE, text=" ", repeat=limit)
    expect = Expected(400, "not-json", (ExpectedError("empty_body", ""),))
    yield _case("body-largest", "a body of 16 KiB is read", request, expect)
    request = CaseRequest("POST", SCORE, text=" ", repeat=limit + 1)
    yield _case("body-too-large", "413: a body of 16 KiB and one byte", request, Expected(413, "body-too-large"))
    for name, headers in (
        ("plain", (PLAIN,)),
        ("charset", (Header("Content-Type", "application/json; charset=latin-1"),)),
        ("gzip", (Header("Content-Encoding", "gzip"),)),
    ):
        request = CaseRequest("POST", SCORE, json=BODY, headers=headers)
        yield _case(f"media-type-{name}", f"415: {name}", request, Expected(415, "wrong-media-type"))
    long = (Header("X-Padding", "a", TOO_LARGE),)
    request = CaseRequest("POST", SCORE, json=BODY, headers=long)
    expect = Expected(431, "headers-too-large", request_id="any")  # the id may be among what was not read
    yield _case("headers-too-large", "431: headers of 20 kB", request, expect)


def _credentials() -> Iterator[Case]:
    refused = Expected(401, "no-credential", headers={"WWW-Authenticate": "Bearer"})
    for name, method, path, body in (
        ("score", "POST", SCORE, BODY),
        ("models", "GET", "/v1/models", UNSET),
        ("audit", "GET", "/v1/audit/records", UNSET),
        ("activate", "POST", "/v1/models/SoV/activate", {}),
    ):
        for credential in NO_VALID_KEY:
            request = CaseRequest(method, path, json=body, credential=credential)
            about = f"401: {method} {path} with {'no key' if credential == 'none' else 'a key that does not exist'}"
            yield _case(f"credential-{name}-{credential}", about, request, refused, needs_key=True)
    yield _case(
        "scope-missing",
        "403: activation with a key that has no scope for it",
        CaseRequest("POST", "/v1/models/SoV/activate", json={}),
        Expected(403, "scope-missing"),
        skip_on_status=422,
    )
    yield _case(
        "unknown-record",
        "404: the audit has no record with this request id",
        CaseRequest("GET", f"/v1/audit/records/{SECRET}"),
        Expected(404, "unknown-record"),
        skip_on_status=403,
    )


def _order() -> Iterator[Case]:
    """Each request has the mistakes of the next one too."""
    everything = CaseRequest("POST", SCORE, text="{", repeat=TOO_LARGE, headers=(PLAIN,), credential="none")
    steps: tuple[tuple[str, str, CaseRequest, Expected, bool], ...] = (
        ("credential", "401 comes before 415, 413 and 400", everything, Expected(401, "no-credential"), True),
        ("media-type", "415 comes before 413 and 400",
         CaseRequest("POST", SCORE, text="{", repeat=TOO_LARGE, headers=(PLAIN,)), Expected(415, "wrong-media-type"),
         False),
        ("size", "413 comes before 400", CaseRequest("POST", SCORE, text="{", repeat=TOO_LARGE),
         Expected(413, "body-too-large"), False),
        ("syntax", "400 comes before 422 and 404", CaseRequest("POST", f"/v1/sites/{SECRET}/score", text="{"),
         Expected(400, "not-json", (ExpectedError("syntax", ""),)), False),
        ("input", "422 comes before 404: no refusal of a body depends on a model",
         CaseRequest("POST", f"/v1/sites/{SECRET}/score", json={**BODY, "age_years": 121}),
         Expected(422, "input-refused", (ExpectedError("out_of_range", "age_years"),)), False),
    )  # fmt: skip
    for name, about, request, expect, needs_key in steps:
        yield _case(f"order-{name}", about, request, expect, needs_key=needs_key)


def _request_ids() -> Iterator[Case]:
    """Each once with a success and once with a problem."""
    rows: tuple[tuple[str, str, str | None, Literal["sent", "new"]], ...] = (
        ("longest", "64 characters of every allowed kind are repeated", "Az09._-" + "x" * 57, "sent"),
        ("absent", "without one, a new UUIDv7", None, "new"),
        ("too-long", "65 characters are not valid: a new UUIDv7", "x" * 65, "new"),
        ("characters", "other characters are not valid: a new UUIDv7", f"{SECRET}/1", "new"),
    )
    for name, about, sent, kind in rows:
        for path, expect in (
            ("/health/live", Expected(200, request_id=kind)),
            (f"/v1/{SECRET}", Expected(404, "unknown-route", request_id=kind)),
        ):
            request = CaseRequest("GET", path, request_id=sent)
            yield _case(f"request-id-{name}-{expect.status}", about, request, expect)


def _case(
    name: str,
    about: str,
    request: CaseRequest,
    expect: Expected,
    *,
    models: tuple[str, ...] = (),
    needs_key: bool = False,
    skip_on_status: int | None = None,
) -> Case:
    """Everything in the request that stands for a patient's data must not come back."""
    sent = f"{request.path} {request.json} {request.text} {request.request_id}"
    hidden = tuple(text for text in (SECRET, NUMBER) if text in sent)
    return Case(name, about, request, expect, models, needs_key, skip_on_status, hidden)
