"""The chapter on held-out log densities, from the numbers of `density.run`."""

from pathlib import Path
from typing import Any

import app
from app.benchmark.paper.markdown import table
from app.benchmark.paper.study import Spread, paired, spread
from app.store import load, versions

STORE = Path(app.__file__).parent.parent / "models_store"
VISIBLE = 0.002  # nats a person: about the standard error of the means over cohorts
TITLES = {"truth": "the density they were drawn from"}
CLEAR = 2.0  # standard errors


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; there is no picture."""
    sites = result["sites"]
    names = list(next(iter(sites.values())))
    body = [[TITLES.get(name, name), *(_cell(sites[site], name) for site in sites)] for name in names]
    return "\n".join(
        [
            "## Log density of unseen healthy people",
            "",
            "Areas under curves see the order of scores alone. What a percentile or an interval is worth shows in the "
            f"density that a method gives to people it has not seen: {len(result['seeds'])} simulated cohorts of "
            f"{result['size']} healthy people each train every method, which is asked about {result['asked']} fresh "
            "ones. Mean log density a person (natural logarithm, of mm), then NS less the method, mean ± standard "
            "error over the cohorts. The recipe is that of `normalcy train`, with Gaussian noise.",
            "",
            *table(["", *(f"{site}: log density, NS less it" for site in sites)], body),
            headline(result),
            "",
            *(_spread_line(site, methods) for site, methods in sites.items()),
            "",
        ]
    )


def headline(result: dict[str, Any]) -> str:
    parts = [f"{site} {_difference(methods, 'Altman')}" for site, methods in result["sites"].items()]
    better = [site for site, methods in result["sites"].items() if _gain(methods, "Altman") > 0]
    worse = [site for site, methods in result["sites"].items() if _gain(methods, "Altman") < 0]
    verdict = f"a better log density on {_and(better)}" if better else "no better log density"
    loss = f", and a worse one on {_and(worse)}" if worse else ""
    return (
        f"Over {len(result['seeds'])} simulated cohorts NS has {verdict} than Altman's method{loss}: NS less Altman in "
        f"nats a person, {', '.join(parts)} (0.01 is 1% of a density). {_shipped(shipped_folds())}"
    ).strip()


def shipped_folds(store: Path = STORE) -> dict[str, dict[str, float]]:
    """Site and version of each shipped model -> method -> mean log density on its own held-out folds."""
    cards = [load(store, site, version).card for site, known in versions(store).items() for version in known]
    return {
        f"{card.site} {card.version}": {one.method: one.log_density for one in card.calibration.methods}
        for card in cards
    }


def _shipped(folds: dict[str, dict[str, float]]) -> str:
    """One cohort is one draw: what its own folds say can differ from the mean over cohorts."""
    if not folds:
        return ""
    parts = [f"{name} {own['NS'] - own['altman']:+.4f}" for name, own in folds.items()]
    ahead = any(own["NS"] - own["altman"] >= VISIBLE for own in folds.values())
    verdict = "it shows too" if ahead else f"it is no better (all under {VISIBLE:g})"
    return f"On held-out folds of the one cohort that the shipped models were trained on {verdict}: {', '.join(parts)}."


def _spread_line(site: str, methods: dict[str, list[float]]) -> str:
    """What a spread that depends on the person adds, and what is left to gain."""
    left = _mean_difference(methods, "truth")
    pays = {1: "pays", 0: "makes no clear difference", -1: "costs"}[_gain(methods, "NS_hom")]
    return (
        f"- {site}: a spread that depends on the person {pays}: NS less NS_hom {_difference(methods, 'NS_hom')}. The "
        f"density that people were drawn from is {-left.mean:.4f} above NS: so much any method could still gain."
    )


def _gain(methods: dict[str, list[float]], other: str) -> int:
    """1, 0 or -1: NS is ahead, neither, behind by more than two standard errors."""
    found = _mean_difference(methods, other)
    clear = abs(found.mean) > CLEAR * found.standard_error
    return (1 if found.mean > 0.0 else -1) if clear else 0


def _cell(methods: dict[str, list[float]], name: str) -> str:
    own = f"{spread(methods[name]).mean:.4f}"
    return own if name == "NS" else f"{own}, {_difference(methods, name)}"


def _difference(methods: dict[str, list[float]], other: str) -> str:
    found = _mean_difference(methods, other)
    return f"{found.mean:+.4f} ± {found.standard_error:.4f}"


def _mean_difference(methods: dict[str, list[float]], other: str) -> Spread:
    return paired(spread(methods["NS"]), spread(methods[other]))


def _and(names: list[str]) -> str:
    return " and ".join(names)
