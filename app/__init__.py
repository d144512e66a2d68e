"""Normalcy: the expected normalcy score of an aortic diameter, its interval, and how far to trust it.

The rooms, from the bottom up (import-linter keeps the order):

    errors                            what can go wrong
    settings, observability           what is configured; what is told
    domain, maths                     the words of medicine; the numbers (no IO, no clock, no global random state)
    store, training, ...              adapters: the model store on disk, GPflow, SQL, wire formats
    inference, audit                  executors of a published model; the record of every answer
    services                          use cases, named by verbs
    web, benchmark                    doors: HTTP; the measurements of this project
    cli                               the `normalcy` command
"""

__version__ = "0.1.0"
