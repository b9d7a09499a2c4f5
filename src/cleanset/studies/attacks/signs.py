"""The signs that a model only looks strong: attacks fail on it, though it can be fooled.

They are those of A. Athalye, N. Carlini, D. Wagner, "Obfuscated Gradients Give a False Sense of Security" (ICML 2018)
and of N. Carlini et al., "On Evaluating Adversarial Robustness" (2019). Each rule is a function of what was measured.
"""

from collections.abc import Mapping, Sequence
from math import comb
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Sign = Literal[
    "random_answers", "saturated_answers", "no_gradient", "fewer_steps_better", "black_box_better",
    "transfer_beats_gradient",
]  # fmt: skip
Flags = NDArray[np.bool_]

MAX_DIFFERENCE = 1e-4
"""Largest difference of two answers to one image, relative to the length of the logits: devices differ by less."""
MAX_LOG_ODDS = 80.0
"""Natural log-odds; the gradient of the cross-entropy begins with exp(-80), 2e-35, of which float32 has nothing left
after the layers. Confidences round to 1 far below, at 16.6, where gradients still lead somewhere."""
MAX_SATURATED, MAX_WITHOUT_GRADIENT = 0.5, 0.1
"""Largest shares of images with such answers before they count as a sign."""
LEVEL = 0.05
"""Significance level of the sign tests."""
MIN_COMPARED = 5
"""Images that are classified correctly, without which no sign test reaches LEVEL: 2**-5 is below it, 2**-4 above."""


class Warned(NamedTuple):
    """A sign that was seen, or that cannot be told, and on what that is based, as a sentence."""

    sign: Sign
    text: str


def random_answers(answers: Sequence[NDArray[np.float64]], what: str = "images") -> Warned | None:
    """The sign that a model's answers, each of shape (n, classes), to the same images differ; `what` names them."""
    first = answers[0]
    lengths = np.linalg.norm(first, axis=1).clip(min=1e-10)
    differ = np.zeros(len(first), bool)
    for other in answers[1:]:
        differ |= np.linalg.norm(other - first, axis=1) / lengths > MAX_DIFFERENCE
    if not differ.any():
        return None
    return Warned(
        "random_answers", f"{differ.sum()} of {len(first)} {what} get another answer when asked {len(answers)} times"
    )


def saturated_answers(logits: NDArray[np.float64]) -> Warned | None:
    """The sign that logits, of shape (n, classes), are too large for a gradient, or are probabilities already."""
    count = len(logits)
    sums = np.abs(logits.sum(axis=1) - 1)
    if ((logits >= -1e-6) & (logits <= 1 + 1e-6)).all() and (sums < 1e-4).all():
        one_hot = (np.isclose(logits, 0) | np.isclose(logits, 1)).all()
        return Warned(
            "saturated_answers",
            f"all {count} answers are {'one-hot' if one_hot else 'probabilities'}; expected logits",
        )
    top = logits.max(axis=1)
    others = np.exp(logits - top[:, None])
    np.put_along_axis(others, logits.argmax(axis=1)[:, None], 0, axis=1)
    with np.errstate(divide="ignore"):
        # log-odds of the top-1 class: top - log(sum of exp(others)), here with top = 0
        saturated = -np.log(others.sum(axis=1)) > MAX_LOG_ODDS
    if saturated.mean() <= MAX_SATURATED:
        return None
    return Warned(
        "saturated_answers",
        f"{saturated.sum()} of {count} images have log-odds above {MAX_LOG_ODDS:g}, where the cross-entropy has no "
        "gradient in float32",
    )


def no_gradient(gradients: NDArray[np.float64]) -> Warned | None:
    """The sign that gradients of the cross-entropy by the pixels, of shape (n, …), are 0 or not finite."""
    flat = gradients.reshape(len(gradients), -1)
    useless = ~np.isfinite(flat).all(axis=1) | (flat == 0).all(axis=1)
    if useless.mean() <= MAX_WITHOUT_GRADIENT:
        return None
    return Warned("no_gradient", f"{useless.sum()} of {len(flat)} images have no gradient")


def fewer_steps_better(success: Mapping[int, Flags]) -> Warned | None:
    """The sign that an attack succeeds more often with fewer steps; `success` by steps, on the same images and ball."""
    steps = sorted(success)
    for few, many in ((few, many) for many in reversed(steps) for few in steps if few < many):
        if is_better(success[few], success[many]):
            return Warned(
                "fewer_steps_better",
                f"PGD succeeds on {success[few].sum()} of {len(success[few])} images with {few} "
                f"step{'s' if few > 1 else ''}, on {success[many].sum()} with {many}",
            )
    return None


def _best(white: Flags, others: Mapping[str, Flags]) -> str | None:
    """The most successful of those that are better than `white`, by name; the first of equal ones."""
    better = {name: flags for name, flags in others.items() if is_better(flags, white)}
    return max(better, key=lambda name: int(better[name].sum()), default=None)


def black_box_better(white: Flags, black: Mapping[str, Flags]) -> Warned | None:
    """The sign that an attack without gradients, by name, beats PGD on the same images in the same ball."""
    name = _best(white, black)
    if name is None:
        return None
    return Warned(
        "black_box_better",
        f"{name} succeeds on {black[name].sum()} of {len(white)} images without a gradient, PGD on {white.sum()}",
    )


def transfer_beats_gradient(white: Flags, transferred: Mapping[str, Flags]) -> Warned | None:
    """The sign that images made by PGD on another model, by its name, beat those made on the model itself.

    Each other model is compared alone: the best of several would win by the number of tries.
    """
    name = _best(white, transferred)
    if name is None:
        return None
    return Warned(
        "transfer_beats_gradient",
        f"images made on {name} succeed on {transferred[name].sum()} of {len(white)} images, those made on the model "
        f"itself on {white.sum()}",
    )


def not_told(correct: int, has_others: bool) -> list[Warned]:
    """The signs that cannot be told: with too few correctly classified images, or without another model."""
    few = f"{correct} images are classified correctly; two attacks are compared on {MIN_COMPARED} or more"
    compared: tuple[Sign, ...] = ("fewer_steps_better", "black_box_better", "transfer_beats_gradient")
    if correct < MIN_COMPARED:
        return [Warned(sign, few) for sign in compared]
    return [] if has_others else [Warned("transfer_beats_gradient", "there is no other model to make images on")]


def is_better(one: Flags, other: Flags) -> bool:
    """Whether one has more successes than the other, by an exact one-sided sign test over the images that differ."""
    wins, losses = int((one & ~other).sum()), int((other & ~one).sum())
    differ = wins + losses
    # if both were equally good, each image that differs would be the toss of a coin
    tail = sum(comb(differ, count) for count in range(wins, differ + 1))
    return wins > losses and tail <= LEVEL * 2**differ
