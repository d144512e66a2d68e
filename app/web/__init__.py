"""HTTP: the door that browsers, scripts and hospital systems use.

    app.py        the application and what runs while it serves      server.py     uvicorn, drained gently
    protocol.py   deadlines and bounds while a request arrives       envelope.py   what every response wears
    door.py       a route with its lock                              call.py       one request on its way through
    security.py   who may pass                                       problems.py   from errors to answers
    routes/       one file per subject, at most 100 lines each       schemas/      what the OpenAPI pages say
    openapi.py    the OpenAPI document                               guide/        the chapters of the guide
    reading.py    Markdown as a page                                 assets.py     the files of pages, and their policy
    static/       the few files of our own pages                     pace.py       how fast strangers are refused

What a request means is parsed by `formats`, answered by `services`; SQL and models stay below. To add a route, write
`async def name(call: Call) -> Response` in a file of `routes/`, add a `Door` with its lock to the file's `DOORS`, and
decide in `tests/web/test_audit_decisions.py` what each of its outcomes leaves on record.
"""
