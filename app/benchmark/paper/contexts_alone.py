"""How sparse a context is, by detectors that see the contexts of a set and nothing else."""

import numpy as np
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.lof import LOF

from app.maths.moments import Array

DETECTORS = ("IForest", "LOF", "HBOS")


def sparseness(X: Array, detector: str, seed: int) -> Array:
    """[N] larger is sparser. PyOD's default settings, fitted on all contexts, which no injection touches."""
    made = {"IForest": lambda: IForest(random_state=seed), "LOF": LOF, "HBOS": HBOS}[detector]()
    made.fit(X)
    return np.asarray(made.decision_scores_, dtype=np.float64)
