"""Numbers and people in words, as both summaries write them. No certainty is claimed: "<1%" and ">99%" are the ends."""

from dataclasses import dataclass
from decimal import Decimal

from app.domain.limits import ADULT_AGE_YEARS
from app.domain.patient import Patient, Sex, completed_age
from app.domain.query import ScoreQuery
from app.domain.score import UNLIKELY, Answer, Tails


@dataclass(frozen=True, slots=True)
class Judged:
    """A reading with all that can be said of it."""

    site: str
    query: ScoreQuery
    answer: Answer
    tails: Tails
    tails_with_measurement_error: Tails | None  # None: no error was stated


def percent(probability: float) -> str:
    if probability < 0.01:
        return "<1%"
    return ">99%" if probability > 0.99 else f"{100 * probability:.0f}%"


def percent_in_words(probability: float) -> str:
    return percent(probability).replace("<", "less than ").replace(">", "more than ")


def share(probability: float) -> str:
    """Of an interval, as it was asked for."""
    return f"{100 * probability:.6g}%"


def two_digits(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no negative zero


def tenths(mm: float) -> str:
    return f"{round(mm, 1) + 0.0:.1f}"


def as_given(mm: float) -> str:
    """A diameter as the caller sent it: rounded to 40 mm, one of 39.996 mm would seem to reach the 40 mm of adults."""
    return f"{mm:.9g}"


def error_as_given(mm: float) -> str:
    """To three significant digits, however small."""
    return f"{Decimal(f'{mm:.3g}'):f}"


def is_child(patient: Patient) -> bool:
    return patient.age_years < ADULT_AGE_YEARS


def person(patient: Patient) -> str:
    """55-year-old man, 7-year-old girl, 18-month-old boy, newborn girl"""
    adult, child = ("woman", "girl") if patient.sex == Sex.FEMALE else ("man", "boy")
    number, unit = completed_age(patient.age_years)
    return f"{number}-{unit}-old {child if is_child(patient) else adult}" if number else f"newborn {child}"


def is_open_below(tails: Tails) -> bool:
    """Whether the lower side bears on the position."""
    return tails.below_minus_2 > UNLIKELY


def begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def continued(message: str) -> str:
    """A sentence as the clause of another."""
    return message[:1].lower() + message[1:].rstrip(".")
