"""AutoAttack on linear networks, where whether it can succeed is known, and foolbox's boundary attack."""

from collections.abc import Callable

import numpy as np
import pyautoattack
import pytest
import torch
from torch import nn

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.studies.attacks.autoattack import STANDARD, AutoAttackAttack, Part, on_files
from cleanset.studies.attacks.base import Ball, Known, Other, Parameters, Subject, group_seed
from cleanset.studies.attacks.boundary import BoundaryAttack, chosen_start, keep_nearest
from cleanset.studies.attacks.changes import RandomSpatialAttack
from tests.studies.attacks.networks import (
    KNOWN,
    Linear,
    classified,
    correct_subjects,
    drawn,
    on_cpu,
    random_linear,
    subject,
)

pytestmark = pytest.mark.slow


def autoattack(eps: float = 4 / 255, attacks: tuple[Part, ...] = STANDARD, group: int = 3) -> AutoAttackAttack:
    return AutoAttackAttack(eps=eps, attacks=list(attacks), steps=6, square_queries=40, group=group)


def smallest_eps(network: Linear, one: Subject) -> float:
    """The radius, in Linf, at which another logit reaches that of the label, where 0..1 does not interfere."""
    weight, pixels = network.weight.detach().numpy(), one.pixels.ravel() / 255
    logits = weight @ pixels
    return min(
        float((logits[one.class_index] - logits[other]) / np.abs(weight[other] - weight[one.class_index]).sum())
        for other in range(len(weight))
        if other != one.class_index
    )


def test_it_succeeds_where_a_success_exists() -> None:
    network = random_linear(5, seed=2)
    group = correct_subjects(network, 6, least=30, most=220)
    radii = [smallest_eps(network, one) for one in group]
    eps = round(float(np.median(radii)) * 255) / 255
    attack = autoattack(eps, group=6)
    expected = [radius < eps - 0.5 / 255 for radius in radii]
    results = attack.results(on_cpu(network), group, KNOWN)
    found = [
        classified(network, result.candidate) != one.class_index for one, result in zip(group, results, strict=True)
    ]
    clear = [abs(radius - eps) > 1 / 255 for radius in radii]
    assert [each for each, is_clear in zip(found, clear, strict=True) if is_clear] == [
        each for each, is_clear in zip(expected, clear, strict=True) if is_clear
    ]
    assert {True, False} <= set(found)
    assert all(attack.ball.contains(one.pixels, each.candidate) for one, each in zip(group, results, strict=True))
    assert all(each.queries > 40 for each in results)


def test_its_remarks_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    network = nn.Sequential(random_linear(5), nn.Softmax(dim=1))
    results = autoattack(attacks=("apgd-ce",)).results(on_cpu(network), correct_subjects(network, 2), KNOWN)
    assert any("probability distribution" in notice for notice in results[0].notices)
    assert capfd.readouterr() == ("", "")
    linear = random_linear(5)
    (result,) = autoattack(attacks=("square",)).results(on_cpu(linear), correct_subjects(linear, 1), KNOWN)
    assert result.notices == ()


@pytest.mark.exhaustive
def test_the_original_program_breaks_the_same_images() -> None:
    """Its standard version compared with this one, on 20 images with the same seed: the same robust accuracy.

    Square asks less than in either, which takes most of the time and breaks no image that the gradients did not.
    Candidates of this one are of 8 bits; images within half a level of being broken or not are left out.
    """
    network = random_linear(12, seed=2)
    group = correct_subjects(network, 20, least=30, most=220)
    radii = np.array([smallest_eps(network, one) for one in group])
    eps = round(float(np.median(radii)) * 255) / 255
    attack = AutoAttackAttack(eps=eps, square_queries=500, group=20)
    found = [
        classified(network, result.candidate) != one.class_index
        for one, result in zip(group, attack.results(on_cpu(network, 20), group, KNOWN), strict=True)
    ]
    label = torch.tensor([one.class_index for one in group])
    program = pyautoattack.AutoAttack(
        network.float(), norm="Linf", eps=eps, version="standard", seed=group_seed(attack, group, KNOWN)
    )
    program.verbose, program.square.n_queries = False, 500
    images = torch.from_numpy(np.stack([one.pixels for one in group])).float() / 255
    broken, _ = program.run_standard_evaluation(images, label, batch_size=20)
    expected = (network(broken).argmax(dim=1) != label).tolist()
    clear = np.abs(radii - eps) > 0.5 / 255
    assert clear.sum() >= 12
    assert np.array(found)[clear].tolist() == np.array(expected)[clear].tolist()
    assert 6 <= sum(expected) <= 14


