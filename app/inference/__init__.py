"""Executors of a published model, and the golden cases that every executor must reproduce.

`executor` says what an executor is, `numpy_executor` is the default one (no TensorFlow in the process),
`golden` makes and runs golden cases. To add a backend, write a class with `backend`, `device` and `predict`,
and let `check_golden` pass on every published version before it answers.

What does not live here: the distribution of NS (`app.maths`), what is done with a score (`app.services`).
"""
