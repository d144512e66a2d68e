"""The tables of the guide, from the tables that the code itself goes by: what is told cannot differ from what is."""

from collections.abc import Iterable, Sequence

from app.domain.limits import Limit
from app.domain.scopes import Scope
from app.formats import faults as codes
from app.formats.markdown import table
from app.formats.problem import KEY_REUSED, PROBLEMS, STILL_ANSWERING, TYPE_PREFIX, Problem
from app.formats.summaries import ADULT, PLAIN_REASONS
from app.observability import make_metrics
from app.schemas.fields import request_limits
from app.settings import TABLE, Setting
from app.web.door import Door

ANCHOR = TYPE_PREFIX.partition("#")[2]
# Fixed beforehand, so that clients can be written once; a test notices when one of them comes into use.
NOT_IN_USE = (STILL_ANSWERING, KEY_REUSED)
FAULTS = (
    ("Not JSON (400)", codes.NOT_JSON),
    ("Not acceptable (422)", codes.NOT_ACCEPTABLE),
    ("Looks like a slip (422)", codes.SLIPS),
    ("One row of a file", codes.ROWS),
)


def problems() -> str:
    return "\n".join(map(_problem, PROBLEMS))


def _problem(problem: Problem) -> str:
    note = " *Not in use yet.*" if problem in NOT_IN_USE else ""
    heading = f"#### {problem.title} {{#{ANCHOR}{problem.slug}}}"
    return f"{heading}\n\nStatus {problem.status}, `{problem.slug}`. {problem.detail}{note}\n"


def faults() -> str:
    rows = [(f"`{code}`", group, meaning) for group, meanings in FAULTS for code, meaning in meanings.items()]
    return _table(("code", "kind", "meaning"), rows)


def reasons() -> str:
    rows = [(f"`{code}`", about, words.format_map(ADULT)) for (code, about), words in PLAIN_REASONS.items()]
    return _table(("reason", "about", "in the text for patients"), rows)


def limits() -> str:
    return _table(("field", "allowed", "outside"), map(_limit, request_limits()))


def _limit(limit: Limit) -> tuple[str, ...]:
    to = "to less than" if limit.high_excluded else "to"
    age = f", from age {limit.from_age_years:g} on" if limit.from_age_years else ""
    default = "" if limit.default is None else f"; default {limit.default:g}"
    outside = f"answered, with `{limit.advisory}`" if limit.advisory else "refused"
    return f"`{limit.field}`", f"{limit.low:g} {to} {limit.high:g} {limit.unit}{age}{default}", outside


def settings() -> str:
    return _table(("name", "meaning"), map(_setting, TABLE))


def _setting(setting: Setting) -> tuple[str, str]:
    name = f"`{setting.name}`" + (f", or a file named by `{setting.name}_FILE`" if setting.secret else "")
    default = f"`{setting.default}`" if setting.default else "empty"
    return name, f"{setting.meaning[0].upper()}{setting.meaning[1:]}. Must be {setting.allowed}. Default: {default}."


def metrics() -> str:
    families = make_metrics().registry.collect()
    rows = [(f"`{f.name}{'_total' if f.type == 'counter' else ''}`", f.type, f.documentation) for f in families]
    return _table(("name", "type", "meaning"), rows)


def scopes(doors: Sequence[Door]) -> str:
    opened = {scope: [f"`{d.method} {d.path}`" for d in doors if d.lock == scope] for scope in Scope}
    return _table(("scope", "opens"), [(f"`{scope}`", ", ".join(paths)) for scope, paths in opened.items()])


def doors(every: Sequence[Door]) -> str:
    return _table(("address", "what it is"), [(f"`{d.method} {d.path}`", f"{_told(d)}. {_lock(d)}") for d in every])


def _lock(door: Door) -> str:
    return {"open": "Open.", "metrics": "Needs `model:read`, unless `NORMALCY_METRICS` opens it."}.get(
        door.lock, f"Needs `{door.lock}`."
    )


def _told(door: Door) -> str:
    """The summary of the OpenAPI page, or what the code says of a page."""
    summary: str = door.openapi.get("summary", "") or (door.endpoint.__doc__ or "").strip().rstrip(".")
    return summary


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table(head, rows)).rstrip()
