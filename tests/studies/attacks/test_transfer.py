"""Images made on other models, Square, mean gradients of random models, and steps that gradients pass through."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.measure.user_model import CheckedNetwork
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.studies.attacks.base import Ball, Known, Search, Subject
from cleanset.studies.attacks.gradient_attacks import Pgd, Transfer, TransferAttack
from cleanset.studies.attacks.library_attacks import Square
from cleanset.studies.attacks.targets import ResizedPixels, Searching, source_networks, with_straight_through
from tests.studies.attacks.networks import CPU, classified, correct_subjects, loaded, on_cpu, random_linear, subject

pytestmark = pytest.mark.slow

EPS = 16 / 255
PGD = Pgd(Ball("Linf", EPS), 5, EPS / 4, True, 3, 4)
HONEST = random_linear(3, seed=1)


class Step(nn.Module):
    """Pixels in 16 levels."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.round(pixels * 15) / 15


class Defended(nn.Module):
    """A step before the honest network."""

    def __init__(self, step: nn.Module) -> None:
        super().__init__()
        self.steps = nn.Sequential(step)
        self.network = copy.deepcopy(HONEST)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.network(self.steps(pixels))
        return found


class Noise(nn.Module):
    """Strong noise, another one for each call."""

    def forward(self, pixels: Tensor) -> Tensor:
        return pixels + 0.5 * torch.randn_like(pixels)


def broken(network: nn.Module, attack: Search, group: list[Subject], searched: nn.Module | None = None) -> list[bool]:
    asked = on_cpu(network if searched is None else searched, 64)
    found = []
    for start in range(0, len(group), attack.group_size):
        part = group[start : start + attack.group_size]
        found += [
            classified(copy.deepcopy(network), result.candidate) != one.class_index
            for one, result in zip(part, attack(asked, part), strict=True)
        ]
    return found


def no_guess() -> Search:
    pytest.fail("asked for a guess")


def subjects(count: int = 8) -> list[Subject]:
    return correct_subjects(HONEST, count, least=60, most=200)


class TestTransfer:
    def test_it_breaks_what_hides_its_gradient(self) -> None:
        group = [one for one in subjects(12) if classified(Defended(Step()), one.pixels) == one.class_index]
        assert not any(broken(Defended(Step()), PGD, group))
        attack = Transfer(PGD, {"honest": on_cpu(HONEST)})
        assert broken(Defended(Step()), attack, group) == broken(HONEST, PGD, group)
        assert sum(broken(HONEST, PGD, group)) >= 5

    def test_the_best_of_all_sources_with_a_query_each(self) -> None:
        group, other = subjects(4), random_linear(3, seed=9)
        sources = {"other": on_cpu(other), "honest": on_cpu(HONEST)}
        network = on_cpu(HONEST)
        results = Transfer(PGD, sources)(network, group)
        assert [each.queries for each in results] == [2] * 4
        assert network.queries == 8
        best = Transfer(PGD, {"honest": on_cpu(HONEST)})(on_cpu(HONEST), group)
        assert all(np.array_equal(one.candidate, two.candidate) for one, two in zip(results, best, strict=True))

    def test_the_names_of_sources(self) -> None:
        known = Known(3, dict, no_guess, lambda: {"a": on_cpu(HONEST), "b": on_cpu(HONEST)})
        assert list(TransferAttack(sources=["b"]).search(known).sources) == ["b"]
        assert list(TransferAttack().search(known).sources) == ["a", "b"]
        with pytest.raises(CleansetError, match="transfer: no other model 'c'; expected some of a, b"):
            TransferAttack(sources=["c"]).search(known)
        with pytest.raises(CleansetError, match="transfer: no other model to make images on"):
            TransferAttack().search(Known(3, dict, no_guess))

    def test_a_source_of_another_size_and_with_groups(self) -> None:
        """Twice the side: every pixel of an even image stays; two logits, the log-sum-exp of the groups'."""
        network = ResizedPixels(24)
        even = torch.full((1, 3, 12, 12), 0.25, dtype=torch.float64, requires_grad=True)
        assert torch.allclose(network(even), torch.full((1, 3, 24, 24), 0.25, dtype=torch.float64))
        network(even).sum().backward()
        assert even.grad is not None
        assert float(even.grad.sum()) == pytest.approx(3 * 24 * 24)
        assert ResizedPixels(12)(even) is even
        how = Searching(CPU, "float64", 4)
        (source,) = source_networks({"one": loaded(HONEST)}, [[0, 2], [1]], how).values()
        logits = HONEST.double()(even.detach())[0].detach()
        expected = [float(torch.logsumexp(logits[[0, 2]], 0)), float(logits[1])]
        assert source(even)[0].tolist() == pytest.approx(expected)


