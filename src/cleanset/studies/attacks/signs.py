"""The signs of gradient masking, as rules over measured values.

The signs come from A. Athalye, N. Carlini, D. Wagner, "Obfuscated Gradients Give a False Sense of Security" (ICML
2018) and of N. Carlini et al., "On Evaluating Adversarial Robustness" (2019): attacks fail on such a model, though it
can be fooled. Each rule is a function of the values measured; `probing` measures them.
"""

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from cleanset.plumbing.validation import join_names
from cleanset.scoring.consistency import dependence, is_other
from cleanset.scoring.logits import are_probabilities
from cleanset.statistics.basics import Flags, Floats
from cleanset.studies.attacks.threats import Ball, ball_text

SIGNS = {
    "random_answers": "another answer when asked again",
    "depends_on_others": "another answer after other queries, in another order or in another batch",
    "precision_changes_answers": "another answer in the precision of the search",
    "gradient_changes_answers": "another answer when a gradient is wanted",
    "unsteady_answers": "another answer to an image that differs by a level in one color of one pixel",
    "saturated_answers": "answers too large for logits, or not logits at all",
    "no_gradient": "no gradient",
    "misleading_gradient": "a gradient along which the answers do not change as it promises",
    "fewer_steps_better": "more success with fewer steps",
    "black_box_better": "more success without a gradient than with it",
    "transfer_beats_gradient": "more success with images made on another model than on the model itself",
    "smaller_ball_better": "images that break in a ball, not in a larger one around it",
    "larger_balls_alike": "as much success in a ball as in one of eight times its radius, which leaves images unbroken",
    "whole_cube_withstood": "images that withstand though every pixel may take any value",
    "noise_better": "random points of the ball break what PGD does not",
}
"""The signs that are looked for, by name."""

COMPARED = (
    "fewer_steps_better", "black_box_better", "transfer_beats_gradient", "smaller_ball_better", "larger_balls_alike",
    "whole_cube_withstood", "noise_better",
)  # fmt: skip
"""Those that searches show."""

MAX_DIFFERENCE = 1e-4
"""Largest difference of two answers to one image, relative to the length of the logits: devices differ by less."""

MAX_DIFFERENCES = {"float64": 0.01, "float32": 0.01, "tf32": 0.1, "bfloat16": 0.1}
"""The same between the precision of the search and the verdicts' precision."""

COARSE = ("tf32", "bfloat16")
"""Precisions whose rounding hides a change of a level in honest models, too."""

ROUNDING_OF_LOG_ODDS = {"float64": 1e-13, "float32": 2e-6, "tf32": 0.01, "bfloat16": 0.1}
"""Differences of log-odds that rounding makes, relative to the largest logit."""

HALF_PRECISIONS = {"float16": "tf32", "bfloat16": "bfloat16"}
"""The precision that rounds as coarsely, by the narrow dtype that holds all logits of a network exactly."""

MIN_KEPT = 0.3
"""Smallest share of the change that a gradient promises for steps along its signs, in each part of the image.

1 of a linear network, -1 of a gradient that is turned around; bench/masking.py has it of honest and of masked ones."""

MAX_UNEXPLAINED = 0.25
"""Largest share of the squared changes by random steps that the gradient does not explain in two parts of the image.

0 of a linear network, 1 of a gradient of 0, and 4 of one that is turned around."""

MAX_UNSTEADY = 0.5
"""Largest change of the log-odds by a level in one color of a pixel, relative to that by a level in every pixel."""

MAX_LOG_ODDS = 80.0
"""Natural log-odds; the gradient of the cross-entropy begins with exp(-80), 2e-35, which float32 loses after the
layers. Confidences round to 1 far below, at 16.6, where gradients still lead somewhere."""

MAX_TIED = 1e-6
"""Largest difference of logits that count as equal, relative to the range of an image's logits: float32 rounds more
finely. Networks trained with smoothed labels give most other classes similar logits, never as similar as that."""

MAX_SATURATED = 0.5
"""Largest share of images with saturated answers before they count as a sign: a margin loss needs no softmax, and a
certain network is honest."""

MAX_SURPLUS = 0.1
"""Largest difference of 1 and the sum of clamped probabilities: a thousand that are at least 1e-4."""

SIGNIFICANCE = 0.05
"""Significance level of the sign tests."""

