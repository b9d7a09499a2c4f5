"""Spatial attacks against a plain implementation, loop by loop; the worst corruption; known mistakes."""

from itertools import product
from math import cos, floor, pi, sin

import imagecorruptions
import numpy as np
import pandas as pd
import pytest
import torch

from cleanset.images.preprocessing import Pixels
from cleanset.statistics.seeds import image_seed
from cleanset.studies.attacks import changes
from cleanset.studies.attacks.base import Known, seed_of
from cleanset.studies.attacks.changes import (
    IN_PUBLISHED_KIT,
    CommonCorruptionsAttack,
    GuessAttack,
    NoAttack,
    RandomSpatialAttack,
    SpatialGridAttack,
    most_confident_mistakes,
    rotated_and_moved,
    scaled_on_black,
)
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from tests.studies.attacks.networks import (
    KNOWN,
    Linear,
    correct_subjects,
    drawn,
    on_cpu,
    random_linear,
    random_network,
    subject,
)

pytestmark = pytest.mark.slow

OFFSETS, ANGLES = (-18.0, 0.0, 9.0), (-30.0, 0.0, 14.0, 30.0)
GRID = SpatialGridAttack(translations=list(OFFSETS), angles=list(ANGLES))


def plain_moved(image: np.ndarray, dx: float, dy: float, angle: float) -> np.ndarray:
    """Each pixel fetched from where it comes from: back by the translation, then turned back about the center."""
    channels, size, _ = image.shape
    middle, turn = (size - 1) / 2, angle * pi / 180
    result = np.zeros(image.shape)
    for row, column in product(range(size), range(size)):
        x, y = column - middle - dx, row - middle - dy
        # counterclockwise as seen, with y downwards
        from_x, from_y = x * cos(turn) - y * sin(turn) + middle, x * sin(turn) + y * cos(turn) + middle
        left, top = floor(from_x), floor(from_y)
        for r, c in product((top, top + 1), (left, left + 1)):
            if 0 <= r < size and 0 <= c < size:
                weight = (1 - abs(from_x - c)) * (1 - abs(from_y - r))
                result[:, row, column] += weight * image[:channels, r, c]
    return result


def plain_turned(image: np.ndarray, dx: float, dy: float, angle: float) -> np.ndarray:
    """Each pixel fetched from where torchvision 0.2.1 and Pillow find it: clockwise, off the center, and cut."""
    size = image.shape[-1]
    middle, turn = size / 2 + 0.5, angle * pi / 180
    result = np.zeros(image.shape)
    for row, column in product(range(size), range(size)):
        x, y = column + 0.5 - middle - dx, row + 0.5 - middle - dy
        from_x, from_y = x * cos(turn) + y * sin(turn) + middle, -x * sin(turn) + y * cos(turn) + middle
        if not (0 <= from_x < size and 0 <= from_y < size):
            continue
        left, top = floor(from_x - 0.5), floor(from_y - 0.5)
        for r, c in product((top, top + 1), (left, left + 1)):
            weight = (1 - abs(from_x - 0.5 - c)) * (1 - abs(from_y - 0.5 - r))
            # beyond the edge its last pixel
            result[:, row, column] += weight * image[:, min(max(r, 0), size - 1), min(max(c, 0), size - 1)]
    return np.floor(result + 1e-9)


def plain_worst(network: torch.nn.Module, image: Pixels, label: int) -> tuple[np.ndarray, float]:
    start, size = scaled_on_black(image, 158 / 224), image.shape[-1]
    best, margin = np.zeros(image.shape), -np.inf
    for dx in OFFSETS:
        for dy in OFFSETS:
            for angle in ANGLES:
                changed = plain_turned(start, dx * size / 224, dy * size / 224, angle)
                with torch.no_grad():
                    logits = network.double()(torch.tensor(changed[None] / 255))[0].tolist()
                found = max(logits[:label] + logits[label + 1 :]) - logits[label]
                if found > margin:
                    best, margin = changed, found
    return best, margin


