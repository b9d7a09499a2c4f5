"""PGD and transfer on networks whose best change is known; SPSA against a second implementation, sample by sample.

Mean gradients of random models, Square, and steps that gradients pass through.
"""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.scoring.checked_network import CheckedNetwork
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.studies.attacks.autoattack import SquareAttack
from cleanset.studies.attacks.base import Known, Norm, Parameters, Subject, seed_of, to_pixels
from cleanset.studies.attacks.changes import RandomSpatialAttack
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack, TransferAttack, random_signs
from cleanset.studies.attacks.straight_through import StraightThrough, with_straight_through
from cleanset.studies.attacks.targets import ResizedPixels, Searching, source_network
from tests.studies.attacks.networks import (
    CPU,
    KNOWN,
    Linear,
    classified,
    correct_subjects,
    loaded,
    on_cpu,
    random_linear,
    random_network,
    subject,
)

pytestmark = pytest.mark.slow

EPS = 16 / 255


def pgd(norm: Norm = "Linf", eps: float = 4 / 255, steps: int = 10, random_start: bool = True) -> PgdAttack:
    return PgdAttack(norm=norm, eps=eps, steps=steps, random_start=random_start, group=4)


def best_direction(network: torch.nn.Module, one: Subject) -> np.ndarray:
    """For two classes: the weights of the other minus those of the label."""
    weight = network.weight.detach().numpy().reshape(2, 3, 12, 12)  # type: ignore[operator]
    return np.asarray(weight[1 - one.class_index] - weight[one.class_index])


def test_linf_goes_to_the_corner() -> None:
    """In at most eight steps, then ten that change nothing, and six files; twice where an image withstands the first
    start, and with the ten steps asked for where it does not.
    """
    network = random_linear(2)
    group = correct_subjects(network, 3, least=10, most=240)
    for one, result in zip(group, pgd().results(on_cpu(network), group, KNOWN), strict=True):
        expected = one.pixels + 4 * np.sign(best_direction(network, one))
        assert np.array_equal(result.candidate, expected.astype(np.uint8))
        is_broken = classified(network, result.candidate) != one.class_index
        assert (result.queries, result.is_converged) == (17 if is_broken else 50, True)


def test_linf_stays_in_0_to_255() -> None:
    network = random_linear(2)
    one = subject(1, 0, np.full((3, 12, 12), 254, np.uint8))
    (result,) = pgd().results(on_cpu(network), [one], KNOWN)
    assert set(np.unique(result.candidate)) == {250, 255}


@pytest.mark.parametrize("random_start", [True, False])
def test_l2_goes_along_the_weights(random_start: bool) -> None:
    network = random_linear(2)
    group = correct_subjects(network, 2, least=60, most=200)
    attack = pgd("L2", 0.5, 40, random_start=random_start)
    for one, result in zip(group, attack.results(on_cpu(network), group, KNOWN), strict=True):
        change = (result.candidate.astype(float) - one.pixels).ravel()
        best = best_direction(network, one).ravel()
        cosine = change @ best / np.linalg.norm(change) / np.linalg.norm(best)
        assert cosine > 0.99
        assert np.linalg.norm(change) / 255 == pytest.approx(0.5, abs=0.01)
        assert attack.ball.contains(one.pixels, result.candidate)


def test_a_result_does_not_depend_on_the_others() -> None:
    """Nor on its place: a group of one is filled up."""
    network = on_cpu(random_network().double())
    group = [subject(number, number % 3) for number in range(4)]
    attack = pgd(steps=2)
    together = attack.results(network, group, KNOWN)
    for one, result in zip(group, together, strict=True):
        alone = attack.results(network, [one], KNOWN)[0]
        assert np.array_equal(alone.candidate, result.candidate)
        assert alone.seed == result.seed
    renamed = attack.results(network, [subject(9, 0, group[0].pixels)], KNOWN)[0]
    assert together[0].seed != renamed.seed


def test_the_place_with_the_largest_margin_is_kept() -> None:
    """A step of the whole ball from the corner to the corner: later places are no better than the first."""
    network = random_linear(2)
    (one,) = correct_subjects(network, 1, least=10, most=240)
    overshooting = PgdAttack(steps=3, step=8 / 255, random_start=False, group=1)
    (result,) = overshooting.results(on_cpu(network), [one], KNOWN)
    assert np.array_equal(result.candidate, (one.pixels + 4 * np.sign(best_direction(network, one))).astype(np.uint8))


