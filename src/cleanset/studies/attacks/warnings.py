"""Signs of gradient masking: rules, the probes that measure them on a model, and their record.

The signs come from A. Athalye, N. Carlini, D. Wagner, "Obfuscated Gradients Give a False Sense of Security" (ICML
2018) and of N. Carlini et al., "On Evaluating Adversarial Robustness" (2019): attacks fail on such a model, though it
can be fooled. Each rule is a function of the values measured.
"""

import json
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from cleanset.files import write_text
from cleanset.images.preprocessing import Pixels
from cleanset.json_files import read_json
from cleanset.measure.consistency import batches_to_ask, dependence, is_other
from cleanset.statistics.basics import Flags
from cleanset.studies.attacks.base import LEVELS, Known, Parameters, Subject, logits_of, to_unit
from cleanset.studies.attacks.gradient_attacks import PgdAttack, gradient
from cleanset.validation import join_names

if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


SIGNS = {
    "random_answers": "another answer when asked again",
    "depends_on_others": "another answer after other queries, in another order or in another batch",
    "precision_changes_answers": "another answer in the precision of the search",
    "gradient_changes_answers": "another answer when a gradient is wanted",
    "unsteady_answers": "another answer to an image that differs by a level in one color of one pixel",
    "saturated_answers": "answers too large for logits, or not logits at all",
    "no_gradient": "no gradient",
    "misleading_gradient": "a gradient along which the answers change less than it promises",
    "fewer_steps_better": "more success with fewer steps",
    "black_box_better": "more success without a gradient than with it",
    "transfer_beats_gradient": "more success with images made on another model than on the model itself",
}
"""The signs that are looked for, by name."""

MAX_DIFFERENCE = 1e-4
"""Largest difference of two answers to one image, relative to the length of the logits: devices differ by less."""
MAX_DIFFERENCES = {"float64": 0.01, "float32": 0.01, "tf32": 0.1, "bfloat16": 0.1}
"""The same between the precision of the search and the verdicts' precision."""
COARSE = ("tf32", "bfloat16")
"""Precisions whose rounding hides a change of a level in honest models, too."""
ROUNDING_OF_LOG_ODDS = {"float64": 1e-13, "float32": 2e-6, "tf32": 0.01, "bfloat16": 0.1}
"""Differences of log-odds that rounding makes, relative to the largest logit."""
MIN_AGREEMENT = 0.4
"""Smallest share of the change that a gradient promises for a step along its signs, relative to random steps of the
same size: 1 of a linear network, 0.75 and more of honest ones that were tried, near 0 of a gradient that has nothing to
do with the answers."""
MAX_UNSTEADY = 0.5
"""Largest change of the log-odds by a level in one color of a pixel, relative to that by a level in every pixel."""
MAX_LOG_ODDS = 80.0
"""Natural log-odds; the gradient of the cross-entropy begins with exp(-80), 2e-35, which float32 loses after the
layers. Confidences round to 1 far below, at 16.6, where gradients still lead somewhere."""
MAX_TIED = 1e-6
"""Largest difference of logits that count as equal, relative to the range of an image's logits: float32 rounds more
finely. Networks trained with smoothed labels give most other classes similar logits, never as similar as that."""
MAX_SURPLUS = 0.1
"""Largest difference of 1 and the sum of clamped probabilities: a thousand that are at least 1e-4."""
MAX_SATURATED = 0.5
"""Largest share of images with saturated answers before they count as a sign."""

MAX_WITHOUT_GRADIENT = 0.1
"""Largest share of images without a gradient, or with tied answers, before they count as a sign."""
SIGNIFICANCE = 0.05
"""Significance level of the sign tests."""
MIN_COMPARED = 5
"""Correctly classified images, without which no sign test reaches SIGNIFICANCE: 2**-5 is below it, 2**-4 above."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SeenSign:
    """A sign that was seen, or that cannot be told, by its name, with the evidence as a sentence."""

    sign: str
    text: str


def random_answers(answers: Sequence[NDArray[np.float64]], what: str = "images") -> SeenSign | None:
    """The sign that a model's answers, each of shape (n, classes), to the same images differ; `what` names them."""
    return other_answer("random_answers", answers, f"when asked {len(answers)} times", what)


