"""How far to trust a score: judged from who was measured and how, never from the diameter.

A verdict from the width of the score's own interval would call most dilated aortas unreliable, because that
width grows with the score; W2, the width at a fixed score, does not.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from app.domain.card import ModelCard, Range
from app.domain.convention import Convention
from app.domain.patient import Patient
from app.domain.score import Reason, Reliability, Verdict

OUTSIDE = "outside_training_range"

Finding = tuple[Verdict, Reason]  # "caution" or "not_reliable", and why


def judge(patient: Patient, convention: Convention, card: ModelCard, w2: float) -> Reliability:
    """The table of the contract with the limits on the card. `w2` is the width W2 of the patient's context."""
    percentile = width_percentile(w2, card.width_quantiles)
    findings = (*_width(w2, percentile, card), *_age(patient, card), *_body(patient, card), *_taken(convention, card))
    verdicts = {verdict for verdict, _ in findings}
    worst: Verdict = "not_reliable" if "not_reliable" in verdicts else "caution" if verdicts else "ok"
    return Reliability(worst, w2, percentile, tuple(reason for _, reason in findings))


def width_percentile(w2: float, quantiles: Sequence[float]) -> float:
    """Where W2 stands among the training contexts, 0 to 100, between evenly spaced quantiles by a straight line."""
    after = bisect_right(quantiles, w2)
    if after == 0:
        return 0.0
    if after == len(quantiles):
        return 100.0
    low, high = quantiles[after - 1], quantiles[after]
    return 100.0 * (after - 1 + (w2 - low) / (high - low)) / (len(quantiles) - 1)


def is_outside_training_range(reliability: Reliability) -> bool:
    return any(reason.code == OUTSIDE for reason in reliability.reasons)


def _width(w2: float, percentile: float, card: ModelCard) -> Iterator[Finding]:
    limits = card.reliability
    if w2 > limits.width_caution:
        far = w2 > limits.width_not_reliable
        exceeded = limits.width_not_reliable if far else limits.width_caution
        message = f"For people like this one the 95 % interval of the score is wider than {exceeded:g}."
        yield _beyond(far), Reason("wide_interval", message)
    if percentile > limits.width_percentile_caution:
        share = 100.0 - limits.width_percentile_caution
        message = f"Age and body size are as uncommon as those of the rarest {share:g} % of the training people."
        yield "caution", Reason("sparse_context", message)


def _age(patient: Patient, card: ModelCard) -> Iterator[Finding]:
    trained, middle = card.ranges.age_years, card.ranges.age_years_middle_98
    if _is_outside(patient.age_years, trained):
        yield "not_reliable", _outside("age", trained, "years")
    elif _is_outside(patient.age_years, middle):
        message = (
            f"Few of the training people were younger than {middle.low:.3g} or older than {middle.high:.3g} years."
        )
        yield "caution", Reason("edge_of_training_range", message)


def _body(patient: Patient, card: ModelCard) -> Iterator[Finding]:
    ranges, limits = card.ranges, card.reliability
    height, weight = ranges.height_cm.get(patient.sex), ranges.weight_kg.get(patient.sex)
    if height is None or weight is None:
        yield "not_reliable", Reason(OUTSIDE, "No one of this sex was among the training people.")
        return
    yield from _size(patient.height_cm, height, _wider(height, limits.size_beyond_share), "height", "cm")
    yield from _size(patient.weight_kg, weight, _wider(weight, limits.size_beyond_share), "weight", "kg")
    bmi, beyond = ranges.bmi_kg_m2, limits.bmi_beyond_kg_m2
    yield from _size(patient.bmi_kg_m2, bmi, Range(bmi.low - beyond, bmi.high + beyond), "body mass index", "kg/m²")


def _size(value: float, trained: Range, tolerated: Range, what: str, unit: str) -> Iterator[Finding]:
    if _is_outside(value, trained):
        yield _beyond(_is_outside(value, tolerated)), _outside(what, trained, unit)


def _taken(convention: Convention, card: ModelCard) -> Iterator[Finding]:
    parts = convention.differences(card.convention)
    if parts:
        named = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
        differ = "differs" if len(parts) == 1 else "differ"
        message = f"The {named} of this reading {differ} from how the training people were measured."
        too_many = len(parts) >= card.reliability.convention_differences_not_reliable
        yield _beyond(too_many), Reason("convention_differs", message)


def _beyond(far: bool) -> Verdict:
    return "not_reliable" if far else "caution"


def _is_outside(value: float, allowed: Range) -> bool:
    return not allowed.low <= value <= allowed.high


def _wider(allowed: Range, share: float) -> Range:
    return Range(allowed.low * (1.0 - share), allowed.high * (1.0 + share))


def _outside(what: str, trained: Range, unit: str) -> Reason:
    message = f"The {what} lies outside that of the training people, {trained.low:.4g} to {trained.high:.4g} {unit}."
    return Reason(OUTSIDE, message)
