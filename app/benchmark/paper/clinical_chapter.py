"""The clinical chapter of the report, from the numbers of `clinical.run`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.benchmark.paper import clinical_figures
from app.benchmark.paper.markdown import table

PUBLISHED_COUNTS = {"SoV": 82, "AA": 48}  # the paper's patients with E[NS] < 2 and P(NS > 2) > 0

REFERENCES = ("true z", "diameter")


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; the pictures go into the folder."""
    clinical_figures.roc(result["roc"], folder / "clinical_roc.svg")
    clinical_figures.heatmaps(result["heatmaps"], folder / "clinical_heatmaps.svg")
    clinical_figures.patients(result["patients"], folder / "clinical_patients.svg")
    parts = (_opening(result), _ranking(result["roc"]), _widths(result["heatmaps"]), _doubt(result))
    return "\n".join(line for part in parts for line in part)


def headline(result: dict[str, Any]) -> str:
    by_size, by_truth = _versus_z(result["roc"])
    return (
        f"On simulated patients NS ranks against the linear Z-score, by 40 mm: {by_size}; by the true z: {by_truth} "
        f"(p not adjusted for {_tests(result['roc'])} tests). Largest area by 40 mm: {_largest(result['roc'])}; in the "
        "paper NS is ahead of QCAD and ROCOD."
    )


def _opening(result: dict[str, Any]) -> Iterator[str]:
    healthy, bicuspid = result["healthy"], result["bicuspid"]
    yield "## The clinical experiment, on simulated people"
    yield ""
    yield (
        "The paper trains on 1110 healthy people and asks about 351 patients with a bicuspid aortic valve. Those "
        f"people are not public. Here {healthy['people']} healthy people (seed {healthy['seed']}) and "
        f"{bicuspid['people']} patients (seed {bicuspid['seed']}) are drawn from published equations, so the true z "
        "of every patient is known. Training and test come from one generator: **nothing in this chapter repeats the "
        "paper's clinical results**, it shows how the method behaves where the truth can be looked up."
    )
    yield ""


def _ranking(roc: dict[str, Any]) -> Iterator[str]:
    yield "### Who is dilated?"
    yield ""
    yield (
        "The paper calls an aorta of 40 mm or more dilated and compares areas under ROC curves with DeLong's test. "
        "Beside that label stands the one that only a simulation has, a true z above 2 (mm scale). Scores are signed, "
        "so that wide ranks above narrow; QCAD and ROCOD have no sign, hence also the unsigned |E[NS]|. Differences "
        "are NS less the method. The ± are DeLong's standard errors: of one trained model a site and one cohort, over "
        f"the patients. The {_tests(roc)} values of p are not adjusted for their number, and with areas so near to 1 "
        "as by the true z they are rough."
    )
    yield ""
    for site, labels in roc.items():
        yield from _areas(site, labels)
    yield "![ROC curves by site and label](paper/clinical_roc.svg)"
    yield ""
    yield from _why(roc)


def _tests(roc: dict[str, Any]) -> int:
    """How many differences are tested."""
    methods = [
        own for labels in roc.values() for label in ("40 mm", "true z") for own in labels[label]["methods"].values()
    ]
    return sum(own["versus_ns"] is not None for own in methods)


def _areas(site: str, labels: dict[str, Any]) -> Iterator[str]:
    size, truth = labels["40 mm"], labels["true z"]
    everybody = size["positive"] + size["negative"]
    yield f"{site}: {size['positive']} of {everybody} reach 40 mm, {truth['positive']} have a true z above 2."
    yield ""
    head = ["score", "area, 40 mm", "NS less it", "p", "area, true z > 2", "NS less it", "p"]
    rows = ([name, *_area(own), *_area(truth["methods"][name])] for name, own in size["methods"].items())
    yield from table(head, rows)


def _area(found: dict[str, Any]) -> list[str]:
    area, versus = f"{found['area']:.3f} ± {found['standard_error']:.3f}", found["versus_ns"]
    return [area, f"{versus['difference']:+.3f}", p_value(versus["p"])] if versus else [area, "", ""]


def _why(roc: dict[str, Any]) -> Iterator[str]:
    by_size, by_truth = _versus_z(roc)
    yield (
        f"NS against the linear Z-score, by the 40 mm label: {by_size}; by the true z: {by_truth}. In the first case "
        "the label is the reason. An absolute size is not a contextual anomaly: the bare diameter ranks it with an "
        "area of 1 by definition, while the true z, the best contextual score there can be, reaches "
        f"{_each(roc, '40 mm', 'true z')}. People of 40 mm or more whose true z is not above 2: "
        f"{_count(roc, 'large_yet_normal')}; people below 40 mm whose true z is: {_count(roc, 'small_yet_wide')}. A "
        "score that divides by one spread for everybody stays nearer to the millimetres than one that divides by the "
        f"wider spread of larger aortas: NS_hom, one spread, has {_each(roc, '40 mm', 'NS_hom')} by the 40 mm label "
        f"and {_each(roc, 'true z', 'NS_hom')} by the true z. So the areas under the 40 mm label do not say which "
        f"score is better. Largest of the methods under it: {_largest(roc)}; in the paper NS is ahead of QCAD and "
        "ROCOD at both sites."
    )
    yield ""