class Passes(Linear):
    """A linear network that counts its backward passes, by their images."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__(weight, bias)
        self.backward_images: list[int] = []

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        logits = super().forward(pixels)
        if logits.requires_grad:
            logits.register_hook(lambda gradient: self.backward_images.append(len(gradient)))  # type: ignore[no-untyped-call]
        return logits


@pytest.mark.parametrize(("eps", "further"), [(1.0, []), (1 / 255, [2] * 6)])
def test_gradients_for_files_are_asked_of_images_that_withstand_only(eps: float, further: list[int]) -> None:
    """The passes of the library's own program: none in a large ball, six for both images in a small one."""
    bias = torch.zeros(12, dtype=torch.float64)
    bias[0] = 3
    network = Passes(random_linear(12).weight.detach(), bias)
    group = correct_subjects(network, 2, least=100, most=150)
    on_device = on_cpu(network)
    passes = on_device.get_submodule("_network")
    assert isinstance(passes, Passes)
    program = pyautoattack.AutoAttack(on_device, attacks=["apgd-ce"], version="custom", eps=eps, norm="Linf", seed=0)
    program.verbose, program.apgd.n_restarts, program.apgd.n_iter = False, 1, 6
    images = torch.from_numpy(np.stack([one.pixels for one in group])).float() / 255
    program.run_standard_evaluation(images, torch.tensor([one.class_index for one in group]))
    expected = [*passes.backward_images, *further]
    passes.backward_images.clear()
    results = autoattack(eps, ("apgd-ce",), group=2).results(on_device, group, KNOWN)
    is_broken = [
        classified(network, each.candidate) != one.class_index for one, each in zip(group, results, strict=True)
    ]
    assert is_broken == [not further] * 2
    assert passes.backward_images == expected
    assert len(expected) > len(further)


def test_a_file_belongs_to_the_image_that_was_asked_about() -> None:
    """Two equal images: the first is broken at once, and then the library asks about the second alone."""
    weight = torch.zeros(2, 432, dtype=torch.float64)
    weight[1, 0] = 1
    network = on_cpu(Linear(weight, torch.tensor([100.5 / 255, 0.0], dtype=torch.float64)))
    images = torch.full((2, 3, 12, 12), 100 / 255, dtype=torch.float64)
    asked = on_files(network, images, torch.tensor([0, 0]), Ball("Linf", 2 / 255))
    pixels = images.clone()
    pixels[0, 0, 0, 0] = 101 / 255
    asked(pixels)
    pixels[1, 0, 0, 0] = 109 / 255
    asked(pixels[1:])
    # outside the ball the nearest file in it is asked about
    assert (asked.files[:, 0, 0, 0] * 255).round().tolist() == [101, 102]
    assert [round(255 * each, 6) for each in asked.margins.tolist()] == [0.5, 1.5]


def constant(pixels: Pixels) -> Callable[[], Pixels]:
    return lambda: pixels


def others_of(network: torch.nn.Module, numbers: range = range(100, 140)) -> dict[str, Other]:
    images = {f"n0/{number}.JPEG": drawn(number) for number in numbers}
    return {name: Other(classified(network, image), constant(image)) for name, image in images.items()}


NETWORK = random_linear(2, seed=1)
GROUP = [subject(number, classified(NETWORK, drawn(number))) for number in range(3)]


