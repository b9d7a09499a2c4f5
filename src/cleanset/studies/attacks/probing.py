"""Measure on a network the values that show signs of gradient masking: its answers, gradients, and attacks.

torch is imported when a model is probed, so that importing this module is quick. `signs` has the rules.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanset.images.preprocessing import Pixels
from cleanset.measure.consistency import batches_to_ask
from cleanset.statistics.basics import Flags
from cleanset.studies.attacks.ascent import gradient
from cleanset.studies.attacks.base import LEVELS, Known, Parameters, Result, Subject, logits_of, to_unit
from cleanset.studies.attacks.gradient_attacks import PgdAttack
from cleanset.studies.attacks.signs import (
    COARSE,
    ROUNDING_OF_LOG_ODDS,
    SIGNS,
    SeenSign,
    black_box_better,
    fewer_steps_better,
    gradient_changes_answers,
    misleading_gradient,
    no_gradient,
    not_told,
    nothing_learnt,
    random_answers,
    rounded_dependence,
    saturated_answers,
    transfer_beats_gradient,
    unsteady_answers,
)

if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


T = TypeVar("T")

FAINT = 0.2
"""Contrast of the faint copies of images: they lie near the boundaries between classes, where noise decides."""

MODES = "inference_mode", "enable_grad"
"""Torch's modes that may change a network's answers from those in no_grad: it is judged in the first, attacked in the
second."""

RANDOM_STEPS = 8
"""Random steps from an image, and pixels of it, that its gradient is compared with."""

FEW_STEPS = (1, 5)
"""Numbers of steps that PGD is compared with, beside the one asked for."""


class Tries(NamedTuple):
    """What a search found near each image."""

    success: Flags
    """Whether the network misclassifies the candidate of an image that it classifies correctly."""

    candidates: list[Pixels]
    queries: list[int]


class Probed(NamedTuple):
    """The signs that were seen, and those that cannot be told, each in the order of SIGNS; the searches by name."""

    seen: list[SeenSign]
    not_told: list[SeenSign]
    searches: dict[str, Tries]


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
    pgd = plain(pgd)
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
        return Probed(asked, unclear, {})
    few = [steps for steps in FEW_STEPS if steps < pgd.steps]
    by_steps = {steps: tries(network, subjects, known, fewer(pgd, steps)) for steps in few}
    by_steps[pgd.steps] = tries(network, subjects, known, pgd)
    black = {attack.kind: tries(network, subjects, known, attack) for attack in black_box}
    transferred = {name: tries(network, subjects, known, pgd, other) for name, other in others.items()}
    white = by_steps[pgd.steps].success
    unclear += nothing_learnt(white, correct, _success(transferred))
    compared = [
        fewer_steps_better(_success(by_steps)),
        black_box_better(white, _success(black)),
        transfer_beats_gradient(white, _success(transferred)),
    ]
    searches = {f"pgd of {steps} step{'s' if steps > 1 else ''}": by_steps[steps] for steps in reversed(by_steps)}
    searches |= black | {f"transfer from {name}": each for name, each in transferred.items()}
    return Probed(asked + [each for each in compared if each is not None], unclear, searches)


def _success(searches: Mapping[T, Tries]) -> dict[T, Flags]:
    return {name: each.success for name, each in searches.items()}


def of_command(network: "PixelNetwork", subjects: Sequence[Subject], repeats: int = 3) -> Probed:
    """The signs that show in classes alone: other answers to the same images. All others cannot be told."""
    answers = [_answers(network, subjects) for _ in range(repeats)]
    text = "a command answers with classes alone"
    unclear = [SeenSign(sign, text) for sign in SIGNS if sign not in ("random_answers", "depends_on_others")]
    found = random_answers(answers) or _of_batches(network, subjects)
    return Probed([] if found is None else [found], unclear, {})


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


class Near(NamedTuple):
    """The signs in answers near the images: those that were seen, and those that cannot be told."""

    seen: list[SeenSign]
    not_told: list[SeenSign]


def of_neighbours(network: "PixelNetwork", groups: Sequence[Sequence[Subject]]) -> Near:
    """The signs in the answers to images that differ by a level: in one color, in all at random, along the gradient."""
    parts = zip(*(_near_changes(network, group) for group in groups), strict=True)
    along, promised, one_pixel, all_pixels, rounding = (np.concatenate(part) for part in parts)
    unsteady = unsteady_answers(one_pixel, np.maximum(all_pixels, rounding))
    clear = (all_pixels > rounding) & (promised > 0)
    if unsteady is not None:
        return Near([unsteady], [])
    if 2 * clear.sum() < len(clear):
        text = f"{(~clear).sum()} of {len(clear)} images get nearly the same answer when all pixels change by a level"
        flat = [SeenSign("misleading_gradient", text)]
        return Near([], flat) if network.precision in COARSE else Near(flat, [])
    misleading = misleading_gradient((along / all_pixels / promised)[clear])
    return Near([] if misleading is None else [misleading], [])


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


def plain(pgd: PgdAttack) -> PgdAttack:
    """The attack with the asked steps along the cross-entropy alone: nothing else may make up for a gradient."""
    changed = {"max_steps": pgd.steps, "losses": ["cross_entropy"], "restarts": 1, "files": 0}
    return pgd.model_copy(update=changed)


def fewer(pgd: PgdAttack, steps: int) -> PgdAttack:
    """The attack with fewer steps, which are long enough to reach every edge of the ball; one step from the image."""
    random_start = pgd.random_start and steps > 1
    # from a random place an edge is up to two radii away; an attack that cannot get there loses on honest models, too
    reach = (2 if random_start else 1) * pgd.eps
    step = max(pgd.length, reach / steps)
    return pgd.model_copy(update={"steps": steps, "max_steps": steps, "step": step, "random_start": random_start})


def tries(
    network: "PixelNetwork",
    subjects: Sequence[Subject],
    known: Known,
    attack: Parameters,
    searched: "PixelNetwork | None" = None,
) -> Tries:
    """The candidates of an attack for each image.

    `searched`: the network that candidates are searched on, where it is another one.
    """
    success = []
    results = list[Result]()
    for group in _groups(subjects, attack.group_size):
        found = attack.results(searched or network, group, known)
        unchanged = [subject.pixels for subject in group]
        candidates = [result.candidate for result in found]
        success.append(_errors(network, group, candidates) & ~_errors(network, group, unchanged))
        results += found
    return Tries(
        success=np.concatenate(success),
        candidates=[result.candidate for result in results],
        queries=[result.queries for result in results],
    )


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
