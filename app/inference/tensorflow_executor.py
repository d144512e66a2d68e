"""The executor of the GPU container: the same posterior as one compiled TensorFlow function, in float64.

The parameters are placed on the device once, at the start; a call moves covariates there and four numbers per person
back. Only the posterior is computed here; the distribution of NS stays in NumPy. Importing this module imports
TensorFlow (seconds, and some 700 MB): a process with the numpy backend never does.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import, else it writes its banner

import numpy as np
import tensorflow as tf

from app.errors import InvalidSettings
from app.inference.executor import LoadedModel
from app.maths.gp.posterior import HeteroscedasticPosterior, SparseGP
from app.maths.moments import Array, Moments
from app.store import StoredModel

BLOCK_ROWS = 16_384  # a block's matrices take some 15 MB at 55 inducing points
WARM_UP_ROWS = (1, 64)  # a single measurement, and a full batch

Tensor = Any  # TensorFlow brings no types


def choose_device(wanted: Literal["auto", "CPU", "GPU"]) -> str:
    """GPU or CPU. Raises InvalidSettings for a GPU that is not there: no silent fall-back."""
    gpus = tf.config.list_physical_devices("GPU")
    if wanted == "GPU" and not gpus:
        raise InvalidSettings(["NORMALCY_DEVICE=GPU is set, and TensorFlow finds no GPU."])
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)  # else one process takes all of its memory
    return "GPU" if gpus and wanted != "CPU" else "CPU"


def load_on_tensorflow(stored: StoredModel, device: str) -> LoadedModel:
    return LoadedModel(stored, TensorflowExecutor(stored.posterior, device))


@dataclass(frozen=True, slots=True, eq=False)
class TensorflowExecutor:
    posterior: HeteroscedasticPosterior
    device: str  # CPU or GPU
    compiled: Callable[[Tensor], Tensor] = field(init=False, repr=False)  # [N, D] -> [4, N]

    def __post_init__(self) -> None:
        with tf.device(f"/{self.device}:0"):
            object.__setattr__(self, "compiled", _compile(self.posterior))
        for rows in WARM_UP_ROWS:
            self.predict(np.tile(self.posterior.scaling.x_mean, (rows, 1)))

    def predict(self, X: Array) -> Moments:
        blocks = [self._block(X[start : start + BLOCK_ROWS]) for start in range(0, len(X), BLOCK_ROWS)]
        m1, v1, m2, v2 = np.concatenate(blocks, axis=1) if blocks else np.empty((4, 0))
        return Moments(m1, np.maximum(v1, 0.0), m2, np.maximum(v2, 0.0))

    def _block(self, X: Array) -> Array:
        with tf.device(f"/{self.device}:0"):
            moments: Array = self.compiled(tf.constant(X, tf.float64)).numpy()
        return moments


def _compile(posterior: HeteroscedasticPosterior) -> Callable[[Tensor], Tensor]:
    scaling = posterior.scaling
    mean, sd = tf.constant(scaling.x_mean), tf.constant(scaling.x_sd)
    shift, factor = tf.constant(posterior.shift), tf.constant(posterior.factor)
    sums = [_sums(posterior.f1), _sums(posterior.f2)]

    def moments(X: Tensor) -> Tensor:
        x = (X - mean) / sd
        features = tf.concat([tf.ones_like(x[:, :1]), x, x * x], axis=1)
        return shift + factor * tf.stack([column for each in sums for column in each(features)])

    signature = [tf.TensorSpec([None, posterior.covariates], tf.float64)]  # one trace serves every number of people
    compiled: Callable[[Tensor], Tensor] = tf.function(moments, input_signature=signature)
    return compiled


def _sums(gp: SparseGP) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """gᵀ w and Σ_j d_j (gᵀ P)_j², as `SparseGP.sums`."""
    landmarks, projection = tf.constant(gp.landmarks), tf.constant(gp.projection)
    weights, reduction = tf.constant(gp.weights), tf.constant(gp.reduction)
    shape, alpha = SHAPES[gp.kernel.name], gp.kernel.alpha

    def sums(features: Tensor) -> tuple[Tensor, Tensor]:
        g = shape(tf.linalg.matmul(features, landmarks), alpha)
        projected = tf.linalg.matmul(g, projection)
        return tf.linalg.matvec(g, weights), tf.linalg.matvec(projected * projected, reduction)

    return sums


def _power(u: Tensor, alpha: float) -> Tensor:
    return tf.exp(-alpha * tf.math.log(u))


def _exponential(u: Tensor, alpha: float) -> Tensor:
    return tf.exp(u)


def _matern52(u: Tensor, alpha: float) -> Tensor:
    u = tf.maximum(u, 0.0)  # rounding leaves -1e-16 where x = z
    root = tf.sqrt(u)
    return (1.0 + root + u / 3.0) * tf.exp(-root)


SHAPES = {"rational_quadratic": _power, "rbf": _exponential, "matern52": _matern52}
