"""Small models for tests: random, complete, and quick to make."""

from pathlib import Path

import numpy as np

from app.domain.card import (
    CARD_FORMAT,
    Calibration,
    Cohort,
    Comparators,
    Gate,
    MethodFit,
    ModelCard,
    ModelRef,
    Range,
    ReliabilityLimits,
    StageRecord,
    TailCheck,
    TrainingRanges,
    TrainingRecord,
)
from app.domain.golden import GoldenCase, GoldenMoments, GoldenOutputs
from app.domain.patient import Patient, Sex, covariate_names
from app.domain.query import Convention
from app.formats.card_markdown import card_markdown
from app.inference.executor import LoadedModel, load_on_numpy
from app.maths.gp.kernels import Kernel
from app.maths.gp.posterior import HeteroscedasticPosterior, Scaling, SparseGP
from app.store import StoredModel, publish
from app.training.calibration import calibration_gates

LEADING = Convention("leading", "end-diastole", "TTE")


def a_card(site: str = "SoV", version: str = "1.0.0") -> ModelCard:
    return ModelCard(
        format=CARD_FORMAT,
        site=site,
        version=version,
        created_at="2026-01-02T03:04:05Z",
        cohort=Cohort("simulated", "People | of <nowhere>\nat all.", 200, 90, 110, "ab" * 32),
        convention=LEADING,
        age_transform="log",
        covariates=covariate_names("log"),
        kernel="rational_quadratic",
        ranges=TrainingRanges(
            age_years=Range(5.0, 85.0),
            age_years_middle_98=Range(7.0, 80.0),
            height_cm={"male": Range(100.0, 200.0), "female": Range(100.0, 190.0)},
            weight_kg={"male": Range(20.0, 110.0), "female": Range(18.0, 100.0)},
            bmi_kg_m2=Range(14.0, 30.0),
        ),
        training=TrainingRecord(
            {"kernel": "rational_quadratic", "inducing_share": 0.05, "robust": False},
            42,
            10,
            (StageRecord("released", 200, 240, -150.5, -140.25, 3.5, "converged"),),
            {"numpy": "1.26.4", "gpflow": "2.11.2"},
        ),
        calibration=Calibration(
            5,
            (TailCheck("all", 200, 0.02, 0.03), TailCheck("male", 90, 0.022, 0.033)),
            (
                MethodFit("NS", -2.5, 0.02, 0.03, 0.04),
                MethodFit("linear", -2.6, 0.01, 0.05, 0.07),
                MethodFit("altman", -2.55, 0.02, 0.04, 0.05),
            ),
            (0.1,) * 10,
        ),
        gates=(Gate("predictive tail below", 0.02, 0.005, 0.045),),
        width_quantiles=tuple(np.linspace(0.3, 1.3, 201).tolist()),
        comparators=Comparators((10.0, 3.0, 2.0, 0.05, 0.06), 3.0, (2.4, 0.0, 0.0, 0.0, 0.0)),
        reliability=ReliabilityLimits(),
    )


def a_posterior(seed: int = 0, inducing: int = 10, covariates: int = 4) -> HeteroscedasticPosterior:
    """A believable aorta: about 34 mm with a spread of about 3 mm, both rolling with the context."""
    rng = np.random.default_rng(seed)
    centre, spread = np.array([3.4, 0.5, 165.0, 65.0]), np.array([0.7, 0.5, 15.0, 16.0])
    scaling = Scaling(centre[:covariates], spread[:covariates], 34.0, 4.0)
    f1, f2 = (_latent(rng, mean, variance, inducing, covariates) for mean, variance in ((0.0, 0.5), (-0.3, 0.05)))
    return HeteroscedasticPosterior(scaling, f1, f2)


def _latent(rng: np.random.Generator, mean: float, variance: float, inducing: int, covariates: int) -> SparseGP:
    kernel = Kernel("rational_quadratic", variance, np.full(covariates, 2.0), 1.0)
    q_sqrt = 0.2 * np.tril(rng.normal(size=(inducing, inducing))) / np.sqrt(inducing) + 0.1 * np.eye(inducing)
    Z = rng.normal(size=(inducing, covariates))
    return SparseGP.whitened(kernel, mean, Z, 0.3 * rng.normal(size=inducing), q_sqrt, 1e-6 * variance)


def a_golden_case() -> GoldenCase:
    """Complete, and true of no model."""
    return GoldenCase(
        Patient(45.0, Sex.MALE, 175.0, 75.0),
        36.0,
        GoldenMoments(34.0, 0.1, 1.1, 0.01),
        GoldenOutputs(*np.arange(10.0).tolist()),
    )


def publish_a_model(root: Path, site: str = "SoV", version: str = "1.0.0", seed: int = 0) -> ModelRef:
    card = a_card(site, version)
    return publish(
        root, card, a_posterior(seed), (a_golden_case(),), card_markdown(card, calibration_gates(card.calibration))
    )


def a_loaded_model(seed: int = 0) -> LoadedModel:
    ref = ModelRef("SoV", "1.0.0", "0" * 64)
    return load_on_numpy(StoredModel(ref, a_card(), a_posterior(seed), (a_golden_case(),)))
