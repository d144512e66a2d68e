"""Checks that any deployment keeps the service contract, over real HTTP, with the published cases of `cases.json`.

`cases` defines the file; `run` sends its requests and compares the responses.
The expected numbers are computed with mpmath by `app.benchmark.conformance`, never by the service itself.
"""