MIN_COMPARED = 5
"""Correctly classified images, without which no sign test reaches SIGNIFICANCE: 2**-5 is below it, 2**-4 above."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SeenSign:
    """A sign that was seen, or that is undecided, by its name, with the evidence as a sentence.

    `images`: the images whose gradient is not to be trusted for it, by file; None: all.
    """

    sign: str
    text: str
    images: tuple[str, ...] | None = None


def _of_images(sign: str, flags: Flags, names: Sequence[str], text: str) -> SeenSign | None:
    """A sign of the flagged images, if there are any; `text` follows their number."""
    images = tuple(name for name, flag in zip(names, flags, strict=True) if flag)
    return SeenSign(sign, f"{len(images)} of {len(names)} images {text}", images) if images else None


def random_answers(answers: Sequence[Floats], what: str = "images") -> SeenSign | None:
    """The sign that a model's answers, each of shape (n, classes), to the same images differ; `what` names them."""
    return other_answer("random_answers", answers, f"when asked {len(answers)} times", what)


def gradient_changes_answers(answers: Sequence[Floats]) -> SeenSign | None:
    """The sign that a model's answers to the same images depend on whether a gradient is wanted."""
    return other_answer("gradient_changes_answers", answers, "when a gradient is wanted")


def rounded_dependence(answers: Sequence[Floats], precision: str, alone: Floats | None = None) -> SeenSign | None:
    """The sign that answers to `batches_to_ask` depend on more than the image; `alone`: those to each image alone."""
    rounding = max(MAX_DIFFERENCE, ROUNDING_OF_LOG_ODDS[precision])
    when = dependence(answers, rounding)
    if when is None and alone is not None and is_other(answers[0], alone, rounding):
        when = "in a batch"
    return None if when is None else SeenSign("depends_on_others", f"images get another answer {when}")


def _anywhere(flags: Flags) -> Flags:
    """Whether each image has a flag at any place, of shape (images,) or (places, images)."""
    return np.asarray(np.atleast_2d(flags).any(axis=0))


def precision_changes_answers(answers: Floats, exact: Floats, precision: str, names: Sequence[str]) -> SeenSign | None:
    """The sign that answers in the precision of the search are not those that are judged, apart from rounding."""
    differences = np.linalg.norm(answers - exact, axis=1) / np.linalg.norm(exact, axis=1).clip(min=1e-10)
    # not `>`, which is false for NaN
    changed = ~(differences <= MAX_DIFFERENCES[precision])
    text = f"get another answer when searched in {precision} than when judged"
    return _of_images("precision_changes_answers", changed, names, text)


def unsteady_answers(one_pixel: Floats, all_pixels: Floats, names: Sequence[str]) -> SeenSign | None:
    """The sign that a level in one color of one pixel changes answers nearly as much as one in all pixels.

    Changes are of shape (images,), or (places near them, images).
    """
    text = "get another answer when one color of one pixel changes by a level"
    return _of_images("unsteady_answers", _anywhere(one_pixel > MAX_UNSTEADY * all_pixels), names, text)


def misleading_gradient(kept: Floats, unexplained: Floats, names: Sequence[str]) -> SeenSign | None:
    """The sign that steps along the gradient, or random ones, do not change the log-odds as it promises.

    `unexplained` may be NaN, where rounding hides it. Both are of shape (images,), or (places near them, images).
    """
    text = "have a gradient that does not predict how steps along it change the answer"
    is_misled = (kept < MIN_KEPT) | (unexplained > MAX_UNEXPLAINED)
    return _of_images("misleading_gradient", _anywhere(is_misled), names, text)


def flat_answers(flat: Flags, names: Sequence[str]) -> SeenSign | None:
    """The sign that answers hardly change when all pixels change by a level."""
    return _of_images(
        "misleading_gradient", _anywhere(flat), names, "get nearly the same answer when all pixels change by a level"
    )


def other_answer(sign: str, answers: Sequence[Floats], when: str, what: str = "images") -> SeenSign | None:
    """The sign that images get different answers; each item of `answers` is of shape (n, classes)."""
    first = answers[0]
    lengths = np.linalg.norm(first, axis=1).clip(min=1e-10)
    differences = [np.linalg.norm(other - first, axis=1) / lengths for other in answers[1:]]
    # not `>`, which is false for NaN
    changed = int((~(np.stack(differences) <= MAX_DIFFERENCE)).any(axis=0).sum())
    return SeenSign(sign, f"{changed} of {len(first)} {what} get another answer {when}") if changed else None