def gradient_changes_answers(answers: Sequence[NDArray[np.float64]]) -> SeenSign | None:
    """The sign that a model's answers to the same images depend on whether a gradient is wanted."""
    return other_answer("gradient_changes_answers", answers, "when a gradient is wanted")


def rounded_dependence(
    answers: Sequence[NDArray[np.float64]], precision: str, alone: NDArray[np.float64] | None = None
) -> SeenSign | None:
    """The sign that answers to `batches_to_ask` depend on more than the image; `alone`: those to each image alone."""
    rounding = max(MAX_DIFFERENCE, ROUNDING_OF_LOG_ODDS[precision])
    when = dependence(answers, rounding)
    if when is None and alone is not None and is_other(answers[0], alone, rounding):
        when = "in a batch"
    return None if when is None else SeenSign("depends_on_others", f"images get another answer {when}")


def precision_changes_answers(
    answers: NDArray[np.float64], exact: NDArray[np.float64], precision: str
) -> SeenSign | None:
    """The sign that answers in the precision of the search are not those that are judged, apart from rounding."""
    differences = np.linalg.norm(answers - exact, axis=1) / np.linalg.norm(exact, axis=1).clip(min=1e-10)
    changed = int((~(differences <= MAX_DIFFERENCES[precision])).sum())
    text = f"{changed} of {len(exact)} images get another answer when searched in {precision} than when judged"
    return SeenSign("precision_changes_answers", text) if changed else None


def unsteady_answers(one_pixel: NDArray[np.float64], all_pixels: NDArray[np.float64]) -> SeenSign | None:
    """The sign that a level in one color of one pixel changes most answers nearly as much as one in all pixels."""
    unsteady = int((one_pixel > MAX_UNSTEADY * all_pixels).sum())
    text = f"{unsteady} of {len(one_pixel)} images get another answer when one color of one pixel changes by a level"
    return SeenSign("unsteady_answers", text) if 2 * unsteady > len(one_pixel) else None


def misleading_gradient(agreement: NDArray[np.float64]) -> SeenSign | None:
    """The sign that a step along the gradient changes the log-odds of most images by a small share of its promise."""
    misled = int((agreement < MIN_AGREEMENT).sum())
    text = (
        f"a step along the gradient of {misled} of {len(agreement)} images changes the answer by less than "
        f"{MIN_AGREEMENT:.0%} of what it promises"
    )
    return SeenSign("misleading_gradient", text) if 2 * misled > len(agreement) else None


def other_answer(sign: str, answers: Sequence[NDArray[np.float64]], when: str, what: str = "images") -> SeenSign | None:
    """The sign that images get different answers; each item of `answers` is of shape (n, classes)."""
    first = answers[0]
    lengths = np.linalg.norm(first, axis=1).clip(min=1e-10)
    differences = [np.linalg.norm(other - first, axis=1) / lengths for other in answers[1:]]
    # not `>`, which is false for NaN
    changed = int((~(np.stack(differences) <= MAX_DIFFERENCE)).any(axis=0).sum())
    return SeenSign(sign, f"{changed} of {len(first)} {what} get another answer {when}") if changed else None


