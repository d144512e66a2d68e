"""Pictures over HTTP: their numbers are those of the single request, their bytes repeat, every score is recorded."""

import json
import struct
import time
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from app.runtime.credentials import Caller
from app.schemas.lookups import Replay
from app.services.replay import replay
from tests.web.serving import MAN, READING, Running

CHART = "/v1/sites/SoV/chart"
SVG, PNG = "image/svg+xml", "image/png"
NAMESPACE = "{http://www.w3.org/2000/svg}"
ANSWER = (
    "score",
    "score_with_measurement_error",
    "reference",
    "comparators",
    "reliability",
    "advisories",
    "summary",
)
VISITS = [
    {"age_years": 49.5, "height_cm": 177, "weight_kg": 80, "diameter_mm": 38.5},
    {"age_years": 52, "height_cm": 176, "weight_kg": 82, "diameter_mm": 40, "measurement_sd_mm": 1.5},
]
NEWBORN = {"age_years": 0.02, "sex": "female", "height_cm": 51, "weight_kg": 3.5, "diameter_mm": 9.5}


def chart(running: Running, body: object, query: str = "", **headers: str) -> Any:
    return patiently(lambda: running.client.post(CHART + query, json=body, headers=headers))


def get_map(running: Running, query: str, accept: str) -> Any:
    return patiently(lambda: running.client.get(MAP + query, headers={"Accept": accept}))


def patiently(send: Callable[[], Any]) -> Any:
    """On a busy machine a picture may be answered with 503, to be sent again: a map is the most expensive one, and the
    first PNG waits for the start of a process."""
    for _ in range(10):
        response = send()
        if response.status_code != 503:
            break
        time.sleep(float(response.headers["Retry-After"]))
    return response


def test_the_measurement_is_that_of_the_single_request(shared: Running) -> None:
    body = {**READING, "measurement_sd_mm": 1.5, "thresholds": [2.0, 3.0]}
    drawn, single = chart(shared, body).json(), shared.score(body).json()
    for name in ANSWER:
        assert drawn["measurement"][name] == single[name], name
    assert drawn["input"] == single["input"]
    assert drawn["reliability"] == single["reliability"]
    assert drawn["provenance"]["model"] == single["provenance"]["model"]
    reference, hdi = single["reference"], single["score"]["hdi"]
    for end in ("low", "high"):
        mm = reference["expected_diameter_mm"] + hdi[end] * reference["aleatoric_sd_mm"]
        assert drawn["measurement"]["hdi_mm"][end] == pytest.approx(mm)