def saturated_answers(logits: Floats, names: Sequence[str]) -> SeenSign | None:
    """The sign that logits, of shape (n, classes), are too large for a gradient, or of probabilities."""
    if are_probabilities(logits):
        one_hot = (np.isclose(logits, 0) | np.isclose(logits, 1)).all()
        return SeenSign(
            "saturated_answers",
            f"all {len(logits)} answers are {'one-hot' if one_hot else 'probabilities'}; expected logits",
        )
    tied = _of_images(
        "saturated_answers",
        tied_answers(logits),
        names,
        "have the same lowest logit for most classes, as the logarithm of clamped probabilities has: those classes "
        "have no gradient",
    )
    if tied is not None:
        return tied
    top = logits.max(axis=1)
    others = np.exp(logits - top[:, None])
    np.put_along_axis(others, logits.argmax(axis=1)[:, None], 0, axis=1)
    with np.errstate(divide="ignore"):
        # log-odds of the top-1 class: top - log(sum of exp(others)), here with top = 0
        saturated = -np.log(others.sum(axis=1)) > MAX_LOG_ODDS
    if saturated.mean() <= MAX_SATURATED:
        return None
    text = f"have log-odds above {MAX_LOG_ODDS:g}, where the cross-entropy has no gradient in float32"
    return _of_images("saturated_answers", saturated, names, text)


def tied_answers(logits: Floats) -> Flags:
    """Whether each image has the lowest logit for two classes or more, and for most classes but the top one.

    Unless they are logarithms of probabilities, classes with the same logit for all images do not count: a network for
    fewer classes may be filled up with them.
    """
    sums = np.exp(np.minimum(logits, 1)).sum(axis=1)
    if (np.abs(sums - 1) > MAX_SURPLUS).any():
        logits = logits[:, np.ptp(logits, axis=0) > MAX_TIED * np.ptp(logits)]
    if logits.shape[1] < 3:
        return np.zeros(len(logits), bool)
    lowest = logits.min(axis=1, keepdims=True)
    most = np.ptp(logits, axis=1, keepdims=True)
    ties = (logits - lowest <= MAX_TIED * most).sum(axis=1)
    return np.asarray((ties >= 2) & (2 * ties > logits.shape[1] - 1))


def no_gradient(gradients: Floats, names: Sequence[str]) -> SeenSign | None:
    """The sign that gradients of the cross-entropy by the pixels, of shape (n, …), are 0 or not finite."""
    flat = gradients.reshape(len(gradients), -1)
    useless = ~np.isfinite(flat).all(axis=1) | (flat == 0).all(axis=1)
    return _of_images("no_gradient", useless, names, "have no gradient")


def fewer_steps_better(success: Mapping[int, Flags]) -> SeenSign | None:
    """The sign that an attack succeeds more often with fewer steps; `success` by steps, on the same images and ball."""
    steps = sorted(success)
    for few, many in ((few, many) for many in reversed(steps) for few in steps if few < many):
        if is_better(success[few], success[many]):
            return SeenSign(
                "fewer_steps_better",
                f"PGD succeeds on {success[few].sum()} of {len(success[few])} images with {few} "
                f"step{'s' if few > 1 else ''}, on {success[many].sum()} with {many}",
            )
    return None


def _best(sign: str, text: str, white: Flags, others: Mapping[str, Flags]) -> SeenSign | None:
    """The sign that another attack succeeds more often; `text` gets its name and successes, images, and `white`'s."""
    # of several that are equally good the first, so that the text does not depend on anything else
    better = {name: int(flags.sum()) for name, flags in others.items() if is_better(flags, white)}
    name = max(better, key=better.__getitem__, default=None)
    return None if name is None else SeenSign(sign, text.format(name, better[name], len(white), white.sum()))


def black_box_better(white: Flags, black: Mapping[str, Flags]) -> SeenSign | None:
    """The sign that an attack without gradients, by name, beats PGD on the same images in the same ball."""
    text = "{} succeeds on {} of {} images without a gradient, PGD on {}"
    return _best("black_box_better", text, white, black)


def transfer_beats_gradient(white: Flags, transferred: Mapping[str, Flags]) -> SeenSign | None:
    """The sign that images made by PGD on another model, by its name, beat those made on the model itself.

    Each other model is compared alone: the best of several would win by the number of tries.
    """
    text = "images made on {} succeed on {} of {} images, those made on the model itself on {}"
    return _best("transfer_beats_gradient", text, white, transferred)


