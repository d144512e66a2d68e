"""The application. Nothing happens at import: the runtime opens when the application starts, and closes with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

import app
from app.runtime.runtime import open_runtime
from app.services.verify_audit import verify_regularly
from app.settings import Settings
from app.web import openapi
from app.web.assets import read_assets
from app.web.error_handlers import add_error_handlers
from app.web.middleware import add_middleware
from app.web.route import ApiRoute
from app.web.routes import audit, batch, charts, health, models, pages, scores
from app.web.security import Throttle

ROUTERS = (scores.router, batch.router, charts.router, models.router, audit.router, health.router, pages.router)
ROUTES = tuple(route for router in ROUTERS for route in router.routes if isinstance(route, ApiRoute))

# FastAPI's own telemetry repeats the messages of exceptions, and with them what callers sent.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def create_app(settings: Settings, *, precompiled: bool = True) -> FastAPI:
    """`precompiled=False` leaves the resolution of dependencies to FastAPI, which is slower; see `resolver`."""

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        read_assets()  # now, not during the first request
        async with open_runtime(settings) as runtime:
            application.state.runtime = runtime
            verifying = asyncio.create_task(verify_regularly(runtime))
            yield
            verifying.cancel()
            await asyncio.wait([verifying])

    application = FastAPI(
        title="Normalcy",
        version=app.__version__,
        summary=openapi.SUMMARY,
        description=openapi.DESCRIPTION,
        openapi_tags=openapi.TAGS,
        lifespan=lifespan,
        openapi_url=None,  # served by routes/pages.py, with examples from the loaded models
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat the query
        telemetry=NO_TELEMETRY,
    )
    application.state.precompiled = precompiled
    application.state.throttle = Throttle()
    add_error_handlers(application)
    add_middleware(application, settings.cors_origins)
    # As include_router does, but without the wrapper that it puts around a router: that costs every request time.
    application.router.routes.extend(ROUTES)
    return application