OTHERS = Known(3, lambda: others_of(NETWORK))


def boundary(eps: float = 0.1, queries: int = 330, after: RandomSpatialAttack | None = None) -> BoundaryAttack:
    return BoundaryAttack(eps=eps, queries=queries, group=3, after=after)


def shortest(one: Subject) -> float:
    """From an image to the hyperplane between the two classes."""
    weight, bias = NETWORK.weight.detach().numpy(), NETWORK.bias.detach().numpy()
    normal = weight[1 - one.class_index] - weight[one.class_index]
    gap = normal @ (one.pixels.ravel() / 255) + bias[1 - one.class_index] - bias[one.class_index]
    return float(abs(gap) / np.linalg.norm(normal))


def length(one: Subject, pixels: Pixels) -> float:
    return float(np.linalg.norm((pixels.astype(float) - one.pixels).ravel())) / 255


@pytest.mark.long
def test_it_comes_near_the_hyperplane_and_ends_with_the_first_candidate_in_the_ball() -> None:
    starts = [length(one, chosen_start(3, one, others_of(NETWORK))) for one in GROUP]
    eps = min(starts) / 3
    assert max(map(shortest, GROUP)) < eps / 2
    network = on_cpu(NETWORK)
    results = boundary(eps, 2000).results(network, GROUP, OTHERS)
    for one, result in zip(GROUP, results, strict=True):
        assert classified(NETWORK, result.candidate) != one.class_index
        # a step towards the image is a hundredth of the way at first
        assert 0.9 * eps < length(one, result.candidate) <= eps
    assert len({each.queries for each in results}) == 3
    assert 50 < min(each.queries for each in results) <= max(each.queries for each in results) < 2000
    # one that is done asks nothing more
    assert network.queries == sum(each.queries for each in results)


@pytest.mark.long
def test_the_budget_is_that_of_each_image() -> None:
    """Two to see where it begins; then one for the start, one a step, one more at every tenth step."""
    network = on_cpu(NETWORK)
    results = boundary(queries=58).results(network, GROUP, OTHERS)
    assert [each.queries for each in results] == [58] * 3
    assert network.queries == 3 * 58
    nearer = boundary(queries=1000).results(on_cpu(NETWORK), GROUP, OTHERS)
    assert [each.queries for each in nearer] == [1000] * 3


def test_a_candidate_is_the_nearest_that_was_misclassified() -> None:
    """The network takes, among the start and two places towards it, the nearest for the image's class."""
    (one, *_), network = GROUP, on_cpu(NETWORK)
    images, ball = torch.from_numpy(one.pixels[None] / 255), Ball("L2", 0.01)
    asked = keep_nearest(network, images, torch.tensor([one.class_index]), ball, 5)
    start = torch.from_numpy(chosen_start(3, one, others_of(NETWORK))[None] / 255)
    before, after = (float(logits[0, 1 - one.class_index] - logits[0, one.class_index]) for logits in
                     (NETWORK.double()(images).detach(), NETWORK.double()(start).detach()))  # fmt: skip
    reached = -before / (after - before)
    shares = (1, (1 + reached) / 2, reached / 2)
    for share in shares:
        asked(images + share * (start - images))
    assert asked.queries.tolist() == [5]
    expected = np.rint(one.pixels + shares[1] * (start[0].numpy() * 255 - one.pixels))
    assert np.array_equal(np.rint(asked.found[0].numpy() * 255), expected)


def test_the_search_is_not_in_8_bits_but_what_ends_it_is() -> None:
    """A value of 100.4 is class 1 and 100 class 0: only 101 ends the search, after a query for it as stored."""
    weight = torch.zeros(2, 432, dtype=torch.float64)
    weight[1, 0] = 1
    network = on_cpu(Linear(weight, torch.tensor([100.2 / 255, 0.0], dtype=torch.float64)))
    images = torch.full((1, 3, 12, 12), 100 / 255, dtype=torch.float64)
    for value, queries, is_done in ((101.3, 4, True), (100.4, 4, False)):
        asked = keep_nearest(network, images, torch.tensor([0]), Ball("L2", 1.0), 50)
        pixels = images.clone()
        pixels[0, 0, 0, 0] = value / 255
        asked(pixels)
        assert (asked.queries.tolist(), asked.is_done.tolist()) == ([queries], [is_done])
        expected = 101 if is_done else value
        assert float(asked.found[0, 0, 0, 0]) * 255 == pytest.approx(expected)