def _versus_z(roc: dict[str, Any]) -> tuple[str, str]:
    by_size, by_truth = (", ".join(versus_z(site, roc[site][label]) for site in roc) for label in ("40 mm", "true z"))
    return by_size, by_truth


def versus_z(site: str, label: dict[str, Any]) -> str:
    """Where NS stands against the linear Z-score, in words that follow from the numbers."""
    found = label["methods"]["linear Z"]["versus_ns"]
    side = "ahead" if found["difference"] > 0 else "behind"
    return f"{side} by {abs(found['difference']):.3f} at {site} (p {_relation(found['p'])})"


def _each(roc: dict[str, Any], label: str, method: str) -> str:
    return " and ".join(f"{labels[label]['methods'][method]['area']:.3f} ({site})" for site, labels in roc.items())


def _largest(roc: dict[str, Any]) -> str:
    """The method of the largest area under the 40 mm label, the truth and the diameter being none."""
    for_real = {
        site: {name: own for name, own in labels["40 mm"]["methods"].items() if name not in REFERENCES}
        for site, labels in roc.items()
    }
    best = {site: max(methods, key=lambda name: methods[name]["area"]) for site, methods in for_real.items()}
    return " and ".join(f"{name}, {for_real[site][name]['area']:.3f} ({site})" for site, name in best.items())


def _count(roc: dict[str, Any], name: str) -> str:
    return " and ".join(f"{labels[name]} ({site})" for site, labels in roc.items())


def _widths(heatmaps: dict[str, Any]) -> Iterator[str]:
    diameter = next(iter(heatmaps.values()))["diameter_mm"]
    yield "### How sure is the score?"
    yield ""
    yield "![The width of the HDI over age and body surface area](paper/clinical_heatmaps.svg)"
    yield ""
    yield (
        f"The width i of the 95% HDI at {diameter:.0f} mm, as in the paper; the dots are the people of training. A "
        "body of a given age, sex and surface area has the mean height that those people had, by least squares. The "
        "interval is wide where there are no dots, as the picture shows. It is also wide where the diameter is far "
        "from normal, since i grows with |NS|; the width W2 at a score of 2 depends on the context alone. Medians "
        "over the people of training:"
    )
    yield ""
    rows = (
        [f"{site}, {group}", *(f"{own[name]:.2f}" for name in ("expected", "i", "w2"))]
        for site, found in heatmaps.items()
        for group, own in found["at_people"].items()
    )
    yield from table(["", f"E[NS] at {diameter:.0f} mm", f"i at {diameter:.0f} mm", "W2"], rows)


def _doubt(result: dict[str, Any]) -> Iterator[str]:
    yield "### Below 2, but how surely?"
    yield ""
    yield (
        "The paper counts the patients with E[NS] < 2 whose P(NS > 2) is not 0 among its draws. An exact probability "
        "is never 0; 1/30,000 is the smallest that 30,000 draws can show. The sum of P(NS > 2) over the patients with "
        "E[NS] < 2 is how many of them the model expects to exceed 2; the last column, which only a simulation knows, "
        "is how many truly do."
    )
    yield ""
    head = ["", "E[NS] < 2", "of them P ≥ 1/30,000", "P ≥ 0.025", "the paper's P > 0", "sum of P", "true z > 2"]
    yield from table(head, (_counted(site, own) for site, own in result["counts"].items()))
    yield _expected_and_seen(result["counts"])
    yield ""
    yield "![Four patients in doubt](paper/clinical_patients.svg)"
    yield ""
    crossing = ", ".join(f"{own['normal_by_z_yet_crossing']} at {site}" for site, own in result["counts"].items())
    covered = ", ".join(f"{own['true_z_covered']:.1%} at {site}" for site, own in result["counts"].items())
    yield (
        f"Patients whose linear Z-score is below 2 while the HDI reaches beyond it: {crossing}. The four drawn are not "
        "picked: sorted by the larger P(NS > 2) of the two sites, they stand at 1/8, 3/8, 5/8 and 7/8 of all of them. "
        f"Over all patients the HDI held the true z in {covered}. That is one fit a site; [coverage.md](coverage.md) "
        "has the mean over 40 cohorts and how far they lie apart, for healthy people."
    )
    yield ""


def _expected_and_seen(counts: dict[str, Any]) -> str:
    """So few people that chance explains a good deal: the standard deviation is that of independent patients."""
    parts = ", ".join(
        f"{own['truly_exceed']} at {site} where {own['expected_to_exceed']:.1f} are expected, give or take "
        f"{own['expected_to_exceed'] ** 0.5:.1f}"
        for site, own in counts.items()
    )
    return (
        f"Truly above 2 are {parts} if patients erred independently; more, since one model's error is shared by all of "
        "its patients."
    )


def _counted(site: str, own: dict[str, Any]) -> list[str]:
    ours = [str(own[name]) for name in ("expected_below", "seen_by_sampling", "in_the_tail")]
    paper = f"{PUBLISHED_COUNTS[site]} (other patients)"
    return [site, *ours, paper, f"{own['expected_to_exceed']:.1f}", str(own["truly_exceed"])]


def p_value(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _relation(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"