def smaller_ball_better(success: Mapping[float, Flags], names: Sequence[str]) -> SeenSign | None:
    """The sign that PGD breaks an image in a ball and not in a larger one; `success` by radius, on the same images."""
    broken = _by_radius(success)
    fallen = _anywhere(np.maximum.accumulate(broken) & ~broken)
    text = "are broken by PGD in a ball, not in a larger one around it"
    return _of_images("smaller_ball_better", fallen, names, text)


def larger_balls_alike(success: Mapping[float, Flags], correct: Flags, names: Sequence[str]) -> SeenSign | None:
    """The sign of the images that PGD leaves, though it breaks some in the smallest ball and no more in larger ones.

    The whole cube is left out. If PGD breaks none, nothing is decided (`nothing_broken`).
    """
    broken = _by_radius(success)[:-1]
    counts = broken.sum(axis=1)
    if counts[0] == 0 or (counts != counts[0]).any():
        return None
    text = f"are left by PGD, which breaks {counts[0]} in each of {len(counts)} balls of growing radius"
    return _of_images("larger_balls_alike", correct & ~broken[-1], names, text) if len(counts) > 1 else None


def nothing_broken(success: Mapping[float, Flags], correct: Flags) -> list[SeenSign]:
    """The signs that are undecided: PGD breaks no image in any ball but the whole cube."""
    broken = _by_radius(success)[:-1]
    if broken.any() or not correct.any():
        return []
    largest = ball_text(Ball("Linf", sorted(success)[:-1][-1])) if len(broken) else "any ball"
    text = f"PGD breaks 0 of {int(correct.sum())} images up to {largest}"
    return [SeenSign(sign, text) for sign in ("smaller_ball_better", "larger_balls_alike")]


def _by_radius(success: Mapping[float, Flags]) -> Flags:
    """Shape (radii, images), from the smallest radius to the whole cube."""
    return np.stack([success[radius] for radius in sorted(success)])


def whole_cube_withstood(success: Mapping[float, Flags], correct: Flags, names: Sequence[str]) -> SeenSign | None:
    """The sign that PGD does not break an image in the ball of all images; `success` by radius."""
    text = "withstand PGD though every pixel may take any value"
    return _of_images("whole_cube_withstood", correct & ~_by_radius(success)[-1], names, text)


def noise_better(noise: Flags, white: Flags, correct: Flags, names: Sequence[str]) -> SeenSign | None:
    """The sign that random points of the ball break images that PGD does not, or as many as PGD.

    A count means something only for MIN_COMPARED images or more, and only if PGD leaves some.
    """
    found = int(noise.sum())
    if found >= max(int(white.sum()), MIN_COMPARED) and (correct & ~white).any():
        text = f"random points of the ball break {found} of {len(names)} images, PGD {int(white.sum())}"
        return SeenSign("noise_better", text)
    return _of_images("noise_better", noise & ~white, names, "are broken by random points of the ball, not by PGD")


def nothing_learnt(white: Flags, correct: Flags, transferred: Mapping[str, Flags]) -> list[SeenSign]:
    """The sign that is undecided: no image made on another model succeeds, though images are left to succeed on."""
    if not transferred or any(flags.any() for flags in transferred.values()) or not is_better(correct, white):
        return []
    text = f"no image made on another model ({join_names(transferred)}) succeeds, from which nothing is learnt"
    return [SeenSign("transfer_beats_gradient", text)]


def not_told(correct: int, has_others: bool) -> list[SeenSign]:
    """The signs that are undecided: with too few correctly classified images, or without another model."""
    few = f"{correct} images are classified correctly; two attacks are compared on {MIN_COMPARED} or more"
    if correct < MIN_COMPARED:
        return [SeenSign(sign, few) for sign in COMPARED]
    return [] if has_others else [SeenSign("transfer_beats_gradient", "there is no other model to make images on")]


def is_better(one: Flags, other: Flags) -> bool:
    """Whether one has more successes than the other, by an exact one-sided sign test over the images that differ."""
    wins = int((one & ~other).sum())
    losses = int((other & ~one).sum())
    differ = wins + losses
    # if both were equally good, each image that differs would be the toss of a coin
    tail = sum(comb(differ, count) for count in range(wins, differ + 1))
    return wins > losses and tail <= SIGNIFICANCE * 2**differ