def saturated_answers(logits: NDArray[np.float64]) -> SeenSign | None:
    """The sign that logits, of shape (n, classes), are too large for a gradient, or of probabilities."""
    count = len(logits)
    sums = np.abs(logits.sum(axis=1) - 1)
    if ((logits >= -1e-6) & (logits <= 1 + 1e-6)).all() and (sums < 1e-4).all():
        one_hot = (np.isclose(logits, 0) | np.isclose(logits, 1)).all()
        return SeenSign(
            "saturated_answers",
            f"all {count} answers are {'one-hot' if one_hot else 'probabilities'}; expected logits",
        )
    if (tied := tied_answers(logits)) > MAX_WITHOUT_GRADIENT * count:
        return SeenSign(
            "saturated_answers",
            f"{tied} of {count} images have the same lowest logit for most classes, as the logarithm of clamped "
            "probabilities has: those classes have no gradient",
        )
    top = logits.max(axis=1)
    others = np.exp(logits - top[:, None])
    np.put_along_axis(others, logits.argmax(axis=1)[:, None], 0, axis=1)
    with np.errstate(divide="ignore"):
        # log-odds of the top-1 class: top - log(sum of exp(others)), here with top = 0
        saturated = -np.log(others.sum(axis=1)) > MAX_LOG_ODDS
    if saturated.mean() <= MAX_SATURATED:
        return None
    return SeenSign(
        "saturated_answers",
        f"{saturated.sum()} of {count} images have log-odds above {MAX_LOG_ODDS:g}, where the cross-entropy has no "
        "gradient in float32",
    )


def tied_answers(logits: NDArray[np.float64]) -> int:
    """Count the images that have the lowest logit for two classes or more, and for most classes but the top one.

    Unless they are logarithms of probabilities, classes with the same logit for all images do not count: a network for
    fewer classes may be filled up with them.
    """
    sums = np.exp(np.minimum(logits, 1)).sum(axis=1)
    if (np.abs(sums - 1) > MAX_SURPLUS).any():
        logits = logits[:, np.ptp(logits, axis=0) > MAX_TIED * np.ptp(logits)]
    if logits.shape[1] < 3:
        return 0
    lowest = logits.min(axis=1, keepdims=True)
    most = np.ptp(logits, axis=1, keepdims=True)
    ties = (logits - lowest <= MAX_TIED * most).sum(axis=1)
    return int(((ties >= 2) & (2 * ties > logits.shape[1] - 1)).sum())


def no_gradient(gradients: NDArray[np.float64]) -> SeenSign | None:
    """The sign that gradients of the cross-entropy by the pixels, of shape (n, …), are 0 or not finite."""
    flat = gradients.reshape(len(gradients), -1)
    useless = ~np.isfinite(flat).all(axis=1) | (flat == 0).all(axis=1)
    if useless.mean() <= MAX_WITHOUT_GRADIENT:
        return None
    return SeenSign("no_gradient", f"{useless.sum()} of {len(flat)} images have no gradient")


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


def nothing_learnt(white: Flags, correct: Flags, transferred: Mapping[str, Flags]) -> list[SeenSign]:
    """The sign that cannot be told: no image made on another model succeeds, though images are left to succeed on."""
    if not transferred or any(flags.any() for flags in transferred.values()) or not is_better(correct, white):
        return []
    text = f"no image made on another model ({join_names(transferred)}) succeeds, from which nothing is learnt"
    return [SeenSign("transfer_beats_gradient", text)]


def not_told(correct: int, has_others: bool) -> list[SeenSign]:
    """The signs that cannot be told: with too few correctly classified images, or without another model."""
    few = f"{correct} images are classified correctly; two attacks are compared on {MIN_COMPARED} or more"
    compared = ("fewer_steps_better", "black_box_better", "transfer_beats_gradient")
    if correct < MIN_COMPARED:
        return [SeenSign(sign, few) for sign in compared]
    return [] if has_others else [SeenSign("transfer_beats_gradient", "there is no other model to make images on")]


def is_better(one: Flags, other: Flags) -> bool:
    """Whether one has more successes than the other, by an exact one-sided sign test over the images that differ."""
    wins = int((one & ~other).sum())
    losses = int((other & ~one).sum())
    differ = wins + losses
    # if both were equally good, each image that differs would be the toss of a coin
    tail = sum(comb(differ, count) for count in range(wins, differ + 1))
    return wins > losses and tail <= SIGNIFICANCE * 2**differ


# torch is imported when a model is probed, not when a record is read

