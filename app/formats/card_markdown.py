"""The model card for people: `CARD.md`, from the same values as `card.json`."""

from collections.abc import Iterable, Sequence
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

NOT_FOR_CARE = "**Evaluation model, trained on simulated people. Not for care.**"
NOT_STATED = "not stated"


def card_markdown(card: ModelCard) -> str:
    sections = (
        _title(card),
        _cohort(card.cohort),
        _convention(card.convention),
        _ranges(card.ranges),
        _reliability(card.reliability, card.width_quantiles),
        _calibration(card.calibration),
        _gates(card.gates),
        _comparators(card.comparators, card.covariates),
        _training(card.training, card.kernel),
    )
    return "\n".join(chain.from_iterable(sections))


def _title(card: ModelCard) -> list[str]:
    warning = [NOT_FOR_CARE, ""] if card.cohort.is_simulated else []
    what = f"Made {_plain(card.created_at)} from {card.cohort.size} people, cohort: {_plain(card.cohort.name)}."
    score = "It gives the normalcy score of a diameter for a person's age, sex, height and weight."
    return [f"# {card.site} {card.version}", "", *warning, f"{what} {score}", ""]


def _cohort(cohort: Cohort) -> list[str]:
    people = f"{cohort.size} people: {cohort.men} men and boys, {cohort.women} women and girls."
    table = f"SHA-256 of the table: `{_plain(cohort.table_sha256)}`"
    return ["## Cohort", "", _plain(cohort.description), "", people, "", table, ""]


def _convention(convention: Convention) -> list[str]:
    parts = (("edge", convention.edge), ("phase", convention.phase), ("modality", convention.modality))
    return [
        "## How the diameters were taken",
        "",
        *_table(("part", "convention"), ((n, p or NOT_STATED) for n, p in parts)),
    ]


def _ranges(ranges: TrainingRanges) -> list[str]:
    rows = [
        ("age, years", *_ends(ranges.age_years)),
        ("age, years, middle 98 %", *_ends(ranges.age_years_middle_98)),
        *((f"height, cm, {sex}", *_ends(span)) for sex, span in sorted(ranges.height_cm.items())),
        *((f"weight, kg, {sex}", *_ends(span)) for sex, span in sorted(ranges.weight_kg.items())),
        ("body mass index, kg/m²", *_ends(ranges.bmi_kg_m2)),
    ]
    return ["## Where the training people stood", "", *_table(("", "from", "to"), rows)]


def _reliability(limits: ReliabilityLimits, quantiles: Sequence[float]) -> list[str]:
    share = f"{100 * limits.size_beyond_share:g} %"
    rows = [
        (
            "W2, width of the 95 % interval at a score of 2",
            f"> {limits.width_caution:g}",
            f"> {limits.width_not_reliable:g}",
        ),
        ("percentile of W2 among the training people", f"> {limits.width_percentile_caution:g}", ""),
        ("age", "outside the middle 98 %", "outside the range"),
        ("height, weight", "outside the range of the sex", f"more than {share} beyond it"),
        ("body mass index", "outside the range", f"more than {limits.bmi_beyond_kg_m2:g} kg/m² beyond it"),
        ("edge, phase, modality", "one differs", f"{limits.convention_differences_not_reliable} or more differ"),
    ]
    middle = quantiles[len(quantiles) // 2]
    note = f"W2 of the training people: median {middle:.2f}, largest {quantiles[-1]:.2f}."
    return ["## When to trust a score", "", *_table(("", "caution", "no score"), rows), note, ""]


def _calibration(calibration: Calibration) -> list[str]:
    tails = ((t.group, str(t.people), _percent(t.below), _percent(t.above)) for t in calibration.tails)
    methods = (
        (m.method, f"{m.log_density:.4f}", _percent(m.below), _percent(m.above), f"{m.pit_deviation:.3f}")
        for m in calibration.methods
    )
    deciles = ", ".join(_percent(share) for share in calibration.pit_deciles)
    return [
        f"## Calibration on {calibration.folds} held-out folds",
        "",
        "People beyond each end of their own central 95 % interval; 2.5 % is ideal.",
        "",
        *_table(("group", "people", "below", "above"), tails),
        "Methods on the same folds; a higher log density is better, a smaller PIT deviation too.",
        "",
        *_table(("method", "mean log density", "below", "above", "PIT deviation"), methods),
        f"Share of people in each tenth of their predictive distribution: {deciles}.",
        "",
    ]


def _gates(gates: Sequence[Gate]) -> list[str]:
    rows = ((g.name, f"{g.measured:.4g}", f"{g.low:.4g}", f"{g.high:.4g}", "yes" if g.passed else "NO") for g in gates)
    return ["## Gates of publication", "", *_table(("gate", "measured", "from", "to", "passed"), rows)]


def _comparators(comparators: Comparators, covariates: Sequence[str]) -> list[str]:
    names = ("constant", *covariates)
    lines = zip(names, comparators.coefficients, comparators.absolute_residual_coefficients, strict=True)
    rows = ((name, f"{b:.6g}", f"{g:.6g}") for name, b, g in lines)
    note = f"Residual standard deviation S: {comparators.residual_sd_mm:.4g} mm."
    head = ("least squares on", "diameter, mm", "absolute residual, mm")
    return ["## Comparators: linear Z-score and Altman's method", "", *_table(head, rows), note, ""]


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
        *_table(head, stages),
        *_notes(training),
        *_table(("option", "value"), options),
        *_table(("library", "version"), sorted(training.libraries.items())),
    ]


def _notes(training: TrainingRecord) -> list[str]:
    notes = []
    if any("LIMIT" in stage.message for stage in training.stages):
        notes.append("A stage may end at the recipe's limit of iterations; the gates judge the result.")
    if training.recipe.get("robust"):
        notes.append("**The robust last stage makes the spread a Student-t scale: NS > 2 is not Z > 2.**")
    return [line for note in notes for line in (note, "")]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *(_row([_plain(cell) for cell in row]) for row in rows), ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ends(span: Range) -> tuple[str, str]:
    return f"{span.low:.4g}", f"{span.high:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plain(text: str) -> str:
    """Free text from outside on one line, with nothing that Markdown or HTML would act on."""
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
