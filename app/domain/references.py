"""Published equations of the healthy aorta, for the simulated cohort and for comparison in the documents.

Campens et al. 2014 (Am J Cardiol 114:914; 849 people of 1 to 85 years; leading edge, end-diastole, Haycock BSA):

    log10(mm) = a + b·log10(age) + c·BSA,        Z on the log10 scale

Devereux et al. 2012 (people of 15 years and more; leading edge, end-diastole; Du Bois BSA), sinus of Valsalva:

    cm = a + b·age + c·size + d·(1 man, 2 woman),        size = BSA or height in cm

The coefficients come from secondary sources and are not yet checked against the papers.
"""

import math
from dataclasses import dataclass
from typing import Literal

from app.domain.patient import Patient, Sex, dubois_bsa_m2


@dataclass(frozen=True, slots=True)
class LogCoefficients:
    intercept: float
    log10_age: float
    bsa: float
    residual_sd: float  # of log10(mm)


@dataclass(frozen=True, slots=True)
class LogDiameterReference:
    """Diameters are log-normal around their median `expected_mm`."""

    male: LogCoefficients
    female: LogCoefficients

    def for_sex(self, sex: Sex) -> LogCoefficients:
        return self.male if sex is Sex.MALE else self.female

    def expected_log10(self, patient: Patient) -> float:
        own = self.for_sex(patient.sex)
        return own.intercept + own.log10_age * math.log10(patient.age_years) + own.bsa * patient.bsa_m2

    def expected_mm(self, patient: Patient) -> float:
        return float(10.0 ** self.expected_log10(patient))

    def z(self, patient: Patient, diameter_mm: float) -> float:
        return (math.log10(diameter_mm) - self.expected_log10(patient)) / self.for_sex(patient.sex).residual_sd


@dataclass(frozen=True, slots=True)
class LinearDiameterReference:
    """One spread for everybody, the standard error of the estimate."""

    intercept_cm: float
    per_year_cm: float
    per_size_cm: float
    per_sex_cm: float
    standard_error_cm: float
    size: Literal["bsa_m2", "height_cm"]

    def expected_mm(self, patient: Patient) -> float:
        size = dubois_bsa_m2(patient.height_cm, patient.weight_kg) if self.size == "bsa_m2" else patient.height_cm
        sex = 1.0 if patient.sex is Sex.MALE else 2.0
        aged = self.intercept_cm + self.per_year_cm * patient.age_years
        return 10.0 * (aged + self.per_size_cm * size + self.per_sex_cm * sex)

    def z(self, patient: Patient, diameter_mm: float) -> float:
        return (diameter_mm - self.expected_mm(patient)) / (10.0 * self.standard_error_cm)


CAMPENS_2014 = {
    "SoV": LogDiameterReference(
        male=LogCoefficients(1.115, 0.137, 0.094, 0.0388), female=LogCoefficients(1.112, 0.132, 0.080, 0.0427)
    ),
    "AA": LogDiameterReference(
        male=LogCoefficients(1.038, 0.187, 0.068, 0.0433), female=LogCoefficients(1.006, 0.172, 0.087, 0.0450)
    ),
}
DEVEREUX_2012_BY_BSA = LinearDiameterReference(2.423, 0.009, 0.461, -0.267, 0.261, "bsa_m2")
DEVEREUX_2012_BY_HEIGHT = LinearDiameterReference(1.519, 0.010, 0.010, -0.247, 0.215, "height_cm")
