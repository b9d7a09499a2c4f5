"""The gate that every network passes, whoever brings it: which answers are refused, with which message.

An edition, `evaluate` in Python and on the command line, robustness, attacks, trainings and the contest all see answers
through it. It takes arrays; `checked_network` puts it around a network of torch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.logits import are_log_probabilities, are_probabilities

MANY_CLASSES = 10
"""Classes from which one row is enough: as many logits are not all from 0 to 1 with a sum of 1 by chance."""
MIN_ROWS = 2
"""Rows of fewer classes that have to look like probabilities before any is believed to be one."""
MIN_ROUNDED_ROWS = 8
"""The same where a sum is off by more than EXACT_SUM, as of a softmax in half precision: chance comes as close."""
EXACT_SUM = 1e-4
"""Largest difference of 1 and the sum of a softmax in float32 or float64."""


class NetworkError(CleansetError):
    """A network raises an exception, or does not give logits."""


def expected_logits(count: int, classes: int) -> str:
    """What a network has to give for `count` images, in words."""
    return f"expected logits, float {(count, classes)}"


def wrong_answer(name: str, found: str, count: int, classes: int) -> NetworkError:
    """The error of a network whose answer to `count` images is of another kind or shape: `found`, in words."""
    return NetworkError(f"{name}: the network gives {found}; {expected_logits(count, classes)}")


def not_finite(where: object) -> NetworkError:
    """The error of a network that gives NaN or an infinite logit; `where`: the image, or the network and the image."""
    return NetworkError(
        f"{where}: a logit is NaN or infinite; the weights are broken, or the precision does not suffice: try float64"
    )


def dependence_problem(name: str, when: str) -> str:
    """The message on a network whose answers depend on more than the image; `when`: as `dependence` gives it."""
    return (
        f"{name}: the network gives an image other logits {when}; expected logits that depend on the image alone: "
        "turn off dropout, noise, and batch normalisation by the statistics of the batch"
    )


MIN_VALUES = 64
"""Outputs that have to share a property before it is noted: fewer share it by chance."""
MAX_ZERO_SHARE = 0.5
"""Largest share of outputs that are exactly 0: a network with logits for few of many classes has more."""
BASE_TOLERANCE = 1e-3
"""Largest relative difference between the bases that make the outputs of each image logarithms of probabilities."""
MIN_LOGARITHM = 0.01
"""The smallest -log p of the top-1 class that tells the base of logarithms."""
PERCENT = 100.0
"""The sum of the probabilities of an image in percent."""
NOTES = {
    "unit": "all outputs are from 0 to 1, as a sigmoid gives or probabilities with some left out",
    "constant": "the outputs of every image are positive and have the same sum, as scaled probabilities have",
    "negative": "all outputs are negative, as distances or logarithms of scores are",
}
"""What is likely no logits, in words, by hypothesis."""
CONSEQUENCE = "confidences and calibration are of outputs that are likely no logits; accuracy is not affected"


@dataclass(eq=False)
class NetworkGate:
    """The check whether a network gives logits, over all of its answers; copies of the network share one gate.

    One row of few classes may look like probabilities by chance. Each hypothesis of what else the answers are ends with
    the first row that contradicts it; without any, the network gives logits, and later answers cost nothing.
    """

    name: str
    """The network, as messages begin."""

    classes: int
    """The number of logits of an image."""

    notify: Callable[[str], None] = print_notice
    """Called once with a line for the user, where the answers are log-probabilities."""

    is_decided: bool = field(default=False, init=False)
    """Whether the answers are known to be logits, or log-probabilities, whose softmax is the same."""

    _may_be: set[str] = field(
        default_factory=lambda: {"probabilities", "log-probabilities", "percent", "other base", *NOTES}, init=False
    )
    _rows: int = field(default=0, init=False)
    _furthest: float = field(default=0.0, init=False)
    _zeros: int = field(default=0, init=False)
    _sum: float | None = field(default=None, init=False)
    _base: float | None = field(default=None, init=False)
    _first: NDArray[np.float64] | None = field(default=None, init=False)
    _differ: bool = field(default=False, init=False)
    _tells_bases: bool = field(default=False, init=False)

    def __deepcopy__(self, _memo: object) -> "NetworkGate":
        return self

    def check(self, logits: NDArray[np.float64]) -> None:
        """Look at further answers of shape (n, classes). Raises NetworkError for those that are certainly no logits."""
        if self.is_decided or not len(logits):
            return
        for hypothesis in [*self._may_be]:
            if not self._holds(hypothesis, logits):
                self._may_be.discard(hypothesis)
        first = logits[0].copy() if self._first is None else self._first
        self._first = first
        # what is the same for every image shares any property
        self._differ = self._differ or bool((logits != first).any())
        self._tells_bases = self._tells_bases or bool(_tell_bases(logits).any())
        self._rows += len(logits)
        self._zeros += int((logits == 0).sum())
        self.is_decided = not self._may_be
        sums = (logits if "probabilities" in self._may_be else np.exp(np.minimum(logits, 1))).sum(axis=1)
        self._furthest = max(self._furthest, float(np.abs(sums - 1).max()))
        if self.is_decided or not self._is_beyond_chance():
            return
        if "probabilities" in self._may_be:
            raise NetworkError(
                f"{self.name}: the network gives probabilities, rows from 0 to 1 with a sum of 1; "
                f"{expected_logits(len(logits), self.classes)}: leave out its softmax, or return the logarithm of the "
                "probabilities"
            )
        if "log-probabilities" in self._may_be:
            if not self._tells_bases:
                return
            self.is_decided = True
            self._may_be.clear()
            self.notify(
                f"{self.name}: the network gives log-probabilities, as log-softmax does; they are taken as logits, "
                "whose confidences are the same"
            )
            return
        if self._rows >= (MIN_ROWS if self.classes >= MANY_CLASSES else MIN_ROUNDED_ROWS):
            self._refuse_scaled(len(logits))

    def _refuse_scaled(self, count: int) -> None:
        if "percent" in self._may_be:
            raise NetworkError(
                f"{self.name}: the network gives percent, rows from 0 to 100 with a sum of 100; "
                f"{expected_logits(count, self.classes)}: return what its softmax gets"
            )
        if "other base" in self._may_be and self._base is not None and self._differ:
            raise NetworkError(
                f"{self.name}: the network gives logarithms of probabilities to the base {np.exp(self._base):.4g}; "
                f"{expected_logits(count, self.classes)}, or natural logarithms"
            )

    @property
    def note(self) -> str | None:
        """What all answers so far have in common that logits have not, in a sentence; None for nothing."""
        values = self._rows * self.classes
        if not self._differ or values < MIN_VALUES or self._zeros > MAX_ZERO_SHARE * values:
            return None
        found = next((text for hypothesis, text in NOTES.items() if hypothesis in self._may_be), None)
        return None if found is None else f"{self.name}: {found}: {CONSEQUENCE}"

    def _holds(self, hypothesis: str, logits: NDArray[np.float64]) -> bool:
        """Whether further answers are as a hypothesis has them."""
        match hypothesis:
            case "probabilities":
                return are_probabilities(logits)
            case "log-probabilities":
                return are_log_probabilities(logits)
            case "percent":
                return are_probabilities(logits / PERCENT)
            case "unit":
                return bool((logits >= 0).all() and (logits <= 1).all())
            case "negative":
                return bool((logits < 0).all())
            case "constant":
                return bool((logits >= 0).all()) and self._has_constant_sum(logits.sum(axis=1))
        return self._has_one_base(logits)

    def _has_constant_sum(self, sums: NDArray[np.float64]) -> bool:
        first = float(sums[0]) if self._sum is None else self._sum
        self._sum = first
        return bool(first > 0 and (np.abs(sums - first) <= EXACT_SUM * first).all())

    def _has_one_base(self, logits: NDArray[np.float64]) -> bool:
        """Whether all rows are logarithms of probabilities to one base, other than e."""
        if not (logits <= 0).all() or self.classes < 2:
            return False
        told = logits[_tell_bases(logits)]
        if not len(told):
            return True
        bases = exponents(told)
        first = float(bases[0]) if self._base is None else self._base
        self._base = first
        return bool((np.abs(bases - first) <= BASE_TOLERANCE * first).all())

    def _is_beyond_chance(self) -> bool:
        if self.classes >= MANY_CLASSES:
            return True
        return self._rows >= (MIN_ROWS if self._furthest <= EXACT_SUM else MIN_ROUNDED_ROWS)


def _tell_bases(logits: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows tell the base of logarithms: a class of probability 1 has the logarithm 0 to every base."""
    found: NDArray[np.bool_] = logits.max(axis=1) < -MIN_LOGARITHM
    return found


def exponents(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row of values of at most 0 the factor by which their exponentials have a sum of 1, by bisection.

    For logarithms of probabilities to the base b it is ln b.
    """
    low = np.zeros(len(values))
    high = np.full(len(values), 1e4)
    for _ in range(80):
        middle = (low + high) / 2
        is_above = np.exp(values * middle[:, None]).sum(axis=1) > 1
        low = np.where(is_above, middle, low)
        high = np.where(is_above, high, middle)
    found: NDArray[np.float64] = (low + high) / 2
    return found
