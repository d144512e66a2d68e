"""Cases of pictures and of a small batch: the numbers of the single score, and the media types."""

from collections.abc import Iterator, Mapping

from app.benchmark.conformance.exact import ExactModel
from app.benchmark.conformance.scores import MAN, STATED, VERSION, exact_answer
from app.services.conformance.cases import Case, CaseRequest, Expected, ExpectedError, ExpectedNumber, Header

SITE = "SoV"
CHART, MAP, BATCH = f"/v1/sites/{SITE}/chart", f"/v1/sites/{SITE}/reliability-map?sex=male", "/v1/batch/score"
SHIPPED = (f"{SITE} {VERSION}",)
PATIENT = {**MAN, "diameter_mm": 41, "convention": STATED, "model_version": VERSION}
PICTURES = {"svg": "image/svg+xml", "png": "image/png"}


def picture_cases(models: Mapping[str, ExactModel]) -> Iterator[Case]:
    numbers, equals = exact_answer(models[SITE], PATIENT, True)
    yield _case(
        "chart-numbers",
        "a chart gives the numbers of the score",
        CaseRequest("POST", CHART, json=PATIENT),
        _under("measurement", numbers, equals | {"reliability.verdict": "ok"}),
    )
    yield _case(
        "map-numbers",
        "a reliability map as data",
        CaseRequest("GET", MAP),
        Expected(200, equals={"site": SITE, "sex": "male"}, rounded=True),
    )
    for name, media in PICTURES.items():
        accept = (Header("Accept", media),)
        drawn = Expected(200, headers={"Content-Type": media})
        request = CaseRequest("POST", CHART, json=PATIENT, headers=accept)
        yield _case(f"chart-{name}", f"the chart as {media}, by Accept", request, drawn)
        yield _case(f"map-{name}", f"the map as {media}", CaseRequest("GET", MAP, headers=accept), drawn)
    other = (Header("Accept", "application/pdf"),)
    for name, request in (
        ("chart", CaseRequest("POST", CHART, json=PATIENT, headers=other)),
        ("map", CaseRequest("GET", MAP, headers=other)),
    ):
        yield _case(
            f"{name}-not-acceptable", "406: a media type that is not offered", request, Expected(406, "not-acceptable")
        )
    too_old = {**PATIENT, "age_years": 121}
    yield _case(
        "chart-input",
        "422: a chart is refused like a score",
        CaseRequest("POST", CHART, json=too_old),
        Expected(422, "input-refused", (ExpectedError("out_of_range", "age_years"),)),
    )
    items = [{**PATIENT, "site": SITE}, {**too_old, "site": SITE}]
    counted = {"succeeded": 1, "failed": 1, "results[1].errors[].field": ["age_years"]}
    yield _case(
        "batch-numbers",
        "a batch gives the numbers of the single request, and an error of the other one",
        CaseRequest("POST", BATCH, json={"items": items}),
        _under("results[0]", numbers, equals, counted),
    )
    for name, path in (("calculator", "/"), ("card", f"/models/{SITE}/{VERSION}")):
        request = CaseRequest("GET", path, credential="none")
        yield _case(f"open-{name}", f"the page {path} needs no credential", request, Expected(200))


def _under(
    path: str, numbers: list[ExpectedNumber], equals: Mapping[str, object], more: Mapping[str, object] | None = None
) -> Expected:
    """The answer of a single request, as a part of a larger one."""
    moved = tuple(ExpectedNumber(f"{path}.{one.path}", one.value, one.tolerance) for one in numbers)
    same = {f"{path}.{name}": value for name, value in equals.items()}
    return Expected(200, numbers=moved, equals=same | dict(more or {}), rounded=True)


def _case(name: str, about: str, request: CaseRequest, expect: Expected) -> Case:
    return Case(name=name, about=about, models=SHIPPED, request=request, expect=expect)
