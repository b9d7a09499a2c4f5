"""A model as a function of pixels, and the networks around a network."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from cleanset.scoring.decoding import PixelBatch
from cleanset.scoring.devices import device_of
from cleanset.scoring.differentiable import (
    GroupedNetwork,
    PixelNetwork,
    Uninteresting,
    searching,
)
from cleanset.scoring.models import LoadedModel, Normalise
from cleanset.scoring.scorer import Scorer, arithmetic
from cleanset.studies.attacks.targets import Searching
from tests.studies.attacks.networks import CPU, SMALL, Linear, drawn, on_cpu, random_linear, random_network

pytestmark = pytest.mark.slow

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def normalized(classes: int) -> LoadedModel:
    network = nn.Sequential(Normalise(MEAN, STD), random_network(classes)).requires_grad_(False)
    return LoadedModel(network, SMALL, "0" * 64, classes)


def test_the_logits_are_those_of_the_scorer_bit_for_bit() -> None:
    images = np.stack([drawn(number) for number in range(4)])
    scorer = Scorer(normalized(1000), device_of(CPU), "float64", read_off=lambda logits, _: {"logits": logits})
    (scored,) = scorer([PixelBatch(["a", "b", "c", "d"], images)])
    network = PixelNetwork(normalized(1000).network, CPU, "float64")
    with arithmetic("float64"), torch.inference_mode():
        logits = network(torch.from_numpy(images).double() / 255)
    assert np.array_equal(logits.numpy(), scored.columns["logits"])


def test_the_gradient_is_the_difference_quotient() -> None:
    network = PixelNetwork(normalized(5).network, CPU, "float64")
    pixels = (torch.from_numpy(drawn(1)[None]).double() / 255).requires_grad_()
    with searching("float64"):
        (found,) = torch.autograd.grad(network(pixels)[0, 3], pixels)
    for place in [(0, 0, 2, 5), (0, 1, 11, 0), (0, 2, 7, 7)]:
        moved = torch.zeros_like(pixels)
        moved[place] = 1e-6
        with torch.no_grad():
            quotient = (network(pixels + moved)[0, 3] - network(pixels - moved)[0, 3]) / 2e-6
        assert float(found[place]) == pytest.approx(float(quotient), rel=1e-5, abs=1e-9)


def test_it_is_a_copy_without_gradients_of_weights() -> None:
    model = normalized(5)
    network = PixelNetwork(model.network, CPU, "float64")
    assert next(model.network.parameters()).dtype == torch.float32
    assert not any(weight.requires_grad for weight in network.parameters())
    assert not network.training


def test_queries_are_counted_and_split() -> None:
    seen: list[int] = []

    class Counting(Linear):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            seen.append(len(pixels))
            return super().forward(pixels)

    network = on_cpu(Counting(random_linear().weight.detach()), batch_size=4)
    pixels = torch.rand(10, 3, 12, 12, dtype=torch.float64)
    together = network(pixels)
    assert (network.queries, seen) == (10, [4, 4, 2])
    network(pixels.requires_grad_())
    assert (network.queries, seen[3:]) == (20, [10])
    assert torch.allclose(together[7], network(pixels[7:8])[0])


def test_attacks_ask_for_more_images_at_a_time_on_a_cpu() -> None:
    """Sixteen where scores take four; never more than somebody asked for."""
    seen: list[int] = []

    class Counting(Linear):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            seen.append(len(pixels))
            return super().forward(pixels)

    weight = random_linear().weight.detach()
    pixels = torch.rand(37, 3, 12, 12, dtype=torch.float64)
    for batch_size, expected in ((4, [16, 16, 5]), (3, [3] * 12 + [1])):
        network = Searching(CPU, "float64", batch_size).queried(Counting(weight))
        seen.clear()
        network(pixels)
        assert (seen, network.batch_size) == (expected, batch_size)


@pytest.mark.parametrize(("precision", "dtype"), [("float64", torch.float64), ("float32", torch.float32)])
def test_logits_have_the_dtype_of_the_pixels(precision: str, dtype: torch.dtype) -> None:
    network = PixelNetwork(random_linear(), CPU, precision)  # type: ignore[arg-type]
    assert network.dtype == dtype
    assert network(torch.rand(1, 3, 12, 12)).dtype == torch.float32


def test_switches_are_restored() -> None:
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic
    with searching("float64"):
        assert not torch.are_deterministic_algorithms_enabled()
        assert torch.backends.cudnn.deterministic
    assert (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic) == before


def test_groups_have_the_probability_of_their_members() -> None:
    logits = torch.tensor([[1.0, 2.0, -1.0, 0.5, 3.0]], dtype=torch.float64)
    network = nn.Module()
    network.forward = lambda _: logits
    found = torch.softmax(GroupedNetwork(network, [[0, 3], [4]])(torch.zeros(1)), dim=1)[0]
    shares = np.exp(logits.numpy()[0])
    assert float(found[0]) == pytest.approx((shares[0] + shares[3]) / (shares[0] + shares[3] + shares[4]))


class TestUninteresting:
    """Appendix E's defense."""

    weight = torch.tensor([[1.0] * 432, [0.0] * 432], dtype=torch.float64)
    edge = torch.full((60, 3, 12, 12), 0.5, dtype=torch.float64)

    def near(self) -> Uninteresting:
        """The mean of 432 pixels against .5: noise decides half of the answers to an even gray."""
        return Uninteresting(Linear(self.weight, torch.tensor([-216.0, 0.0], dtype=torch.float64)))

    def test_answers_are_one_hot_and_random(self) -> None:
        answers = self.near()(self.edge)
        assert answers.unique().tolist() == [0, 1]
        assert answers.sum(dim=1).unique().tolist() == [1]
        assert 10 < answers[:, 0].sum() < 50

    def test_the_noise_is_as_large_as_published(self) -> None:
        """The mean of 432 pixels has a deviation of .05 / 20.8; one deviation above the edge, 84 % are class 0."""
        above = self.near()(self.edge.repeat(50, 1, 1, 1) + 0.05 / 432**0.5)[:, 0].mean()
        assert float(above) == pytest.approx(0.841, abs=0.03)

    def test_a_copy_draws_from_the_beginning(self) -> None:
        network = self.near()
        first = network(self.edge)
        assert not torch.equal(network(self.edge), first)
        assert torch.equal(copy.deepcopy(network)(self.edge), first)
