"""Measure on a network the values that show signs of gradient masking: its answers, gradients, and attacks.

torch is imported when a model is probed, so that importing this module is quick. `signs` has the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from cleanset.images.preprocessing import PixelPlanes
from cleanset.scoring.consistency import batches_to_ask
from cleanset.statistics.basics import Flags, Floats, Ints
from cleanset.studies.attacks.ascent import gradient
from cleanset.studies.attacks.base import LEVELS, Known, Parameters, Subject, classes_of, logits_of, to_unit
from cleanset.studies.attacks.baselines import RANDOM_POINTS, Baselines, baselines, in_growing_balls, random_points
from cleanset.studies.attacks.gradient_attacks import PgdAttack
from cleanset.studies.attacks.signs import (
    COARSE,
    HALF_PRECISIONS,
    ROUNDING_OF_LOG_ODDS,
    SIGNS,
    SeenSign,
    black_box_better,
    fewer_steps_better,
    flat_answers,
    gradient_changes_answers,
    larger_balls_alike,
    misleading_gradient,
    no_gradient,
    noise_better,
    not_told,
    nothing_broken,
    nothing_learnt,
    random_answers,
    rounded_dependence,
    saturated_answers,
    smaller_ball_better,
    transfer_beats_gradient,
    unsteady_answers,
    whole_cube_withstood,
)
from cleanset.studies.attacks.threats import ball_text
from cleanset.studies.attacks.tries import Tries, errors, groups_of, tries

if TYPE_CHECKING:
    from cleanset.scoring.differentiable import PixelNetwork


T = TypeVar("T")

FAINT = 0.2
"""Contrast of the faint copies of images: they are near the boundaries between classes, where noise decides."""

MODES = "inference_mode", "enable_grad"
"""Torch's modes that may change a network's answers from those in no_grad: it is judged in the first, attacked in the
second."""

RANDOM_STEPS = 8
"""Random steps from an image, and pixels of it, that its gradient is compared with."""

FEW_STEPS = (1, 5)
"""Numbers of steps that PGD is compared with, next to the one asked for."""


class Probed(NamedTuple):
    """The signs that were seen, and those that are undecided; the searches by name, and the baselines next to them."""

    seen: list[SeenSign]
    not_told: list[SeenSign]
    searches: dict[str, Tries]
    baselines: Baselines | None = None


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
    groups = groups_of(subjects, pgd.group)
    asked = of_answers(network, groups)
    others = known.sources()
    correct = ~np.concatenate([errors(network, group, [subject.pixels for subject in group]) for group in groups])
    unclear = not_told(int(correct.sum()), bool(others))
    if not {"random_answers", "no_gradient"} & {each.sign for each in asked}:
        near = of_neighbours(network, groups, round(pgd.eps * LEVELS))
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
    growing = in_growing_balls(network, subjects, known, pgd)
    noise = random_points(network, subjects, known, pgd.eps)
    by_radius = {ball.eps: each.success for ball, each in growing.items()}
    unclear += nothing_broken(by_radius, correct)
    names = [subject.name for subject in subjects]
    gradient_found = white | growing[pgd.ball].success
    compared = [
        fewer_steps_better(_success(by_steps)),
        black_box_better(white, _success(black)),
        transfer_beats_gradient(white, _success(transferred)),
        smaller_ball_better(by_radius, names),
        larger_balls_alike(by_radius, correct, names),
        whole_cube_withstood(by_radius, correct, names),
        noise_better(noise.success, gradient_found, correct, names),
    ]
    searches = {f"pgd of {steps} step{'s' if steps > 1 else ''}": by_steps[steps] for steps in reversed(by_steps)}
    searches |= black | {f"transfer from {name}": each for name, each in transferred.items()}
    searches |= {f"pgd in {ball_text(ball)}": each for ball, each in growing.items() if ball.eps <= pgd.eps}
    searches[RANDOM_POINTS] = noise
    return Probed(
        seen=asked + [each for each in compared if each is not None],
        not_told=unclear,
        searches=searches,
        baselines=baselines(by_radius, _success(searches), correct),
    )


def _success(searches: Mapping[T, Tries]) -> dict[T, Flags]:
    return {name: each.success for name, each in searches.items()}


def of_command(network: "PixelNetwork", subjects: Sequence[Subject], repeats: int = 3) -> Probed:
    """The signs that show in classes alone: other answers to the same images. All others are undecided."""
    answers = [_answers(network, subjects) for _ in range(repeats)]
    text = "a command gives only classes"
    unclear = [SeenSign(sign, text) for sign in SIGNS if sign not in ("random_answers", "depends_on_others")]
    found = random_answers(answers) or _of_batches(network, subjects)
    return Probed([] if found is None else [found], unclear, {})


def _of_batches(network: "PixelNetwork", subjects: Sequence[Subject]) -> SeenSign | None:
    asked = [subject.pixels for subject in subjects[: network.batch_size]]
    return rounded_dependence(answers_in_batches(network, asked, "no_grad"), network.precision)


def answers_in_batches(network: "PixelNetwork", images: Sequence[PixelPlanes], mode: str) -> list[Floats]:
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
    names = [subject.name for group in groups for subject in group]
    found += [saturated_answers(answers[0], names), no_gradient(gradients, names)]
    return [each for each in found if each is not None]


class Near(NamedTuple):
    """The signs in answers near the images: those that were seen, and those that are undecided."""

    seen: list[SeenSign]
    not_told: list[SeenSign]


def of_neighbours(network: "PixelNetwork", groups: Sequence[Sequence[Subject]], radius: int) -> Near:
    """The signs in the answers to images near the images: by one color, at random, along the gradient.

    Each is looked for at the images, by steps of 1 and of `radius` levels (at most LONG_STEP), and at a corner of the
    Linf ball of `radius` levels around each, by 2 and as many: a gradient may be right at images alone, or for small
    steps alone.
    """
    names = [subject.name for group in groups for subject in group]
    near = changes_at_places(network, groups, radius)
    seen = [
        unsteady_answers(near.one_pixel, np.maximum(near.all_pixels, near.rounding), names),
        misleading_gradient(
            np.where(near.is_flat, 1.0, near.kept), np.where(near.is_flat, np.nan, near.unexplained), names
        ),
    ]
    unclear = flat_answers(near.is_flat & near.is_coarse, names)
    flat = flat_answers(near.is_flat & ~near.is_coarse, names)
    return Near([each for each in (*seen, flat) if each is not None], [each for each in (unclear,) if each is not None])


def changes_at_places(network: "PixelNetwork", groups: Sequence[Sequence[Subject]], radius: int) -> "NearChanges":
    """The changes at the images and at a corner of the Linf ball around each, of shape (places, images)."""
    at_places = []
    for place, level in ((0, 1), (radius, 2)):
        levels = (level, max(min(radius, LONG_STEP), level + 1))
        found = [near_changes(network, group, place, levels) for group in groups]
        at_places.append([np.concatenate(parts) for parts in zip(*map(astuple, found), strict=True)])
    return NearChanges(*(np.stack(each) for each in zip(*at_places, strict=True)))


LONG_STEP = 4
"""Largest step in levels: those of 8 lead to where the gradient of honest networks is another one."""

PARTS = 3
"""Parts of an image along a side, in which steps are taken one by one, as in each color."""

MAX_ROUGH = 0.1
"""Largest squared difference of random changes, each a level, at two lengths of the step, relative to their squares:
0 of a linear network, and about 1 where rounding makes the changes."""

MIN_SHORTFALL = 5
"""Smallest shortfall of a part's change that rounding does not explain, in root mean squares of what it does not
explain of random steps."""


@dataclass(frozen=True, slots=True, eq=False)
class NearChanges:
    """How the log-odds of some images change by small steps; each of shape (images,), or (places, images)."""

    kept: Floats
    """The smallest share that steps along the signs of the gradient keep of its promise, in a part or in all together.

    If they change more than promised, the inverse of the share in all together."""

    unexplained: Floats
    """The share of the squared change by a random step that it does not explain, of the part with the second largest:
    in one, a change may be small by chance. NaN where rounding hides it."""

    one_pixel: Floats
    """The root mean square of changes in one color of one pixel."""

    all_pixels: Floats
    """The root mean square of random changes of all pixels, by the shorter step."""

    rounding: Floats
    """The largest change that rounding makes."""

    is_coarse: Flags
    """Whether rounding hides changes of a level in honest networks, too."""

    @property
    def is_flat(self) -> Flags:
        """Whether the answers hardly change."""
        return np.asarray(self.all_pixels <= self.rounding)


def near_changes(
    network: "PixelNetwork", group: Sequence[Subject], radius: int, levels: tuple[int, int]
) -> NearChanges:
    """The changes at the images, or at a corner of the Linf ball of `radius` levels around each.

    Steps of two lengths in `levels` are taken in each part of the image by itself, to both sides: a gradient that is
    wrong in one part shows. If rounding hides short steps, only the longer ones are judged.
    """
    import torch

    from cleanset.scoring.devices import to_device

    drawn = np.random.default_rng(0)
    shape = (len(group), *group[0].pixels.shape)
    corners = radius * drawn.choice([-1.0, 1.0], shape)
    images = (np.stack([subject.pixels for subject in group]) + corners).clip(0, LEVELS) / LEVELS
    classes = np.array([subject.class_index for subject in group])
    logits, slopes = _with_gradients(network, group, images, of_log_odds=True)

    def log_odds(pixels: Floats) -> Floats:
        asked = to_device(torch.from_numpy(pixels), network.device).to(network.dtype)
        return _log_odds(logits_of(network, asked), classes)

    def changes(directions: Iterable[Floats]) -> tuple[Floats, Floats]:
        """The changes by steps to both sides, and those that the gradient promises: (directions, lengths, images)."""
        found = []
        promised = []
        for direction, level in product(directions, levels):
            ends = [(images + side * level * direction / LEVELS).clip(0, 1) for side in (1, -1)]
            found.append(log_odds(ends[1]) - log_odds(ends[0]))
            promised.append((slopes * (ends[0] - ends[1])).sum(axis=(1, 2, 3)))
        of_shape = (-1, len(levels), len(group))
        return np.reshape(found, of_shape), np.reshape(promised, of_shape)

    largest = 10 * np.abs(logits).max(axis=1)
    rounding = ROUNDING_OF_LOG_ODDS[network.precision] * largest
    parts = _parts(shape[1:])
    squares = parts[: PARTS**2]
    at_random = changes(part * drawn.choice([-1.0, 1.0], shape) for part in squares)
    noise = np.maximum(np.sqrt(np.square(at_random[0] - at_random[1]).mean(axis=0)), rounding)
    usual = [np.maximum(2 * _lengths(part * slopes) / LEVELS, rounding) for part in squares]
    kept = _kept(*changes(part * np.sign(slopes) for part in parts), noise)
    unexplained = _unexplained(*at_random, np.stack(usual), levels)
    unchanged = _log_odds(logits, classes)
    single = []
    for place in drawn.choice(images[0].size, RANDOM_STEPS):
        image = images.reshape(len(group), -1).copy()
        # to one side alone: what reads the lowest bit is the same on both
        image[:, place] += np.where(image[:, place] < 0.5, 1, -1) / LEVELS
        single.append(np.square(log_odds(image.reshape(images.shape)) - unchanged))
    precision = _rounding_of(logits, network.precision)
    is_coarse = np.full(len(group), precision in COARSE)
    return NearChanges(
        kept=np.where(np.isnan(unexplained), kept[-1], kept.min(axis=0)),
        unexplained=np.where(is_coarse, np.nan, unexplained),
        one_pixel=np.sqrt(np.mean(single, axis=0)),
        all_pixels=_lengths(at_random[0][:, 0].T),
        rounding=ROUNDING_OF_LOG_ODDS[precision] * largest,
        is_coarse=is_coarse,
    )


def _kept(found: Floats, promised: Floats, noise: Floats) -> Floats:
    """The smallest share of its promise that a gradient keeps in a part or in all squares: (lengths, images).

    `found` and `promised`: of shape (parts, lengths, images), squares first. `noise`: of shape (lengths, images).
    """
    tiny = np.finfo(np.float64).tiny
    share = found / promised.clip(min=tiny)
    in_parts = np.where(promised - found > MIN_SHORTFALL * noise, share, 1).min(axis=0)
    together = found[: PARTS**2].sum(axis=0) / promised[: PARTS**2].sum(axis=0).clip(min=tiny)
    return np.asarray(np.minimum(in_parts, np.where(together > 1, 1 / together.clip(min=1), together)))


def _unexplained(found: Floats, expected: Floats, usual: Floats, levels: tuple[int, int]) -> Floats:
    """The second largest share of a part's squared change that is not as expected; NaN where rounding hides it.

    `found` and `expected`: of shape (parts, lengths, images). `usual`: the size of changes by a level in each part.
    """
    lengths = np.array(levels)[:, None]
    short, long = (found / lengths).swapaxes(0, 1)
    is_rough = np.square(short - long).sum(axis=0) > MAX_ROUGH * np.square(short).sum(axis=0)
    # what rounding does to steps of one length is not what it does to those of another
    rest = np.prod((found - expected) / lengths, axis=1)
    shares = rest / np.square(np.maximum(np.abs(short), usual))
    return np.where(is_rough, np.nan, np.sort(shares, axis=0)[-2])


def _lengths(rows: Floats) -> Floats:
    """The L2 norm of each of some arrays."""
    return np.asarray(np.linalg.norm(rows.reshape(len(rows), -1), axis=1))


def _rounding_of(logits: Floats, precision: str) -> str:
    """The precision that rounds as coarsely as a network does, which may compute in a narrower one than it is given."""
    import torch

    exact = torch.from_numpy(logits)
    for dtype, name in HALF_PRECISIONS.items():
        if torch.equal(exact.to(getattr(torch, dtype)).double(), exact):
            return name
    return precision


def _parts(shape: tuple[int, ...]) -> list[Floats]:
    """The parts of an image as masks: squares of rows and columns, then its colors."""
    ends = [round(shape[-1] * place / PARTS) for place in range(PARTS + 1)]
    slices = [slice(start, end) for start, end in pairwise(ends)]
    places = [(slice(None), *each) for each in product(slices, slices)] + [(color,) for color in range(shape[0])]
    masks = np.zeros((len(places), *shape))
    for mask, place in zip(masks, places, strict=True):
        mask[place] = 1
    return list(masks)


def _log_odds(logits: Floats, classes: Ints) -> Floats:
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


def _answers(network: "PixelNetwork", group: Sequence[Subject], contrast: float = 1, mode: str = "no_grad") -> Floats:
    pixels = to_unit([subject.pixels for subject in group], network)
    return logits_of(network, 0.5 + contrast * (pixels - 0.5) if contrast < 1 else pixels, mode)


def _with_gradients(
    network: "PixelNetwork",
    group: Sequence[Subject],
    images: Floats | None = None,
    *,
    of_log_odds: bool = False,
) -> tuple[Floats, Floats]:
    """The logits when a gradient is wanted, and the gradients of the cross-entropy or the log-odds by the pixels.

    `images`: pixels in 0..1 in place of the subjects' own.
    Those of the log-odds, of any other class, stay exact where the cross-entropy is so near 0 that float32 rounds it.
    """
    import torch

    from cleanset.scoring.devices import to_device

    if images is None:
        pixels = to_unit([subject.pixels for subject in group], network)
    else:
        pixels = to_device(torch.from_numpy(images), network.device).to(network.dtype)
    pixels = pixels.requires_grad_()
    label = classes_of(group, network)
    # in batches as without a gradient
    logits = torch.cat([network(part) for part in torch.split(pixels, network.batch_size)])
    if of_log_odds:
        others = logits.scatter(1, label[:, None], float("-inf"))
        loss = (torch.logsumexp(others, dim=1) - logits.gather(1, label[:, None])[:, 0]).sum()
    else:
        loss = torch.nn.functional.cross_entropy(logits, label, reduction="sum")
    found = logits.detach(), gradient(loss, pixels)
    return found[0].double().cpu().numpy(), found[1].double().cpu().numpy()
