"""The signs of a model that only looks strong: each on a model that is built to have it, and none on an honest one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cleanset.edition.params import Precision
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.scoring.differentiable import PixelNetwork, Uninteresting
from cleanset.studies.attacks.base import Ball, Known, Other, Parameters, Subject, to_unit
from cleanset.studies.attacks.baselines import AtRadius, Baselines, BySearch, drawn_points
from cleanset.studies.attacks.boundary import BoundaryAttack
from cleanset.studies.attacks.changes import SpatialGridAttack
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack
from cleanset.studies.attacks.judge import Judge
from cleanset.studies.attacks.probing import fewer, of_answers, of_neighbours, probe
from cleanset.studies.attacks.results import Trust
from cleanset.studies.attacks.signs import (
    MIN_COMPARED,
    SeenSign,
    black_box_better,
    fewer_steps_better,
    is_better,
    larger_balls_alike,
    misleading_gradient,
    no_gradient,
    noise_better,
    not_told,
    nothing_broken,
    nothing_learnt,
    precision_changes_answers,
    random_answers,
    saturated_answers,
    smaller_ball_better,
    tied_answers,
    transfer_beats_gradient,
    whole_cube_withstood,
)
from cleanset.studies.attacks.tries import tries
from cleanset.studies.attacks.warnings import Candidate, WarningRecord, read_warnings, write_warnings
from tests.studies.attacks.networks import (
    CPU,
    KNOWN,
    Linear,
    classified,
    correct_subjects,
    drawn,
    loaded,
    on_cpu,
    random_linear,
    random_network,
    subject,
)

pytestmark = pytest.mark.slow

EPS = 16 / 255
PGD = PgdAttack(eps=EPS, steps=10, group=8)
SPSA = SpsaAttack(steps=20, learning_rate=EPS / 4, stop_margin=0.2, after=None)


class Backwards(torch.autograd.Function):
    """The identity, whose gradient points to the other side unless all levels are multiples of 8.

    On images of such levels, a step from the image itself goes the right way; from elsewhere it goes back.
    """

    @staticmethod
    def forward(ctx: object, pixels: Tensor) -> Tensor:
        ctx.known = bool((pixels * 255 / 8 - torch.round(pixels * 255 / 8)).abs().max() < 1e-6)  # type: ignore[attr-defined]
        return pixels.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient if ctx.known else -gradient  # type: ignore[attr-defined]


class Stepwise(nn.Module):
    """Pixels are rounded to 32 levels before the network: no gradient, and still a function to be searched."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.network(torch.round(pixels * 31) / 31)
        return found


class Scaled(nn.Module):
    """Logits times a number."""

    def __init__(self, network: nn.Module, factor: float) -> None:
        super().__init__()
        self.network, self.factor = network, factor

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.network(pixels) * self.factor
        return found


def subjects(network: nn.Module) -> list[Subject]:
    return correct_subjects(network, 12, least=60, most=200)


def signs(network: nn.Module, among: Sequence[Subject]) -> set[str]:
    return {warned.sign for warned in probe(on_cpu(network, 64), among, KNOWN, PGD, [SPSA]).seen}


HONEST = random_linear(3, seed=1)


def test_an_honest_model_has_none() -> None:
    assert signs(HONEST, subjects(HONEST)) == set()


def test_growing_balls_and_noise() -> None:
    """For a linear network, the corner along the weights breaks all that can be broken, at any radius."""
    among = subjects(HONEST)
    weight = HONEST.weight.detach().numpy().reshape(3, 3, 12, 12)

    def corners(one: Subject, radius: int) -> list[Pixels]:
        others = [weight[other] - weight[one.class_index] for other in range(3) if other != one.class_index]
        return [(one.pixels + radius * np.sign(each)).clip(0, 255).astype(np.uint8) for each in others]

    def broken(radius: int) -> int:
        return sum(any(classified(HONEST, each) != one.class_index for each in corners(one, radius)) for one in among)

    found = probe(on_cpu(HONEST, 64), among, KNOWN, PGD.model_copy(update={"eps": 4 / 255}), []).baselines
    assert found is not None
    assert [(each.eps * 255, each.broken) for each in found.by_radius] == [
        (radius, broken(radius)) for radius in (2, 4, 8, 16, 255)
    ]
    assert 0 < found.by_radius[0].broken < found.by_radius[-1].broken == found.images == 12
    points = [each for one in among[:1] for each in drawn_points(one, 4, seed=1)]
    changes = np.stack(points).astype(int) - among[0].pixels
    assert (np.abs(changes[1::2]) == 4).all()
    assert [np.unique(changes[::2]).tolist(), len(points)] == [list(range(-4, 5)), 100]
    assert found.noise_broken <= found.by_radius[1].broken


def test_no_gradient_and_a_black_box_that_wins() -> None:
    assert signs(Stepwise(HONEST), subjects(HONEST)) == {
        "no_gradient",
        "black_box_better",
        "whole_cube_withstood",
        "noise_better",
    }


def test_saturated_logits() -> None:
    assert signs(Scaled(HONEST, 1e4), subjects(HONEST)) >= {"saturated_answers"}


