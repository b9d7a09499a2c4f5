"""Recipes: the divergence on literal distributions, the ascent on networks whose best change is known."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import pairwise
from math import log
from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from cleanset.studies.attacks.base import Norm
from cleanset.studies.training.recipes import Adversarial, Augmix, AugmixMixing, Noise, jensen_shannon
from tests.properties import examples

pytestmark = pytest.mark.slow
SIDE = 12


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int = 4, least: float = 0.2, most: float = 0.8) -> Tensor:
    return least + (most - least) * torch.rand(count, 3, SIDE, SIDE, generator=generator(1))


def linear() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE**2, 2))


def convolutional() -> nn.Sequential:
    """A copy of `fitted`."""
    return deepcopy(fitted())


@cache
def fitted() -> nn.Sequential:
    """A network with batch norm, fitted a little to noise, so that its loss is not flat; not to be changed."""
    torch.manual_seed(3)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 3)
    )
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(40):
        optimizer.zero_grad()
        functional.cross_entropy(network(images(12)), torch.arange(12) % 3).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network


def ascent(norm: Norm = "Linf", eps: float = 4 / 255, steps: int = 8, **more: bool) -> Adversarial:
    return Adversarial(norm=norm, eps=eps, steps=steps, step=eps / 4, **more)


def test_jensen_shannon_of_three_distributions() -> None:
    """The mean of p log(p / m) over the three, where m is their mean: by hand."""
    one, two, three = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.5]])
    # m is (1/2, 1/2): log 2, log 2 and 0
    assert float(jensen_shannon([one, two, three])) == pytest.approx(2 / 3 * log(2), abs=1e-6)
    assert float(jensen_shannon([three, three, three])) == pytest.approx(0, abs=1e-7)
    corners = torch.eye(3, dtype=torch.float64)[:, None]
    assert float(jensen_shannon(list(corners))) == pytest.approx(log(3), abs=1e-6)
    # of a batch, the mean
    both = [torch.cat([one, three]), torch.cat([two, three]), torch.cat([three, three])]
    assert float(jensen_shannon(both)) == pytest.approx(1 / 3 * log(2), abs=1e-6)


@pytest.mark.parametrize("random_start", [True, False])
def test_linf_ascent_reaches_the_corner_of_a_linear_network(random_start: bool) -> None:
    network, batch, labels = linear(), images(), torch.tensor([0, 1, 0, 1])
    found = ascent(random_start=random_start).learnt_from(network, batch, labels, generator())
    weight = network[1].weight.detach().view(2, 3, SIDE, SIDE)  # type: ignore[index]
    assert torch.allclose(found, batch + 4 / 255 * (weight[1 - labels] - weight[labels]).sign(), atol=1e-6)


def test_l2_ascent_goes_along_the_weights_of_a_linear_network() -> None:
    network, batch, labels = linear(), images(), torch.tensor([0, 1, 0, 1])
    change = ascent("L2", 0.5, 60).learnt_from(network, batch, labels, generator()) - batch
    weight = network[1].weight.detach().view(2, 3, SIDE, SIDE)  # type: ignore[index]
    best = weight[1 - labels] - weight[labels]
    cosines = functional.cosine_similarity(change.flatten(1), best.flatten(1))
    assert cosines.min() > 0.99
    assert torch.allclose(change.flatten(1).norm(dim=1), torch.full((4,), 0.5), atol=0.01)


@examples(60)
@given(st.sampled_from(["Linf", "L2"]), st.floats(0.001, 2), st.integers(1, 4), st.integers(0, 5))
def test_what_is_found_stays_in_the_ball_and_in_0_to_1(norm: Norm, eps: float, steps: int, seed: int) -> None:
    batch = images(3, 0, 1)
    recipe = Adversarial(norm=norm, eps=eps, steps=steps, step=eps)
    found = recipe.learnt_from(convolutional(), batch, torch.tensor([0, 1, 2]), generator(seed))
    change = (found - batch).flatten(1)
    lengths = change.abs().amax(dim=1) if norm == "Linf" else change.norm(dim=1)
    # the difference of two float32 values between 0 and 1 is off by up to 6e-8
    assert lengths.max() <= eps + 6e-8 * (1 if norm == "Linf" else change.shape[1] ** 0.5)
    assert 0 <= float(found.min()) <= float(found.max()) <= 1


@pytest.mark.parametrize("norm", ["Linf", "L2"])
def test_more_steps_never_lower_the_mean_loss(norm: Norm) -> None:
    network, batch, labels = convolutional().eval(), images(12), torch.arange(12) % 3
    eps = 4 / 255 if norm == "Linf" else 0.5
    losses = [float(functional.cross_entropy(network(batch), labels).detach())]
    for steps in range(1, 13):
        recipe = ascent(norm, eps, steps, random_start=False)
        found = recipe.learnt_from(network, batch, labels, generator())
        losses.append(float(functional.cross_entropy(network(found), labels).detach()))
    assert losses[-1] > losses[0] + 0.05
    assert all(after >= before - 1e-6 for before, after in pairwise(losses))


@pytest.mark.parametrize("evaluation_mode", [True, False])
def test_batch_norm_while_the_loss_is_raised(evaluation_mode: bool) -> None:
    network = convolutional().train()
    seen = []
    network[1].register_forward_pre_hook(lambda module, _: seen.append(module.training))
    norm = cast(nn.BatchNorm2d, network[1])
    means = cast(Tensor, norm.running_mean)
    before = means.clone()
    ascent(steps=3, evaluation_mode=evaluation_mode).learnt_from(network, images(), torch.arange(4) % 3, generator())
    assert seen == [not evaluation_mode] * 3
    assert torch.equal(before, means) is evaluation_mode
    assert network.training


def test_the_best_iterate_is_that_of_the_largest_loss() -> None:
    """Steps as long as the ball is wide overshoot; each image has the largest loss of the original and all steps."""
    network, batch, labels = convolutional().eval(), images(12), torch.arange(12) % 3
    tries = [batch]
    for steps in range(1, 5):
        how = Adversarial(eps=0.3, steps=steps, step=0.3, random_start=False)
        tries.append(how.learnt_from(network, batch, labels, generator()))
    losses = torch.stack([functional.cross_entropy(network(each), labels, reduction="none") for each in tries])
    assert len(set(losses.argmax(dim=0).tolist())) > 1
    how = Adversarial(eps=0.3, steps=4, step=0.3, random_start=False, best_iterate=True)
    found = how.learnt_from(network, batch, labels, generator())
    assert torch.equal(found, torch.stack(tries)[losses.argmax(dim=0), torch.arange(12)])


def test_the_ascent_leaves_no_gradient_in_the_weights() -> None:
    network = convolutional()
    network.zero_grad()
    ascent().learnt_from(network, images(), torch.arange(4) % 3, generator())
    assert all(each.grad is None and each.requires_grad for each in network.parameters())


def test_k_steps_take_k_and_one_passes() -> None:
    network, passes = convolutional(), []
    network[0].register_forward_hook(lambda *_: passes.append("forward"))
    network[0].register_full_backward_hook(lambda *_: passes.append("backward"))
    learnt = ascent(steps=3).learn(network, images()[:, None], torch.arange(4) % 3, generator())
    learnt.loss.backward()  # type: ignore[no-untyped-call]
    assert passes == ["forward", "backward"] * 4


def noisy(batch: Tensor) -> Tensor:
    return Noise(largest=0.1).learnt_from(nn.Identity(), batch, torch.zeros(len(batch)), generator())


def test_noise_has_the_strengths_that_are_asked_for() -> None:
    batch = torch.full((400, 1, 3, 8, 8), 0.5)
    found = noisy(batch)
    strengths = (found - batch).flatten(1).std(dim=1)
    assert 0 < float(strengths.min()) < 0.01
    assert 0.09 < float(strengths.max()) < 0.12
    assert float(strengths.mean()) == pytest.approx(0.05, abs=0.005)
    assert torch.equal(found, noisy(batch))


def levels(count: int = 4) -> Tensor:
    return (255 * images(count, 0, 1)).to(torch.uint8)


def test_augmix_has_the_image_and_two_mixtures() -> None:
    torch.manual_seed(5)
    batch = levels()
    views = Augmix().views(batch)
    assert views.shape == (4, 3, 3, SIDE, SIDE)
    assert torch.equal(views[:, 0], batch.float())
    assert not torch.equal(views[:, 1], views[:, 2])
    assert AugmixMixing().views(batch).shape == (4, 1, 3, SIDE, SIDE)
    torch.manual_seed(5)
    assert torch.equal(Augmix().views(batch), views)


def test_augmix_loss_is_cross_entropy_and_consistency() -> None:
    network, labels = convolutional().eval(), torch.arange(4) % 3
    torch.manual_seed(5)
    views = Augmix().views(levels()) / 255
    logits = [network(views[:, place]) for place in range(3)]
    wanted = functional.cross_entropy(logits[0], labels) + 12 * jensen_shannon([each.softmax(1) for each in logits])
    learnt = Augmix().learn(network, views, labels, generator())
    assert float(learnt.loss.detach()) == pytest.approx(float(wanted.detach()), abs=1e-5)
    assert torch.allclose(learnt.logits, logits[0], atol=1e-5)
    mixing = AugmixMixing().learn(network, views[:, 1:2], labels, generator())
    assert float(mixing.loss.detach()) == pytest.approx(float(functional.cross_entropy(logits[1], labels).detach()))
