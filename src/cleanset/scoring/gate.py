"""The gate that every network passes, whoever brings it: which answers are refused, with which message.

An edition, `evaluate` in Python and on the command line, robustness, attacks, trainings and the contest all see answers
through it. It takes arrays; `checked_network` puts it around a network of torch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cleanset.errors import CleansetError
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.logits import are_log_probabilities, are_probabilities
from cleanset.statistics.basics import Flags, Floats

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
MAX_ZERO_SHARE = 0.25
"""Largest share of zeros for a note on signs or sums: logits of few of many classes, or behind a ReLU, have more."""
MAX_SMALLEST = 0.5
"""Largest quotient of an image's smallest and largest output, all positive, that is noted: shifted logits have more."""
MAX_COUNTED = 2048
"""The largest of whole numbers that are noted: all numbers in float16 above it are whole."""
NORM_TOLERANCE = 1e-3
"""Largest relative difference of the norms of two images' outputs that are one norm, also in half precision."""
BASE_TOLERANCE = 1e-3
"""Largest relative difference between the bases that make the outputs of each image logarithms of probabilities."""
MIN_LOGARITHM = 0.01
"""The smallest -log p of the top-1 class that determines the base of logarithms."""
PERCENT = 100.0
"""The sum of the probabilities of an image in percent."""
NOTES = {
    "same": "the outputs are the same for every image",
    "tied": "the largest output of every image is shared by several classes, and the first of them is the prediction",
    "unit": "all outputs are from 0 to 1, as a sigmoid gives or probabilities with some left out",
    "constant": "the outputs of every image are positive and have the same sum, as scaled probabilities have",
    "whole": "all outputs are whole numbers, as ranks and counts are",
    "negative": "all outputs are negative, as distances or logarithms of scores are",
    "positive": "all outputs are from 0 upwards, as of softplus, exponentials, a sigmoid in percent or distances",
    "norm": "the outputs of every image have the same norm, as standardised ones have",
}
"""Outputs that are probably not logits, in words, by hypothesis; the first that holds is the note."""
HYPOTHESES: dict[str, Callable[[Floats], bool | np.bool_]] = {
    "probabilities": are_probabilities,
    "log-probabilities": are_log_probabilities,
    "percent": lambda logits: are_probabilities(logits / PERCENT),
    "negated": lambda logits: are_log_probabilities(-logits),
    "tied": lambda logits: ((logits == logits.max(axis=1, keepdims=True)).sum(axis=1) > 1).all(),
    "unit": lambda logits: ((logits >= 0) & (logits <= 1)).all(),
    "whole": lambda logits: ((logits == np.rint(logits)) & (np.abs(logits) <= MAX_COUNTED)).all(),
    "negative": lambda logits: (logits < 0).all(),
    "positive": lambda logits: (
        (logits.min(axis=1) >= 0) & (logits.min(axis=1) <= MAX_SMALLEST * logits.max(axis=1))
    ).all(),
}
"""What rows alone show about answers; the other checks compare all rows with the first."""
OF_SIGNS = {"unit", "constant", "negative", "positive"}
"""The hypotheses that zeros for most classes fulfil."""
CONSEQUENCE = (
    "probably not logits: confidences mean nothing, nor does accuracy unless the largest output is the prediction"
)


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
        default_factory=lambda: {*HYPOTHESES, *NOTES, "other base"},
        init=False,
    )
    _rows: int = field(default=0, init=False)
    _furthest: float = field(default=0.0, init=False)
    _zeros: int = field(default=0, init=False)
    _constants: dict[str, float] = field(default_factory=dict, init=False)
    _first: Floats | None = field(default=None, init=False)
    _tells_bases: bool = field(default=False, init=False)

    def __deepcopy__(self, _memo: object) -> "NetworkGate":
        return self

    def check(self, logits: Floats) -> None:
        """Look at further answers of shape (n, classes). Raises NetworkError for those that are certainly no logits."""
        if self.is_decided or not len(logits):
            return
        for hypothesis in [*self._may_be]:
            if not self._holds(hypothesis, logits):
                self._may_be.discard(hypothesis)
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
            self._may_be &= {"same", "tied"}
            self.is_decided = not self._may_be
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
        if "negated" in self._may_be:
            raise NetworkError(
                f"{self.name}: the network gives negative log-probabilities, the smallest of them for the prediction; "
                f"{expected_logits(count, self.classes)}: leave out the minus"
            )
        # what is the same for every image shares any property
        if "other base" in self._may_be and "base" in self._constants and "same" not in self._may_be:
            raise NetworkError(
                f"{self.name}: the network gives logarithms of probabilities to the base "
                f"{np.exp(self._constants['base']):.4g}; {expected_logits(count, self.classes)}, or natural logarithms"
            )

    @property
    def note(self) -> str | None:
        """What all answers so far have in common that logits have not, in a sentence; None for nothing."""
        values = self._rows * self.classes
        if values < MIN_VALUES or self._rows < MIN_ROUNDED_ROWS:
            return None
        possible = self._may_be - OF_SIGNS if self._zeros > MAX_ZERO_SHARE * values else self._may_be
        found = next((text for hypothesis, text in NOTES.items() if hypothesis in possible), None)
        return None if found is None else f"{self.name}: {found}: {CONSEQUENCE}"

    def _holds(self, hypothesis: str, logits: Floats) -> bool:
        """Whether further answers are as a hypothesis has them."""
        match hypothesis:
            case "same":
                return self._is_as_the_first(logits)
            case "constant":
                return bool((logits >= 0).all()) and self._has_constant("sum", logits.sum(axis=1), EXACT_SUM)
            case "norm":
                return self._has_constant("norm", np.linalg.norm(logits, axis=1), NORM_TOLERANCE)
            case "other base":
                return self._has_one_base(logits)
        return bool(HYPOTHESES[hypothesis](logits))

    def _is_as_the_first(self, logits: Floats) -> bool:
        first = logits[0].copy() if self._first is None else self._first
        self._first = first
        return bool((logits == first).all())

    def _has_constant(self, name: str, values: Floats, tolerance: float) -> bool:
        """Whether a positive value of each row, such as its sum, is that of the first row."""
        first = self._constants.setdefault(name, float(values[0]))
        return bool(first > 0 and (np.abs(values - first) <= tolerance * first).all())

    def _has_one_base(self, logits: Floats) -> bool:
        """Whether all rows are logarithms of probabilities to one base, other than e."""
        if not (logits <= 0).all() or self.classes < 2:
            return False
        told = logits[_tell_bases(logits)]
        if not len(told):
            return True
        return self._has_constant("base", exponents(told), BASE_TOLERANCE)

    def _is_beyond_chance(self) -> bool:
        if self.classes >= MANY_CLASSES:
            return True
        return self._rows >= (MIN_ROWS if self._furthest <= EXACT_SUM else MIN_ROUNDED_ROWS)


def _tell_bases(logits: Floats) -> Flags:
    """Which rows determine the base of logarithms: a class of probability 1 has the logarithm 0 to every base."""
    found: Flags = logits.max(axis=1) < -MIN_LOGARITHM
    return found


def exponents(values: Floats) -> Floats:
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
    found: Floats = (low + high) / 2
    return found
