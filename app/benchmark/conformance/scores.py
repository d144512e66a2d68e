"""Cases with numbers: people, what the contract says about them by hand, and their numbers from `exact`."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.benchmark.conformance.exact import ExactModel, ExactMoments, mp
from app.services.conformance.cases import Case, CaseRequest, Expected, ExpectedError, ExpectedNumber, Header

Json = dict[str, Any]
SITES = ("SoV", "AA")
VERSION = "1.0.0"
STATED = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}
MAN = {"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84}
WOMAN = {"age_years": 31.5, "sex": "female", "height_cm": 165, "weight_kg": 61}
BOY = {"age_years": 11.25, "sex": "male", "height_cm": 146, "weight_kg": 38}
OLD_WOMAN = {"age_years": 74, "sex": "female", "height_cm": 158, "weight_kg": 64}
HEAVY_MAN = {"age_years": 45, "sex": "male", "height_cm": 175, "weight_kg": 98}
OLDEST = {"age_years": 90, "sex": "female", "height_cm": 155, "weight_kg": 55}
NEWBORN = {"age_years": 0.02, "sex": "female", "height_cm": 51, "weight_kg": 3.5}

# Of numbers that are smooth in the moments: 1e-8 between backends and CPUs, and 5e-9 for nine digits.
RELATIVE = 2e-8
ABSOLUTE = 1e-12  # a probability this small is zero
HDI_WIDTHS = 1e-7  # ends of an interval, in widths: where the density is flat an end moves freely
PERCENTILE = 1e-5  # of W2, which moves a hundred times faster than W2 itself

# The contract's limits of W2, of its percentile, and of |E[NS]|. Whoever is above the second limit of W2 (2.0) is also
# outside the training range here, so that W2 alone never withholds a score.
WIDE, SPARSE, FAR_OUT = 1.0, 99.0, 6.0
OK, CAUTION, NOT_RELIABLE = "ok", "caution", "not_reliable"
NOT_STATED, LARGE, FAR = "convention_not_stated", "absolute_diameter", "far_out"

# name, about, person, (SoV, AA) diameters, further fields, verdict and reasons of range and convention (the reasons of
# width follow from the exact W2), advisories by site (but for far_out, which follows from the exact score)
SCORES: tuple[tuple[str, str, Json, tuple[float, float], Json, str, list[str], tuple[list[str], list[str]]], ...] = (
    ("man", "an adult", MAN, (41, 38.5), {}, OK, [], ([LARGE], [])),
    ("woman", "a diameter near the expected one", WOMAN, (28.3, 26.1), {}, OK, [], ([], [])),
    ("boy", "a child, who has wider intervals", BOY, (29.5, 27), {}, OK, [], ([], [])),
    ("old-woman", "a wide aorta", OLD_WOMAN, (46, 47), {}, OK, [], ([LARGE], [LARGE])),
    ("narrow", "a narrow aorta", MAN, (22, 21), {}, OK, [], ([], [])),
    ("far-out", "a diameter so large that it should be rechecked", WOMAN, (72, 72), {}, OK, [],
     ([LARGE], [LARGE])),
    ("thresholds", "eight thresholds, in the order sent", MAN, (37.5, 36),
     {"thresholds": [2, -2, 0, 3, 1.645, -10, 10, 2.5]}, OK, [], ([], [])),
    ("interval-50", "a 50% interval", MAN, (41, 38.5), {"hdi_probability": 0.5}, OK, [], ([LARGE], [])),
    ("interval-99", "a 99% interval", WOMAN, (34, 33), {"hdi_probability": 0.99}, OK, [], ([], [])),
    ("measurement-error", "the observer's error", MAN, (41, 38.5), {"measurement_sd_mm": 1.5}, OK, [], ([LARGE], [])),
    ("convention-not-stated", "a measurement without its convention", WOMAN, (30, 28), {"convention": None}, OK, [],
     ([NOT_STATED], [NOT_STATED])),
    ("convention-differs", "one part of the convention differs", WOMAN, (30, 28),
     {"convention": STATED | {"edge": "inner"}}, CAUTION, ["convention_differs"], ([], [])),
    ("bmi-outside", "a body mass index just outside the training range", HEAVY_MAN, (38, 36), {}, CAUTION,
     ["outside_training_range"], ([], [])),
    ("two-conventions-differ", "two parts differ: no score", WOMAN, (30, 28),
     {"convention": STATED | {"edge": "inner", "modality": "CT"}}, NOT_RELIABLE, ["convention_differs"], ([], [])),
    ("newborn", "far outside the training range: no score", NEWBORN, (9.5, 8.5), {}, NOT_RELIABLE,
     4 * ["outside_training_range"], ([], [])),
    ("include-unreliable", "the numbers all the same, on request", OLDEST, (34, 35), {"include_unreliable": True},
     NOT_RELIABLE, ["outside_training_range"], ([], [])),
)  # fmt: skip

# Pictures and a small batch: the numbers of the single score, and the media types.
DRAWN_SITE = "SoV"
CHART, MAP, BATCH = (
    f"/v1/sites/{DRAWN_SITE}/chart",
    f"/v1/sites/{DRAWN_SITE}/reliability-map?sex=male",
    "/v1/batch/score",
)
SHIPPED = (f"{DRAWN_SITE} {VERSION}",)
PATIENT = {**MAN, "diameter_mm": 41, "convention": STATED, "model_version": VERSION}
PICTURES = {"svg": "image/svg+xml", "png": "image/png"}


def score_cases(models: Mapping[str, ExactModel], report: Callable[[str, float], None]) -> Iterator[Case]:
    for index, (name, about, person, diameters, more, verdict, reasons, advisories) in enumerate(SCORES):
        for k, site in enumerate(SITES):
            report(f"{site}: {name}", (index + k / len(SITES)) / len(SCORES))
            body = {**person, "diameter_mm": diameters[k], "convention": STATED, "model_version": VERSION, **more}
            body = {field: value for field, value in body.items() if value is not None}
            given = verdict != NOT_RELIABLE or bool(more.get("include_unreliable"))
            numbers, equals = _answer(models[site], body, given)
            found = {number.path: number.value for number in numbers}
            codes = [*_width_reasons(found), *reasons]
            is_far = abs(found.get("score.expected_ns", 0.0)) > FAR_OUT
            by_hand = {
                "site": site,
                "input.reference_sex": person["sex"],
                "reliability.verdict": CAUTION if codes and verdict == OK else verdict,
                "reliability.reasons[].code": codes,
                "advisories[].code": advisories[k] + [FAR] * is_far,
                "provenance.model.version": VERSION,
                "provenance.model.cohort": "simulated",
            }
            yield Case(
                name=f"score-{site}-{name}",
                about=f"{site}: {about}",
                models=(f"{site} {VERSION}",),
                request=CaseRequest("POST", f"/v1/sites/{site}/score", json=body),
                expect=Expected(200, numbers=(*_input(person), *numbers), equals=by_hand | equals, rounded=True),
            )


def study_case(models: Mapping[str, ExactModel]) -> Case:
    sites, diameters = SITES, (41, 38.5)
    measurements = [
        {"site": site, "diameter_mm": y, "convention": STATED, "model_version": VERSION}
        for site, y in zip(sites, diameters, strict=True)
    ]
    numbers: list[ExpectedNumber] = []
    equals: Json = {"results[].site": list(sites)}
    for k, measurement in enumerate(measurements):
        found, same = _answer(models[sites[k]], {**MAN, **measurement}, True)
        numbers += [ExpectedNumber(f"results[{k}].{one.path}", one.value, one.tolerance) for one in found]
        equals |= {f"results[{k}].{path}": value for path, value in same.items()}
    return Case(
        name="study-both-sites",
        about="a study of both sites gives the numbers of the single requests, in order",
        models=tuple(f"{site} {VERSION}" for site in SITES),
        request=CaseRequest("POST", "/v1/studies/score", json={**MAN, "measurements": measurements}),
        expect=Expected(200, numbers=(*_input(MAN), *numbers), equals=equals, rounded=True),
    )


def picture_cases(models: Mapping[str, ExactModel]) -> Iterator[Case]:
    numbers, equals = _answer(models[DRAWN_SITE], PATIENT, True)
    yield _picture_case(
        "chart-numbers",
        "a chart gives the numbers of the score",
        CaseRequest("POST", CHART, json=PATIENT),
        _under("measurement", numbers, equals | {"reliability.verdict": "ok"}),
    )
    yield _picture_case(
        "map-numbers",
        "a reliability map as data",
        CaseRequest("GET", MAP),
        Expected(200, equals={"site": DRAWN_SITE, "sex": "male"}, rounded=True),
    )
    for name, media in PICTURES.items():
        accept = (Header("Accept", media),)
        drawn = Expected(200, headers={"Content-Type": media})
        request = CaseRequest("POST", CHART, json=PATIENT, headers=accept)
        yield _picture_case(f"chart-{name}", f"the chart as {media}, by Accept", request, drawn)
        yield _picture_case(f"map-{name}", f"the map as {media}", CaseRequest("GET", MAP, headers=accept), drawn)
    other = (Header("Accept", "application/pdf"),)
    for name, request in (
        ("chart", CaseRequest("POST", CHART, json=PATIENT, headers=other)),
        ("map", CaseRequest("GET", MAP, headers=other)),
    ):
        yield _picture_case(
            f"{name}-not-acceptable", "406: a media type that is not offered", request, Expected(406, "not-acceptable")
        )
    too_old = {**PATIENT, "age_years": 121}
    yield _picture_case(
        "chart-input",
        "422: a chart is refused like a score",
        CaseRequest("POST", CHART, json=too_old),
        Expected(422, "input-refused", (ExpectedError("out_of_range", "age_years"),)),
    )
    items = [{**PATIENT, "site": DRAWN_SITE}, {**too_old, "site": DRAWN_SITE}]
    counted = {"succeeded": 1, "failed": 1, "results[1].errors[].field": ["age_years"]}
    yield _picture_case(
        "batch-numbers",
        "a batch gives the numbers of the single request, and an error of the other one",
        CaseRequest("POST", BATCH, json={"items": items}),
        _under("results[0]", numbers, equals, counted),
    )
    for name, path in (("calculator", "/"), ("card", f"/models/{DRAWN_SITE}/{VERSION}")):
        request = CaseRequest("GET", path, credential="none")
        yield _picture_case(f"open-{name}", f"the page {path} needs no credential", request, Expected(200))


def _under(
    path: str, numbers: list[ExpectedNumber], equals: Mapping[str, object], more: Mapping[str, object] | None = None
) -> Expected:
    """The answer of a single request, as a part of a larger one."""
    moved = tuple(ExpectedNumber(f"{path}.{one.path}", one.value, one.tolerance) for one in numbers)
    same = {f"{path}.{name}": value for name, value in equals.items()}
    return Expected(200, numbers=moved, equals=same | dict(more or {}), rounded=True)


def _picture_case(name: str, about: str, request: CaseRequest, expect: Expected) -> Case:
    return Case(name=name, about=about, models=SHIPPED, request=request, expect=expect)


def lookup_cases() -> Iterator[Case]:
    for name, path, equals in (
        ("live", "/health/live", {}),
        ("ready", "/health/ready", {"ready": True}),
        ("selftest", "/v1/selftest", {"failed": 0}),
        ("sites", "/v1/sites", {}),
        ("limits", "/v1/limits", {}),
        ("models", "/v1/models", {}),
    ):
        request, expect = CaseRequest("GET", path), Expected(200, equals=equals)
        yield Case(name=f"lookup-{name}", about=f"GET {path}", request=request, expect=expect)
    for site in SITES:
        yield Case(
            name=f"lookup-card-{site}",
            about=f"the card of {site} {VERSION}",
            models=(f"{site} {VERSION}",),
            request=CaseRequest("GET", f"/v1/models/{site}/{VERSION}"),
            expect=Expected(
                200,
                equals={"site": site, "version": VERSION, "cohort.name": "simulated", "convention": STATED},
                rounded=True,
            ),
        )
    for path in ("/guide", "/docs", "/redoc"):
        request = CaseRequest("GET", path, credential="none")
        about = f"the page {path} needs no credential"
        yield Case(name=f"open-{path[1:]}", about=about, request=request, expect=Expected(200))


def _width_reasons(found: Mapping[str, float]) -> Iterator[str]:
    if found["reliability.context_hdi_width"] > WIDE:
        yield "wide_interval"
    if found["reliability.context_hdi_width_percentile"] > SPARSE:
        yield "sparse_context"


def _input(person: Json) -> tuple[ExpectedNumber, ...]:
    height, weight = person["height_cm"], person["weight_kg"]
    found = {
        "age_years": person["age_years"],
        "height_cm": height,
        "weight_kg": weight,
        "bsa_m2": 0.024265 * height**0.3964 * weight**0.5378,
        "bmi_kg_m2": weight / (height / 100) ** 2,
    }
    return tuple(_smooth(f"input.{name}", value) for name, value in found.items())


def _answer(model: ExactModel, body: Json, given: bool) -> tuple[list[ExpectedNumber], Json]:
    """Numbers by path, and what must be equal."""
    moments = model.moments(body)
    low, high = moments.hdi(moments.diameter_at_2, 0.95)
    width = high - low
    numbers = [
        ExpectedNumber("reliability.context_hdi_width", width, HDI_WIDTHS * width),
        ExpectedNumber(
            "reliability.context_hdi_width_percentile", percentile := model.width_percentile(width),
            PERCENTILE * max(percentile, 1.0),
        ),
    ]  # fmt: skip
    with_error = "score_with_measurement_error"
    if not given:
        return numbers, {"score": None, "reference": None, "comparators": None, with_error: None}
    y, sd = body["diameter_mm"], body.get("measurement_sd_mm", 0)
    numbers.append(_smooth("score.expected_ns", float(moments.expected_ns(y))))
    numbers += _located("score", moments, body)
    equals: Json = {"score.position": _position(moments, y)}
    if sd:
        numbers += _located(with_error, moments.with_error(sd), body)
    else:
        equals[with_error] = None
    numbers += _reference(moments, body)
    return _with_comparators(model, body, numbers, equals)


def _located(path: str, moments: ExactMoments, body: Json) -> Iterator[ExpectedNumber]:
    y, mass = body["diameter_mm"], body.get("hdi_probability", 0.95)
    low, high = moments.hdi(y, mass)
    yield _smooth(f"{path}.hdi.probability", mass)
    for name, value in (("low", low), ("high", high), ("width", high - low)):
        yield ExpectedNumber(f"{path}.hdi.{name}", value, HDI_WIDTHS * (high - low) + RELATIVE * abs(value))
    for k, threshold in enumerate(body.get("thresholds", [2.0])):
        below, above = moments.tails(y, threshold)
        yield _smooth(f"{path}.exceedance[{k}].threshold", threshold)
        yield _smooth(f"{path}.exceedance[{k}].probability", above)
        yield _smooth(f"{path}.exceedance[{k}].probability_below", below)


def _reference(moments: ExactMoments, body: Json) -> Iterator[ExpectedNumber]:
    low, high = moments.interval_mm()
    found = {
        "expected_diameter_mm": moments.m1,
        "expected_diameter_sd_mm": mp.sqrt(moments.v1),
        "aleatoric_sd_mm": mp.exp(moments.m2),
        "aleatoric_sd_log_se": mp.sqrt(moments.v2),
        "interval_mm.probability": 0.95,
        "interval_mm.low": low,
        "interval_mm.high": high,
        "percentile": moments.percentile(body["diameter_mm"]),
    }
    for k, threshold in enumerate(body.get("thresholds", [2.0])):
        for name, probability in (("median", 0.5), ("low", 0.025), ("high", 0.975)):
            quantile = moments.diameter_at_threshold(threshold, probability)
            found[f"diameter_at_threshold_mm[{k}].{name}"] = quantile
    yield from (_smooth(f"reference.{name}", float(value)) for name, value in found.items())


def _with_comparators(
    model: ExactModel, body: Json, numbers: list[ExpectedNumber], equals: Json
) -> tuple[list[ExpectedNumber], Json]:
    y, height = body["diameter_mm"], body["height_cm"]
    area = 0.024265 * height**0.3964 * body["weight_kg"] ** 0.5378
    ages, bmi = model.card["ranges"]["age_years"], model.card["ranges"]["bmi_kg_m2"]
    inside = ages["low"] <= body["age_years"] <= ages["high"]
    inside = inside and bmi["low"] <= body["weight_kg"] / (height / 100) ** 2 <= bmi["high"]
    scores = {"linear_z": model.linear_z(body, y), "altman_z": model.altman_z(body, y)} if inside else {}
    found = {
        **scores,
        "diameter_per_bsa_mm_m2": y / area,
        "diameter_per_height_cm_m": y / 10 / (height / 100),
        "area_per_height_cm2_m": math.pi * (y / 20) ** 2 / (height / 100),
    }
    for name in ("linear_z", "altman_z"):
        if found.get(name) is None:
            found.pop(name, None)
            equals[f"comparators.{name}"] = None
    return [*numbers, *(_smooth(f"comparators.{name}", float(value or 0)) for name, value in found.items())], equals


def _position(moments: ExactMoments, y: float) -> str:
    above, below = moments.tails(y, 2.0)[1], moments.tails(y, -2.0)[0]
    if above >= 0.975:
        return "above_2"
    if below >= 0.975:
        return "below_minus_2"
    return "within" if max(above, below) <= 0.025 else "uncertain"


def _smooth(path: str, value: float) -> ExpectedNumber:
    return ExpectedNumber(path, float(value), RELATIVE * abs(float(value)) + ABSOLUTE)
