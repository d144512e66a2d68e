"""NS and NS_hom: our trainer on the contexts of a fold. Standardisation happens inside the fit, on training rows."""

from app.benchmark.paper.protocol import Answer
from app.benchmark.paper.recipes import Choice, Contexts
from app.maths.moments import Array
from app.training.fit import fit


class NormalcyScore:
    def __init__(self, choice: Choice, seed: int) -> None:
        self._choice = choice
        self._seed = seed

    def fit(self, X: Array, y: Array) -> None:
        self._contexts = Contexts.of(X, self._choice.log)
        self._fitted = fit(self._contexts.transformed(X), y, self._choice.details(), self._seed)

    def answer(self, X: Array, y: Array) -> Answer:
        moments = self._fitted.posterior.predict(self._contexts.transformed(X))
        return {name: getattr(moments, name) for name in ("m1", "v1", "m2", "v2")}

    @property
    def second_attempts(self) -> list[str]:
        """What had to be done again: a stage, or the whole fit with more jitter."""
        record = self._fitted.record
        stages = [f"{stage.name}: {stage.message}" for stage in record.stages if "second attempt" in stage.message]
        jitter = record.recipe["jitter"]
        return stages if jitter == self._choice.details().jitter else [f"the fit: with jitter {jitter}", *stages]
