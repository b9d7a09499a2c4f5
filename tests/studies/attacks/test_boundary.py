"""The boundary attack on a hyperplane, whose distance is known."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from cleanset.errors import CleansetError
from cleanset.studies.attacks.base import Other, Pixels, Subject
from cleanset.studies.attacks.changes import RandomSpatial
from cleanset.studies.attacks.library_attacks import Boundary, chosen_start
from tests.studies.attacks.networks import Linear, classified, drawn, on_cpu, random_linear, subject

pytestmark = pytest.mark.slow


def constant(pixels: Pixels) -> Callable[[], Pixels]:
    return lambda: pixels


def others_of(network: torch.nn.Module, numbers: range = range(100, 140)) -> dict[str, Other]:
    images = {f"n0/{number}.JPEG": drawn(number) for number in numbers}
    return {name: Other(classified(network, image), constant(image)) for name, image in images.items()}


NETWORK = random_linear(2, seed=1)
GROUP = [subject(number, classified(NETWORK, drawn(number))) for number in range(3)]


def boundary(eps: float = 10, steps: int = 300, **options: object) -> Boundary:
    return Boundary(eps, steps, 3, 3, others_of(NETWORK), **options)  # type: ignore[arg-type]


def shortest(one: Subject) -> float:
    """From an image to the hyperplane between the two classes."""
    weight, bias = NETWORK.weight.detach().numpy(), NETWORK.bias.detach().numpy()
    normal = weight[1 - one.class_index] - weight[one.class_index]
    gap = normal @ (one.pixels.ravel() / 255) + bias[1 - one.class_index] - bias[one.class_index]
    return float(abs(gap) / np.linalg.norm(normal))


def test_it_comes_near_the_hyperplane() -> None:
    results = boundary(steps=2000)(on_cpu(NETWORK), GROUP)
    for one, result in zip(GROUP, results, strict=True):
        found = np.linalg.norm((result.candidate.astype(float) - one.pixels).ravel()) / 255
        assert classified(NETWORK, result.candidate) != one.class_index
        start = chosen_start(3, one, others_of(NETWORK)).astype(float) - one.pixels
        assert shortest(one) <= found < np.linalg.norm(start.ravel()) / 255 / 3


def test_queries_are_those_of_each_image() -> None:
    """Two to see where it begins; then one for the start, one a step, one more at every tenth step."""
    assert [each.queries for each in boundary(steps=50)(on_cpu(NETWORK), GROUP)] == [2 + 1 + 50 + 5] * 3


def test_what_stays_outside_is_projected() -> None:
    attack = boundary(eps=0.05, steps=5)
    for one, result in zip(GROUP, attack(on_cpu(NETWORK), GROUP), strict=True):
        found = np.linalg.norm((result.candidate.astype(float) - one.pixels).ravel()) / 255
        assert 0.03 < found <= 0.05
        assert attack.ball.contains(one.pixels, result.candidate)


def test_an_image_that_is_misclassified_stays() -> None:
    one = subject(1, 1 - GROUP[1].class_index)
    (result,) = boundary()(on_cpu(NETWORK), [one])
    assert np.array_equal(result.candidate, one.pixels)
    assert result.queries == 2


def test_a_start_that_the_network_takes_for_the_class() -> None:
    wrong = {"n0/7.JPEG": Other(1 - GROUP[0].class_index, constant(GROUP[0].pixels))}
    (result,) = Boundary(10, 100, 3, 3, wrong)(on_cpu(NETWORK), GROUP[:1])
    assert np.array_equal(result.candidate, GROUP[0].pixels)


def test_a_group_is_repeated_and_the_generators_are_left_alone() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    expected = torch.rand(1), np.random.rand()
    torch.manual_seed(1)
    np.random.seed(1)
    first, second = (boundary(steps=20)(on_cpu(NETWORK), GROUP) for _ in range(2))
    assert (torch.rand(1), np.random.rand()) == expected
    assert all(np.array_equal(one.candidate, other.candidate) for one, other in zip(first, second, strict=True))
    assert first[0].seed == second[0].seed != boundary(steps=20)(on_cpu(NETWORK), GROUP[:2])[0].seed


def test_it_begins_with_another_image() -> None:
    start = RandomSpatial(0.9, 18, 30, 3)
    (result,) = boundary(steps=20, start=start.changed)(on_cpu(NETWORK), GROUP[:1])
    assert result.center is not None
    assert np.array_equal(result.center, start.changed(GROUP[0]))


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
        Boundary(10, 5, 3, 3, same)(on_cpu(NETWORK), GROUP[:1])


def test_random_answers_are_no_error() -> None:
    class Coin(Linear):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return torch.rand(len(pixels), 2, dtype=pixels.dtype)

    results = boundary(steps=5)(on_cpu(Coin(NETWORK.weight.detach())), GROUP * 4)
    assert len(results) == 12
