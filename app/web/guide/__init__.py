"""The guide: chapters in Markdown (`*.md`), with tables filled from the tables that the code itself uses.

Code blocks marked `sh` are run by `tests/test_document_examples.py`, so they must work exactly as written. To add a
chapter, write the file and add its name to `CHAPTERS`; `tests/test_documents.py` says what the chapters must mention.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files

from app.domain.limits import Limit
from app.domain.scopes import Scope
from app.formats.markdown import table
from app.formats.summaries import ADULT, INTENDED_USE, PLAIN_REASONS
from app.observability import make_metrics
from app.schemas import errors as codes
from app.schemas.fields import request_limits
from app.schemas.problem import KEY_REUSED, PROBLEMS, STILL_ANSWERING, TYPE_PREFIX, ProblemKind
from app.settings import TABLE, Setting
from app.web.route import ApiRoute

CHAPTERS = (
    "welcome",
    "first-request",
    "answer",
    "reliability",
    "problems",
    "keys",
    "front-ends",
    "audit",
    "models",
    "routes",
    "settings",
    "operation",
    "command-line",
)
PLACEHOLDER = re.compile(r"^\{\{ (\w+) \}\}$", re.MULTILINE)
ANCHOR = TYPE_PREFIX.partition("#")[2]
# Reserved in advance so that clients can be written once; a test fails as soon as one of them is used.
NOT_IN_USE = (STILL_ANSWERING, KEY_REUSED)
ERROR_GROUPS = (
    ("Not JSON (400)", codes.NOT_JSON),
    ("Not acceptable (422)", codes.NOT_ACCEPTABLE),
    ("Looks like a unit mistake (422)", codes.UNIT_MISTAKES),
    ("One row of a file", codes.ROWS),
)
METRICS = "/metrics"


def guide(routes: Sequence[ApiRoute]) -> str:
    """All chapters in order as one Markdown text. A placeholder without a table is a defect and raises KeyError."""
    tables: Mapping[str, Callable[[], str]] = {
        "intended_use": lambda: f"> {INTENDED_USE}",
        "problems": lambda: "\n".join(map(_problem, PROBLEMS)),
        "errors": _errors,
        "reasons": _reasons,
        "limits": lambda: _table(("field", "allowed", "outside"), map(_limit, request_limits())),
        "settings": lambda: _table(("name", "meaning"), map(_setting, TABLE)),
        "metrics": _metrics,
        "scopes": lambda: _scopes(routes),
        "routes": lambda: _table(("address", "what it is"), map(_route, routes)),
    }
    return PLACEHOLDER.sub(lambda found: tables[found[1]](), "\n".join(map(chapter, CHAPTERS)))


def chapter(name: str) -> str:
    """As written, with its placeholders."""
    return (files("app.web.guide") / f"{name}.md").read_text("utf-8")


def _problem(problem: ProblemKind) -> str:
    note = " *Not in use yet.*" if problem in NOT_IN_USE else ""
    heading = f"#### {problem.title} {{#{ANCHOR}{problem.slug}}}"
    return f"{heading}\n\nStatus {problem.status}, `{problem.slug}`. {problem.detail}{note}\n"


def _errors() -> str:
    rows = [(f"`{code}`", group, meaning) for group, meanings in ERROR_GROUPS for code, meaning in meanings.items()]
    return _table(("code", "kind", "meaning"), rows)


def _reasons() -> str:
    rows = [(f"`{code}`", about, words.format_map(ADULT)) for (code, about), words in PLAIN_REASONS.items()]
    return _table(("reason", "about", "in the text for patients"), rows)


def _limit(limit: Limit) -> tuple[str, ...]:
    to = "to less than" if limit.high_excluded else "to"
    age = f", from age {limit.from_age_years:g}" if limit.from_age_years else ""
    default = "" if limit.default is None else f"; default {limit.default:g}"
    outside = f"accepted, with `{limit.advisory}`" if limit.advisory else "rejected"
    return f"`{limit.field}`", f"{limit.low:g} {to} {limit.high:g} {limit.unit}{age}{default}", outside


def _setting(setting: Setting) -> tuple[str, str]:
    name = f"`{setting.name}`" + (f", or a file named by `{setting.name}_FILE`" if setting.secret else "")
    default = f"`{setting.default}`" if setting.default else "empty"
    return name, f"{setting.meaning[0].upper()}{setting.meaning[1:]}. Must be {setting.allowed}. Default: {default}."


def _metrics() -> str:
    families = make_metrics().registry.collect()
    rows = [(f"`{f.name}{'_total' if f.type == 'counter' else ''}`", f.type, f.documentation) for f in families]
    return _table(("name", "type", "meaning"), rows)


def _scopes(routes: Sequence[ApiRoute]) -> str:
    allowed = {s: [_address(r) for r in routes if s in r.required_scopes and r.path != METRICS] for s in Scope}
    return _table(("scope", "allows"), [(f"`{scope}`", ", ".join(paths)) for scope, paths in allowed.items()])


def _route(route: ApiRoute) -> tuple[str, str]:
    if not route.required_scopes:
        access = "Open."
    else:
        exception = ", unless `NORMALCY_METRICS` opens it" if route.path == METRICS else ""
        access = f"Needs `{route.required_scopes[0]}`{exception}."
    return _address(route), f"{route.summary}. {access}"


def _address(route: ApiRoute) -> str:
    return f"`{route.method} {route.path}`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table(head, rows)).rstrip()
