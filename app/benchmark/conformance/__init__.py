"""Makes the published conformance cases (`app/services/conformance/cases.json`).

The numbers come from mpmath in 20 digits, from the arrays of the shipped models as they are on disk (`exact`): the
prediction, the kernels and the distribution are written out once more, so that a mistake in the service cannot
reappear in what is expected of it. Verdicts, refusals and their codes are written by hand (`scores`, `refusals`).
"""

from collections.abc import Callable
from pathlib import Path

from app.benchmark.conformance.exact import ExactModel
from app.benchmark.conformance.refusals import NOT_TRIED, refusal_cases
from app.benchmark.conformance.scores import SITES, VERSION, lookup_cases, picture_cases, score_cases, study_case
from app.services.conformance.cases import FORMAT, CaseFile, CaseModel
from app.store import load

ABOUT = (
    "Conformance cases of the Normalcy service contract. Send each request, compare the response with `expect`, and "
    "apply `rules` to every response. docs/conformance.md explains every field. Expected numbers: mpmath, 20 digits."
)
RULES = (
    "Every response has the header X-Request-ID: the one that was sent if it is valid, otherwise a new UUIDv7.",
    "Every JSON object of a response repeats it as `request_id`.",
    "Every response with a status of 400 or more is application/problem+json with `type`, `title`, `status` (that of "
    "the response), `detail` and `request_id`.",
    "`errors` are exactly the expected ones, each with `code`, `field` and a `message`.",
    "Responses with status 429 or 503 have the header Retry-After.",
    "JSON is valid: no NaN, no Infinity, no key twice in one object.",
    "No response contains a text of `never_repeated`, in its body or in a header.",
    "Where `rounded` is true, no number has more than 9 significant digits.",
)


def make_cases(models: Path, report: Callable[[str, float], None] = lambda what, share: None) -> CaseFile:
    """Takes a few minutes, nearly all of it for the intervals."""
    exact = {site: ExactModel.read(models / site / VERSION) for site in SITES}
    refs = {f"{site} {VERSION}": load(models, site, VERSION).ref for site in SITES}
    return CaseFile(
        format=FORMAT,
        about=ABOUT,
        rules=RULES,
        models={name: CaseModel(ref.site, ref.version, ref.sha256) for name, ref in refs.items()},
        not_tried=NOT_TRIED,
        cases=(
            *score_cases(exact, report),
            study_case(exact),
            *picture_cases(exact),
            *lookup_cases(),
            *refusal_cases(),
        ),
    )