class Recording(nn.Module):
    """A network that keeps what it is asked about."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.asked: list[Tensor] = []

    def forward(self, pixels: Tensor) -> Tensor:
        self.asked.append(pixels.detach().clone())
        found: Tensor = self.network(pixels)
        return found


def first_places(attack: PgdAttack, known: Known, one: Subject) -> list[Tensor]:
    """The beginning of each start of an attack on an image that withstands it, in steps of two queries."""
    recording = Recording(random_linear(2))
    asked = PixelNetwork(nn.Identity(), CPU, "float64")
    asked._network = recording
    attack.results(asked, [one], known)
    return recording.asked[:: len(recording.asked) // len(attack.losses) // attack.restarts]


def test_starts_and_attacks_of_other_names_begin_elsewhere() -> None:
    (one,) = correct_subjects(random_linear(2), 1, least=10, most=240)
    attack = PgdAttack(eps=1 / 255, steps=1, max_steps=1, restarts=2, group=1)
    places = [place for name in ("pgd", "pgd_again") for place in first_places(attack, Known(3, name=name), one)]
    assert len(places) == 8
    assert all(not torch.equal(a, b) for number, a in enumerate(places) for b in places[:number])
    assert all(float((place - torch.from_numpy(one.pixels) / 255).abs().max()) <= 1 / 255 for place in places)
    again = first_places(attack, Known(3), one)
    # by default the name is the kind
    assert all(torch.equal(a, b) for a, b in zip(again, places[:4], strict=True))


class Curved(nn.Module):
    """Two classes: the second's logit rises with the mean pixel up to .55 only, times a scale."""

    def __init__(self, scale: float, top: float) -> None:
        super().__init__()
        self.scale = scale
        self.top = top

    def forward(self, pixels: Tensor) -> Tensor:
        mean = pixels.flatten(1).mean(dim=1)
        return self.scale * torch.stack([torch.full_like(mean, self.top), mean.clamp(max=0.55)], dim=1)


GRAY = subject(1, 0, np.full((3, 12, 12), 128, np.uint8))


def test_more_steps_than_asked_until_nothing_changes() -> None:
    """.502 to .53 in steps of .001: two steps do not get there, and the 28th or 29th does."""
    attack = PgdAttack(eps=16 / 255, step=0.001, steps=3, random_start=False, losses=["margin"], group=1)
    few = attack.model_copy(update={"max_steps": 3})
    (asked,) = few.results(on_cpu(Curved(1, 0.53)), [GRAY], KNOWN)
    (result,) = attack.results(on_cpu(Curved(1, 0.53)), [GRAY], KNOWN)
    assert (asked.is_converged, asked.broken_at) == (True, 3)  # by a file that fills the ball
    assert (result.is_converged, result.broken_at) == (True, 29)


def test_a_search_that_still_rises_has_not_converged() -> None:
    attack = PgdAttack(eps=16 / 255, step=0.001, steps=3, random_start=False, losses=["margin"], group=1)
    for most, is_converged, queries in ((12, False, 13 + 4), (100, True, 59 + 4)):
        (result,) = attack.model_copy(update={"max_steps": most}).results(on_cpu(Curved(1, 0.9)), [GRAY], KNOWN)
        assert (result.is_converged, result.broken_at, result.queries) == (is_converged, None, queries)


def spsa(steps: int = 10, samples: int = 8, stop: float = 1e9, after: RandomSpatialAttack | None = None) -> SpsaAttack:
    return SpsaAttack(steps=steps, samples=samples, stop_margin=stop, after=after)


def plain(network: torch.nn.Module, one: Subject, steps: int, pairs: int) -> np.ndarray:
    """The search with the same random numbers, but every sum written out."""
    generator = torch.Generator().manual_seed(seed_of(3, "attack", "spsa", one.image_id))
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
        (result,) = spsa().results(on_cpu(network), [one], KNOWN)
        levels = plain(network, one, 10, 4)
        assert np.abs(result.candidate - levels).max() <= 0.5 + 1e-6
        assert result.queries == 90


def test_the_best_change_of_a_linear_network() -> None:
    """With few pixels and many steps, every pixel ends at the edge of the ball, on the side of its weight."""
    weight = torch.zeros(2, 3, 8, 8, dtype=torch.float64)
    weight[1, 1, 2:6, 2:6] = torch.tensor([1.0, -1.0] * 8).view(4, 4)
    one = subject(1, 0, np.full((3, 8, 8), 100, np.uint8))
    (result,) = spsa(steps=60, samples=64).results(on_cpu(Linear(weight.flatten(1)), 64), [one], KNOWN)
    change = result.candidate[1, 2:6, 2:6].astype(int) - 100
    assert change.tolist() == [[16, -16, 16, -16]] * 4


