"""Executors of a published model, and the golden cases that every executor must reproduce.

`executor` says what an executor is and holds the default one (no TensorFlow in the process). `scoring` is the way from
measurements to answers: `measurement_numbers` computes, `reliability_rules` and `advisories` judge, `answer_columns`
rounds, checks and fills the answers. `microbatch` scores what arrives together, and `golden` makes and runs golden
cases. To add a backend, write a class with `predict`, and let `check_golden` pass on every published version before it
answers.

What does not live here: the distribution of NS (`app.maths`), what is done with a score (`app.services`).
"""
