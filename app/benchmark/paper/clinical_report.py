"""The clinical chapter of the report, from the numbers of `clinical.run`: text, tables and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm

from app.benchmark.paper.rendering import Prose, page, paragraphs, table_text

PUBLISHED_COUNTS = {"SoV": 82, "AA": 48}  # the paper's patients with E[NS] < 2 and P(NS > 2) > 0
REFERENCES = ("true z", "diameter")
STROKES = {
    "NS": ("black", "-", 1.8),
    "NS_hom": ("0.45", "-", 1.0),
    "linear Z": ("black", "--", 1.2),
    "Altman": ("black", ":", 1.4),
    "QCAD": ("0.6", "-.", 1.4),
    "ROCOD": ("0.45", (0, (6, 2, 1, 2, 1, 2)), 1.2),
    "true z": ("0.75", "-", 2.6),
}
NAMES = {"NS_hom": r"NS$_\mathrm{hom}$"}
LABELS = {"40 mm": "dilated: 40 mm or more", "true z": "dilated: true z above 2 (corner enlarged)"}
CORNERS = {"40 mm": 1.0, "true z": 0.3}  # how much of either axis is shown
WIDTHS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of i; darker is wider
NAMED_WIDTHS = (0.5, 1.0, 2.0)


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; the pictures go into the folder."""
    draw_roc(result["roc"], folder / "clinical_roc.svg")
    draw_heatmaps(result["heatmaps"], folder / "clinical_heatmaps.svg")
    draw_patients(result["patients"], folder / "clinical_patients.svg")
    healthy, bicuspid = result["healthy"], result["bicuspid"]
    opening = Prose("clinical")(
        "opening",
        healthy=healthy["people"],
        healthy_seed=healthy["seed"],
        bicuspid=bicuspid["people"],
        bicuspid_seed=bicuspid["seed"],
    )
    return paragraphs([opening, _ranking(result["roc"]), _widths(result["heatmaps"]), _doubt(result["counts"])])


def headline(result: dict[str, Any]) -> str:
    by_size, by_truth = _versus_z(result["roc"])
    return Prose("clinical")(
        "headline",
        by_size=by_size,
        by_truth=by_truth,
        tests=_tests(result["roc"]),
        largest=_largest(result["roc"]),
    )


def _ranking(roc: dict[str, Any]) -> str:
    by_size, by_truth = _versus_z(roc)
    return Prose("clinical")(
        "ranking",
        tests=_tests(roc),
        tables=paragraphs(_areas(site, labels) for site, labels in roc.items()),
        by_size=by_size,
        by_truth=by_truth,
        best_contextual=_each(roc, "40 mm", "true z"),
        large_yet_normal=_count(roc, "large_yet_normal"),
        small_yet_wide=_count(roc, "small_yet_wide"),
        hom_by_size=_each(roc, "40 mm", "NS_hom"),
        hom_by_truth=_each(roc, "true z", "NS_hom"),
        largest=_largest(roc),
    )


def _tests(roc: dict[str, Any]) -> int:
    """How many differences are tested."""
    methods = [
        own for labels in roc.values() for label in ("40 mm", "true z") for own in labels[label]["methods"].values()
    ]
    return sum(own["versus_ns"] is not None for own in methods)


def _areas(site: str, labels: dict[str, Any]) -> str:
    size, truth = labels["40 mm"], labels["true z"]
    head = ["score", "area, 40 mm", "NS less it", "p", "area, true z > 2", "NS less it", "p"]
    rows = ([name, *_area(own), *_area(truth["methods"][name])] for name, own in size["methods"].items())
    return Prose("clinical")(
        "areas",
        site=site,
        reach_40_mm=size["positive"],
        patients=size["positive"] + size["negative"],
        above_2=truth["positive"],
        table=table_text(head, rows),
    )


def _area(found: dict[str, Any]) -> list[str]:
    area, versus = f"{found['area']:.3f} ± {found['standard_error']:.3f}", found["versus_ns"]
    return [area, f"{versus['difference']:+.3f}", p_value(versus["p"])] if versus else [area, "", ""]


def _versus_z(roc: dict[str, Any]) -> tuple[str, str]:
    by_size, by_truth = (", ".join(versus_z(site, roc[site][label]) for site in roc) for label in ("40 mm", "true z"))
    return by_size, by_truth


def versus_z(site: str, label: dict[str, Any]) -> str:
    """Where NS stands against the linear Z-score, in words."""
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


def _widths(heatmaps: dict[str, Any]) -> str:
    diameter = f"{next(iter(heatmaps.values()))['diameter_mm']:.0f}"
    rows = (
        [f"{site}, {group}", *(f"{own[name]:.2f}" for name in ("expected", "i", "w2"))]
        for site, found in heatmaps.items()
        for group, own in found["at_people"].items()
    )
    table = table_text(["", f"E[NS] at {diameter} mm", f"i at {diameter} mm", "W2"], rows)
    return Prose("clinical")("widths", diameter=diameter, table=table)


def _doubt(counts: dict[str, Any]) -> str:
    head = ["", "E[NS] < 2", "of them P ≥ 1/30,000", "P ≥ 0.025", "the paper's P > 0", "sum of P", "true z > 2"]
    # So few people that chance explains a good deal: the standard deviation is that of independent patients.
    above = ", ".join(
        f"{own['truly_exceed']} at {site} where {own['expected_to_exceed']:.1f} are expected, give or take "
        f"{own['expected_to_exceed'] ** 0.5:.1f}"
        for site, own in counts.items()
    )
    return Prose("clinical")(
        "doubt",
        table=table_text(head, (_counted(site, own) for site, own in counts.items())),
        above=above,
        crossing=", ".join(f"{own['normal_by_z_yet_crossing']} at {site}" for site, own in counts.items()),
        covered=", ".join(f"{own['true_z_covered']:.1%} at {site}" for site, own in counts.items()),
    )