FAINT = 0.2
"""Contrast of the faint copies of images: they lie near the boundaries between classes, where noise decides."""
MODES = "inference_mode", "enable_grad"
"""Torch's modes that may change a network's answers from those in no_grad: it is judged in the first, attacked in the
second."""
RANDOM_STEPS = 8
"""Random steps from an image, and pixels of it, that its gradient is compared with."""
FEW_STEPS = (1, 5)
"""Numbers of steps that PGD is compared with, beside the one asked for."""
_REMEDY = "run dvc repro in studies/attacks, or dvc pull to fetch it"


class Probed(NamedTuple):
    """The signs that were seen, and those that cannot be told, each in the order of SIGNS."""

    seen: list[SeenSign]
    not_told: list[SeenSign]


def probe(
    network: "PixelNetwork",
    subjects: Sequence[Subject],
    known: Known,
    pgd: PgdAttack,
    black_box: Sequence[Parameters],
) -> Probed:
    """The signs that a network shows on these images.

    `pgd` is the strongest, which is repeated with fewer steps of the length that fits, and on each of the other models;
    attacks of `black_box` search in the same ball. Compute within `searching`.
    """
    groups = _groups(subjects, pgd.group)
    asked = of_answers(network, groups)
    others = known.sources()
    correct = ~np.concatenate([_errors(network, group, [subject.pixels for subject in group]) for group in groups])
    unclear = not_told(int(correct.sum()), bool(others))
    if not {"random_answers", "no_gradient"} & {each.sign for each in asked}:
        near = of_neighbours(network, groups)
        asked = [*asked, *near.seen]
        unclear = [*near.not_told, *unclear]
    left_out = {each.sign for each in unclear}
    if {"fewer_steps_better", "black_box_better"} <= left_out:
        return Probed(asked, unclear)
    by_steps = {
        steps: successes(network, subjects, known, fewer(pgd, steps)) for steps in FEW_STEPS if steps < pgd.steps
    }
    by_steps[pgd.steps] = successes(network, subjects, known, pgd)
    black = {attack.kind: successes(network, subjects, known, attack) for attack in black_box}
    transferred = {name: successes(network, subjects, known, pgd, other) for name, other in others.items()}
    white = by_steps[pgd.steps]
    unclear += nothing_learnt(white, correct, transferred)
    found = fewer_steps_better(by_steps), black_box_better(white, black), transfer_beats_gradient(white, transferred)
    return Probed(asked + [each for each in found if each is not None], unclear)


def of_command(network: "PixelNetwork", subjects: Sequence[Subject], repeats: int = 3) -> Probed:
    """The signs that show in classes alone: other answers to the same images. All others cannot be told."""
    answers = [_answers(network, subjects) for _ in range(repeats)]
    text = "a command answers with classes alone"
    unclear = [SeenSign(sign, text) for sign in SIGNS if sign not in ("random_answers", "depends_on_others")]
    found = random_answers(answers) or _of_batches(network, subjects)
    return Probed([] if found is None else [found], unclear)


def _of_batches(network: "PixelNetwork", subjects: Sequence[Subject]) -> SeenSign | None:
    asked = [subject.pixels for subject in subjects[: network.batch_size]]
    return rounded_dependence(answers_in_batches(network, asked, "no_grad"), network.precision)


def answers_in_batches(network: "PixelNetwork", images: Sequence[Pixels], mode: str) -> list[NDArray[np.float64]]:
    """The logits of images in `batches_to_ask`, computed in one of torch's modes."""
    batches = batches_to_ask(len(images))
    return [logits_of(network, to_unit([images[each] for each in batch], network), mode) for batch in batches]


def of_answers(network: "PixelNetwork", groups: Sequence[Sequence[Subject]], repeats: int = 3) -> list[SeenSign]:
    """The signs that need no attack: the answers to groups of images, asked again in turn, and their gradients."""
    answers = [np.concatenate([_answers(network, group) for group in groups]) for _ in range(repeats)]
    faint = [np.concatenate([_answers(network, group, FAINT) for group in groups]) for _ in range(repeats)]
    wanting = [_with_gradients(network, group) for group in groups]
    with_gradients, gradients = (np.concatenate(parts) for parts in zip(*wanting, strict=True))
    both = [np.concatenate(pair) for pair in zip(answers, faint, strict=True)]
    found = [random_answers(both, "images and faint copies")]
    if found == [None]:
        other = [np.concatenate([_answers(network, group, mode=mode) for group in groups]) for mode in MODES]
        first = _of_batches(network, [subject for group in groups for subject in group])
        found += [first, gradient_changes_answers([answers[0], *other, with_gradients])]
    found += [saturated_answers(answers[0]), no_gradient(gradients)]
    return [each for each in found if each is not None]


