"""`make docs`: write the generated parts of the documents from the tables of the code and from the shipped models.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`. `tests/test_documents.py` fails while a
document differs from what this module would write.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from app.domain.limits import Limit
from app.domain.scopes import Scope
from app.formats.markdown import table
from app.formats.summaries import ADULT, INTENDED_USE, PLAIN_REASONS
from app.observability import make_metrics
from app.schemas import validation as codes
from app.schemas.fields import request_limits
from app.schemas.problem import PROBLEMS, ProblemKind
from app.settings import TABLE, Setting
from app.web.app import ROUTES
from app.web.route import ApiRoute
from tests.supply.components import components
from tests.traceability import requirements, risks, showing
from tests.worked_examples import EXAMPLES, covered, document_pictures, worked_example

DOCS = Path(__file__).parent.parent / "docs"
GENERATED = re.compile(r"^(<!-- generated: ([\w-]+) -->\n)(.*?)^(<!-- end -->)$", re.MULTILINE | re.DOTALL)
ERROR_GROUPS = (
    ("Not JSON (400)", codes.NOT_JSON),
    ("Not acceptable (422)", codes.NOT_ACCEPTABLE),
    ("Looks like a unit mistake (422)", codes.UNIT_MISTAKES),
    ("One row of a file", codes.ROWS),
)
METRICS = "/metrics"


def _problems() -> str:
    return "\n".join(map(_problem, PROBLEMS)).rstrip()


def _problem(problem: ProblemKind) -> str:
    """The heading gives the anchor that the `type` of a problem ends with."""
    kind = f"**{problem.title}** (status {problem.status}, `{problem.slug}`)."
    return f"### Problem: {problem.slug}\n\n{kind} {problem.detail}\n"


def _errors() -> str:
    rows = [(f"`{code}`", group, meaning) for group, meanings in ERROR_GROUPS for code, meaning in meanings.items()]
    return _table(("code", "kind", "meaning"), rows)


def _reasons() -> str:
    rows = [(f"`{code}`", about, words.format_map(ADULT)) for (code, about), words in PLAIN_REASONS.items()]
    return _table(("reason", "about", "in the text for patients"), rows)


def _limits() -> str:
    return _table(("field", "allowed", "outside"), map(_limit, request_limits()))


def _limit(limit: Limit) -> tuple[str, ...]:
    to = "to less than" if limit.high_excluded else "to"
    age = f", from age {limit.from_age_years:g}" if limit.from_age_years else ""
    default = "" if limit.default is None else f"; default {limit.default:g}"
    outside = f"accepted, with `{limit.advisory}`" if limit.advisory else "rejected"
    return f"`{limit.field}`", f"{limit.low:g} {to} {limit.high:g} {limit.unit}{age}{default}", outside


def _settings() -> str:
    return _table(("name", "meaning"), map(_setting, TABLE))


def _setting(setting: Setting) -> tuple[str, str]:
    name = f"`{setting.name}`" + (f", or a file named by `{setting.name}_FILE`" if setting.secret else "")
    default = f"`{setting.default}`" if setting.default else "empty"
    return name, f"{setting.meaning[0].upper()}{setting.meaning[1:]}. Must be {setting.allowed}. Default: {default}."


def _metrics() -> str:
    families = make_metrics().registry.collect()
    rows = [(f"`{f.name}{'_total' if f.type == 'counter' else ''}`", f.type, f.documentation) for f in families]
    return _table(("name", "type", "meaning"), rows)


def _scopes() -> str:
    allowed = {s: [_address(r) for r in ROUTES if s in r.required_scopes and r.path != METRICS] for s in Scope}
    return _table(("scope", "allows"), [(f"`{scope}`", ", ".join(paths)) for scope, paths in allowed.items()])


def _routes() -> str:
    return _table(("address", "what it is"), map(_route, ROUTES))


def _route(route: ApiRoute) -> tuple[str, str]:
    if not route.required_scopes:
        access = "Open."
    else:
        exception = ", unless `NORMALCY_METRICS` opens it" if route.path == METRICS else ""
        access = f"Needs `{route.required_scopes[0]}`{exception}."
    return _address(route), f"{route.summary}. {access}"


def _address(route: ApiRoute) -> str:
    return f"`{route.method} {route.path}`"


def _traceability() -> str:
    named = risks()
    rows = [
        (one, ", ".join(risk.name for risk in named if one in risk.requirements), "; ".join(map(_test, showing(one))))
        for one, _ in requirements()
    ]
    return _table(("requirement", "controls", "tests"), rows)


def _test(name: str) -> str:
    file, _, function = name.partition("::")
    return f"`{file}` {function.removeprefix('test_').replace('_', ' ')}"


def _soup() -> str:
    head = ("component", "version", "licence", "class", "used in", "purpose", "reviewed")
    rows = [
        (c.name, ", ".join(c.versions), c.licence, c.safety_class, ", ".join(c.used_in), c.purpose, c.reviewed_on)
        for c in components()
    ]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table(head, rows)).rstrip()


PARTS: Mapping[str, Callable[[], str]] = {
    "problems": _problems,
    "errors": _errors,
    "reasons": _reasons,
    "limits": _limits,
    "settings": _settings,
    "metrics": _metrics,
    "scopes": _scopes,
    "routes": _routes,
    "intended-use": lambda: f"> {INTENDED_USE}",
    "covered": covered,
    "soup": _soup,
    "traceability": _traceability,
    **{f"example-{name}": partial(worked_example, name) for name in EXAMPLES},
}


def generated(text: str) -> str:
    """The document with its generated parts written again. An unknown part raises KeyError."""
    return GENERATED.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n\n{found[4]}", text)


def parts_of(text: str) -> list[str]:
    return [found[1] for found in GENERATED.findall(text)]


def main() -> None:
    pictures = DOCS / "pictures"
    for file in pictures.iterdir():
        file.unlink()
    for name, svg in document_pictures().items():
        (pictures / name).write_text(svg, "utf-8")
    for file in sorted(DOCS.glob("*.md")):
        text = file.read_text("utf-8")
        again = generated(text)
        if again != text:
            file.write_text(again, "utf-8")
            sys.stderr.write(f"wrote {file.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