def test_it_stops_at_the_margin() -> None:
    """Class 1 leads by 2 from the start: one step of 64 samples and the place itself is asked for, and taken."""
    network = Linear(torch.zeros(2, 432, dtype=torch.float64), torch.tensor([0.0, 2.0], dtype=torch.float64))
    for attack, queries in ((spsa(200, 64, stop=1), 65), (spsa(5, 64, stop=2), 325)):
        assert [each.queries for each in attack.results(on_cpu(network), [subject(1, 0)], KNOWN)] == [queries]


def test_the_step_in_which_the_margin_is_reached_is_taken() -> None:
    """As in cleverhans: an image that is misclassified at once is moved by one step."""
    network = random_network(seed=1).double().requires_grad_(False)
    (one,) = correct_subjects(network, 1, least=60, most=200)
    other = subject(1, (one.class_index + 1) % 3, one.pixels)
    stopped, same, further = (
        spsa(steps, stop=stop).results(on_cpu(network), [other], KNOWN)[0]
        for steps, stop in ((10, 0.0), (1, 1e9), (2, 1e9))
    )
    assert (stopped.queries, further.queries) == (9, 18)
    assert np.array_equal(stopped.candidate, same.candidate)
    assert not np.array_equal(stopped.candidate, further.candidate)


def test_a_result_of_spsa_does_not_depend_on_the_others() -> None:
    network = on_cpu(random_linear())
    first, second = subject(1, 0), subject(2, 1)
    alone = spsa().results(network, [first], KNOWN)[0].candidate
    assert np.array_equal(alone, spsa().results(network, [second, first], KNOWN)[1].candidate)
    renamed = spsa().results(network, [subject(9, 0, first.pixels)], KNOWN)[0].candidate
    assert not np.array_equal(alone, renamed)


def test_it_begins_with_another_image() -> None:
    start = RandomSpatialAttack(scale=0.8)
    one = subject(1, 0)
    (result,) = spsa(after=start).results(on_cpu(random_linear()), [one], KNOWN)
    center = start.changed(one, 3)
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
        (result,) = attack.results(on_cpu(network), [one], KNOWN)
        assert attack.ball.contains(one.pixels, result.candidate)
        assert np.array_equal(to_pixels(result.candidate.astype(float), one.pixels, attack.ball), result.candidate)


PGD = PgdAttack(eps=EPS, steps=5, max_steps=5, losses=["cross_entropy"], group=4)
TRANSFER = TransferAttack(eps=EPS, steps=5, group=4)
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


def known_sources(**networks: nn.Module) -> Known:
    return Known(3, sources=lambda: {name: on_cpu(each) for name, each in networks.items()})


def broken(
    network: nn.Module,
    attack: Parameters,
    group: list[Subject],
    searched: nn.Module | None = None,
    known: Known = KNOWN,
) -> list[bool]:
    asked = on_cpu(network if searched is None else searched, 64)
    found = []
    for start in range(0, len(group), attack.group_size):
        part = group[start : start + attack.group_size]
        found += [
            classified(copy.deepcopy(network), result.candidate) != one.class_index
            for one, result in zip(part, attack.results(asked, part, known), strict=True)
        ]
    return found


def subjects(count: int = 8) -> list[Subject]:
    return correct_subjects(HONEST, count, least=60, most=200)


class TestTransfer:
    def test_it_breaks_what_hides_its_gradient(self) -> None:
        group = [one for one in subjects(12) if classified(Defended(Step()), one.pixels) == one.class_index]
        assert not any(broken(Defended(Step()), PGD, group))
        known = known_sources(honest=HONEST)
        assert broken(Defended(Step()), TRANSFER, group, known=known) == broken(HONEST, PGD, group)
        assert sum(broken(HONEST, PGD, group)) >= 5

    def test_the_best_of_all_sources_with_a_query_each(self) -> None:
        group, other = subjects(4), random_linear(3, seed=9)
        network = on_cpu(HONEST)
        results = TRANSFER.results(network, group, known_sources(other=other, honest=HONEST))
        assert [each.queries for each in results] == [2] * 4
        assert network.queries == 8
        best = TRANSFER.results(on_cpu(HONEST), group, known_sources(honest=HONEST))
        assert all(np.array_equal(one.candidate, two.candidate) for one, two in zip(results, best, strict=True))

    def test_the_names_of_sources(self) -> None:
        known = known_sources(a=HONEST, b=HONEST)
        assert list(TransferAttack(sources=["b"]).prepare(known)) == ["b"]
        assert list(TransferAttack().prepare(known)) == ["a", "b"]
        with pytest.raises(CleansetError, match="transfer: no other model 'c'; expected some of a, b"):
            TransferAttack(sources=["c"]).prepare(known)
        with pytest.raises(CleansetError, match="transfer: no source model"):
            TransferAttack().prepare(KNOWN)

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
        source = source_network(loaded(HONEST), [[0, 2], [1]], how)
        logits = HONEST.double()(even.detach())[0].detach()
        expected = [float(torch.logsumexp(logits[[0, 2]], 0)), float(logits[1])]
        assert source(even)[0].tolist() == pytest.approx(expected)


