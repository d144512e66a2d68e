"""The methods of the paper's Table 2, and three of them again on standardised columns.

Each learns from the training rows and answers for the test rows.

An answer is what a score is made of: one array `score` (the larger, the more anomalous), or for NS the four moments,
from which E[NS], the predictive score, the HDI and W2 follow without another fit (see `pooled`).
"""

from typing import Protocol

from app.benchmark.paper.recipes import Choice
from app.maths.moments import Array

Answer = dict[str, Array]  # name -> [N of the test rows]

# Method -> the module of its class; loaded on demand, for NS needs TensorFlow and the rest does not.
METHODS = {
    "NS": ("normalcy_score", "NormalcyScore"),
    "NS_hom": ("normalcy_score", "NormalcyScore"),
    "Z-score": ("linear", "LinearZ"),
    "Altman": ("linear", "Altman"),
    "QCAD": ("qcad", "Qcad"),
    "ROCOD": ("rocod", "Rocod"),
    "IForest": ("joint", "IsolationForest"),
    "LOF": ("joint", "LocalOutlierFactor"),
    "HBOS": ("joint", "Histograms"),
    "IForest_std": ("joint", "StandardisedForest"),
    "LOF_std": ("joint", "StandardisedOutlierFactor"),
    "HBOS_std": ("joint", "StandardisedHistograms"),
}
FITTED = ("NS", "NS_hom")  # these take a Choice


class Method(Protocol):
    def fit(self, X: Array, y: Array) -> None: ...

    def answer(self, X: Array, y: Array) -> Answer: ...


def module_of(method: str) -> str:
    return f"{__name__}.{METHODS[method][0]}"


def make(method: str, choice: Choice | None, seed: int) -> Method:
    from importlib import import_module

    made = getattr(import_module(module_of(method)), METHODS[method][1])
    method_object: Method = made(choice, seed) if method in FITTED else made(seed)
    return method_object
