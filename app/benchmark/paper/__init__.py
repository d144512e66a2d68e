"""The experiments of the paper "Dealing with Uncertainty in Contextual Anomaly Detection", run again.

Definitions, machinery and rendering are apart, so that a sentence of the report can change without a fit:

    sets, data              the five UCI sets, read and checked      protocol      injected anomalies, folds
    download, archives      from UCI into a cache
    recipes, methods/       what is fitted                           work          one task: fit a fold, answer
    plan                    which tasks an experiment consists of    choice        the recipe, from inner folds
    pool                    processes or a Dask cluster              kept          finished tasks as files
    code_digest, origin     what made a result                       run           all of it in its order

    pooled, study           the answers of an injection together     published     the paper's numbers
    detection, abstention, sparsity, sensitivity, noise              the numbers of the tables, all in `measured`
    report, report_*        Markdown; drawings, canvas: figures      chapters      clinical, growth, slip

A kept result is valid as long as the code that made it stays the same (see `code_digest`). To add a method: a class in
`methods/` with `fit` and `answer`, and a line in `methods.METHODS`. To add a chapter: a module with `run`, one with
`render`, and its name in `chapters.CHAPTERS`.
"""
