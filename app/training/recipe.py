"""What to fit and how: every choice of a training by name, stored on the model's card."""

import math
from dataclasses import asdict, dataclass
from typing import Literal

from app.maths.gp.kernels import SHAPES

Optimiser = Literal["lbfgs", "paper"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The default is `reg1`: a homoscedastic fit first, then log sd(x) released under a tight prior.

    The objective is the ELBO of standardised data plus, for every kernel parameter p, log N(log p | log median, sd²):
    a density of log p, with no Jacobian, so that the optimum does not depend on how p is represented.
    """

    kernel: str = "rational_quadratic"
    inducing_share: float = 0.05  # of the people; 20, 55 and 110 points gave 1110 simulated people the same ELBO
    inducing_minimum: int = 10
    heteroscedastic: bool = True  # False: one constant sd for everybody, NS_hom of the paper
    robust: bool = False  # a last stage with a Student-t data term; exp(f2) is then a t scale, not an sd
    robust_freedom: float = 6.0
    optimiser: Optimiser = "lbfgs"
    priors: bool = True  # False: the plain ELBO, as in the paper
    f2_lengthscale: float = 1.0  # medians of the priors on f2's kernel, lengthscales in units of √D ...
    f2_lengthscale_sd: float = 0.5  # ... and sds of the logarithms
    f2_variance: float = 0.1
    f2_variance_sd: float = 0.5
    start_log_sd: float = -2.3  # a tenth of y's sd: a start that makes f1 explain y before noise does
    constant_iterations: int = 150  # of the stage that holds f2 constant; 0 leaves it out
    released_iterations: int = 200
    robust_iterations: int = 200
    paper_steps: int = 40_000
    jitter: float = 1e-6  # on the diagonal of Kuu, standardised units

    def __post_init__(self) -> None:
        if self.kernel not in SHAPES:
            raise ValueError(f"unknown kernel {self.kernel}; known are {', '.join(SHAPES)}")
        if self.optimiser not in ("lbfgs", "paper"):
            raise ValueError(f"unknown optimiser {self.optimiser}; known are lbfgs and paper")
        if not 0.0 < self.inducing_share <= 1.0:
            raise ValueError("inducing_share must be above 0 and at most 1")
        if self.robust and self.optimiser == "paper":
            raise ValueError("the robust stage goes with the optimiser lbfgs")
        if not self.robust_freedom > 2.0:
            raise ValueError("robust_freedom must be above 2, or the data term has no variance")

    @classmethod
    def base(cls) -> "Recipe":
        """The first recipe tried: weak priors on f2, no staging."""
        return cls(
            f2_lengthscale=2.0,
            f2_lengthscale_sd=1.0,
            f2_variance=0.5,
            f2_variance_sd=1.0,
            start_log_sd=math.log(0.5),
            constant_iterations=0,
            released_iterations=350,
        )

    @classmethod
    def reg1t6(cls) -> "Recipe":
        """For training data that holds anomalies. NS no longer reads as a z-score: its sd is about 1.22."""
        return cls(robust=True)

    def inducing_points(self, people: int) -> int:
        return min(people, max(self.inducing_minimum, int(self.inducing_share * people)))

    def as_dict(self) -> dict[str, str | int | float | bool]:
        return asdict(self)
