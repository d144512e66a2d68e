"""The `normalcy` command: what must be set before NumPy is loaded, then the commands, which load it."""

import os


def main() -> None:
    # A second BLAS thread costs time at these sizes (15 against 9 µs a patient), and one thread gives the same digits
    # everywhere. NumPy reads these variables once, when it is loaded.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")

    from app.cli.commands import run

    run()
