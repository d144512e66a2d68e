"""Properties of every score, and the same bytes from every process and after a restart."""

import hashlib
import math
import random
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import groupby, pairwise
from typing import Any

import httpx
import msgspec

from tests.campaigns.faults.cycles import verdict_unmet, verify
from tests.campaigns.faults.row import Context, Figure, Finding
from tests.campaigns.faults.target import running, second_replica, started
from tests.campaigns.service_process import ServiceProcess

Json = dict[str, Any]
DIAMETERS = 10  # of one patient, ascending
BATCH = 5_000  # inputs of one request
TIMEOUT_SECONDS = 120.0
CHILDREN = 0.2  # share
TINY = 1e-12  # of a probability: relative errors below it (at 1e-50, say) are larger than the differences
CHANGING = re.compile(rb'"(request_id|computed_at)":"[^"]*"')  # of each request, not of a score


def inputs(rng: random.Random, count: int) -> list[Json]:
    return [item for _ in range(math.ceil(count / DIAMETERS)) for item in _patient(rng)][:count]


def _patient(rng: random.Random) -> Iterator[Json]:
    """Somebody from nearly the whole range that is accepted, with ascending diameters."""
    is_child = rng.random() < CHILDREN
    age = rng.uniform(1, 17) if is_child else rng.uniform(18, 100)
    height = (75 + 5.5 * age) * rng.uniform(0.9, 1.1) if is_child else rng.uniform(140, 205)
    weight = rng.uniform(13, 25 if is_child else 45) * (height / 100) ** 2
    patient = {
        "site": rng.choice(("SoV", "AA")),
        "age_years": round(age, 2),
        "sex": rng.choice(("male", "female")),
        "height_cm": round(height, 1),
        "weight_kg": round(weight, 1),
        "measurement_sd_mm": rng.choice((0.0, 0.5, 1.5)),
        "include_unreliable": True,
    }
    for tenths in sorted(rng.sample(range(100, 700), DIAMETERS)):
        yield patient | {"diameter_mm": tenths / 10}


def violations(results: Sequence[Json]) -> Counter[str]:
    """By property, in the scores of one patient with ascending diameters."""
    found = Counter[str]()
    for result in results:
        found["not finite"] += not all(map(math.isfinite, _numbers(result)))
        found["not in order"] += not all(low <= high for low, high in _ordered(result))
        found["not a probability"] += not all(0.0 <= value <= 1.0 for value in _probabilities(result))
    for smaller, larger in pairwise(results):
        found["not monotone"] += not (
            smaller["score"]["expected_ns"] < larger["score"]["expected_ns"]
            and smaller["reference"]["percentile"] <= larger["reference"]["percentile"]
            and all(
                one["probability"] <= other["probability"] + TINY
                and one["probability_below"] >= other["probability_below"] - TINY
                for one, other in zip(smaller["score"]["exceedance"], larger["score"]["exceedance"], strict=True)
            )
        )
    return +found


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
    elif isinstance(value, float | int):
        yield value


def _scores(result: Json) -> Iterable[Json]:
    return (score for score in (result["score"], result["score_with_measurement_error"]) if score)


def _ordered(result: Json) -> Iterator[tuple[float, float]]:
    for interval in (*(score["hdi"] for score in _scores(result)), result["reference"]["interval_mm"]):
        yield interval["low"], interval["high"]
    for at in result["reference"]["diameter_at_threshold_mm"]:
        yield from pairwise((at["low"], at["median"], at["high"]))


def _probabilities(result: Json) -> Iterator[float]:
    for score in _scores(result):
        for one in score["exceedance"]:
            yield from (one["probability"], one["probability_below"])
    yield result["reference"]["percentile"] / 100
    yield result["reliability"]["context_hdi_width_percentile"] / 100


async def run_metamorphic(context: Context) -> Finding:
    """A cycle is an accepted input. All go to one process, then to it again after a restart and to any other one."""
    rng, accepted, rejected, found = context.rng(), 0, 0, Counter[str]()
    batches, digests = list[bytes](), list[str]()
    async with started(context) as target, AsyncExitStack() as stack:
        for first in context.each_cycle(BATCH):
            batches.append(msgspec.json.encode({"items": inputs(rng, min(BATCH, context.cycles - first))}))
            answer = await _score(target.service, batches[-1])
            digests.append(_digest(answer))
            results = [one for one in msgspec.json.decode(answer)["results"] if "errors" not in one]
            accepted += len(results)
            rejected += msgspec.json.decode(answer)["failed"]
            for _, same in groupby(results, lambda one: {**one["input"], "site": one["site"], "diameter_mm": None}):
                found += violations(list(same))
        await target.service.end(signal.SIGTERM)
        await target.service.start()
        services = [target.service]
        if target.server is not None:
            services.append(await stack.enter_async_context(running(second_replica(target, context.program))))
        for service in services:
            answers = [_digest(await _score(service, batch)) for batch in batches]
            found["other bytes"] += sum(one != other for one, other in zip(answers, digests, strict=True))
        verdict = await verify(target)
    names = ("not finite", "not in order", "not a probability", "not monotone", "other bytes")
    figures: dict[str, Figure] = {
        "rejected": rejected,
        "processes compared": 1 + len(services),
        **{name: found[name] for name in names},
    }
    unmet = [f"{name} {count:,}" for name, count in found.items() if count]
    unmet += [f"rejected {rejected:,}"] if rejected else []
    unmet += verdict_unmet(verdict)
    return Finding(accepted, figures, unmet)


async def _score(service: ServiceProcess, batch: bytes) -> bytes:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{service.port}", timeout=TIMEOUT_SECONDS) as client:
        answer = await client.post("/v1/batch/score", content=batch, headers={"Content-Type": "application/json"})
    return answer.raise_for_status().content


def _digest(answer: bytes) -> str:
    return hashlib.sha256(CHANGING.sub(b"", answer)).hexdigest()
