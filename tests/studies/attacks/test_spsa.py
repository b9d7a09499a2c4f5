"""SPSA against a second implementation, sample by sample, and on a linear network."""

import numpy as np
import pytest
import torch

from cleanset.studies.attacks.base import Subject, seed_for, to_pixels
from cleanset.studies.attacks.changes import RandomSpatial
from cleanset.studies.attacks.gradient_attacks import Spsa, random_signs
from tests.studies.attacks.networks import Linear, correct_subjects, on_cpu, random_linear, random_network, subject

pytestmark = pytest.mark.slow

EPS = 16 / 255


def spsa(steps: int = 10, samples: int = 8, stop: float = 1e9, **options: object) -> Spsa:
    return Spsa(EPS, steps, samples, 0.01, 0.01, stop, seed=3, **options)  # type: ignore[arg-type]


def plain(network: torch.nn.Module, one: Subject, steps: int, pairs: int) -> np.ndarray:
    """The search with the same random numbers, but every sum written out."""
    generator = torch.Generator().manual_seed(seed_for(3, "spsa", one))
    image = torch.from_numpy(one.pixels).double() / 255
    offset = torch.rand(image.shape, generator=generator, dtype=torch.float64)
    x = np.clip((image + (2 * offset - 1) * EPS).numpy(), 0, 1)
    low, high = np.clip(image.numpy() - EPS, 0, 1), np.clip(image.numpy() + EPS, 0, 1)
    mean, square = np.zeros_like(x), np.zeros_like(x)

    def margin(pixels: np.ndarray) -> float:
        logits = network(torch.from_numpy(pixels[None]))[0].tolist()
        own = logits.pop(one.class_index)
        return float(max(logits) - own)

    for step in range(1, steps + 1):
        signs = random_signs(pairs, image, generator).numpy()
        slope = np.zeros_like(x)
        for sign in signs:
            slope += (margin(x + 0.01 * sign) - margin(x - 0.01 * sign)) / 0.02 * sign
        slope /= pairs
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope * slope
        x = x + 0.01 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
        x = np.minimum(np.maximum(x, low), high)
    return np.asarray(x * 255)


def test_it_is_the_plain_one() -> None:
    network = random_network(seed=1).double().requires_grad_(False)
    for one in correct_subjects(network, 2, least=60, most=200):
        (result,) = spsa()(on_cpu(network), [one])
        levels = plain(network, one, 10, 4)
        assert np.abs(result.candidate - levels).max() <= 0.5 + 1e-6
        assert result.queries == 80


def test_the_best_change_of_a_linear_network() -> None:
    """With few pixels and many steps, every pixel ends at the edge of the ball, on the side of its weight."""
    weight = torch.zeros(2, 3, 8, 8, dtype=torch.float64)
    weight[1, 1, 2:6, 2:6] = torch.tensor([1.0, -1.0] * 8).view(4, 4)
    one = subject(1, 0, np.full((3, 8, 8), 100, np.uint8))
    (result,) = spsa(steps=60, samples=64)(on_cpu(Linear(weight.flatten(1)), 64), [one])
    change = result.candidate[1, 2:6, 2:6].astype(int) - 100
    assert change.tolist() == [[16, -16, 16, -16]] * 4


def test_it_stops_at_the_margin() -> None:
    """Class 1 leads by 2 from the start: one step of 64 samples is asked for."""
    network = Linear(torch.zeros(2, 432, dtype=torch.float64), torch.tensor([0.0, 2.0], dtype=torch.float64))
    assert [each.queries for each in spsa(200, 64, stop=1)(on_cpu(network), [subject(1, 0)])] == [64]
    assert [each.queries for each in spsa(5, 64, stop=3)(on_cpu(network), [subject(1, 0)])] == [320]


def test_a_result_does_not_depend_on_the_others() -> None:
    network = on_cpu(random_linear())
    first, second = subject(1, 0), subject(2, 1)
    alone = spsa()(network, [first])[0].candidate
    assert np.array_equal(alone, spsa()(network, [second, first])[1].candidate)
    renamed = spsa()(network, [subject(9, 0, first.pixels)])[0].candidate
    assert not np.array_equal(alone, renamed)


def test_it_begins_with_another_image() -> None:
    start = RandomSpatial(0.8, 18, 30, 3)
    one = subject(1, 0)
    (result,) = spsa(start=start.changed)(on_cpu(random_linear()), [one])
    center = start.changed(one)
    assert result.center is not None
    assert np.array_equal(result.center, center)
    assert 0 < np.abs(result.candidate.astype(int) - center).max() <= 16


def test_signs_are_even() -> None:
    generator = torch.Generator().manual_seed(0)
    signs = random_signs(50, torch.zeros(3, 12, 12), generator)
    assert sorted(set(signs.ravel().tolist())) == [-1, 1]
    assert abs(float(signs.mean())) < 0.03
    assert abs(float((signs[1:] * signs[:-1]).mean())) < 0.03


@pytest.mark.parametrize("seed", [0, 1])
def test_candidates_are_in_the_ball(seed: int) -> None:
    network = random_linear(seed=seed)
    attack = spsa(steps=30)
    for one in correct_subjects(network, 2):
        (result,) = attack(on_cpu(network), [one])
        assert attack.ball.contains(one.pixels, result.candidate)
        assert np.array_equal(to_pixels(result.candidate.astype(float), one.pixels, attack.ball), result.candidate)
