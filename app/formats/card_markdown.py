"""The model card for people: `CARD.md`, from the same values as `card.json`."""

from collections.abc import Sequence
from itertools import chain

from app.domain.card import (
    Calibration,
    Cohort,
    Comparators,
    Gate,
    ModelCard,
    Range,
    ReliabilityLimits,
    TrainingRanges,
    TrainingRecord,
)
from app.domain.convention import Convention
from app.formats.card_promises import promises
from app.formats.markdown import percent, plain, table

NOT_FOR_CARE = "**Evaluation model, trained on simulated people. Not for care.**"
NOT_STATED = "not stated"


def card_markdown(card: ModelCard, limits_today: Sequence[Gate]) -> str:
    """`limits_today`: the gates that its calibration would have to pass now; those on the card are of its own day."""
    sections = (
        _title(card),
        _cohort(card.cohort),
        _convention(card.convention),
        _ranges(card.ranges),
        _reliability(card.reliability, card.width_quantiles),
        _calibration(card.calibration),
        _gates(card.gates),
        promises(card, limits_today),
        _comparators(card.comparators, card.covariates),
        _training(card.training, card.kernel),
    )
    return "\n".join(chain.from_iterable(sections))


def _title(card: ModelCard) -> list[str]:
    warning = [NOT_FOR_CARE, ""] if card.cohort.is_simulated else []
    what = f"Made {plain(card.created_at)} from {card.cohort.size} people, cohort: {plain(card.cohort.name)}."
    score = "It gives the normalcy score of a diameter for a person's age, sex, height and weight."
    return [f"# {card.site} {card.version}", "", *warning, f"{what} {score}", ""]


def _cohort(cohort: Cohort) -> list[str]:
    people = f"{cohort.size} people: {cohort.men} men and boys, {cohort.women} women and girls."
    digest = f"SHA-256 of the table: `{plain(cohort.table_sha256)}`"
    return ["## Cohort", "", plain(cohort.description), "", people, "", digest, ""]


def _convention(convention: Convention) -> list[str]:
    parts = (("edge", convention.edge), ("phase", convention.phase), ("modality", convention.modality))
    return [
        "## How the diameters were taken",
        "",
        *table(("part", "convention"), ((n, p or NOT_STATED) for n, p in parts)),
    ]


def _ranges(ranges: TrainingRanges) -> list[str]:
    rows = [
        ("age, years", *_ends(ranges.age_years)),
        ("age, years, middle 98%", *_ends(ranges.age_years_middle_98)),
        *((f"height, cm, {sex}", *_ends(span)) for sex, span in sorted(ranges.height_cm.items())),
        *((f"weight, kg, {sex}", *_ends(span)) for sex, span in sorted(ranges.weight_kg.items())),
        ("body mass index, kg/m²", *_ends(ranges.bmi_kg_m2)),
    ]
    return ["## Where the training people stood", "", *table(("", "from", "to"), rows)]


def _reliability(limits: ReliabilityLimits, quantiles: Sequence[float]) -> list[str]:
    share = f"{100 * limits.size_beyond_share:g}%"
    rows = [
        (
            "W2, width of the 95% interval at a score of 2",
            f"> {limits.width_caution:g}",
            f"> {limits.width_not_reliable:g}",
        ),
        ("percentile of W2 among the training people", f"> {limits.width_percentile_caution:g}", ""),
        ("age", "outside the middle 98%", "outside the range"),
        ("height, weight", "outside the range of the sex", f"more than {share} beyond it"),
        ("body mass index", "outside the range", f"more than {limits.bmi_beyond_kg_m2:g} kg/m² beyond it"),
        ("edge, phase, modality", "one differs", f"{limits.convention_differences_not_reliable} or more differ"),
    ]
    middle = quantiles[len(quantiles) // 2]
    note = f"W2 of the training people: median {middle:.2f}, largest {quantiles[-1]:.2f}."
    return ["## When to trust a score", "", *table(("", "caution", "no score"), rows), note, ""]


def _calibration(calibration: Calibration) -> list[str]:
    tails = ((t.group, str(t.people), percent(t.below), percent(t.above)) for t in calibration.tails)
    methods = (
        (m.method, f"{m.log_density:.4f}", percent(m.below), percent(m.above), f"{m.pit_deviation:.3f}")
        for m in calibration.methods
    )
    deciles = ", ".join(percent(share) for share in calibration.pit_deciles)
    return [
        f"## Calibration on {calibration.folds} held-out folds",
        "",
        "People beyond each end of their own central 95% interval; 2.5% is ideal.",
        "",
        *table(("group", "people", "below", "above"), tails),
        "Methods on the same folds; a higher log density is better, a smaller PIT deviation too.",
        "",
        *table(("method", "mean log density", "below", "above", "PIT deviation"), methods),
        f"Share of people in each tenth of their predictive distribution: {deciles}.",
        "",
    ]


def _gates(gates: Sequence[Gate]) -> list[str]:
    named = ((g.name.replace(" %", "%"), g) for g in gates)  # as earlier versions wrote it
    rows = (
        (name, f"{g.measured:.4g}", f"{g.low:.4g}", f"{g.high:.4g}", "yes" if g.passed else "NO") for name, g in named
    )
    note = "With the limits of the day of publication."
    return ["## Gates of publication", "", note, "", *table(("gate", "measured", "from", "to", "passed"), rows)]


def _comparators(comparators: Comparators, covariates: Sequence[str]) -> list[str]:
    names = ("constant", *covariates)
    lines = zip(names, comparators.coefficients, comparators.absolute_residual_coefficients, strict=True)
    rows = ((name, f"{b:.6g}", f"{g:.6g}") for name, b, g in lines)
    note = f"Residual standard deviation S: {comparators.residual_sd_mm:.4g} mm."
    head = ("least squares on", "diameter, mm", "absolute residual, mm")
    return ["## Comparators: linear Z-score and Altman's method", "", *table(head, rows), note, ""]


def _training(training: TrainingRecord, kernel: str) -> list[str]:
    stages = (
        (s.name, str(s.iterations), f"{s.objective:.4f}", f"{s.elbo:.4f}", f"{s.seconds:.1f}", s.message)
        for s in training.stages
    )
    options = sorted((name, str(value)) for name, value in training.recipe.items())
    how = f"Kernel {kernel}, {training.inducing_points} inducing points, seed {training.seed}."
    head = ("stage", "iterations", "objective", "ELBO", "seconds", "end")
    return [
        "## Training",
        "",
        how,
        "",
        *table(head, stages),
        *_notes(training),
        *table(("option", "value"), options),
        *table(("library", "version"), sorted(training.libraries.items())),
    ]


def _notes(training: TrainingRecord) -> list[str]:
    limited = any("LIMIT" in stage.message for stage in training.stages)
    return ["A stage may end at the recipe's limit of iterations; the gates judge the result.", ""] if limited else []


def _ends(span: Range) -> tuple[str, str]:
    return f"{span.low:.4g}", f"{span.high:.4g}"
