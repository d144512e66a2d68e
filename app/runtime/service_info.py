"""Which program this is: its version and commit, as every answer tells them."""

import app
from app.build_info import UNKNOWN, source_commit
from app.formats.answer import ServiceInfo
from app.runtime.load_model import Backend
from app.settings import Settings


def service_info(settings: Settings, backend: Backend) -> ServiceInfo:
    commit = settings.commit if settings.commit != UNKNOWN else source_commit()
    return ServiceInfo(app.__version__, commit, backend.name, backend.device)
