"""Where NS comes first of all methods here."""

from app.benchmark.paper.detection import Rowwise


def ranking(rows: dict[str, Rowwise]) -> str:
    sets = list(rows["NS"])
    first = {area: [name for name in sets if _best(rows, name, area)] for area in ("roc", "pr")}
    return (
        f"NS has the largest ROC AUC of all methods on {len(first['roc'])} of {len(sets)} sets "
        f"({', '.join(first['roc']) or 'none'}) and the largest PR AUC on {len(first['pr'])} "
        f"({', '.join(first['pr']) or 'none'}), ties in three decimals counted; in the paper on 4 and 4."
    )


def _best(rows: dict[str, Rowwise], name: str, area: str) -> bool:
    means = {method: round(getattr(row[name], area).mean, 3) for method, row in rows.items()}
    return bool(means["NS"] >= max(means.values()))
