"""HTTP: an ordinary FastAPI application.

    app.py        creates the application                            routes/            path operations, by subject
    route.py      route class: authorise first, then strict JSON     resolver.py        fast resolution of dependencies
    security.py   security scheme, scopes, RuntimeDep, caller        middleware.py      request id, headers, metrics
    problems.py   from errors to problem+json                        error_handlers.py  exception handlers, throttle
    openapi.py    the OpenAPI document                               guide/             chapters of the guide
    server.py     uvicorn, with a graceful shutdown                  markdown_page.py   Markdown as a page
    protocol.py   deadlines and limits while a request arrives       static/            files of our own pages

`schemas` validates requests and documents responses, `services` does the work; SQL and models are below those. To add a
route, write a path operation in a file of `routes/` with the scope that it requires, and decide in
`tests/web/test_audit_decisions.py` what each of its outcomes leaves in the audit.
"""
