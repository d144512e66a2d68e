"""A version appears whole or not at all, and is never overwritten."""

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain.card import Gate, ModelCard
from app.errors import InvalidArtefact, InvalidName, VersionExists
from app.store import load, publish, verify, versions
from tests.samples import a_card, a_golden_case, a_posterior, publish_a_model


def publish_card(root: Path, card: ModelCard) -> None:
    publish(root, card, a_posterior(), (a_golden_case(),), "# card")


def test_the_same_model_has_the_same_digest_anywhere(tmp_path: Path) -> None:
    first, second = publish_a_model(tmp_path / "one"), publish_a_model(tmp_path / "two")
    assert first == second
    assert load(tmp_path / "one", "SoV", "1.0.0").ref == first
    assert publish_a_model(tmp_path / "three", seed=1).sha256 != first.sha256


@pytest.mark.req("REQ-058")
def test_a_version_is_never_overwritten(tmp_path: Path) -> None:
    first = publish_a_model(tmp_path)
    with pytest.raises(VersionExists):
        publish_a_model(tmp_path, seed=1)
    assert load(tmp_path, "SoV", "1.0.0").ref == first
    assert [entry.name for entry in (tmp_path / "SoV").iterdir()] == ["1.0.0"]


@pytest.mark.parametrize("kind", ["file", "empty folder", "dead link"])
def test_whatever_stands_in_the_place_of_a_version_stays(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "SoV" / "1.0.0"
    place.parent.mkdir()
    if kind == "file":
        place.touch()
    elif kind == "empty folder":
        place.mkdir()
    else:
        place.symlink_to("nowhere")
    with pytest.raises(VersionExists):
        publish_a_model(tmp_path)
    assert [entry.name for entry in place.parent.iterdir()] == ["1.0.0"]


@pytest.mark.parametrize("site", ["", "..", "a/b", ".hidden", "9to5"])
def test_a_site_needs_a_plain_name(tmp_path: Path, site: str) -> None:
    with pytest.raises(InvalidName, match="The name of a site is"):
        publish_a_model(tmp_path, site=site)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["1.0", "latest", "../1.0.0", "1.0.0+x"])
def test_a_version_needs_a_semantic_number(tmp_path: Path, version: str) -> None:
    with pytest.raises(InvalidName, match=r"MAJOR\.MINOR\.PATCH"):
        publish_a_model(tmp_path, version=version)


def test_a_site_must_differ_from_others_by_more_than_case(tmp_path: Path) -> None:
    publish_a_model(tmp_path, site="SoV")
    with pytest.raises(InvalidName, match="only by case"):
        publish_a_model(tmp_path, site="sov")
    assert versions(tmp_path) == {"SoV": ("1.0.0",)}


def test_what_would_be_refused_later_is_not_published(tmp_path: Path) -> None:
    card = a_card()
    faulty = [
        replace(card, gates=(Gate("tail", float("nan"), 0.0, 1.0),)),
        replace(card, width_quantiles=card.width_quantiles[:-1]),
        replace(card, width_quantiles=card.width_quantiles[::-1]),
        replace(card, covariates=("age", "sex")),
        replace(card, kernel="cosine"),
        replace(card, format=0),
    ]
    for bad in faulty:
        with pytest.raises(InvalidArtefact):
            publish_card(tmp_path, bad)
    with pytest.raises(InvalidArtefact, match=r"golden\.json"):
        publish(tmp_path, card, a_posterior(), (), "# card")
    with pytest.raises(InvalidArtefact, match="it takes 3 covariates"):
        publish(tmp_path, card, a_posterior(covariates=3), (a_golden_case(),), "# card")
    assert versions(tmp_path) == {}


def test_a_spread_that_is_no_standard_deviation_is_not_published(tmp_path: Path) -> None:
    card = a_card()
    robust = replace(card, training=replace(card.training, recipe={**card.training.recipe, "robust": True}))
    with pytest.raises(InvalidArtefact, match=r"card\.json: its model must not be served\. .* Student-t .* Gaussian"):
        publish_card(tmp_path, robust)
    assert versions(tmp_path) == {}


def test_numbers_of_numpy_are_published_as_plain_ones(tmp_path: Path) -> None:
    measured: Any = np.float64(0.02)
    gate = Gate("tail", measured, 0, 1)
    publish_card(tmp_path, replace(a_card(), gates=(gate,)))
    assert load(tmp_path, "SoV", "1.0.0").card.gates == (Gate("tail", 0.02, 0.0, 1.0),)


def test_a_disk_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        publish_a_model(tmp_path)
    assert list((tmp_path / "SoV").iterdir()) == []


PREAMBLE = """
import os, sys
from pathlib import Path
from typing import Any
from app.errors import VersionExists
from tests.samples import publish_a_model
root = Path(sys.argv[1])
rename = os.rename
"""


def child(root: Path, program: str, *arguments: str) -> subprocess.Popen[str]:
    code = PREAMBLE + textwrap.dedent(program)
    command = [sys.executable, "-c", code, str(root), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


WAIT_BEFORE_RENAME = """
def wait_and_rename(source, target):
    print("written", flush=True)
    sys.stdin.readline()
    rename(source, target)

os.rename = wait_and_rename
try:
    publish_a_model(root, seed=int(sys.argv[2]))
    print("published", flush=True)
except VersionExists:
    print("exists", flush=True)
"""


@pytest.mark.slow
def test_a_publication_killed_before_its_last_step_leaves_no_version(tmp_path: Path) -> None:
    with child(tmp_path, WAIT_BEFORE_RENAME, "0") as process:
        assert hear(process) == "written"
        process.kill()
    assert versions(tmp_path) == {}
    left = list((tmp_path / "SoV").iterdir())
    assert [entry.name.startswith(".1.0.0-") for entry in left] == [True]
    ref = publish_a_model(tmp_path)
    assert load(tmp_path, "SoV", "1.0.0").ref == ref


@pytest.mark.slow
def test_of_two_publishers_of_one_version_exactly_one_wins(tmp_path: Path) -> None:
    with child(tmp_path, WAIT_BEFORE_RENAME, "0") as one, child(tmp_path, WAIT_BEFORE_RENAME, "1") as other:
        publishers = (one, other)
        assert [hear(process) for process in publishers] == ["written", "written"]
        for process in publishers:
            say(process, "go")
        assert sorted(hear(process) for process in publishers) == ["exists", "published"]
    assert [entry.name for entry in (tmp_path / "SoV").iterdir()] == ["1.0.0"]
    assert [found.error for found in verify(tmp_path)] == [None]
