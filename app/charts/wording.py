"""The words that all pictures share: names of sites, who is compared, and the caption that says what the model is."""

from collections.abc import Iterable

from app.formats.summaries import EVALUATION, SITES, as_given, capitalised, share, two_digits
from app.schemas.answers import Hdi, ModelProvenance, Reliability, Score

SIMULATED = "simulated"
ON_REQUEST = "Not reliable: shown on request."


def is_simulated(model: ModelProvenance) -> bool:
    return model.cohort.casefold() == SIMULATED


def site_title(site: str) -> str:
    return capitalised(SITES[site]) if site in SITES else f"Site {site}"


def model_caption(model: ModelProvenance) -> str:
    return f"Model {model.site} {model.version}, cohort “{model.cohort}” (n = {model.cohort_size})."


def model_warning(model: ModelProvenance) -> str:
    return f"Simulated – {EVALUATION[:1].lower()}{EVALUATION[1:]}." if is_simulated(model) else ""


def verdict_text(reliability: Reliability, *, is_scored: bool) -> str:
    """What every picture says of a verdict other than `ok`, to be read and in its description."""
    if reliability.verdict == "ok":
        return ""
    if reliability.verdict == "not_reliable" and is_scored:
        return ON_REQUEST
    verdict = capitalised(reliability.verdict.replace("_", " "))
    return f"{verdict}: {reliability.reasons[0].message}" if reliability.reasons else f"{verdict}."


def score_text(score: Score) -> str:
    return f"NS {signed(score.expected_ns)}"


def interval_text(hdi: Hdi) -> str:
    return f"{share(hdi.probability)} HDI {signed(hdi.low)} to {signed(hdi.high)}"


def signed(value: float) -> str:
    """Two decimals, with a true minus."""
    return two_digits(value).replace("-", "−")


def short(value: float) -> str:
    """A number of the request, as it was sent."""
    return as_given(value).replace("-", "−")


def years(age_years: float) -> str:
    return f"{age_years:.1f}".removesuffix(".0") + " years"


def sentences(parts: Iterable[str]) -> str:
    return " ".join(part for part in parts if part)
