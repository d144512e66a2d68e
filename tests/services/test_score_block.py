"""A block gives every measurement what the single request gives it, digit by digit."""

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.clock import utc_now
from app.formats.response import encode, score_response
from app.formats.score_table import COLUMNS, validate_table
from app.formats.table_files import RAGGED, Columns
from app.runtime.command import command_runtime
from app.runtime.runtime import Runtime
from app.schemas.request_columns import validate_items
from app.schemas.requests import ScoreRequest, SiteRequest
from app.services.score_block import BlockModels, ScoredBlock, score_block
from app.services.score_measurements import ResolvedRequest, make_result
from app.settings import load_settings

pytestmark = pytest.mark.anyio
STATED = {"edge": "leading", "phase": "end-diastole", "modality": "TTE"}
NUMBERED = {("SoV", "1.0.0"): 0, ("AA", "1.0.0"): 1}


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with command_runtime(load_settings({"NORMALCY_DATA_DIR": str(tmp_path)}), "score") as running:
        await running.poller.start()
        yield running


async def scored(runtime: Runtime, items: list[Any]) -> ScoredBlock:
    requests = validate_items(items)
    return score_block(requests, await BlockModels(runtime).find(requests))


def results(block: ScoredBlock, first: int = 0) -> list[dict[str, Any]]:
    numbers = {group.model.ref: NUMBERED[group.model.ref.site, "1.0.0"] for group in block.groups}
    return [json.loads(item) for item in block.items(first, numbers)]


def a_measurement(rng: random.Random) -> dict[str, Any]:
    """Of all ages and sizes, with all options."""
    age = rng.choice([rng.uniform(0.0, 120.0), rng.uniform(20.0, 80.0)])
    height = rng.uniform(45.0, 110.0) if age < 5 else rng.gauss(168.0, 12.0)
    weight = min(max(rng.uniform(12.0, 40.0) * (height / 100.0) ** 2, 1.6), 349.0)
    item: dict[str, Any] = {
        "age_years": age, "sex": rng.choice(["male", "female"]), "height_cm": height, "weight_kg": weight,
        "diameter_mm": rng.choice([rng.uniform(10.0, 120.0), rng.gauss(34.0, 4.0)]),
    }  # fmt: skip
    if rng.random() < 0.5:
        item["convention"] = rng.choice([STATED, {"edge": "inner"}, {"edge": "outer", "modality": "CT"}])
    if rng.random() < 0.2:
        item["thresholds"] = rng.choice([[2.0, 3.0], [-2, 0, 2.5]])
    if rng.random() < 0.05:
        item["hdi_probability"] = 0.9
    if rng.random() < 0.2:
        item["measurement_sd_mm"] = rng.uniform(0.0, 5.0)
    if rng.random() < 0.3:
        item["include_unreliable"] = True
    return item


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_every_field_has_the_digits_of_the_single_response(runtime: Runtime, count: int) -> None:
    rng = random.Random(count)  # noqa: S311 - a reproducible sample
    sites, measurements = rng.choices(["SoV", "AA"], k=count), [a_measurement(rng) for _ in range(count)]
    block = await scored(runtime, [{"site": site, **item} for site, item in zip(sites, measurements, strict=True)])
    assert block.succeeded == count
    for k, found in enumerate(results(block)):
        single = await single_response(runtime, ScoreRequest.model_validate(measurements[k]).for_site(sites[k]))
        expected = {name: value for name, value in single.items() if name not in LEFT_OUT}
        assert close({name: value for name, value in found.items() if name not in ADDED}, expected), (k, found, single)


async def single_response(runtime: Runtime, request: SiteRequest) -> Any:
    """As `score_measurement` makes it, without the record."""
    resolved = ResolvedRequest(runtime.loaded_models.find_current(request.site), request)
    result = make_result(runtime, resolved, await runtime.batcher.submit(resolved.model, request.query), utc_now())
    return json.loads(encode(score_response("r", result)))


LEFT_OUT = ("request_id", "summary", "provenance")
ADDED = ("index", "id", "model")