def test_square_succeeds_in_its_ball_without_a_gradient() -> None:
    group, attack = subjects(), SquareAttack(eps=EPS, queries=200, group=8)
    found = broken(Defended(Step()), attack, group)
    assert sum(found) >= 4
    results = attack.results(on_cpu(Defended(Step())), group, KNOWN)
    assert all(attack.ball.contains(one.pixels, each.candidate) for one, each in zip(group, results, strict=True))
    again = attack.results(on_cpu(Defended(Step())), group, KNOWN)
    assert all(np.array_equal(one.candidate, two.candidate) for one, two in zip(results, again, strict=True))
    assert 1 < results[0].queries <= 203


class TestDraws:
    """Expectation over transformation: the mean gradient of several answers."""

    def test_one_draw_is_plain_pgd(self) -> None:
        group = subjects(4)
        several = PGD.model_copy(update={"draws": 3})
        for one, two in zip(*(each.results(on_cpu(HONEST), group, KNOWN) for each in (PGD, several)), strict=True):
            assert np.array_equal(one.candidate, two.candidate)
            assert (one.queries, two.queries) == (12, 36)

    def test_queries_for_the_padding_count(self) -> None:
        """Ten images in a group of 16: 6 places and 6 files, 8 answers to each of the 16."""
        network = on_cpu(HONEST)
        results = PgdAttack(eps=EPS, steps=5, draws=8).results(network, subjects(10), KNOWN)
        assert network.queries == 1536
        assert [each.queries for each in results] == [154] * 6 + [153] * 4

    def test_the_mean_gradient_leads_further_than_that_of_one_answer(self) -> None:
        """By the margin without noise, on a network that is not linear."""
        torch.manual_seed(0)
        network = nn.Sequential(Noise(), nn.Flatten(), nn.Linear(432, 32), nn.ReLU(), nn.Linear(32, 2)).double()
        clear = network[1:]
        group = [subject(number, classified(clear, one.pixels), one.pixels) for number, one in enumerate(subjects(16))]
        margins = {}
        for draws in (1, 32):
            attack = PgdAttack(
                eps=EPS, steps=1, max_steps=1, step=EPS, random_start=False, losses=["cross_entropy"], draws=draws
            )
            torch.manual_seed(5)
            results = attack.results(on_cpu(network, 64), group, KNOWN)
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
        found = with_straight_through(CheckedNetwork("mine:make", Defended(Step()), 1000), ["steps.0"])
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

    def test_a_name_in_another(self) -> None:
        with pytest.raises(
            CleansetError, match=r"through steps\.0: it is inside steps, which is also listed; expected one of"
        ):
            with_straight_through(Defended(Step()), ["steps", "steps.0"])

    def test_a_name_given_twice(self) -> None:
        through = with_straight_through(Defended(Step()), ["steps.0", "steps.0"])
        assert isinstance(through, Defended)
        step = through.steps[0]
        assert isinstance(step, StraightThrough)
        assert isinstance(step.step, Step)

    @pytest.mark.parametrize("is_ones_own", [False, True])
    def test_a_step_that_changes_the_shape(self, *, is_ones_own: bool) -> None:
        defended: nn.Module = Defended(nn.AvgPool2d(2))
        if is_ones_own:
            defended = CheckedNetwork("mine:make", defended, 1000)
        network = with_straight_through(defended, ["steps.0"])
        with pytest.raises(CleansetError, match=r"^straight through steps\.0: it makes \(1, 3, 6, 6\) of \(1, 3, 12"):
            PixelNetwork(network, CPU, "float64")(torch.rand(1, 3, 12, 12))
