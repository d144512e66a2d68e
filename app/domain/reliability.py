"""How far to trust a score: judged from who was measured and how, never from the diameter.

A verdict from the width of the score's own interval would call most dilated aortas unreliable, because that
width grows with the score; W2, the width at a fixed score, does not.

A message claims nothing that its own rounded numbers, or the patient's age in whole years, could contradict.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from app.domain.card import ModelCard, Range
from app.domain.convention import Convention
from app.domain.patient import MONTHS_IN_A_YEAR, Patient, completed_age
from app.domain.score import Reason, Reliability, Verdict

OUTSIDE = "outside_training_range"
EDGE = "edge_of_training_range"
DIFFERS = "convention_differs"
WIDE = "wide_interval"
SPARSE = "sparse_context"

# Of the reasons that lead to one verdict: who was measured before how, and both before the widths that follow.
DECIDING_ORDER = (OUTSIDE, DIFFERS, EDGE, WIDE, SPARSE)

ROUNDING = 1e-6  # 110.3 may be 1102.9999999999998 tenths


def judge(patient: Patient, convention: Convention, card: ModelCard, w2: float) -> Reliability:
    """The table of the contract with the limits on the card. `w2` is the width W2 of the patient's context."""
    percentile = width_percentile(w2, card.width_quantiles)
    reasons = (*_width(w2, percentile, card), *_age(patient, card), *_body(patient, card), *_taken(convention, card))
    verdicts = {reason.verdict for reason in reasons}
    worst: Verdict = "not_reliable" if "not_reliable" in verdicts else "caution" if verdicts else "ok"
    return Reliability(worst, w2, percentile, reasons)


def deciding_reason(reliability: Reliability) -> Reason | None:
    """The reason that sentences give: it leads to the verdict by itself. None where the verdict is `ok`."""
    decisive = [reason for reason in reliability.reasons if reason.verdict == reliability.verdict]
    return min(decisive, key=lambda reason: DECIDING_ORDER.index(reason.code), default=None)


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


def _width(w2: float, percentile: float, card: ModelCard) -> Iterator[Reason]:
    limits, like_this = card.reliability, "For people of this age, sex and body size"
    if w2 > limits.width_caution:
        far = w2 > limits.width_not_reliable
        exceeded = limits.width_not_reliable if far else limits.width_caution
        message = f"{like_this} a score of 2 would have a 95% interval wider than {exceeded:g}."
        yield Reason(WIDE, message, _verdict(far), "width")
    if percentile > limits.width_percentile_caution:
        share = f"{limits.width_percentile_caution:g}%"
        message = f"{like_this} the score is less certain than for {share} of the training people."
        yield Reason(SPARSE, message, "caution", "rarity")


def _age(patient: Patient, card: ModelCard) -> Iterator[Reason]:
    age, trained, middle = patient.age_years, card.ranges.age_years, card.ranges.age_years_middle_98
    if age > trained.high:
        compared = _compared(age, trained.high, "older", math.floor)
        message = f"The patient is {compared[0]} than the oldest of the training people, who was {compared[1]}."
        yield Reason(OUTSIDE, message, "not_reliable", "older")
    elif age < trained.low:
        compared = _compared(age, trained.low, "younger", math.ceil)
        message = f"The patient is {compared[0]} than the youngest of the training people, who was {compared[1]}."
        yield Reason(OUTSIDE, message, "not_reliable", "younger")
    elif _is_outside(age, middle):
        word = "old" if age > middle.high else "young"
        message = f"At most about 1% of the training people were as {word} as this patient."
        yield Reason(EDGE, message, "caution", word)


def _compared(age: float, trained: float, word: str, whole: Callable[[float], int]) -> tuple[str, str]:
    """How the patient stands to somebody trained, and that one's age: in months where the years would be the same.

    `whole` rounds the months away from the patient's age.
    """
    if completed_age(age) != completed_age(trained):
        return word, f"{_counted(*completed_age(trained))} old"
    years, months = divmod(whole(MONTHS_IN_A_YEAR * trained), MONTHS_IN_A_YEAR)
    parts = [_counted(number, unit) for number, unit in ((years, "year"), (months, "month")) if number]
    return f"a little {word}", f"{' and '.join(parts)} old"


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _body(patient: Patient, card: ModelCard) -> Iterator[Reason]:
    ranges, share, beyond = card.ranges, card.reliability.size_beyond_share, card.reliability.bmi_beyond_kg_m2
    height, weight, bmi = ranges.height_cm.get(patient.sex), ranges.weight_kg.get(patient.sex), ranges.bmi_kg_m2
    if height is None or weight is None:
        yield Reason(OUTSIDE, "No one of this sex was among the training people.", "not_reliable", "sex")
        return
    for value, trained, about, unit in (
        (patient.height_cm, height, "height", "cm"),
        (patient.weight_kg, weight, "weight", "kg"),
    ):
        if _is_outside(value, trained):
            far = _is_outside(value, Range(trained.low * (1.0 - share), trained.high * (1.0 + share)))
            how = f"more than {100.0 * share:g}% outside" if far else "outside"
            whose = "the training people of the same sex"
            message = f"The {about} is {how} the range of {whose}, {_span(trained)} {unit}."
            yield Reason(OUTSIDE, message, _verdict(far), about)
    if _is_outside(patient.bmi_kg_m2, bmi):
        far = _is_outside(patient.bmi_kg_m2, Range(bmi.low - beyond, bmi.high + beyond))
        how = f"more than {beyond:g} kg/m² outside" if far else "outside"
        message = f"The body mass index is {how} the range of the training people, {_span(bmi)} kg/m²."
        yield Reason(OUTSIDE, message, _verdict(far), "body mass index")


def _taken(convention: Convention, card: ModelCard) -> Iterator[Reason]:
    parts = convention.differences(card.convention)
    if parts:
        named = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
        edge, theirs = card.convention.edge, (card.convention.phase, card.convention.modality)
        taken = ", ".join(part for part in (edge and f"{edge} edge", *theirs) if part)
        message = f"The reading differs in {named} from those of the training people ({taken})."
        too_many = len(parts) >= card.reliability.convention_differences_not_reliable
        yield Reason(DIFFERS, message, _verdict(too_many), "convention")


def _verdict(far: bool) -> Verdict:
    return "not_reliable" if far else "caution"


def _is_outside(value: float, allowed: Range) -> bool:
    return not allowed.low <= value <= allowed.high


def _span(trained: Range) -> str:
    """To a tenth and inwards, so that a value outside the range is outside the printed one."""
    low, high = math.ceil(10.0 * trained.low - ROUNDING) / 10.0, math.floor(10.0 * trained.high + ROUNDING) / 10.0
    return f"{low:g} to {high:g}"