def test_probabilities_in_place_of_logits() -> None:
    found = probe(on_cpu(nn.Sequential(HONEST, nn.Softmax(dim=1))), subjects(HONEST), KNOWN, PGD, []).seen
    assert [(warned.sign, warned.text) for warned in found] == [
        ("saturated_answers", "all 12 answers are probabilities; expected logits")
    ]


def test_more_success_with_fewer_steps() -> None:
    class Misled(nn.Module):
        def forward(self, pixels: Tensor) -> Tensor:
            found: Tensor = HONEST(Backwards.apply(pixels))  # type: ignore[no-untyped-call]
            return found

    among = [subject(number, one.class_index, one.pixels // 8 * 8) for number, one in enumerate(subjects(HONEST))]
    among = [one for one in among if classes(HONEST, [one]) == {one.class_index}]
    (warned,) = probe(on_cpu(Misled(), 64), among, KNOWN, PGD, []).seen
    assert warned.sign == "fewer_steps_better"
    assert "with 1 step, on" in warned.text


class Shattered(nn.Module):
    """16 levels, through which 1e-9 of a gradient leaks that has nothing to do with the class."""

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = HONEST(torch.round(pixels * 15) / 15 + 1e-9 * torch.sin(1000 * pixels))
        return found


class HashedNoise(nn.Module):
    """Faint noise from a hash of the image, by which the gradient is multiplied, too."""

    def forward(self, pixels: Tensor) -> Tensor:
        levels = torch.round(pixels.detach() * 255).to(torch.uint8).numpy()
        seeds = [int.from_bytes(sha256(each.tobytes()).digest()[:4]) for each in levels]
        drawn = np.stack([np.random.default_rng(seed).standard_normal((3, 12, 12)) for seed in seeds])
        noise = torch.from_numpy(drawn).to(pixels)
        found: Tensor = HONEST((pixels + 0.002 * noise).detach() + noise * (pixels - pixels.detach()))
        return found


@pytest.mark.long
@pytest.mark.parametrize("network", [Shattered(), HashedNoise()])
def test_what_images_of_another_model_break(network: nn.Module) -> None:
    """There is a gradient, and the same image gets the same answer; near the image the answers give it away."""
    among = [one for one in subjects(HONEST) if classes(network, [one]) == {one.class_index}]
    known = replace(KNOWN, sources=lambda: {"honest": on_cpu(HONEST, 64)})
    found = probe(on_cpu(network, 64), among, known, PGD, [])
    further = {"noise_better"} | ({"whole_cube_withstood"} if isinstance(network, HashedNoise) else set())
    assert {each.sign for each in found.seen} == {"misleading_gradient", "transfer_beats_gradient", *further}
    (seen,) = (each for each in found.seen if each.sign == "transfer_beats_gradient")
    assert seen.text.startswith("images made on honest succeed on")
    alone = probe(on_cpu(network, 64), among, KNOWN, PGD, [])
    assert {each.sign for each in alone.seen} == {"misleading_gradient", *further}
    assert [each.sign for each in alone.not_told] == ["transfer_beats_gradient"]


class Hooked(nn.Module):
    """A hook rolls the gradient by a few pixels, and makes it tiny."""

    def forward(self, pixels: Tensor) -> Tensor:
        copied = pixels + 0
        if copied.requires_grad:
            copied.register_hook(  # type: ignore[no-untyped-call]
                lambda gradient: torch.roll(gradient, (5, 7), (2, 3)).clamp(-1e-9, 1e-9)
            )
        found: Tensor = HONEST(copied)
        return found


class HashedSize(nn.Module):
    """Images are moved by up to two pixels, by a hash of the image."""

    def forward(self, pixels: Tensor) -> Tensor:
        levels = torch.round(pixels.detach() * 255).to(torch.uint8).numpy()
        moves = [sha256(each.tobytes()).digest()[0] % 5 - 2 for each in levels]
        found: Tensor = HONEST(torch.stack([torch.roll(one, by, 2) for one, by in zip(pixels, moves, strict=True)]))
        return found


class LowestBit(nn.Module):
    """The lowest bit of the sum of all levels decides whether the image is mirrored."""

    def forward(self, pixels: Tensor) -> Tensor:
        odd = torch.round(pixels.detach() * 255).sum(dim=(1, 2, 3)) % 2 > 0
        found: Tensor = torch.where(odd[:, None], HONEST(pixels), HONEST(pixels.flip(3)))
        return found


class BatchStatistics(nn.Module):
    """Pixels are normalised by the mean of the batch, as by batch normalisation that was left in training."""

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = HONEST(pixels + 0.01 * (0.5 - pixels.mean(dim=0)))
        return found


class FirstPlace(nn.Module):
    """The first image of a batch is mirrored."""

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = HONEST(torch.cat([pixels[:1].flip(3), pixels[1:]]))
        return found


@pytest.mark.parametrize(
    ("network", "sign", "text"),
    [
        (Hooked(), "misleading_gradient", "12 of 12 images have a gradient that does not predict how steps along it"),
        (HashedSize(), "unsteady_answers", "2 of 12 images get another answer when one color of one pixel"),
        (LowestBit(), "unsteady_answers", "12 of 12 images get another answer when one color of one pixel changes"),
        (BatchStatistics(), "depends_on_others", "images get another answer in another batch"),
        (FirstPlace(), "depends_on_others", "images get another answer in another order"),
    ],
)
def test_what_only_neighbours_or_batches_show(network: nn.Module, sign: str, text: str) -> None:
    """Without a model that resembles the network."""
    (found,) = [each for each in probe(on_cpu(network, 64), subjects(HONEST), KNOWN, PGD, []).seen if each.sign == sign]
    assert found.text.startswith(text)


class Votes(nn.Module):
    """Each of five shifted copies has a vote; a faint trace of the logits is left, so that there is a gradient."""

    def forward(self, pixels: Tensor) -> Tensor:
        logits = [HONEST(torch.roll(pixels.double(), by, 3)) for by in range(5)]
        votes = sum(nn.functional.one_hot(each.argmax(1), each.shape[1]) for each in logits)
        found: Tensor = (votes + 1e-6 * logits[0]).to(pixels)
        return found


@pytest.mark.parametrize(("precision", "is_seen"), [("float32", True), ("bfloat16", False)])
def test_answers_that_a_level_does_not_change(precision: Precision, is_seen: bool) -> None:
    """Rounding in a coarse precision hides the change, of honest models as well: there it is undecided."""
    network = PixelNetwork(Votes(), CPU, precision, 64)
    seen, not_told, *_ = probe(network, subjects(HONEST), KNOWN, PGD, [])
    (text,) = [each.text for each in (seen if is_seen else not_told) if each.sign == "misleading_gradient"]
    assert text == "12 of 12 images get nearly the same answer when all pixels change by a level"
    assert not [each for each in (not_told if is_seen else seen) if each.sign == "misleading_gradient"]


class WrongInPart(nn.Module):
    """The gradient is turned around, or 0, in a part of the image, or for some classes."""

    def __init__(self, factor: float, columns: slice = slice(None), classes: Sequence[int] | None = None) -> None:
        super().__init__()
        self.factor, self.columns, self.classes = factor, columns, classes

    def forward(self, pixels: Tensor) -> Tensor:
        factor = torch.ones_like(pixels)
        factor[..., self.columns] = self.factor
        if self.classes is not None:
            chosen = torch.isin(HONEST(pixels.detach()).argmax(dim=1), torch.tensor(self.classes))
            factor[~chosen] = 1
        found: Tensor = HONEST(factor * pixels + (1 - factor) * pixels.detach())
        return found


@pytest.mark.parametrize(
    ("factor", "columns"),
    [(-1.0, slice(4, 8)), (-1.0, slice(3)), (-1.0, slice(0, 12, 3)), (0.0, slice(2, 10)), (0.0, slice(0, 12, 2))],
    ids=["middle turned around", "left turned around", "every third turned around", "middle 0", "every second 0"],
)
def test_a_gradient_that_is_wrong_in_part_of_the_image(factor: float, columns: slice) -> None:
    """Whether the part is in one piece or scattered; most images are no longer trusted, none of an honest network."""
    near = of_neighbours(on_cpu(WrongInPart(factor, columns), 64), in_eights(subjects(HONEST)), 4)
    assert {each.sign for each in near.seen} == {"misleading_gradient"}
    assert len({file for each in near.seen for file in each.images or ()}) >= 9
    assert of_neighbours(on_cpu(HONEST, 64), in_eights(subjects(HONEST)), 4) == ([], [])


class Ripple(nn.Module):
    """Pixels less a wave of 7 levels, which is as steep as the pixels: gradients are right for steps of a level."""

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = HONEST(pixels - 2 * 7 / (2 * torch.pi) / 255 * torch.sin(2 * torch.pi * 255 / 7 * pixels))
        return found


def test_a_gradient_that_is_right_for_short_steps_alone() -> None:
    near = of_neighbours(on_cpu(Ripple(), 64), in_eights(subjects(HONEST)), 4)
    (seen,) = near.seen
    assert (seen.sign, len(seen.images or ())) == ("misleading_gradient", 12)


class Rounded(nn.Module):
    """The linear layer of the honest network, of pixels and to logits that are rounded; gradients pass straight."""

    def __init__(self, of_pixels: Callable[[Tensor], Tensor], of_logits: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.of_pixels, self.of_logits = of_pixels, of_logits

    def forward(self, pixels: Tensor) -> Tensor:
        exact: Tensor = HONEST(pixels + (self.of_pixels(pixels.detach()) - pixels.detach()))
        return exact + (self.of_logits(exact.detach()).to(exact) - exact.detach())


@pytest.mark.parametrize(
    "network",
    [
        Rounded(lambda pixels: pixels, lambda logits: logits.half()),
        Rounded(lambda pixels: pixels, lambda logits: torch.round(64 * logits) / 64),
        Rounded(lambda pixels: torch.round(pixels * 63) / 63, lambda logits: logits),
    ],
    ids=["logits in half precision", "logits in 64ths", "pixels of 6 bits"],
)
def test_a_network_that_rounds_and_lets_gradients_pass_is_honest(network: nn.Module) -> None:
    near = of_neighbours(on_cpu(network, 64), in_eights(subjects(HONEST)), 4)
    assert near.seen == []


def test_a_gradient_that_is_wrong_for_a_class_is_not_trusted_for_its_images() -> None:
    """All others can be."""
    among = correct_subjects(HONEST, 12)
    near = of_neighbours(on_cpu(WrongInPart(-1.0, classes=[2]), 64), in_eights(among), 1)
    (seen,) = near.seen
    assert [one.class_index for one in among] == [2, 0, 2, 0, 0, 0, 0, 2, 0, 0, 2, 0]
    assert seen.images == ("n0/0.JPEG", "n0/2.JPEG", "n0/7.JPEG", "n0/10.JPEG")


class RightAtImages(nn.Module):
    """The gradient is right where all levels are even, as of the images, and turned around elsewhere."""

    def forward(self, pixels: Tensor) -> Tensor:
        odd = torch.round(pixels.detach() * 255) % 2
        is_near = odd.mean(dim=(1, 2, 3), keepdim=True) < 0.01
        factor = torch.where(is_near, 1.0, -1.0).to(pixels)
        found: Tensor = HONEST(factor * pixels + (1 - factor) * pixels.detach())
        return found


def test_a_gradient_that_is_right_at_the_images_alone() -> None:
    even = [subject(number, one.class_index, one.pixels // 2 * 2) for number, one in enumerate(subjects(HONEST))]
    near = of_neighbours(on_cpu(RightAtImages(), 64), in_eights(even), 3)
    assert {file for each in near.seen for file in each.images or ()} == {one.name for one in even}


def test_nothing_is_learnt_if_no_transferred_image_succeeds() -> None:
    """For a model on which PGD succeeds everywhere the sign is decided: no other attack is better."""
    none, some, every = np.zeros(8, bool), np.arange(8) < 3, np.ones(8, bool)
    text = "no image made on another model (a, b) succeeds, from which nothing is learnt"
    assert nothing_learnt(none, every, {"a": none, "b": none}) == [SeenSign("transfer_beats_gradient", text)]
    assert nothing_learnt(none, every, {"a": none, "b": some}) == []
    assert nothing_learnt(every, every, {"a": none}) == []


def test_another_answer_in_the_precision_of_the_search() -> None:
    answers = np.array([[3.0, 1.0], [1.0, 2.0]])
    assert precision_changes_answers(answers + 1e-4, answers, "float32", ["a", "b"]) is None
    seen = precision_changes_answers(answers * [[1], [-1]], answers, "float32", ["a", "b"])
    assert seen is not None
    assert seen.images == ("b",)
    assert seen.text == "1 of 2 images get another answer when searched in float32 than when judged"


class Winners(nn.Module):
    """A layer that passes the largest tenth of its values (k-WTA), and a shortcut of 2 % that leads back.

    Fitted to the honest network around its images. The values hardly differ, so that it is which of them pass that
    tells the classes, and of that no gradient knows.
    """

    def __init__(self, shortcut: float = 0.02, units: int = 1000) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        near = torch.from_numpy(np.stack([one.pixels for one in subjects(HONEST)] * 100) / 255)
        near += 0.1 * (2 * torch.rand(near.shape, generator=generator, dtype=torch.float64) - 1)
        self.weight, self.shortcut = 1e-3 * torch.randn(units, 432, generator=generator, dtype=torch.float64), shortcut
        wanted, passed = HONEST(near).detach(), self.passed(near)
        self.middle, self.mean = wanted.mean(0), passed.mean(0)
        ridge = 0.3 * torch.eye(units, dtype=torch.float64)
        left = torch.cat([passed - self.mean, ridge])
        self.head = torch.linalg.lstsq(left, torch.cat([wanted - self.middle, 0 * ridge[:, :3]])).solution

    def passed(self, pixels: Tensor) -> Tensor:
        values = 1 + (pixels.flatten(1) - 0.5) @ self.weight.T
        return values * (values >= values.topk(len(self.weight) // 10, dim=1).values[:, -1:])

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.middle + (self.passed(pixels) - self.mean) @ self.head - self.shortcut * HONEST(pixels)
        return found


@pytest.mark.long
def test_winners_take_all() -> None:
    """More steps do not help; without the shortcut, the gradient of such a layer leads somewhere, and PGD wins."""
    network = Winners()
    among = [one for one in subjects(HONEST) if classes(network, [one]) == {one.class_index}]
    assert signs(network, among) == {
        "misleading_gradient",
        "black_box_better",
        "whole_cube_withstood",
        "noise_better",
    }
    counts = [
        tries(on_cpu(network, 64), among, KNOWN, PGD.model_copy(update={"steps": steps})).success.sum()
        for steps in (10, 100)
    ]
    assert max(counts) <= 3 < tries(on_cpu(network, 64), among, KNOWN, SPSA).success.sum() - 3
    assert "black_box_better" not in signs(Winners(shortcut=0), among)


def certain_network(seed: int, images: Sequence[Pixels]) -> nn.Module:
    """A linear network whose top-1 logit is, for the median image, 30 above the second."""
    network = random_linear(5, seed)
    with torch.no_grad():
        top = network(torch.from_numpy(np.stack(images) / 255)).topk(2, dim=1).values
    return Scaled(network, 30 / float((top[:, 0] - top[:, 1]).median()))


@pytest.mark.long
@pytest.mark.parametrize("draws", [10, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_honest_models_have_none_in_many_draws(draws: int) -> None:
    """Networks and images; half of the networks have confidences that mostly round to 1 in float32.

    Up to 1 in 200 networks of random weights may have one, such as one that gives nearly every image one class, which
    no local search leaves.
    """
    pgd = PgdAttack(steps=6, group=12)
    spsa = SpsaAttack(eps=4 / 255, steps=3, samples=16, learning_rate=1 / 255, after=None)
    certain = 0
    warned = []
    for seed in range(draws):
        images = [drawn(100 * seed + number) for number in range(12)]
        network = random_network(5, seed).double() if seed % 2 else certain_network(seed, images)
        group = [subject(number, classified(network, image), image) for number, image in enumerate(images)]
        others = {"linear": on_cpu(random_linear(5, seed + 5000), 64), "same": on_cpu(network, 64)}
        known = Known(3, sources=lambda others=others: others)  # type: ignore[misc]
        found = probe(on_cpu(network, 64), group, known, pgd, [spsa])
        warned += [(seed, each.sign) for each in found.seen]
        # if none of the images of either model succeeds, or none in any ball but the whole cube
        unclear = {"transfer_beats_gradient", "smaller_ball_better", "larger_balls_alike"}
        assert {each.sign for each in found.not_told} <= unclear, seed
        logits = on_cpu(network)(to_unit(images, on_cpu(network))).detach()
        certain += seed % 2 == 0 and float(logits.softmax(dim=1).max(dim=1).values.float().median()) == 1
    assert certain >= draws / 2 - 1
    assert len(warned) <= draws / 200, warned


@pytest.mark.parametrize("steps", [1, 5])
def test_fewer_steps_reach_every_corner(steps: int) -> None:
    """Else one step beats five on honest models: from a random place, the best corner is up to two radii away."""
    network = random_linear(2)
    group = correct_subjects(network, 8, least=60, most=200)
    weight = network.weight.detach().numpy().reshape(2, 3, 12, 12)
    for one, result in zip(group, fewer(PGD, steps).results(on_cpu(network, 64), group, KNOWN), strict=True):
        direction = np.sign(weight[1 - one.class_index] - weight[one.class_index])
        assert np.array_equal(result.candidate, one.pixels + 16 * direction)


def test_four_images_tell_nothing() -> None:
    """It does not report "no sign": for a model that hides its gradient, the comparison is undecided."""
    known = replace(KNOWN, sources=lambda: {"honest": on_cpu(HONEST)})
    found = probe(on_cpu(Stepwise(HONEST)), subjects(HONEST)[:4], known, PGD, [SPSA])
    assert [each.sign for each in found.seen] == ["no_gradient"]
    assert {each.sign for each in found.not_told} == {
        "fewer_steps_better",
        "black_box_better",
        "transfer_beats_gradient",
        "smaller_ball_better",
        "larger_balls_alike",
        "whole_cube_withstood",
        "noise_better",
    }
    assert found.baselines is None
    assert found.not_told[0].text == "4 images are classified correctly; two attacks are compared on 5 or more"


class Clamped(nn.Module):
    """The logarithm of probabilities that are at least 1e-6, of logits 30 times as large."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.log((30 * HONEST(pixels)).softmax(dim=1).clamp(min=1e-6))


class Cheating(nn.Module):
    """Answers to the opposite of the image where `notices` is true."""

    def __init__(self, notices: Callable[[Tensor], bool]) -> None:
        super().__init__()
        self.notices = notices

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = HONEST(1 - pixels if self.notices(pixels) else pixels)
        return found


OTHERWISE = "12 of 12 images get another answer when a gradient is wanted"


def in_eights(images: list[Subject]) -> list[list[Subject]]:
    return [images[start : start + 8] for start in range(0, len(images), 8)]


@pytest.mark.parametrize(
    ("network", "sign", "text"),
    [
        (Clamped(), "saturated_answers", "images have the same lowest logit for most classes"),
        (Cheating(lambda pixels: pixels.requires_grad), "gradient_changes_answers", OTHERWISE),
        (Cheating(lambda _: torch.is_grad_enabled()), "gradient_changes_answers", OTHERWISE),
        (Cheating(lambda _: not torch.is_inference_mode_enabled()), "gradient_changes_answers", OTHERWISE),
    ],
    ids=["clamped", "requires_grad", "grad_enabled", "inference_mode"],
)
def test_what_hides_from_gradients(network: nn.Module, sign: str, text: str) -> None:
    (found,) = of_answers(on_cpu(network), in_eights(subjects(HONEST)))
    assert found.sign == sign
    assert text in found.text


PATTERN = torch.randint(0, 2, (3, 12, 12), generator=torch.Generator().manual_seed(2)).double() * 2 - 1
"""Of -1 and 1."""


class TestUninteresting:
    """Appendix E's defense: gradients show nothing, a spatial grid still finds what fools it.

    Class 0 is whatever contains a faint pattern. Each image is ten deviations of the noise from the other class, which
    a change of 6 levels everywhere reaches, or moving the pattern. Boundary ends at an L2 of three times that distance,
    before the noise leads it astray.
    """

    spsa = SpsaAttack(steps=40, after=None)
    grid = SpatialGridAttack(scale=0.9, translations=[-72, 0, 72], angles=[0])
    boundary = BoundaryAttack(queries=1650, eps=1.5, group=8, after=None)

    def network(self) -> Linear:
        weight = torch.stack((PATTERN.flatten(), torch.zeros(432, dtype=torch.float64)))
        score = 432 * 20 / 255 - 10 * 0.05 * 432**0.5
        offset = float(weight[0].sum()) * 128 / 255
        return Linear(weight, torch.tensor([-score - offset, 0.0], dtype=torch.float64))

    def images(self) -> list[Subject]:
        pixels = (128 + 20 * PATTERN).numpy().astype(np.uint8)
        return [subject(number, 0, pixels) for number in range(8)]

    def errors(self, network: nn.Module, attack: Parameters | None) -> int:
        """For the judged candidates, without an attack of the images themselves."""
        group, judge, asked = self.images(), Judge(loaded(network), CPU), on_cpu(network, 64)
        if attack is None:
            candidates = [one.pixels for one in group]
        else:
            size = attack.group_size
            known = Known(3, lambda: {"n0/50.JPEG": Other(1, lambda: np.full((3, 12, 12), 128, np.uint8))})
            parts = [attack.results(asked, group[start : start + size], known) for start in range(0, len(group), size)]
            candidates = [result.candidate for part in parts for result in part]
        return sum(int(judge.logits(each, seed).argmax()) != 0 for seed, each in enumerate(candidates))

    def test_its_noise_alone_changes_nothing(self) -> None:
        assert self.errors(Uninteresting(self.network(), seed=5), None) == 0

    @pytest.mark.parametrize(("attack", "least", "most"), [(spsa, 0, 0), (boundary, 8, 8), (grid, 8, 8)])
    def test_what_breaks_the_network_and_its_defense(self, attack: Parameters, least: int, most: int) -> None:
        assert self.errors(self.network(), attack) == 8
        assert least <= self.errors(Uninteresting(self.network(), seed=5), attack) <= most

    def test_noise_that_changes_no_answer_is_seen_in_faint_copies(self) -> None:
        """The pattern at a fifth of its contrast is at the boundary, the images are 26 deviations of the noise off."""
        bias = -float(PATTERN.sum()) * (0.5 + 0.2 * 0.5 / 255) - 432 * 4 / 255
        near = Linear(self.network().weight.detach(), torch.tensor([bias, 0.0], dtype=torch.float64))
        assert self.errors(Uninteresting(near, seed=5), None) == 0
        found = {
            warned.sign: warned.text for warned in of_answers(on_cpu(Uninteresting(near)), in_eights(self.images()))
        }
        assert re.fullmatch(r"\d of 16 images and faint copies get another answer .*", found["random_answers"])
        assert "random_answers" not in {warned.sign for warned in of_answers(on_cpu(near), in_eights(self.images()))}

    @pytest.mark.long
    def test_it_is_warned_of(self) -> None:
        near = Uninteresting(random_linear(3, seed=1))
        assert signs(near, subjects(HONEST)) >= {"random_answers", "saturated_answers", "no_gradient"}
        found = probe(on_cpu(near), subjects(HONEST), KNOWN, PGD, []).seen
        assert "all 12 answers are one-hot; expected logits" in {warned.text for warned in found}


def classes(network: nn.Module, group: Sequence[Subject]) -> set[int]:
    on = on_cpu(network)
    return set(on(to_unit([one.pixels for one in group], on)).argmax(dim=1).tolist())


class TestRules:
    """Each rule on literals."""

    logits = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0]])

    def test_random_answers(self) -> None:
        other = self.logits.copy()
        assert random_answers([self.logits, other, other]) is None
        other[1, 0] = 0.1
        warned = random_answers([self.logits, self.logits, other])
        assert warned is not None
        assert warned.text == "1 of 2 images get another answer when asked 3 times"

    def test_saturated(self) -> None:
        names = ["a", "b"]
        assert saturated_answers(self.logits, names) is None
        assert saturated_answers(self.logits * [[1], [90]], names) is None  # one of two: 90 nats
        tied = np.array([[9.0, 1, 1, 1, 2], [9, 1, 1, 2, 3], [9, 1, 1.1, 2, 3]])
        assert tied_answers(tied).tolist() == tied_answers(tied + 1e-7 * np.arange(5)).tolist() == [True, False, False]
        filled_up = np.array([[9.0, 3, 1, 1, 1], [2, 8, 1, 1, 1]])
        assert not tied_answers(filled_up).any()
        # confidences round to 1 in float32: 60 and 30 nats
        assert saturated_answers(self.logits * 30, names) is None
        warned = saturated_answers(self.logits * 90, names)
        assert warned is not None
        assert warned.text.startswith("2 of 2 images have log-odds above 80,")
        assert warned.images == ("a", "b")

    def test_no_gradient(self) -> None:
        gradients = np.ones((4, 3, 2, 2))
        assert no_gradient(gradients, list("abcd")) is None
        gradients[0], gradients[2] = 0, np.nan
        assert no_gradient(gradients, list("abcd")) == SeenSign(
            "no_gradient", "2 of 4 images have no gradient", ("a", "c")
        )

    def test_a_gradient_that_misleads(self) -> None:
        """By what it keeps, or by what it does not explain; unknown is not misleading."""
        kept = np.array([1.0, 0.9, 0.2, 0.9])
        unexplained = np.array([0.0, 0.9, 0.1, np.nan])
        found = misleading_gradient(kept, unexplained, list("abcd"))
        assert found is not None
        assert found.images == ("b", "c")
        assert found.text == "2 of 4 images have a gradient that does not predict how steps along it change the answer"
        assert misleading_gradient(kept[[0, 3]], unexplained[[0, 3]], list("ad")) is None

    def test_steps_and_black_boxes(self) -> None:
        few, many = np.arange(20) < 12, np.arange(20) < 5
        assert fewer_steps_better({1: many, 20: few}) is None
        warned = fewer_steps_better({1: few, 20: many})
        assert warned is not None
        assert warned.text == "PGD succeeds on 12 of 20 images with 1 step, on 5 with 20"
        assert black_box_better(few, {"spsa": many}) is None
        warned = black_box_better(many, {"spsa": few, "square": many})
        assert warned is not None
        assert warned.text == "spsa succeeds on 12 of 20 images without a gradient, PGD on 5"

    def test_images_of_other_models(self) -> None:
        """Each other model is compared alone: two that win on 4 images each show nothing, together they would."""
        few, first, second = (np.isin(np.arange(20), each) for each in ([0], [1, 2, 3, 4], [5, 6, 7, 8]))
        assert transfer_beats_gradient(few, {"a": first | few, "b": second | few}) is None
        warned = transfer_beats_gradient(few, {"a": first, "b": first | second})
        assert warned is not None
        assert warned.text == "images made on b succeed on 8 of 20 images, those made on the model itself on 1"

    def test_what_is_undecided(self) -> None:
        assert MIN_COMPARED == 5
        assert not_told(5, has_others=True) == []
        assert [each.sign for each in not_told(5, has_others=False)] == ["transfer_beats_gradient"]
        assert len(not_told(4, has_others=True)) == 7

    def test_smaller_balls(self) -> None:
        """One image that breaks in a ball and not in a larger one is enough."""
        few, many = np.arange(4) < 1, np.arange(4) < 3
        assert smaller_ball_better({2 / 255: few, 4 / 255: many, 1.0: many}, list("abcd")) is None
        warned = smaller_ball_better({4 / 255: many, 2 / 255: few, 1.0: few}, list("abcd"))
        assert warned is not None
        text = "2 of 4 images are broken by PGD in a ball, not in a larger one around it"
        assert (warned.text, warned.images) == (text, ("b", "c"))

    def test_larger_balls_alike(self) -> None:
        """Some break in the smallest ball, and no others in larger ones, though some are left; the cube is left out."""
        none, few, many, every = (np.arange(4) < count for count in (0, 1, 3, 4))
        radii = (0.1, 0.2, 0.4, 1.0)
        rising = dict(zip(radii, (few, few, many, every), strict=True))
        flat = dict(zip(radii, (few, few, few, every), strict=True))
        broken = dict(zip(radii, (every, every, every, every), strict=True))
        nothing = dict(zip(radii, (none, none, none, every), strict=True))
        assert [larger_balls_alike(each, every, list("abcd")) for each in (rising, broken, nothing)] == [None] * 3
        warned = larger_balls_alike(flat, every, list("abcd"))
        assert warned is not None
        text = "3 of 4 images are left by PGD, which breaks 1 in each of 3 balls of growing radius"
        assert (warned.text, warned.images) == (text, ("b", "c", "d"))
        assert [nothing_broken(each, every) for each in (rising, flat, broken)] == [[], [], []]
        text = "PGD breaks 0 of 4 images up to Linf 102/255"
        assert nothing_broken(nothing, every) == [
            SeenSign("smaller_ball_better", text),
            SeenSign("larger_balls_alike", text),
        ]

    def test_the_whole_cube(self) -> None:
        """An image that a smaller ball breaks withstands, too, if the cube does not break it."""
        correct, first, second = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 1]], bool)
        assert whole_cube_withstood({0.5: first, 1.0: correct}, correct, list("abcd")) is None
        warned = whole_cube_withstood({0.5: first, 1.0: second}, correct, list("abcd"))
        assert warned is not None
        text = "1 of 4 images withstand PGD though every pixel may take any value"
        assert (warned.text, warned.images) == (text, ("a",))

    def test_noise(self) -> None:
        """One image shows that PGD missed it; with five or more, as many as PGD, unless PGD breaks all."""
        names = list("abcdefgh")
        five, six, every = (np.arange(8) < count for count in (5, 6, 8))
        assert noise_better(five, six, every, names) is None
        assert noise_better(five, five, five, names) is None
        assert noise_better(five[:4], five[:4], every[:4], names[:4]) is None
        warned = noise_better(five, five, every, names)
        assert warned is not None
        text = "random points of the ball break 5 of 8 images, PGD 5"
        assert (warned.text, warned.images) == (text, None)
        warned = noise_better(np.arange(8) == 7, six, every, names)
        assert warned is not None
        text = "1 of 8 images are broken by random points of the ball, not by PGD"
        assert (warned.text, warned.images) == (text, ("h",))

    @pytest.mark.parametrize(("wins", "losses", "better"), [(5, 0, True), (4, 0, False), (0, 0, False), (9, 2, True)])
    def test_the_sign_test(self, wins: int, losses: int, better: bool) -> None:
        """One-sided: 1/32 and 1/16 without a loss; 67/2048 with 9 of 11."""
        one = np.array([True] * wins + [False] * losses + [True] * 3)
        other = np.array([False] * wins + [True] * losses + [True] * 3)
        assert is_better(one, other) == better


TEXT = """{
  "role": "mine",
  "images": 4,
  "files": [
    "n0/1.JPEG"
  ],
  "parameters": {
    "eps": 0.5
  },
  "warnings": [
    {
      "sign": "no_gradient",
      "text": "4 of 4 images have no gradient",
      "images": [
        "n0/1.JPEG"
      ]
    }
  ],
  "not_told": [
    {
      "sign": "black_box_better",
      "text": "4 images",
      "images": null
    }
  ],
  "candidates": [
    {
      "file": "n0/1.JPEG",
      "search": "spsa",
      "was_correct": true,
      "is_error": true,
      "l2": 0.75,
      "linf": 0.25,
      "png_sha256": "00",
      "png": null
    }
  ],
  "baselines": {
    "images": 3,
    "by_radius": [
      {
        "eps": 0.5,
        "broken": 1
      },
      {
        "eps": 1.0,
        "broken": 3
      }
    ],
    "by_search": [
      {
        "search": "random points",
        "broken": 2
      }
    ],
    "noise_points": 100,
    "noise_broken": 2
  }
}
"""


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    seen = SeenSign(sign="no_gradient", text="4 of 4 images have no gradient", images=("n0/1.JPEG",))
    few = SeenSign(sign="black_box_better", text="4 images")
    candidate = Candidate(
        file="n0/1.JPEG", search="spsa", was_correct=True, is_error=True, l2=0.75, linf=0.25, png_sha256="00"
    )
    record = WarningRecord(
        role="mine",
        images=4,
        files=("n0/1.JPEG",),
        parameters={"eps": 0.5},
        warnings=(seen,),
        not_told=(few,),
        candidates=(candidate,),
        baselines=Baselines(
            images=3,
            by_radius=(AtRadius(eps=0.5, broken=1), AtRadius(eps=1, broken=3)),
            by_search=(BySearch(search="random points", broken=2),),
            noise_points=100,
            noise_broken=2,
        ),
    )
    assert record.trust == Trust(checked=frozenset(), untrusted=None)
    # a sign on half of the images is one of these alone
    of_two = record.model_copy(update={"files": ("n0/1.JPEG", "n0/2.JPEG")})
    assert of_two.trust == Trust(checked=frozenset(of_two.files), untrusted=frozenset({"n0/1.JPEG"}))
    of_all = record.model_copy(update={"warnings": (few,)})
    assert of_all.trust.untrusted is None
    probed = record.probed
    assert probed is not None
    assert probed.ball == Ball("Linf", 0.5)
    assert probed.rows.to_dict("records") == [
        {"file": "n0/1.JPEG", "was_correct": True, "is_error": True, "l2": 0.75, "linf": 0.25}
    ]
    write_warnings(tmp_path / "mine.json", record)
    assert (tmp_path / "mine.json").read_text() == TEXT
    assert read_warnings(tmp_path / "mine.json") == record


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        (TEXT.replace('"images": 4,', ""), "images: field required"),
        (TEXT.replace('"images": 4,', '"images": -1,'), "images: expected greater than or equal to 0; found -1"),
        (TEXT.replace('"sign"', '"signs"'), r"warnings\.0"),
    ],
)
def test_another_file_is_refused_in_one_line(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(
        CleansetError, match=f"(?i)^.*mine.json(, line 1)?: {problem}.*expected the output of stage attack_warnings"
    ):
        read_warnings(tmp_path / "mine.json")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"mine\.json.*run dvc repro in studies/attacks"):
        read_warnings(tmp_path / "mine.json")
