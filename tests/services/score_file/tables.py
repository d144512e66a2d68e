"""Tables of measurements for the tests: some rows good, some not."""

from pathlib import Path

HEADER = "id,site,age_years,sex,height_cm,weight_kg,diameter_mm"


def write_table(path: Path, rows: int) -> Path:
    """Every tenth row has no score: its height is in m."""
    lines = [
        f"p{k},SoV,{20 + k % 60},{'male' if k % 2 else 'female'},{1.7 if k % 10 == 9 else 170},70,{30 + k % 9}"
        for k in range(rows)
    ]
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path
