"""From a table to a published version and its evaluation, by the commands of the README, on a small cohort."""

import csv
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import normalcy

pytestmark = pytest.mark.gpflow

TRAIN = ("--site", "SoV", "--version", "1.0.0", "--diameter-column", "SoV_mm", "--cohort", "simulated", "--folds", "2")


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of 240 people, 60 patients, and a version trained on the people."""
    folder = tmp_path_factory.mktemp("hospital")
    for options in (("--n", "240", "--out", "people.csv"), ("--n", "60", "--bicuspid", "--out", "patients.csv")):
        assert normalcy("cohort", "simulate", *options, cwd=folder).returncode == 0
    done = normalcy("train", "people.csv", *TRAIN, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"]["version"] == "1.0.0"
    return folder


def test_a_published_version_is_listed_shown_and_verified(hospital: Path) -> None:
    listed = json.loads(normalcy("models", "list", "--json", cwd=hospital).stdout)
    assert [(row["site"], row["version"], row["cohort"], row["people"]) for row in listed] == [
        ("SoV", "1.0.0", "simulated", 240)
    ]
    card = normalcy("models", "show", "SoV", cwd=hospital)
    assert "Not for care" in card.stdout
    verified = normalcy("models", "verify", cwd=hospital)
    assert (verified.returncode, verified.stdout) == (0, "SoV 1.0.0: intact, 24 golden cases reproduced.\n")


def test_a_version_is_refused_before_it_would_be_trained_again(hospital: Path) -> None:
    done = normalcy("train", "people.csv", *TRAIN, cwd=hospital)
    assert done.returncode == 1
    assert "never overwritten" in done.stderr


def test_a_flipped_bit_fails_verification_by_the_name_of_its_file(hospital: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-r", hospital / "models_store", tmp_path], check=True)  # noqa: S603, S607
    file = tmp_path / "models_store" / "SoV" / "1.0.0" / "posterior.npz"
    file.chmod(0o644)
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)
    done = normalcy("models", "verify", cwd=tmp_path)
    assert done.returncode == 1
    assert "posterior.npz" in done.stdout


def test_evaluation_gives_figures_and_plots(hospital: Path) -> None:
    done = normalcy(
        "evaluate", "patients.csv", "--site", "SoV", "--diameter-column", "SoV_mm", "--label-column", "SoV_dilated",
        "--truth-column", "SoV_true_z_mm", "--plots", "plots", "--json", cwd=hospital,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    by_method = {row["method"]: row["roc_auc"] for row in found["discrimination"]}
    # Diameters of 40 mm and more against the others: any score that rises with the diameter does far better than 0.5.
    assert by_method["E[NS]"] > 0.8
    assert sum(found["verdicts"].values()) == pytest.approx(1.0)
    assert sum(found["positions"].values()) == pytest.approx(1.0)
    assert 0.5 < found["true_z_covered"] <= 1.0
    names = {"roc", "precision_recall", "calibration", "scores", "shares"}
    assert {file.name for file in (hospital / "plots").iterdir()} == {
        f"{n}.{kind}" for n in names for kind in ("png", "svg")
    }


def test_labels_other_than_0_and_1_are_named_by_row(hospital: Path) -> None:
    rows = read(hospital / "patients.csv")
    rows[4]["SoV_dilated"] = "yes"
    write(hospital / "wrong.csv", rows)
    done = normalcy("evaluate", "wrong.csv", "--site", "SoV", "--diameter-column", "SoV_mm", "--label-column",
                    "SoV_dilated", cwd=hospital)  # fmt: skip
    assert done.returncode == 1
    assert "Column SoV_dilated must be 0 or 1: row 6." in done.stderr


def test_student_t_noise_is_refused_before_anything_is_read_or_fitted(tmp_path: Path) -> None:
    done = normalcy("train", "no_such_table.csv", *TRAIN, "--robust", cwd=tmp_path)
    assert done.returncode == 1
    assert "The model is not published. With Student-t noise (robust), the fitted spread is" in done.stderr
    assert "Train without --robust" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("REQ-059")
def test_a_model_that_fails_a_gate_is_not_published(hospital: Path, tmp_path: Path) -> None:
    """One person in eight has an aorta 14 mm too wide: no spread fits both tails."""
    rows = read(hospital / "people.csv")
    for row in rows[::8]:
        row["SoV_mm"] = f"{float(row['SoV_mm']) + 14:.2f}"
    write(tmp_path / "people.csv", rows)
    done = normalcy("train", "people.csv", *TRAIN, cwd=tmp_path)
    assert done.returncode == 1
    assert "The model is not published. Gate 'share above the 95% interval, all'" in done.stderr
    assert "missed by" in done.stderr
    assert not (tmp_path / "models_store").exists()
