"""A published version as files, and back: `card.json`, `posterior.npz`, `golden.json`, `CARD.md`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from app.domain.card import CARD_FORMAT, NOT_GAUSSIAN, ModelCard
from app.domain.context import covariate_names
from app.domain.golden import GOLDEN_FORMAT, GoldenCase, GoldenFile
from app.errors import InvalidArtefact
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.store import canonical_json, npz

CARD, POSTERIOR, GOLDEN, CARD_FOR_PEOPLE = "card.json", "posterior.npz", "golden.json", "CARD.md"
FILES = (CARD, POSTERIOR, GOLDEN, CARD_FOR_PEOPLE)
WIDTH_QUANTILES = 201  # 0, 0.5, ..., 100 %

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Artefact:
    """What a version consists of, before and after it is on disk."""

    card: ModelCard
    posterior: HeteroscedasticPosterior
    golden: tuple[GoldenCase, ...]


def encode(artefact: Artefact, card_for_people: str) -> dict[str, bytes]:
    """The bytes of every file. They are read back at once: nothing is written that would be refused later."""
    files = {
        CARD: _refusing(CARD, lambda: canonical_json.write(artefact.card)),
        POSTERIOR: npz.write(artefact.posterior.arrays()),
        GOLDEN: _refusing(GOLDEN, lambda: canonical_json.write(GoldenFile(GOLDEN_FORMAT, artefact.golden))),
        CARD_FOR_PEOPLE: card_for_people.encode(),
    }
    decode(files)
    return files


def decode(files: Mapping[str, bytes]) -> Artefact:
    card = _card(files[CARD])
    return Artefact(card, _posterior(files[POSTERIOR], card), _golden(files[GOLDEN]))


def _card(data: bytes) -> ModelCard:
    _check_format(CARD, data, CARD_FORMAT)
    card = _refusing(CARD, lambda: canonical_json.read(data, ModelCard))
    if card.training.has_student_t_noise:
        raise InvalidArtefact(CARD, f"its model must not be served. {NOT_GAUSSIAN}")
    names = covariate_names(card.age_transform)
    if card.covariates != names:
        raise InvalidArtefact(CARD, f"its covariates are not {', '.join(names)}.")
    quantiles = card.width_quantiles
    if len(quantiles) != WIDTH_QUANTILES or any(low > high for low, high in pairwise(quantiles)):
        raise InvalidArtefact(CARD, f"width_quantiles must be {WIDTH_QUANTILES} rising numbers.")
    linear = card.comparators
    if not len(linear.coefficients) == len(linear.absolute_residual_coefficients) == len(names) + 1:
        raise InvalidArtefact(CARD, f"the comparators need {len(names) + 1} coefficients each.")
    return card


def _posterior(data: bytes, card: ModelCard) -> HeteroscedasticPosterior:
    arrays = _refusing(POSTERIOR, lambda: npz.read(data))
    posterior = _refusing(POSTERIOR, lambda: HeteroscedasticPosterior.from_arrays(arrays, card.kernel))
    if posterior.covariates != len(card.covariates):
        raise InvalidArtefact(
            POSTERIOR, f"it takes {posterior.covariates} covariates, the card {len(card.covariates)}."
        )
    return posterior


def _golden(data: bytes) -> tuple[GoldenCase, ...]:
    _check_format(GOLDEN, data, GOLDEN_FORMAT)
    golden = _refusing(GOLDEN, lambda: canonical_json.read(data, GoldenFile))
    if not golden.cases:
        raise InvalidArtefact(GOLDEN, "it holds no case.")
    return golden.cases


def _check_format(file: str, data: bytes, known: int) -> None:
    found = _refusing(file, lambda: canonical_json.read_field(data, "format"))
    if found != known:
        raise InvalidArtefact(file, f"its format is not {known}, the one that this program reads.")


def _refusing(file: str, step: Callable[[], T]) -> T:
    """Run one step of reading; whatever it finds wrong is told with the file's name."""
    try:
        return step()
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArtefact(file, str(error)) from error