@pytest.mark.parametrize(("dx", "dy", "angle"), [(0, 0, 0), (2, -3, 0), (0, 0, 17), (1.25, -0.5, -30), (0.3, 4, 90)])
def test_a_change_is_the_plain_one(dx: float, dy: float, angle: float) -> None:
    image = drawn(5).astype(np.float64)
    found = rotated_and_moved(torch.from_numpy(image), torch.tensor([[dx, dy, angle]]))[0].numpy()
    assert found == pytest.approx(plain_moved(image, dx, dy, angle), abs=2e-4)


def test_directions() -> None:
    """A point at the right of the center, moved to the right; turned counterclockwise it is at the top."""
    image = torch.zeros(3, 5, 5, dtype=torch.float64)
    image[:, 2, 3] = 1
    right, top = rotated_and_moved(image, torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 90.0]]))
    assert right[0, 2, 4] == pytest.approx(1)
    assert top[0, 1, 2] == pytest.approx(1)
    down = rotated_and_moved(image, torch.tensor([[0.0, 1.0, 0.0]]))[0]
    assert down[0, 3, 3] == pytest.approx(1)


def test_the_grid_is_the_plain_one() -> None:
    network = random_network(seed=3)
    for each in correct_subjects(network, 2):
        (result,) = GRID.results(on_cpu(network, batch_size=7), [each], KNOWN)
        best, _ = plain_worst(network, each.pixels, each.class_index)
        assert np.array_equal(result.candidate, best.astype(np.uint8))
        assert result.queries == 36


def test_the_default_grid_has_775_changes() -> None:
    (result,) = SpatialGridAttack().results(on_cpu(random_network()), [subject(1, 0)], KNOWN)
    assert result.queries == 775


def test_as_coded_the_first_of_each_combination_is_the_angle() -> None:
    """The code hands dx, dy and angle on as angle, dx and dy: 5 angles and dx, 31 dy."""
    found = SpatialGridAttack(definition="as_coded").changes()
    assert [found[0], found[1], found[31], found[155], found[-1]] == [
        (-18, -30, -18), (-18, -28, -18), (-9, -30, -18), (-18, -30, -9), (18, 30, 18),
    ]  # fmt: skip
    assert [len(set(values)) for values in zip(*found, strict=True)] == [5, 31, 5]
    written = SpatialGridAttack().changes()
    assert [written[0], written[1], written[31], written[155]] == [
        (-18, -18, -30), (-18, -18, -28), (-18, -9, -30), (-9, -18, -30),
    ]  # fmt: skip


def test_the_best_change_is_known() -> None:
    """Class 1 sees one place only, three to the right of the only bright one: among all translations, +3 gets it
    there."""
    size = 28  # 9 of 224 is 1.125 pixels here, 24 is 3
    image = np.zeros((3, size, size), np.uint8)
    image[:, 14, 14] = 255
    weight = torch.zeros(2, 3, size, size, dtype=torch.float64)
    weight[1, :, 14, 17] = 1
    grid = SpatialGridAttack(scale=1.0, translations=[-24, -8, 0, 8, 24], angles=[0])
    (result,) = grid.results(on_cpu(Linear(weight.flatten(1))), [subject(1, 0, image)], KNOWN)
    assert result.candidate[:, 14, 17].tolist() == [255, 255, 255]
    assert result.candidate.sum() == 3 * 255


def test_the_scaled_image_is_in_the_middle_of_black() -> None:
    found = scaled_on_black(np.full((3, 20, 20), 200, np.uint8), 0.7)
    assert (found > 0).any(axis=0).sum() == 14 * 14
    assert found[:, 3:17, 3:17].min() == 200
    assert np.array_equal(scaled_on_black(drawn(3), 1.0), drawn(3))


