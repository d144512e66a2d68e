"""The experiments of the paper "Dealing with Uncertainty in Contextual Anomaly Detection", run again.

    data            the five UCI sets: downloaded, read and checked
    protocol        injected anomalies, folds, one task (fit a fold, answer for its test rows), the methods by name
    recipes         what can be chosen about a fit of NS        tasks     which tasks an experiment consists of
    normalcy_score  NS and NS_hom                               methods   what they are compared with
    runner          processes or a Dask cluster, stored results, the digest of the code that made them
    study           the answers of an injection together        published the paper's numbers
    run             all of it in its order                      report    docs/paper.md from its chapters

Chapters of the UCI sets, each with its computation, figure and text: choice, noise, detection, abstention, sparsity,
sensitivity. Chapters of their own: clinical (text in clinical_report), density, growth, variance_as_sd. Their
prose is in `templates/`, filled in by `rendering`, so that a sentence of the report can change without a fit.

A stored result is valid as long as the code that made it stays the same (see `runner.code_digest`). To add a method:
a class with `fit` and `answer`, and a line in `protocol.METHODS`. To add a chapter: a module with `run`, `render` and
`headline`, its name in `run.CHAPTERS`, and a template.
"""