def test_the_curves_are_what_single_requests_find_at_those_ages(shared: Running) -> None:
    curves = chart(shared, {**READING, "thresholds": [2.0, -1.0]}).json()["curves"]
    assert READING["age_years"] in curves["age_years"]
    assert curves["age_years"] == sorted(curves["age_years"])
    for k in (0, len(curves["age_years"]) // 2, len(curves["age_years"]) - 1):
        body = {**READING, "age_years": curves["age_years"][k], "thresholds": [2.0, -1.0]}
        single = shared.score(body).json()
        reference = single["reference"]
        assert curves["verdict"][k] == single["reliability"]["verdict"] != "not_reliable"
        assert curves["context_hdi_width"][k] == pytest.approx(single["reliability"]["context_hdi_width"])
        assert curves["expected_diameter_mm"][k] == pytest.approx(reference["expected_diameter_mm"])
        low, _, _, high = (curve["diameter_mm"][k] for curve in curves["quantiles_mm"])
        assert low == pytest.approx(reference["interval_mm"]["low"])
        assert high == pytest.approx(reference["interval_mm"]["high"])
        for curve, at in zip(curves["diameter_at_threshold_mm"], reference["diameter_at_threshold_mm"], strict=True):
            for name in ("median", "low", "high"):
                assert curve[name][k] == pytest.approx(at[name]), name


def test_the_inner_band_holds_the_percentiles_that_it_names(shared: Running) -> None:
    curves = chart(shared, READING).json()["curves"]
    k = curves["age_years"].index(READING["age_years"])
    for curve in curves["quantiles_mm"]:
        body = {**READING, "diameter_mm": curve["diameter_mm"][k]}
        assert shared.score(body).json()["reference"]["percentile"] == pytest.approx(curve["percent"])


def test_the_density_integrates_to_its_probabilities(shared: Running) -> None:
    answer = chart(shared, {**READING, "measurement_sd_mm": 1.5}).json()
    density, score = answer["density"], answer["measurement"]["score"]
    step = density["ns"][1] - density["ns"][0]
    for values in (density["density"], density["density_with_measurement_error"]):
        assert sum(values) * step == pytest.approx(1.0, abs=0.01)
    above = sum(value for at, value in zip(density["ns"], density["density"], strict=True) if at > 2.0) * step
    assert above == pytest.approx(score["exceedance"][0]["probability"], abs=0.03)


def test_curves_end_where_this_body_size_is_not_reliable(shared: Running) -> None:
    curves = chart(shared, MAN).json()["curves"]
    ranges = shared.client.get("/v1/models/SoV/current").json()["ranges"]["age_years"]
    assert curves["age_years"][0] >= ranges["low"]
    assert curves["age_years"][-1] <= ranges["high"]
    outside = chart(shared, {**MAN, "height_cm": 235, "weight_kg": 150}).json()
    assert outside["curves"] is None
    assert outside["reliability"]["verdict"] == "not_reliable"
    assert "No reference curve" in outside["pictures"]["reference"]


@pytest.mark.parametrize("diameter", [{"diameter_mm": 33}, {}])
def test_a_picture_gives_the_reason_that_led_to_the_verdict(shipped: Running, diameter: dict[str, Any]) -> None:
    """The order of the response stays; by itself its first reason would only lead to caution."""
    body = {"age_years": 97, "sex": "female", "height_cm": 150, "weight_kg": 45, **diameter}
    answer = chart(shipped, body).json()
    reasons = [reason["code"] for reason in answer["reliability"]["reasons"]]
    assert reasons == ["wide_interval", "outside_training_range"]
    assert "Not reliable: The patient is older than" in answer["pictures"]["reference"]
    assert "Not reliable: For patients" not in answer["pictures"]["reference"]


def test_without_a_diameter_nothing_is_scored_or_recorded(shared: Running) -> None:
    before = len(shared.records("score"))
    answer = chart(shared, MAN).json()
    assert answer["input"]["diameter_mm"] is None
    assert (answer["measurement"], answer["density"], answer["visits"]) == (None, None, None)
    assert (answer["pictures"]["density"], answer["pictures"]["visits"]) == (None, None)
    assert answer["reliability"]["verdict"] == shared.score({**MAN, "diameter_mm": 40}).json()["reliability"]["verdict"]
    assert len(shared.records("score")) == before + 1  # that of the score


def test_where_the_score_is_withheld_nothing_about_it_is_drawn(shared: Running) -> None:
    answer = chart(shared, NEWBORN).json()
    assert answer["reliability"]["verdict"] == "not_reliable"
    assert answer["measurement"]["score"] is answer["measurement"]["hdi_mm"] is None
    assert answer["density"] is answer["pictures"]["density"] is None
    assert "nc-hdi" not in answer["pictures"]["reference"]
    assert "No score is given" in answer["pictures"]["reference"]
    alone = chart(shared, NEWBORN, "?picture=density", Accept=SVG)
    assert alone.status_code == 200
    assert "No score is given" in alone.text
    shown = chart(shared, {**NEWBORN, "include_unreliable": True}).json()
    assert shown["measurement"]["score"] is not None
    assert shown["pictures"]["density"] is not None


def test_visits_are_scored_as_single_requests(shared: Running) -> None:
    answer = chart(shared, {**READING, "visits": VISITS}).json()
    assert answer["visits"]["note"].startswith("Exploratory")
    for visit, sent in zip(answer["visits"]["items"], VISITS, strict=True):
        single = shared.score({**READING, **sent}).json()
        assert visit["input"] == single["input"]
        for name in ANSWER:
            assert visit[name] == single[name], name
    assert "Exploratory" in answer["pictures"]["visits"]
    alone = chart(shared, {**MAN, "visits": VISITS}).json()  # visits without a measurement of today
    assert alone["measurement"] is None
    assert len(alone["visits"]["items"]) == 2


@pytest.mark.parametrize("picture", ["reference", "density", "visits"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_is_safe_svg_with_words_and_the_same_bytes_every_time(
    shared: Running, picture: str, theme: str
) -> None:
    body, query = {**READING, "visits": VISITS}, f"?picture={picture}&theme={theme}&width=360"
    first, second = (chart(shared, body, query, Accept=SVG) for _ in range(2))
    assert first.headers["Content-Type"] == SVG
    assert first.headers["Vary"] == "Accept"
    assert first.content == second.content
    root = ElementTree.fromstring(first.content)  # noqa: S314 - our own
    assert (root.tag, root.get("role"), root.get("width")) == (f"{NAMESPACE}svg", "img", "360")
    assert [child.tag for child in root[:2]] == [f"{NAMESPACE}title", f"{NAMESPACE}desc"]
    allowed = {"svg", "title", "desc", "rect", "line", "circle", "path", "text"}
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= allowed
    names = {name for element in root.iter() for name in element.attrib}
    assert not names & {"style", "id", "href"}
    assert not any(name.startswith("on") for name in names)
    words = root[1].text or ""
    score = shared.score(READING).json()["score"]
    assert f"{score['expected_ns']:.2f}".replace("-", "−") in words
    for said in ("not for care", "SoV 1.1.0", "simulated"):
        assert said in words
    if theme == "light":
        in_json = chart(shared, body, "?width=360").json()["pictures"][picture]
        assert in_json == first.text


def test_a_png_has_the_size_of_its_picture(shared: Running) -> None:
    svg = ElementTree.fromstring(chart(shared, READING, "?width=400", Accept=SVG).content)  # noqa: S314 - our own
    one, two = (chart(shared, READING, f"?width=400&scale={scale}", Accept=PNG) for scale in (1, 2))
    again = chart(shared, READING, "?width=400&scale=2", Accept=PNG)
    assert two.headers["Content-Type"] == PNG
    assert two.content == again.content
    for scale, png in ((1, one), (2, two)):
        assert png.content[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", png.content[16:24])
        assert (width, height) == (scale * 400, scale * int(svg.get("height", "")))


@pytest.mark.parametrize(
    ("accept", "found"),
    [
        ("*/*", "application/json"),
        ("", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("image/*", SVG),
        ("image/png;q=0.5, image/svg+xml;q=0.4", PNG),
        ("image/svg+xml;q=nonsense, image/png;q=0.1", PNG),
        ("application/json;q=0, image/png", PNG),
    ],
)
def test_the_accept_header_chooses(shared: Running, accept: str, found: str) -> None:
    assert chart(shared, MAN, Accept=accept).headers["Content-Type"] == found


@pytest.mark.parametrize("accept", ["application/pdf", "text/*", "image/jpeg", "application/json;q=0", "*/*;q=0.0"])
def test_a_type_that_the_service_cannot_give_is_refused_with_those_it_can(shared: Running, accept: str) -> None:
    refused = chart(shared, READING, Accept=accept)
    assert refused.status_code == 406
    assert refused.json()["type"] == "/guide#problem-not-acceptable"
    assert "image/svg+xml" in refused.json()["detail"]
    assert get_map(shared, "", accept).status_code == 406


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?picture=pie", "not_a_choice"),
        ("?theme=blue", "not_a_choice"),
        ("?width=319", "out_of_range"),
        ("?width=1e3", "out_of_range"),
        ("?scale=4", "out_of_range"),
        ("?colour=red", "unknown_field"),
    ],
)
def test_a_query_outside_its_choices_is_rejected_with_them(shared: Running, query: str, code: str) -> None:
    refused = chart(shared, MAN, query)
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["code"] == code
    assert error["message"].endswith(".")


@pytest.mark.parametrize(("picture", "field"), [("density", "diameter_mm"), ("visits", "visits")])
def test_a_picture_without_its_data_is_rejected(shared: Running, picture: str, field: str) -> None:
    refused = chart(shared, MAN, f"?picture={picture}", Accept=SVG)
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == [field]


def test_every_error_of_a_visit_is_named_at_its_field(shared: Running) -> None:
    wrong = [
        {"age_years": 40, "height_cm": 1.76, "weight_kg": 80, "diameter_mm": 4.1},
        {"age_years": 41, "height_cm": 176, "weight_kg": 12, "diameter_mm": 40, "sex": "male"},
        {"age_years": 3, "height_cm": 95, "weight_kg": 14, "diameter_mm": 9},
    ]
    refused = chart(shared, {**MAN, "visits": wrong}).json()
    found = {(error["field"], error["code"]) for error in refused["errors"]}
    assert found == {
        ("visits[0].height_cm", "given_in_m"),
        ("visits[0].diameter_mm", "given_in_cm"),
        ("visits[1].(unknown)", "unknown_field"),
        ("visits[1].weight_kg", "implausible_bmi"),
    }
    for count in (0, 11):
        many = chart(shared, {**MAN, "visits": VISITS[:1] * count}).json()
        assert [error["field"] for error in many["errors"]] == ["visits"]


def test_an_unknown_field_gets_the_hint_of_its_own_name(shared: Running) -> None:
    [error] = chart(shared, {**MAN, "diameter": 41}).json()["errors"]
    assert "Did you mean diameter_mm?" in error["message"]


def test_every_score_of_a_chart_is_recorded_and_can_be_replayed(running: Running) -> None:
    answer = chart(
        running, {**READING, "subject": "p-7", "visits": VISITS}, "?width=360", **{"X-Request-ID": "chart-1"}
    )
    assert answer.status_code == 200
    found = {record.item: record for record in running.records("score")}
    assert set(found) == {None, 0, 1}
    assert {record.route for record in found.values()} == {"/v1/sites/{site}/chart"}
    assert {record.request_id for record in found.values()} == {"chart-1"}
    single = running.score({**READING, "subject": "p-7"}, headers={"X-Request-ID": "single-1"})
    [alone] = [record for record in running.records("score") if record.request_id == "single-1"]
    assert found[None].input == alone.input
    assert found[None].output == alone.output
    assert found[1].input["diameter_mm"] == 40
    again = replayed(running, "chart-1")
    assert (again.identical, again.replayed) == (True, 3)
    assert single.status_code == 200
    assert "p-7" not in json.dumps([vars(record) for record in found.values()])


def test_a_picture_alone_is_recorded_too(running: Running) -> None:
    chart(running, READING, "?picture=density", Accept=PNG, **{"X-Request-ID": "png-1"})
    assert [record.request_id for record in running.records("score")] == ["png-1"]
    assert replayed(running, "png-1").identical is True


def replayed(running: Running, request_id: str) -> Replay:
    caller = Caller("test", "replay", "/v1/audit/records/{request_id}/replay", running.loop.time() + 5.0)
    return running.inside(replay(running.runtime, caller, request_id))


MAP = "/v1/sites/SoV/reliability-map?sex=female"


def test_the_map_is_the_same_as_data_and_as_a_picture(shared: Running) -> None:
    answer = get_map(shared, "&width=360", "application/json").json()
    grid = answer["grid"]
    assert (answer["quantity"], answer["diameter_mm"], answer["sex"]) == ("context_hdi_width", None, "female")
    assert len(grid["width"]) == len(grid["bsa_m2"])
    assert {len(row) for row in grid["verdict"]} == {len(grid["age_years"])}
    assert grid["bmi_source"] in answer["picture"]
    first, second = (get_map(shared, "&width=360", SVG) for _ in range(2))
    assert first.text == second.text == answer["picture"]
    assert "not for care" in first.text
    assert "nc-not-reliable" in first.text
    png = get_map(shared, "&width=360&scale=1", PNG).content
    assert struct.unpack(">I", png[16:20]) == (360,)


def test_the_map_of_a_diameter_is_another_one(shared: Running) -> None:
    answer = shared.client.get(MAP + "&diameter_mm=32").json()
    assert (answer["quantity"], answer["diameter_mm"]) == ("hdi_width", 32.0)
    assert answer["grid"]["width"] != shared.client.get(MAP).json()["grid"]["width"]
    assert "the score of 32 mm" in answer["picture"]


def test_the_map_of_another_version(shared: Running) -> None:
    assert shared.client.get(MAP + "&model_version=1.0.0").json()["provenance"]["model"]["version"] == "1.0.0"
    assert shared.client.get(MAP + "&model_version=9.9.9").status_code == 404
    assert shared.client.get("/v1/sites/nose/reliability-map?sex=male").status_code == 404


@pytest.mark.parametrize(
    "query", ["", "?sex=x", "?sex=male&diameter_mm=2", "?sex=male&diameter_mm=nan", "?sex=male&x=1"]
)
def test_a_map_of_nothing_is_rejected(shared: Running, query: str) -> None:
    refused = shared.client.get("/v1/sites/SoV/reliability-map" + query)
    assert refused.status_code == 422
    assert len(refused.json()["errors"]) == 1


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("", "missing", "sex is required: male or female."),
        ("?sex=male&model_version=", "too_short", "model_version must be a string of 1 to 64 characters."),
        ("?sex=male&diameter_mm=1_0", "out_of_range", "diameter_mm must be a number from"),
        ("?sex=male&diameter_mm=３２", "out_of_range", "diameter_mm must be a number from"),
        ("?sex=male&diameter_mm=%2032", "out_of_range", "diameter_mm must be a number from"),
    ],
)
def test_an_error_of_the_map_names_what_is_allowed(shared: Running, query: str, code: str, message: str) -> None:
    [error] = shared.client.get("/v1/sites/SoV/reliability-map" + query).json()["errors"]
    assert error["code"] == code
    assert error["message"].startswith(message)


def test_the_map_takes_numbers_as_json_writes_them(shared: Running) -> None:
    assert shared.client.get(MAP + "&diameter_mm=3.25e1").json()["diameter_mm"] == 32.5