def _counted(site: str, own: dict[str, Any]) -> list[str]:
    ours = [str(own[name]) for name in ("expected_below", "seen_by_sampling", "in_the_tail")]
    paper = f"{PUBLISHED_COUNTS[site]} (other patients)"
    return [site, *ours, paper, f"{own['expected_to_exceed']:.1f}", str(own["truly_exceed"])]


def p_value(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _relation(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def draw_roc(found: dict[str, Any], path: Path) -> None:
    """A column for each site, a row for each label."""
    with page(path, 7.0, 7.2) as figure:
        grid = figure.subplots(2, len(found), squeeze=False)
        for column, (site, labels) in enumerate(found.items()):
            for row, (label, words) in enumerate(LABELS.items()):
                axes = grid[row, column]
                _curves(axes, labels[label]["methods"], CORNERS[label])
                axes.set_title(f"{site}, {words}", fontsize=9)


def _curves(axes: Axes, methods: dict[str, Any], shown: float) -> None:
    axes.plot([0, 1], [0, 1], color="0.85", linewidth=0.8)
    for name, (shade, dash, weight) in STROKES.items():
        curve, area = methods[name]["curve"], methods[name]["area"]
        style: Any = {"color": shade, "linestyle": dash, "linewidth": weight, "zorder": 1 if name == "true z" else 2}
        axes.plot(curve["x"], curve["y"], label=f"{NAMES.get(name, name)}, {area:.3f}", **style)
    margin = 0.01 * shown
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    axes.set(xlim=(-margin, shown), ylim=(1.0 - shown, 1.0 + margin))
    axes.legend(frameon=False, loc="lower right", fontsize=8, title="area", title_fontsize=8)


def draw_heatmaps(found: dict[str, Any], path: Path) -> None:
    """A row for each site, a column for each sex; the dots are the people of training."""
    with page(path, 7.0, 6.4) as figure:
        grid = figure.subplots(len(found), 2, sharex=True, sharey=True, squeeze=False)
        for row, (site, maps) in enumerate(found.items()):
            for column, (sex, words) in enumerate((("male", "men and boys"), ("female", "women and girls"))):
                axes = grid[row, column]
                shades = _map(axes, maps, maps[sex])
                axes.set_title(f"{site}, {words}", fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("age, years")
        for axes in grid[:, 0]:
            axes.set_ylabel("body surface area, m²")
        figure.colorbar(
            shades, ax=grid, label="i, the width of the 95% HDI of NS (standard deviations)", shrink=0.8, aspect=35
        )


def _map(axes: Axes, maps: dict[str, Any], own: dict[str, Any]) -> Any:
    ages, areas, width = maps["age_years"], maps["bsa_m2"], np.array(own["width"]).T
    norm = BoundaryNorm(WIDTHS, 256, extend="both")
    shades = axes.contourf(ages, areas, width, levels=WIDTHS, cmap="YlOrRd", norm=norm, extend="both")
    lines = axes.contour(ages, areas, width, levels=NAMED_WIDTHS, colors="black", linewidths=0.6)
    axes.plot(own["people"]["age_years"], own["people"]["bsa_m2"], ".", color="0.2", markersize=1.2)
    for name in axes.clabel(lines, fmt="%g", fontsize=7):
        name.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    return shades


def draw_patients(found: list[dict[str, Any]], path: Path) -> None:
    """Each with the density of NS at both sites, its HDI, E[NS], the linear Z, the truth, and the cut-off."""
    ends = [own["t"][end] for patient in found for own in patient["sites"].values() for end in (0, -1)]
    with page(path, 7.2, 5.6) as figure:
        grid = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
        for axes, patient in zip(grid, found, strict=False):
            _patient(axes, patient)
        grid[0].set(xlim=(min([*ends, 2.0]) - 2.0, max([*ends, 2.0]) + 0.2))  # room for words on the left
        for axes in grid[2:]:
            axes.set_xlabel("score, standard deviations")
        handles, names = grid[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False, fontsize=8)


def _patient(axes: Axes, patient: dict[str, Any]) -> None:
    sites = patient["sites"]
    for height, own in enumerate(reversed(sites.values())):
        _score(axes, own, height)
        words = f"P(NS > 2) {_probability(own['above'])}\n{own['diameter_mm']:.2f} mm"
        axes.text(0.02, height + 0.3, words, fontsize=7.5, transform=axes.get_yaxis_transform())
    axes.axvline(2.0, color="black", linewidth=0.8, linestyle="--")
    words = "man" if patient["sex"] == "male" else "woman"
    axes.set_title(f"patient {patient['number']}: {words}, {patient['age_years']:.0f} years", fontsize=9)
    axes.set(yticks=range(len(sites)), yticklabels=list(reversed(sites)), ylim=(-0.35, 1.8))


def _score(axes: Axes, own: dict[str, Any], height: int) -> None:
    density = np.array(own["density"])
    # Only the lowest one is named, so that the legend says each thing once.
    names = ("density of NS", "95% HDI", "E[NS]", "linear Z", "true z") if height == 0 else ("_",) * 5
    axes.fill_between(own["t"], height, height + 0.62 * density / density.max(), color="0.85", label=names[0])
    axes.hlines(height, own["low"], own["high"], color="black", linewidth=2.0, label=names[1])
    axes.plot(own["expected"], height, "o", color="black", markersize=5, label=names[2])
    axes.plot(own["linear_z"], height, "x", color="black", markersize=6, zorder=4, label=names[3])
    axes.plot(own["true_z"], height - 0.12, "^", color="0.4", markersize=5, label=names[4])


def _probability(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.0005 else "< 0.001"