def close(found: Any, expected: Any) -> bool:
    """Equal, apart from the last of nine digits: a single measurement is computed with floats, many with arrays."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return bool(np.isclose(found, expected, rtol=1e-8, atol=1e-12))
    return bool(found == expected)


async def test_a_bad_item_gets_its_errors_and_the_others_their_scores(runtime: Runtime) -> None:
    good = {"site": "SoV", "age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41}
    items = [good, good | {"id": "b", "diameter_mm": 4.1}, good | {"site": "XX"}, good | {"model_version": "9.9.9"},
             good | {"id": "e", "site": "AA"}, None]  # fmt: skip
    block = await scored(runtime, items)
    found = results(block, 100)
    assert (block.succeeded, len(block.errors)) == (2, 4)
    assert [(one["index"], one["id"]) for one in found] == [
        (100, None),
        (101, "b"),
        (102, None),
        (103, None),
        (104, "e"),
        (105, None),
    ]
    codes = [[error["code"] for error in one.get("errors", [])] for one in found]
    assert codes == [[], ["given_in_cm"], ["unknown_site"], ["unknown_version"], [], ["wrong_type"]]
    assert (found[0]["model"], found[4]["model"], found[4]["site"]) == (0, 1, "AA")
    flat = block.flat(100)
    assert list(flat) == [column.name for column in COLUMNS]
    assert flat["error_codes"].tolist() == [None, "given_in_cm", "unknown_site", "unknown_version", None, "wrong_type"]
    assert flat["site"].tolist() == ["SoV", "SoV", "XX", "SoV", "AA", None]
    assert flat["index"].tolist() == list(range(100, 106))
    assert flat["expected_ns"][0] == found[0]["score"]["expected_ns"]
    assert np.isnan(flat["expected_ns"][1])


async def test_an_unknown_site_or_version_is_listed_with_the_other_errors_of_its_item(runtime: Runtime) -> None:
    bad = {"site": "SoV", "age_years": 200, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41}
    named = [{}, {"site": "XX"}, {"model_version": "7.7.7"}, {"site": "XX", "model_version": "7.7.7"},
             {"site": "XX", "model_version": ""}, {"site": "", "model_version": "7.7.7"}]  # fmt: skip
    block = await scored(runtime, [bad | more for more in named])
    codes = [[error.code for error in block.errors[row]] for row in range(len(named))]
    assert codes == [
        ["out_of_range"],
        ["out_of_range", "unknown_site"],
        ["out_of_range", "unknown_version"],
        ["out_of_range", "unknown_site"],
        ["out_of_range", "too_short", "unknown_site"],
        ["out_of_range", "too_short"],
    ]
    cells: Columns = {name: [str((bad | more)[name]) for more in named[1:4]] for name in bad}
    requests = validate_table(cells | {"model_version": [more.get("model_version", "") for more in named[1:4]]})
    of_table = score_block(requests, await BlockModels(runtime).find(requests))
    assert [of_table.errors[row] for row in range(3)] == [block.errors[row] for row in (1, 2, 3)]


async def test_a_row_with_other_cells_than_the_header_names_no_model(runtime: Runtime) -> None:
    row = {"site": "XX", "age_years": "x", "sex": "male", "height_cm": "176", "weight_kg": "84", "diameter_mm": "41"}
    cells: Columns = {name: [cell] for name, cell in row.items()}
    requests = validate_table(cells | {RAGGED: [5]})
    block = score_block(requests, await BlockModels(runtime).find(requests))
    assert [error.code for error in block.errors[0]] == ["ragged_row"]


async def test_rows_of_a_table_are_scored_as_items_are(runtime: Runtime) -> None:
    item = {"id": "a", "site": "AA", "age_years": 55.5, "sex": "male", "height_cm": 176, "weight_kg": 84,
            "diameter_mm": 41, "thresholds": [2, 3], "convention": {"edge": "inner"}}  # fmt: skip
    row = {name: str(value) for name, value in item.items() if name not in ("thresholds", "convention")}
    requests = validate_table(
        {name: [cell] for name, cell in (row | {"thresholds": "2;3", "convention.edge": "inner"}).items()}
    )
    of_table = score_block(requests, await BlockModels(runtime).find(requests))
    assert results(of_table) == results(await scored(runtime, [item]))


async def test_current_is_resolved_once(runtime: Runtime) -> None:
    item = {"site": "SoV", "age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41}
    requests, models = validate_items([item]), BlockModels(runtime)
    before = runtime.loaded_models.find_current("SoV")
    runtime.loaded_models.make_current(runtime.loaded_models.backend.load(before.stored))
    assert runtime.loaded_models.find_current("SoV") is not before
    [found] = (await models.find(requests)).values()
    assert found is before


async def test_names_that_do_not_exist_are_not_remembered_for_ever(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.score_block.MAX_NAMES", 3)
    man = {"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41}
    models = BlockModels(runtime)
    for number in range(10):
        requests = validate_items([man | {"site": site} for site in (f"unknown{number}", "SoV")])
        found = await models.find(requests)
        assert len(found) <= 4
        assert score_block(requests, found).succeeded == 1
