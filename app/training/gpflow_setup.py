"""TensorFlow and GPflow, imported in one place with the settings that must come before the import.

One thread and deterministic operations: the same seed then gives the same model on the same machine. A variable
that is already set in the environment is left alone.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_SETTINGS = {
    "TF_USE_LEGACY_KERAS": "1",  # GPflow's natural gradient is a Keras 2 optimiser
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_DETERMINISTIC_OPS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}
for _name, _value in _SETTINGS.items():
    os.environ.setdefault(_name, _value)


@contextmanager
def _native_notes_hidden() -> Iterator[None]:
    """TensorFlow's libraries print to the terminal which graphics drivers are missing, before any setting is read."""
    terminal = os.dup(2)
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


with _native_notes_hidden():
    import gpflow
    import tensorflow as tf
    import tensorflow_probability as tfp
    import tf_keras

# GPflow uses parts of TensorFlow that are deprecated; our pins hold versions that work together.
tf.get_logger().setLevel("ERROR")

__all__ = ["gpflow", "tf", "tf_keras", "tfp"]
