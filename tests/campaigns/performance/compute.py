"""What a measurement of a batch costs by stage, and how that grows with the batch and with the inducing points."""

import random
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import msgspec
import numpy as np

from app.inference.executor import load_on_numpy
from app.schemas.request_columns import validate_items
from app.schemas.requests import CURRENT
from app.services.score_block import score_block
from app.store import load
from tests.campaigns.load_client import measurement
from tests.campaigns.performance.section import Plot, Section, Table
from tests.campaigns.servers import OUR_TREE
from tests.samples import a_posterior

BLOCK = 1000  # measurements that are scored together
# Rounds, measurements of the batch that is split by stage, sizes of batches, inducing points.
FULL = (9, 10_000, (1, 10, 100, 1000, 10_000), (10, 25, 50, 100, 200, 400))
QUICK = (3, 2000, (1, 100, 1000), (10, 100))
TEXT = """\
µs of processor time a measurement, medians of alternating rounds, in one process and without HTTP. The stages are those
of a batch in blocks of 1,000: *parse* reads the JSON, *validate* checks all fields, *score and judge* gives every
number and verdict, *print* writes the JSON of the answers. The last column is msgspec alone, which parses the same
requests and prints the same answers: no service that sends JSON can do without that."""
HEADS = "from validation to JSON", "prediction alone"
COST = "µs of processor time each"


def measure(quick: bool) -> Section:
    rounds, count, batches, points = QUICK if quick else FULL
    stages, times = Stages(count), []
    for _ in range(rounds):
        times.append(stages.run())
    names = list(times[0])
    middle = {name: median(one[name] for one in times) for name in names}
    sizes = {size: _cost_of_size(stages, size, rounds) for size in batches}
    inducing = {m: _prediction(m, rounds) for m in points}
    alone = middle.pop("JSON alone")
    each = (*middle.values(), sum(middle.values()), alone)
    return Section(
        "A batch",
        TEXT,
        [
            Table([*middle, "all", "JSON alone"], [[f"{value:.1f}" for value in each]]),
            Table(["measurements of a batch", *map(str, sizes)], [[HEADS[0], *(f"{v:.1f}" for v in sizes.values())]]),
            Table(["inducing points", *map(str, inducing)], [[HEADS[1], *(f"{v:.2f}" for v in inducing.values())]]),
        ],
        [
            Plot("batch-size", "By the size of the batch", "measurements", COST, {HEADS[0]: list(sizes.items())}),
            Plot("inducing-points", "By inducing points", "inducing points", COST, {HEADS[1]: list(inducing.items())}),
        ],
    )


class Stages:
    def __init__(self, count: int) -> None:
        rng = random.Random(1)  # noqa: S311 - not for secrets
        self.items: list[dict[str, Any]] = [{"site": "SoV", "id": str(k), **measurement(rng)} for k in range(count)]
        self.text = msgspec.json.encode({"items": self.items})
        model = load_on_numpy(load(OUR_TREE / "models_store", "SoV", "1.0.0"))
        self.models = {("SoV", CURRENT): model}
        self.numbers = {model.ref: 0}

    def run(self) -> dict[str, float]:
        """µs a measurement, by stage."""
        count, clock = len(self.items), process_time()
        took: dict[str, float] = dict.fromkeys(("parse", "validate", "score and judge", "print"), 0.0)

        def lap(stage: str) -> None:
            nonlocal clock
            now = process_time()
            took[stage] += (now - clock) / count * 1e6
            clock = now

        items = msgspec.json.decode(self.text)["items"]
        lap("parse")
        printed: list[bytes] = []
        for first in range(0, count, BLOCK):
            requests = validate_items(items[first : first + BLOCK])
            lap("validate")
            block = score_block(requests, self.models)
            lap("score and judge")
            printed += block.items(first, self.numbers)
            lap("print")
        answers = [msgspec.json.decode(item) for item in printed]
        clock = process_time()
        msgspec.json.decode(self.text)
        msgspec.json.encode(answers)
        took["JSON alone"] = (process_time() - clock) / count * 1e6
        return took


def _cost_of_size(stages: Stages, size: int, rounds: int) -> float:
    items = (stages.items * (size // len(stages.items) + 1))[:size]
    repeats = max(1, 200 // size)

    def once() -> None:
        for _ in range(repeats):
            for first in range(0, size, BLOCK):
                score_block(validate_items(items[first : first + BLOCK]), stages.models).items(first, stages.numbers)

    return median(_microseconds(once) for _ in range(rounds)) / (size * repeats)


def _prediction(inducing: int, rounds: int) -> float:
    posterior, rng = a_posterior(inducing=inducing), np.random.default_rng(0)
    columns = (np.log(rng.uniform(20, 75, BLOCK)), rng.integers(0, 2, BLOCK), rng.uniform(155, 190, BLOCK))
    X = np.column_stack([*columns, rng.uniform(55, 95, BLOCK)])
    return median(_microseconds(lambda: posterior.predict(X)) for _ in range(rounds)) / BLOCK


def _microseconds(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return (process_time() - began) * 1e6
