"""HTTP: an ordinary FastAPI application.

    app.py        creates the application                            routes/            path operations, by subject
    route.py      route class: authorise first, then strict JSON     resolver.py        fast resolution of dependencies
    security.py   security scheme, scopes, caller, throttle          middleware.py      request id, headers, metrics
    openapi.py    the OpenAPI document                               error_handlers.py  from errors to problem+json
    server.py     uvicorn: deadlines, limits, graceful shutdown      guide.py           docs/ as pages at /guide
    assets.py     files of the pages: compressed, with ETag          markdown_page.py   Markdown as a page
    static/       the calculator and the files of our own pages

`schemas` validates requests and documents responses, `services` does the work; SQL and models are below those. To add a
route, write a path operation in a file of `routes/` with the scope that it requires, and decide in
`tests/web/test_audit_decisions.py` what each of its outcomes leaves in the audit.
"""