class TestRandomSpatial:
    """One draw for each image."""

    attack = RandomSpatialAttack()

    def test_it_is_the_plain_one(self) -> None:
        one = subject(3, 0)
        dx, dy, angle = self.attack.change(one, 4)
        plain = plain_moved(scaled_on_black(one.pixels, 204 / 224), dx * 12 / 224, dy * 12 / 224, angle)
        assert np.array_equal(self.attack.changed(one, 4), np.rint(plain).astype(np.uint8))

    def test_draws_fill_the_limits(self) -> None:
        changes = np.array([self.attack.change(subject(number, 0), 4) for number in range(400)])
        assert np.abs(changes).max(axis=0) == pytest.approx([18, 18, 30], rel=0.03)
        assert np.abs(changes).max() <= 30
        assert np.abs(changes.mean(axis=0)).max() < 3

    def test_it_asks_nothing(self) -> None:
        network = on_cpu(random_network())
        (result,) = self.attack.results(network, [subject(3, 0)], KNOWN)
        assert (result.queries, network.queries) == (0, 0)

    def test_its_seed_follows_from_the_name_of_the_attack(self) -> None:
        """So two attacks of one kind draw differently; without a name it follows from the kind."""
        one = subject(3, 0)
        network = on_cpu(random_network())
        for name, drawn_as in (("", "random_spatial"), ("mine", "mine")):
            (result,) = self.attack.results(network, [one], Known(seed=7, name=name))
            assert result.seed == seed_of(7, "attack", drawn_as, one.image_id)
            assert np.array_equal(result.candidate, self.attack.changed(one, 7, drawn_as))
        assert self.attack.change(one, 7, "mine") != self.attack.change(one, 7)


SIDE = 36


def test_the_published_kit_has_17() -> None:
    assert len(IN_PUBLISHED_KIT) == 17
    assert set(imagecorruptions.get_corruption_names("all")) - set(IN_PUBLISHED_KIT) == {"snow", "frost"}


def test_the_brightest_is_worst_for_who_takes_bright_for_another_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class 1 is the mean of all pixels."""
    weight = torch.zeros(2, 3 * SIDE * SIDE, dtype=torch.float64)
    weight[1] = 1
    one = subject(1, 0, drawn(1, SIDE, 60, 120))
    monkeypatch.setattr(changes, "IN_PUBLISHED_KIT", ("contrast", "brightness", "pixelate"))
    (result,) = CommonCorruptionsAttack().results(on_cpu(Linear(weight)), [one], KNOWN)
    expected = imagecorruptions.corrupt(one.pixels.transpose(1, 2, 0), 1, "brightness").transpose(2, 0, 1)
    assert np.array_equal(result.candidate, expected)
    assert result.queries == 3


def test_noise_is_that_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    one = subject(1, 0, drawn(1, SIDE))
    monkeypatch.setattr(changes, "IN_PUBLISHED_KIT", ("gaussian_noise",))
    (result,) = CommonCorruptionsAttack().results(on_cpu(random_linear(2, side=SIDE)), [one], Known(6))
    image = np.ascontiguousarray(one.pixels.transpose(1, 2, 0))
    (noisy,) = corrupted_images(image, "gaussian_noise", [1], image_seed(6, one.image_id))
    assert np.array_equal(result.candidate.transpose(1, 2, 0), noisy)


def test_null_changes_nothing() -> None:
    network = on_cpu(random_linear())
    (result,) = NoAttack().results(network, [subject(4, 1)], KNOWN)
    assert np.array_equal(result.candidate, drawn(4))
    assert (result.queries, network.queries) == (0, 0)


IMAGES = pd.DataFrame({"file": ["a/1", "a/2", "b/1", "c/1"], "class_index": [5, 5, 6, 7]})
PREDICTIONS = pd.DataFrame(
    [
        ("a/1", "fog", 1, [6, 1], 2.0),
        ("a/1", "fog", 2, [5, 1], 9.0),  # correct
        ("a/2", "snow", 5, [6, 1], 3.5),
        ("a/2", "snow", 4, [6, 1], 3.5),
        ("b/1", "clean", 0, [5, 1], -1.0),
        ("c/1", "fog", 1, [7, 1], 4.0),  # correct
        ("d/1", "fog", 1, [8, 1], 8.0),  # of no image here
    ],
    columns=["file", "change", "step", "top5_class", "log_odds"],
)


def test_the_most_confident_mistake_of_each_class() -> None:
    found = most_confident_mistakes(IMAGES, PREDICTIONS.sample(frac=1, random_state=1))
    assert found == {5: ("a/2", "snow", 4), 6: ("b/1", "clean", 0)}


def test_a_guess_is_the_candidate_and_asks_nothing() -> None:
    known, network = Known(3, guess=lambda one: drawn(one.class_index)), on_cpu(random_linear())
    (result,) = GuessAttack().results(network, [subject(1, 5)], known)
    assert np.array_equal(result.candidate, drawn(5))
    assert (result.queries, network.queries) == (0, 0)
