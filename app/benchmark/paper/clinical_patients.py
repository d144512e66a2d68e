"""Patients whom the linear Z-score calls normal while the interval of NS reaches beyond 2."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.benchmark.paper.clinical_models import Models
from app.maths.moments import Array, Intervals, Moments
from app.maths.score import normalcy
from app.training.cohort import SimulatedPeople

CUT = 2.0
SEEN_BY_SAMPLING = 1.0 / 30_000  # the paper draws 30,000 times: a smaller probability mostly shows as 0
IN_THE_TAIL = 0.025
PLACES = (1 / 8, 3 / 8, 5 / 8, 7 / 8)  # where the four stand among all such patients, sorted by P(NS > 2)
DENSITY_POINTS = 161
DENSITY_REACH = 0.6  # beyond the interval, in widths of it


@dataclass(frozen=True, slots=True)
class Reading:
    """One site of N patients."""

    diameter_mm: Array
    moments: Moments
    expected: Array  # E[NS]
    hdi: Intervals
    above: Array  # P(NS > 2)
    linear_z: Array
    true_z: Array


def read(models: Models, patients: SimulatedPeople, site: str) -> Reading:
    x, measured = patients.covariates("log"), patients.sites[site]
    y, moments = measured.diameter_mm, models.ns.predict(x)
    return Reading(
        diameter_mm=y,
        moments=moments,
        expected=normalcy.expected_score(y, moments),
        hdi=normalcy.hdi(y, moments),
        above=normalcy.sf(CUT, y, moments),
        linear_z=models.linear.linear_z(x, y),
        true_z=measured.true_z_mm,
    )


def counts(reading: Reading) -> dict[str, Any]:
    """Of the patients with E[NS] < 2: how many may still exceed 2, and how many do."""
    below, truly = reading.expected < CUT, reading.true_z > CUT
    crossing = (reading.hdi.low < CUT) & (reading.hdi.high > CUT)
    covered = (reading.hdi.low <= reading.true_z) & (reading.true_z <= reading.hdi.high)
    return {
        "expected_below": int(below.sum()),
        "seen_by_sampling": int((below & (reading.above >= SEEN_BY_SAMPLING)).sum()),
        "in_the_tail": int((below & (reading.above >= IN_THE_TAIL)).sum()),
        "expected_to_exceed": float(reading.above[below].sum()),
        "truly_exceed": int((below & truly).sum()),
        "normal_by_z_yet_crossing": int(((reading.linear_z < CUT) & crossing).sum()),
        "true_z_covered": float(covered.mean()),
    }


def borderline(patients: SimulatedPeople, readings: dict[str, Reading]) -> list[dict[str, Any]]:
    """Four of them, evenly spread over all such patients rather than picked."""
    doubt = np.max([_doubt(reading) for reading in readings.values()], axis=0)  # [N] -1 without doubt
    found = np.flatnonzero(doubt >= 0.0)
    order = found[np.argsort(doubt[found], kind="stable")]
    rows = [int(order[int(place * len(order))]) for place in PLACES] if len(order) >= len(PLACES) else order.tolist()
    return [_patient(patients, readings, row) for row in rows]


def _doubt(reading: Reading) -> Array:
    """P(NS > 2) of patients whose linear Z is below 2 and whose interval crosses it."""
    crossing = (reading.hdi.low < CUT) & (reading.hdi.high > CUT)
    return np.where((reading.linear_z < CUT) & crossing, reading.above, -1.0)


def _patient(patients: SimulatedPeople, readings: dict[str, Reading], row: int) -> dict[str, Any]:
    return {
        "number": row + 1,
        "age_years": float(patients.age_years[row]),
        "sex": str(patients.sex[row]),
        "height_cm": float(patients.height_cm[row]),
        "weight_kg": float(patients.weight_kg[row]),
        "sites": {site: _at(reading, row) for site, reading in readings.items()},
    }


def _at(reading: Reading, row: int) -> dict[str, Any]:
    low, high = float(reading.hdi.low[row]), float(reading.hdi.high[row])
    reach = DENSITY_REACH * (high - low)
    t = np.linspace(low - reach, high + reach, DENSITY_POINTS)
    one = slice(row, row + 1)
    moments = reading.moments
    own = Moments(moments.m1[one], moments.v1[one], moments.m2[one], moments.v2[one])
    density = normalcy.pdf(t[:, None], reading.diameter_mm[row], own)[:, 0]
    return {
        "diameter_mm": float(reading.diameter_mm[row]),
        "expected": float(reading.expected[row]),
        "low": low,
        "high": high,
        "above": float(reading.above[row]),
        "linear_z": float(reading.linear_z[row]),
        "true_z": float(reading.true_z[row]),
        "t": t.round(6).tolist(),
        "density": density.round(6).tolist(),
    }
