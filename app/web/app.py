"""The application. Nothing happens at import; the service opens when the application starts and closes when it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp

import app
from app.runtime.runtime import Runtime, open_runtime
from app.settings import Settings
from app.web import openapi
from app.web.door import Door, DoorRoute
from app.web.envelope import Envelope
from app.web.pace import Pace
from app.web.routes import audit, health, models, pages, scores, sites

DOORS: tuple[Door, ...] = (*scores.DOORS, *sites.DOORS, *models.DOORS, *audit.DOORS, *health.DOORS, *pages.DOORS)

# FastAPI's own telemetry repeats the messages of exceptions, and with them what callers sent.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


class Application(FastAPI):
    runtime: Runtime  # while it runs
    pace: Pace  # of refusals

    def build_middleware_stack(self) -> ASGIApp:
        """One layer instead of the framework's five: the envelope catches what theirs would, and doors need no more."""
        return Envelope(self.router)


def create_app(settings: Settings) -> Application:
    @asynccontextmanager
    async def lifespan(application: Application) -> AsyncIterator[None]:
        async with open_runtime(settings) as runtime:
            application.runtime = runtime
            yield

    application = Application(
        title="Normalcy",
        version=app.__version__,
        summary=openapi.SUMMARY,
        description=openapi.DESCRIPTION,
        openapi_tags=openapi.TAGS,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect repeats the query
        telemetry=NO_TELEMETRY,
    )
    application.pace = Pace()
    application.router.routes.extend(DoorRoute(door) for door in DOORS)
    return application
