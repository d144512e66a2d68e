from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import InvalidSettings
from app.settings import Settings, load_settings
from tests.web.serving import SCORE, Running, bearer, create_key, serving

PAGE = "https://app.example"
PREFLIGHT = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


def granted(headers: object) -> set[str]:
    return {name for name in map(str.lower, headers) if name.startswith("access-control-")}  # type: ignore[call-overload]


@pytest.mark.req("REQ-108")
def test_without_listed_origins_no_page_elsewhere_may_read_anything(shared: Running) -> None:
    for answer in (
        shared.client.options(SCORE, headers=PREFLIGHT),
        shared.score(headers={"Origin": PAGE}),
        shared.client.get("/health/ready", headers={"Origin": PAGE}),
    ):
        assert granted(answer.headers) == set()
    assert shared.client.options(SCORE, headers=PREFLIGHT).status_code == 405


@pytest.mark.req("REQ-108")
def test_an_origin_that_is_not_listed_gets_nothing(settings: Settings, models_dir: Path) -> None:
    with serving(replace(settings, cors_origins=(PAGE,)), models_dir) as running:
        for origin in ("https://other.example", "null", f"{PAGE}.evil", "http://app.example", f"{PAGE}/", ""):
            answer = running.client.options(SCORE, headers=PREFLIGHT | {"Origin": origin})
            assert answer.status_code == 405
            assert granted(answer.headers) == granted(running.score(headers={"Origin": origin}).headers) == set()


def test_a_listed_origin_may_call_and_read(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score"])
    with serving(replace(settings, cors_origins=("https://first.example", PAGE)), models_dir) as running:
        asked = running.client.options(SCORE, headers=PREFLIGHT)
        assert asked.status_code == 204
        assert asked.headers["Access-Control-Allow-Origin"] == PAGE
        assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
        assert asked.headers["X-Request-ID"]
        for answer in (
            running.score(headers=bearer(key) | {"Origin": PAGE}),
            running.score(headers={"Origin": PAGE}),  # a refusal must be readable too
        ):
            assert answer.headers["Access-Control-Allow-Origin"] == PAGE
            assert answer.headers["Vary"] == "Origin"
            assert "Access-Control-Allow-Credentials" not in answer.headers
            readable = answer.headers["Access-Control-Expose-Headers"].split(", ")
            assert {"X-Request-ID", "Retry-After", "Idempotent-Replayed"} <= set(readable)


@pytest.mark.parametrize(
    "text",
    ["*", "https://*", "https://app.example/", "https://app.example/path", "app.example", "https://u@app.example"],
)
def test_only_whole_origins_can_be_listed(text: str) -> None:
    with pytest.raises(InvalidSettings, match="NORMALCY_CORS_ORIGINS must be"):
        load_settings({"NORMALCY_CORS_ORIGINS": text})


def test_origins_are_separated_by_commas() -> None:
    settings = load_settings({"NORMALCY_CORS_ORIGINS": "https://a.example, http://localhost:3000"})
    assert settings.cors_origins == ("https://a.example", "http://localhost:3000")