def test_square_succeeds_in_its_ball_without_a_gradient() -> None:
    group, attack = subjects(), Square(Ball("Linf", EPS), 200, 3, 8)
    found = broken(Defended(Step()), attack, group)
    assert sum(found) >= 4
    results = attack(on_cpu(Defended(Step())), group)
    assert all(attack.ball.contains(one.pixels, each.candidate) for one, each in zip(group, results, strict=True))
    again = attack(on_cpu(Defended(Step())), group)
    assert all(np.array_equal(one.candidate, two.candidate) for one, two in zip(results, again, strict=True))
    assert 1 < results[0].queries <= 203


class TestDraws:
    """Expectation over transformation: the mean gradient of several answers."""

    def test_one_draw_is_plain_pgd(self) -> None:
        group = subjects(4)
        several = Pgd(Ball("Linf", EPS), 5, EPS / 4, True, 3, 4, draws=3)
        for one, two in zip(PGD(on_cpu(HONEST), group), several(on_cpu(HONEST), group), strict=True):
            assert np.array_equal(one.candidate, two.candidate)
            assert (one.queries, two.queries) == (6, 18)

    def test_queries_for_the_padding_count(self) -> None:
        """Ten images in a group of 16: 6 places, 8 answers to each of the 16."""
        network = on_cpu(HONEST)
        results = Pgd(Ball("Linf", EPS), 5, EPS / 4, True, 3, 16, draws=8)(network, subjects(10))
        assert network.queries == 768
        assert [each.queries for each in results] == [77] * 8 + [76] * 2

    def test_the_mean_gradient_leads_further_than_that_of_one_answer(self) -> None:
        """By the margin without noise, on a network that is not linear."""
        torch.manual_seed(0)
        network = nn.Sequential(Noise(), nn.Flatten(), nn.Linear(432, 32), nn.ReLU(), nn.Linear(32, 2)).double()
        clear = network[1:]
        group = [subject(number, classified(clear, one.pixels), one.pixels) for number, one in enumerate(subjects(16))]
        margins = {}
        for draws in (1, 32):
            attack = Pgd(Ball("Linf", EPS), 3, EPS / 2, False, 3, 16, draws=draws)
            torch.manual_seed(5)
            results = attack(on_cpu(network, 64), group)
            pixels = torch.from_numpy(np.stack([each.candidate for each in results]) / 255)
            logits = clear(pixels).detach().numpy()
            margins[draws] = np.mean(
                [row[1 - one.class_index] - row[one.class_index] for row, one in zip(logits, group, strict=True)]
            )
        assert margins[32] > margins[1] + 0.05


class TestStraightThrough:
    def test_pgd_breaks_what_it_could_not(self) -> None:
        defended = Defended(Step())
        group = [one for one in subjects(12) if classified(defended, one.pixels) == one.class_index]
        assert not any(broken(defended, PGD, group))
        through = with_straight_through(defended, ["steps.0"])
        assert sum(broken(defended, PGD, group, through)) >= 5
        pixels = torch.rand(2, 3, 12, 12, dtype=torch.float64)
        assert torch.allclose(through.double()(pixels), defended.double()(pixels))

    def test_the_network_itself_is_left_alone(self) -> None:
        defended = Defended(Step())
        with_straight_through(defended, ["steps"])
        assert isinstance(defended.steps[0], Step)
        assert with_straight_through(defended, []) is defended

    def test_a_step_of_a_model_of_ones_own(self) -> None:
        found = with_straight_through(CheckedNetwork("mine:make", Defended(Step())), ["steps.0"])
        pixels = torch.rand(1, 3, 12, 12, requires_grad=True)
        inner = found.network
        assert isinstance(inner, Defended)
        inner.steps(pixels).sum().backward()
        assert pixels.grad is not None
        assert torch.equal(pixels.grad, torch.ones_like(pixels))

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (
                "quantize",
                "straight through 'quantize': no such step of the network; expected some of steps, steps.0, netw",
            ),
            ("", "straight through ''"),
        ],
    )
    def test_a_name_that_is_none(self, name: str, message: str) -> None:
        with pytest.raises(CleansetError, match=message):
            with_straight_through(Defended(Step()), [name])

    def test_a_step_that_changes_the_shape(self) -> None:
        network = with_straight_through(Defended(nn.AvgPool2d(2)), ["steps.0"])
        with pytest.raises(CleansetError, match=r"steps\.0: it makes \(1, 3, 6, 6\) of \(1, 3, 12, 12\)"):
            PixelNetwork(network, CPU, "float64")(torch.rand(1, 3, 12, 12))
