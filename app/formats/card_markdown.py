"""The model card for human readers: `CARD.md`, from the same values as `card.json`."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from msgspec import UNSET

from app import __version__
from app.domain.card import (
    Calibration,
    Cohort,
    Comparators,
    Gate,
    ModelCard,
    Range,
    ReliabilityLimits,
    TailCheck,
    TrainingRanges,
    TrainingRecord,
    tail_gate,
)
from app.domain.query import Convention
from app.formats import markdown
from app.maths.statistics import shares_found
from app.schemas.lookups import ModelHistory

NOT_FOR_CARE = "**Evaluation model, trained on simulated people. Not for care.**"
NOT_STATED = "not stated"
PICTURE = "picture"  # marks a code block that a page replaces by a picture of that name

CHANCE = 0.9
ROUNDING = 1e-9  # of a count of people that was stored as a share

# Everybody, lowest and highest of 40 cohorts of 1110 people: docs/coverage.md.
COVERAGE_OF_SINGLE_MODELS = (0.808, 1.000)


def card_markdown(card: ModelCard, limits_today: Sequence[Gate], pictures: Collection[str] = ()) -> str:
    """`limits_today`: the gates that its calibration would have to pass now; the card has those of its publication.

    `pictures`: the names of those that the page can show; each is a code block marked `picture`.
    """
    sections = (
        _title(card),
        _cohort(card.cohort),
        _pictures(pictures, "counts"),
        _convention(card.convention),
        _ranges(card.ranges),
        _median_bmi(card),
        _pictures(pictures, "ranges"),
        _reliability(card.reliability, card.width_quantiles),
        _pictures(pictures, "widths", "map-male", "map-female"),
        _calibration(card.calibration),
        _pictures(pictures, "pit", "tails"),
        _gates(card.gates),
        _promises(card, limits_today),
        _comparators(card.comparators, card.covariates),
        _training(card.training, card.kernel),
    )
    return "\n".join(chain.from_iterable(sections))


def history_markdown(version: str, history: ModelHistory | None) -> str:
    """Which version of the site was current when; None: it cannot be read at present."""
    lines = ["## History of the site", ""]
    if history is None:
        return "\n".join([*lines, "The history cannot be read at present.", ""])
    current = history.current
    now = f"{current} is current" if current else "No version is current"
    lines += [f"{now}{'; this is that version' if current == version else ''}.", ""]
    if not history.history:
        return "\n".join([*lines, "No activation is on record: the highest version is current.", ""])
    rows = ((one.version, one.from_, one.until or "today", one.by) for one in history.history)
    return "\n".join([*lines, *table(("version", "from", "until", "activated by"), rows)])


def _pictures(available: Collection[str], *names: str) -> list[str]:
    return [line for name in names if name in available for line in (f"```{PICTURE}", name, "```", "")]


def _title(card: ModelCard) -> list[str]:
    warning = [NOT_FOR_CARE, ""] if card.cohort.is_simulated else []
    what = f"Trained on {card.cohort.size} people on {plain(card.created_at)}; cohort: {plain(card.cohort.name)}."
    score = "It gives the normalcy score of a diameter for a person's age, sex, height and weight."
    return [f"# {card.site} {card.version}", "", *warning, f"{what} {score}", ""]


def _cohort(cohort: Cohort) -> list[str]:
    people = f"{cohort.size} people: {cohort.men} men and boys, {cohort.women} women and girls."
    digest = f"SHA-256 of the table: `{plain(cohort.table_sha256)}`"
    return ["## Cohort", "", plain(cohort.description), "", people, "", digest, ""]


def _convention(convention: Convention) -> list[str]:
    parts = (("edge", convention.edge), ("phase", convention.phase), ("modality", convention.modality))
    return [
        "## How the diameters were measured",
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
    return ["## Ranges of the training cohort", "", *table(("", "from", "to"), rows)]


def _median_bmi(card: ModelCard) -> list[str]:
    if card.median_bmi is UNSET:
        return []
    rows = [
        (sex, *(", ".join(f"{value:g}" for value in values) for values in (curve.age_years, curve.bmi_kg_m2)))
        for sex, curve in sorted(card.median_bmi.items())
    ]
    note = "Of groups of equal size in the order of age. The reliability map is drawn at these."
    return ["### Median body mass index", "", note, "", *table(("", "age, years", "kg/m²"), rows)]


def _reliability(limits: ReliabilityLimits, quantiles: Sequence[float]) -> list[str]:
    share = f"{100 * limits.size_beyond_share:g}%"
    rows = [
        (
            "W2, width of the 95% interval at a score of 2",
            f"> {limits.width_caution:g}",
            f"> {limits.width_not_reliable:g}",
        ),
        ("percentile of W2 in the training cohort", f"> {limits.width_percentile_caution:g}", ""),
        ("age", "outside the middle 98%", "outside the range"),
        ("height, weight", "outside the range of the sex", f"more than {share} beyond it"),
        ("body mass index", "outside the range", f"more than {limits.bmi_beyond_kg_m2:g} kg/m² beyond it"),
        ("edge, phase, modality", "one differs", f"{limits.convention_differences_not_reliable} or more differ"),
    ]
    middle = quantiles[len(quantiles) // 2]
    note = f"W2 in the training cohort: median {middle:.2f}, largest {quantiles[-1]:.2f}."
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
        "Shares of people below and above their own central 95% interval; 2.5% is ideal.",
        "",
        *table(("group", "people", "below", "above"), tails),
        "All methods on the same folds; higher log density is better, and so is smaller PIT deviation.",
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
    note = "With the limits at the time of publication."
    return ["## Gates of publication", "", note, "", *table(("gate", "measured", "from", "to", "passed"), rows)]


def _promises(card: ModelCard, limits_today: Sequence[Gate]) -> list[str]:
    gates = {gate.name: gate for gate in limits_today}
    rows = [_promise_row(tails, gates.get(tail_gate("above", tails.group))) for tails in card.calibration.tails]
    lowest, highest = map(percent, COVERAGE_OF_SINGLE_MODELS)
    nine_times = f"{10 * CHANCE:.0f} times in 10"
    return [
        "## What a model of this size can and cannot promise",
        "",
        "The gates can only judge the people in the table: the fewer there are, the more can go unnoticed. For either "
        f"tail of each group, the table gives the shares that pass under the limits of Normalcy {__version__}, and the "
        f"true shares that would be rejected {nine_times}. Anything in between may pass. A model with ideal tails is "
        "rejected because of its tails in at most one training in a hundred.",
        "",
        *table(("group", "people", "passes", f"would be rejected {nine_times}"), rows),
        _verdict_today(limits_today),
        "",
        "No gate can check the 95% interval of the score itself, because nobody's true z is known. In simulated "
        "cohorts of 1110 people it contained the true z of about 95% of people on average, but of "
        f"{lowest} to {highest} with a single model; a card cannot say where in that range its model lies.",
        "",
    ]


def _verdict_today(limits_today: Sequence[Gate]) -> str:
    failed = "; ".join(gate.name for gate in limits_today if not gate.passed)
    if failed:
        return f"Under the limits of Normalcy {__version__} this model would be rejected: {failed}."
    return f"Under the limits of Normalcy {__version__} this model passes the gates on tails and log density."


def _promise_row(tails: TailCheck, gate: Gate | None) -> tuple[str, str, str, str]:
    if gate is None:
        return tails.group, str(tails.people), "not judged", "none"
    low, high = math.ceil(gate.low * tails.people - ROUNDING), math.floor(gate.high * tails.people + ROUNDING)
    least, most = shares_found(tails.people, low, high, CHANCE)
    found = [f"{100.0 * least:.2g}% or less"] if least is not None else []
    found += [f"{100.0 * most:.2g}% or more"] if most is not None else []
    return (
        tails.group,
        str(tails.people),
        f"{percent(gate.low)} to {percent(gate.high)}",
        ", ".join(found) or "none",
    )


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


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """With cells of free text."""
    return markdown.table(head, ([plain(cell) for cell in row] for row in rows))


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def plain(text: str) -> str:
    """Free text on one line, escaped so that Markdown and HTML leave it alone."""
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
