"""Normalcy: the expected normalcy score of an aortic diameter, its interval, and how reliable it is.

The packages, from the top down; each imports only packages below it (checked by import-linter):

    cli                                   the `normalcy` command
    web, benchmark                        the HTTP API; the measurements of this project
    services                              use cases: score, replay, activate, verify, train, ...
    runtime                               what a process holds: database, loaded models, API keys, audit writer
    audit, inference                      the record of every response; scoring with a published model
    store, training, database, formats    model files, training with GPflow, SQL, wire formats
    schemas                               requests and responses, defined once
    domain, maths                         medical terms and their rules; the mathematics
    settings, observability, files, ...   configuration, logs and metrics, writing files safely
    errors                                every failure that a user can meet
"""

__version__ = "0.1.0"
