"""TensorFlow and GPflow, imported in one place with the settings that must come before the import.

One thread and deterministic operations: the same seed then gives the same model on the same machine, and at these
sizes (some thousand people, some fifty inducing points) more threads gain nothing.
"""

import os

_SETTINGS = {
    "TF_USE_LEGACY_KERAS": "1",  # GPflow's natural gradient is a Keras 2 optimiser
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_DETERMINISTIC_OPS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}
for _name, _value in _SETTINGS.items():
    os.environ.setdefault(_name, _value)

import gpflow  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_probability as tfp  # noqa: E402
import tf_keras  # noqa: E402

__all__ = ["gpflow", "tf", "tf_keras", "tfp"]