def of_neighbours(network: "PixelNetwork", groups: Sequence[Sequence[Subject]]) -> Probed:
    """The signs in the answers to images that differ by a level: in one color, in all at random, along the gradient."""
    parts = zip(*(_near_changes(network, group) for group in groups), strict=True)
    along, promised, one_pixel, all_pixels, rounding = (np.concatenate(part) for part in parts)
    unsteady = unsteady_answers(one_pixel, np.maximum(all_pixels, rounding))
    clear = (all_pixels > rounding) & (promised > 0)
    if unsteady is not None:
        return Probed([unsteady], [])
    if 2 * clear.sum() < len(clear):
        text = f"{(~clear).sum()} of {len(clear)} images get nearly the same answer when all pixels change by a level"
        flat = [SeenSign("misleading_gradient", text)]
        return Probed([], flat) if network.precision in COARSE else Probed(flat, [])
    misleading = misleading_gradient((along / all_pixels / promised)[clear])
    return Probed([] if misleading is None else [misleading], [])


def _near_changes(network: "PixelNetwork", group: Sequence[Subject]) -> tuple[NDArray[np.float64], ...]:
    """Changes of the log-odds of each image, by steps of a level, and how much of them rounding makes.

    along: of a step along the signs of the gradient; promised: the same, by the gradient, relative to random steps;
    one_pixel, all_pixels: the root mean square of random ones, in one color of one pixel and in all.
    """
    import torch

    from cleanset.scoring.devices import to_device

    logits, slopes = _with_gradients(network, group, of_log_odds=True)
    images = np.stack([subject.pixels for subject in group]) / LEVELS
    drawn = np.random.default_rng(0)
    classes = np.array([subject.class_index for subject in group])

    def ahead(direction: NDArray[np.float64]) -> NDArray[np.float64]:
        return (images + direction / LEVELS).clip(0, 1)

    def log_odds(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
        asked = to_device(torch.from_numpy(pixels), network.device).to(network.dtype)
        return _log_odds(logits_of(network, asked), classes)

    def change(direction: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        ends = ahead(direction), ahead(-direction)
        odds = list(map(log_odds, ends))
        return odds[1] - odds[0], (slopes * (ends[0] - ends[1])).sum(axis=(1, 2, 3))

    shape = images.shape[1:]
    steps = [change(drawn.choice([-1.0, 1.0], shape)) for _ in range(RANDOM_STEPS)]
    found, expected = (np.sqrt(np.mean(np.square(each), axis=0)) for each in zip(*steps, strict=True))
    unchanged = _log_odds(logits, classes)
    single = []
    for place in drawn.choice(images[0].size, RANDOM_STEPS):
        image = images.reshape(len(group), -1).copy()
        # to one side alone: what reads the lowest bit is the same on both
        image[:, place] += np.where(image[:, place] < 0.5, 1, -1) / LEVELS
        single.append(np.square(log_odds(image.reshape(images.shape)) - unchanged))
    one_pixel = np.sqrt(np.mean(single, axis=0))
    along, promised = change(np.sign(slopes))
    tiny = np.finfo(np.float64).tiny
    rounding = 10 * ROUNDING_OF_LOG_ODDS[network.precision] * np.abs(logits).max(axis=1)
    return along, promised / expected.clip(min=tiny), one_pixel, found, rounding


def _log_odds(logits: NDArray[np.float64], classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The log-odds of a class for each image."""
    of_class = np.take_along_axis(logits, classes[:, None], axis=1)[:, 0]
    others = logits.copy()
    np.put_along_axis(others, classes[:, None], -np.inf, axis=1)
    return np.asarray(of_class - np.logaddexp.reduce(others, axis=1))


def fewer(pgd: PgdAttack, steps: int) -> PgdAttack:
    """The attack with fewer steps, which are long enough to reach every edge of the ball; one step from the image."""
    random_start = pgd.random_start and steps > 1
    # from a random place an edge is up to two radii away; an attack that cannot get there loses on honest models, too
    reach = (2 if random_start else 1) * pgd.eps
    step = max(pgd.length, reach / steps)
    return pgd.model_copy(update={"steps": steps, "step": step, "random_start": random_start})


def successes(
    network: "PixelNetwork",
    subjects: Sequence[Subject],
    known: Known,
    attack: Parameters,
    searched: "PixelNetwork | None" = None,
) -> Flags:
    """Whether the network misclassifies the candidate of an image that it classifies correctly, for each image.

    `searched`: the network that candidates are searched on, where it is another one.
    """
    found = []
    for group in _groups(subjects, attack.group_size):
        candidates = [result.candidate for result in attack.results(searched or network, group, known)]
        unchanged = [subject.pixels for subject in group]
        found.append(_errors(network, group, candidates) & ~_errors(network, group, unchanged))
    return np.concatenate(found)


def _groups(subjects: Sequence[Subject], size: int) -> list[Sequence[Subject]]:
    return [subjects[start : start + size] for start in range(0, len(subjects), size)]


def _errors(network: "PixelNetwork", group: Sequence[Subject], images: Sequence[Pixels]) -> Flags:
    classes = np.array([subject.class_index for subject in group])
    return np.asarray(logits_of(network, to_unit(images, network)).argmax(axis=1) != classes)


def _answers(
    network: "PixelNetwork", group: Sequence[Subject], contrast: float = 1, mode: str = "no_grad"
) -> NDArray[np.float64]:
    pixels = to_unit([subject.pixels for subject in group], network)
    return logits_of(network, 0.5 + contrast * (pixels - 0.5) if contrast < 1 else pixels, mode)


def _with_gradients(
    network: "PixelNetwork", group: Sequence[Subject], *, of_log_odds: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logits when a gradient is wanted, and the gradients by the pixels: of the cross-entropy, or of the log-odds.

    Those of the log-odds, of any other class, stay exact where the cross-entropy is so near 0 that float32 rounds it.
    """
    import torch

    pixels = to_unit([subject.pixels for subject in group], network).requires_grad_()
    label = torch.tensor([subject.class_index for subject in group], device=network.device)
    # in batches as without a gradient
    logits = torch.cat([network(part) for part in torch.split(pixels, network.batch_size)])
    if of_log_odds:
        others = logits.scatter(1, label[:, None], float("-inf"))
        loss = (torch.logsumexp(others, dim=1) - logits.gather(1, label[:, None])[:, 0]).sum()
    else:
        loss = torch.nn.functional.cross_entropy(logits, label, reduction="sum")
    found = logits.detach(), gradient(loss, pixels)
    return found[0].double().cpu().numpy(), found[1].double().cpu().numpy()


class WarningRecord(BaseModel):
    """The signs that a model showed on a number of images; `parameters`: the parameters of the probe.

    `not_told`: the signs that so few images, or a model alone, cannot show.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: str
    images: Annotated[int, Field(ge=0)]
    parameters: dict[str, Any]
    warnings: tuple[SeenSign, ...]
    not_told: tuple[SeenSign, ...] = ()


def read_warnings(path: Path) -> WarningRecord:
    """Read a record of stage attack_warnings. Raises CleansetError if it is missing or invalid."""
    found: WarningRecord = read_json(path, WarningRecord, "the output of stage attack_warnings", _REMEDY)
    return found


def write_warnings(path: Path, record: WarningRecord) -> None:
    """Write a record."""
    write_text(path, json.dumps(record.model_dump(), indent=2) + "\n")
