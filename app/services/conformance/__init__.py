"""Checks that any deployment keeps the service contract, over real HTTP, with the published cases of `cases.json`.

`cases` defines the file, `client` sends one request, `judge` compares the response, `run` goes through all of them.
The expected numbers are computed with mpmath by `app.benchmark.conformance`, never by the service itself.
"""
