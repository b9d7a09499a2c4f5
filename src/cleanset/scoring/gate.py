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


@dataclass(eq=False)
class NetworkGate:
    """The check whether a network gives logits, over all of its answers; copies of the network share one gate.

    One row of few classes may look like probabilities by chance. A row that is neither ends the check: the network
    gives logits, and later answers cost nothing.
    """

    name: str
    """The network, as messages begin."""

    classes: int
    """The number of logits of an image."""

    notify: Callable[[str], None] = print_notice
    """Called once with a line for the user, where the answers are log-probabilities."""

    is_decided: bool = field(default=False, init=False)
    """Whether the answers are known to be logits, or log-probabilities, whose softmax is the same."""

    _may_be: set[str] = field(default_factory=lambda: {"probabilities", "log-probabilities"}, init=False)
    _rows: int = field(default=0, init=False)
    _furthest: float = field(default=0.0, init=False)

    def __deepcopy__(self, _memo: object) -> "NetworkGate":
        return self

    def check(self, logits: NDArray[np.float64]) -> None:
        """Look at further answers of shape (n, classes). Raises NetworkError for probabilities in place of logits."""
        if self.is_decided or not len(logits):
            return
        if not are_probabilities(logits):
            self._may_be.discard("probabilities")
        if not are_log_probabilities(logits):
            self._may_be.discard("log-probabilities")
        self._rows += len(logits)
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
        self.is_decided = True
        self.notify(
            f"{self.name}: the network gives log-probabilities, as log-softmax does; they are taken as logits, whose "
            "confidences are the same"
        )

    def _is_beyond_chance(self) -> bool:
        if self.classes >= MANY_CLASSES:
            return True
        return self._rows >= (MIN_ROWS if self._furthest <= EXACT_SUM else MIN_ROUNDED_ROWS)