def test_what_stays_outside_is_projected() -> None:
    attack = boundary(eps=0.05, queries=8)
    for one, result in zip(GROUP, attack.results(on_cpu(NETWORK), GROUP, OTHERS), strict=True):
        found = np.linalg.norm((result.candidate.astype(float) - one.pixels).ravel()) / 255
        assert 0.03 < found <= 0.05
        assert attack.ball.contains(one.pixels, result.candidate)


def test_an_image_that_is_misclassified_stays() -> None:
    one = subject(1, 1 - GROUP[1].class_index)
    (result,) = boundary().results(on_cpu(NETWORK), [one], OTHERS)
    assert np.array_equal(result.candidate, one.pixels)
    assert result.queries == 2


def test_a_start_that_the_network_takes_for_the_class() -> None:
    wrong = {"n0/7.JPEG": Other(1 - GROUP[0].class_index, constant(GROUP[0].pixels))}
    (result,) = boundary().results(on_cpu(NETWORK), GROUP[:1], Known(3, lambda: wrong))
    assert np.array_equal(result.candidate, GROUP[0].pixels)


@pytest.mark.parametrize("attack", [boundary(queries=25), autoattack(40 / 255, ("square",))])
def test_a_group_is_repeated_and_the_generators_are_left_alone(attack: Parameters) -> None:
    drawn_numbers = []
    for asked in (False, True):
        torch.manual_seed(1)
        np.random.seed(1)
        if asked:
            first, second = (attack.results(on_cpu(NETWORK), GROUP, OTHERS) for _ in range(2))
        drawn_numbers.append((float(torch.rand(1)), np.random.rand()))
    assert drawn_numbers[0] == drawn_numbers[1]
    assert all(np.array_equal(one.candidate, other.candidate) for one, other in zip(first, second, strict=True))
    assert not any(np.array_equal(one.pixels, each.candidate) for one, each in zip(GROUP, first, strict=True))
    assert first[0].seed == second[0].seed != attack.results(on_cpu(NETWORK), GROUP[:2], OTHERS)[0].seed


def test_it_begins_with_another_image() -> None:
    start = RandomSpatialAttack(scale=0.9)
    (result,) = boundary(queries=25, after=start).results(on_cpu(NETWORK), GROUP[:1], OTHERS)
    assert result.center is not None
    assert np.array_equal(result.center, start.changed(GROUP[0], 3))


def test_the_start_does_not_depend_on_those_that_are_not_chosen() -> None:
    one, others = GROUP[0], others_of(NETWORK)
    chosen = chosen_start(3, one, others)
    (name,) = [name for name, other in others.items() if np.array_equal(other.pixels(), chosen)]
    assert others[name].class_index != one.class_index
    few = {each: others[each] for each in sorted(others, reverse=True) if each == name or each < "n0/115"}
    assert np.array_equal(chosen_start(3, one, few), chosen)


def test_no_other_class() -> None:
    same = {name: other for name, other in others_of(NETWORK).items() if other.class_index == GROUP[0].class_index}
    with pytest.raises(CleansetError, match=r"n0/0\.JPEG: no image of another class that the model classifies correct"):
        boundary().results(on_cpu(NETWORK), GROUP[:1], Known(3, lambda: same))


def test_random_answers_are_no_error() -> None:
    class Coin(Linear):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return torch.rand(len(pixels), 2, dtype=pixels.dtype)

    results = boundary(queries=8).results(on_cpu(Coin(NETWORK.weight.detach())), GROUP * 4, OTHERS)
    assert len(results) == 12
