"""Other numberings of classes: found where they are, in drawn answers of models, and nowhere else."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cleanset.statistics.numbering import _assignment, other_numbering
from tests.properties import examples

Numbers = NDArray[np.int64]


def answers(classes: int, images: int, accuracy: float, seed: int) -> tuple[Numbers, Numbers]:
    """Labels, and the answers of a model that errs among all classes alike."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), images)
    is_correct = random.random(len(labels)) < accuracy
    return labels, np.where(is_correct, labels, random.integers(classes, size=len(labels)))


def among_prototypes(classes: int, images: int, seed: int) -> tuple[Numbers, Numbers]:
    """Labels, and the answers of a weak model: the nearest of learned prototypes, with a bias for some classes.

    The classes come in groups that are alike, so that its errors are systematic; numbers of images differ.
    """
    random = np.random.default_rng(seed)
    groups = random.normal(size=(-(-classes // 5), 8))
    prototypes = groups[np.arange(classes) // 5] + 0.5 * random.normal(size=(classes, 8))
    learned = prototypes + random.choice([0.1, 0.5]) * random.normal(size=prototypes.shape)
    labels = np.repeat(np.arange(classes), random.integers(1, 2 * images, size=classes))
    seen = prototypes[labels] + random.choice([0.5, 1.5, 4]) * random.normal(size=(len(labels), 8))
    distances = (learned**2).sum(axis=1) - 2 * seen @ learned.T
    return labels, np.argmin(distances + random.choice([0, 3]) * random.normal(size=classes), axis=1)


def text_order(classes: int) -> Numbers:
    """The index among the sorted texts of each number."""
    return np.argsort(np.argsort([str(number) for number in range(classes)]))


@pytest.mark.parametrize(
    ("classes", "images", "accuracy"),
    [(12, 2, 1.0), (12, 3, 0.9), (12, 30, 0.4), (100, 2, 0.95), (100, 50, 0.3), (1000, 5, 0.6), (1000, 20, 0.35)],
)
def test_numbers_that_are_sorted_as_text_are_found(classes: int, images: int, accuracy: float) -> None:
    """Accuracy in use: far above chance with 12 classes; two keep their number."""
    labels, predictions = answers(classes, images, accuracy, seed=classes + images)
    found = other_numbering(text_order(classes)[labels].tolist(), predictions.tolist())
    assert found is not None
    expected = {int(index): number for number, index in enumerate(text_order(classes)) if index != number}
    right = [expected.get(label) == moved for label, moved in found.moved.items()]
    # from few answers of a weak model not every class is determined
    assert np.mean(right) > (0.9 if accuracy >= 0.9 else 0.6)
    assert found.correct > 2 * found.correct_before
    assert other_numbering(labels.tolist(), predictions.tolist()) is None


def test_a_few_classes_of_a_thousand_are_found() -> None:
    labels, predictions = answers(1000, 40, 0.8, seed=1)
    exchanged = np.arange(1000)
    exchanged[[638, 639, 7]] = [639, 7, 638]
    found = other_numbering(labels.tolist(), exchanged[predictions].tolist())
    assert found is not None
    assert found.moved == {7: 638, 638: 639, 639: 7}
    assert found.offset is None
    judged = np.isin(labels, [7, 638, 639]) & (np.arange(len(labels)) % 2 == 1)
    more = (predictions == labels)[judged].sum() - (exchanged[predictions] == labels)[judged].sum()
    assert (found.images, found.correct - found.correct_before) == (20_000, more)


def test_it_is_the_best_of_all_numberings() -> None:
    """Compared with every permutation of five classes; 5 images of a class are fitted to, and 5 judge."""
    for seed in range(20):
        labels, predictions = answers(5, 10, 0.9, seed)
        moved = np.random.default_rng(seed).permutation(5)[predictions]
        found = other_numbering(labels.tolist(), moved.tolist())

        def fitted(order: tuple[int, ...], labels: Numbers = labels[::2], moved: Numbers = moved[::2]) -> float:
            kept = sum(number == place for place, number in enumerate(order))
            return int((np.take(order, labels) == moved).sum()) + kept / 1000

        best = max(itertools.permutations(range(5)), key=fitted)
        correct = (np.take(best, labels[1::2]) == moved[1::2]).sum()
        if found is not None:
            assert found.prediction_of == dict(enumerate(best))
            assert found.correct == correct
        # five classes that all move, with 25 images, cannot be missed
        assert found is not None or (np.array(best) == range(5)).sum() > 0


@pytest.mark.parametrize("classes", [2, 3, 12, 50, 200])
def test_weak_models_are_not_suspected(classes: int) -> None:
    for seed in range(40 if classes < 200 else 5):
        for images in (2, 5, 20):
            labels, predictions = among_prototypes(classes, images, seed)
            assert other_numbering(labels.tolist(), predictions.tolist()) is None, (seed, images)


@pytest.mark.parametrize("accuracy", [0.0, 0.002, 0.02, 0.1, 0.5, 0.9])
def test_models_of_any_accuracy_are_not_suspected(accuracy: float) -> None:
    for classes, images in ((2, 100), (12, 3), (12, 100), (200, 5), (1000, 3)):
        labels, predictions = answers(classes, images, accuracy, seed=images)
        # at chance of two classes, answers that are mostly the other one are a numbering
        assert other_numbering(labels.tolist(), predictions.tolist()) is None


def test_one_answer_to_everything_is_no_numbering() -> None:
    labels = np.repeat(np.arange(10), 6).tolist()
    assert other_numbering(labels, [500] * 60) is None
    assert other_numbering(labels, [3] * 60) is None
    # one class for each pair: half of the classes are explained, and the other half, too
    assert other_numbering(labels, [label - label % 2 for label in labels]) is None


def test_an_answer_that_takes_another_class_along_is_no_numbering() -> None:
    """All of class 0 are called 1, and so are 2 of 10 of class 1; the others of class 1 are called 2."""
    labels = [0] * 20 + [1] * 20 + [2] * 20
    predictions = [1] * 20 + ([1] * 4 + [2] * 16) + [2] * 20
    assert other_numbering(labels, predictions) is None


def test_without_a_second_image_of_any_class_nothing_is_known() -> None:
    assert other_numbering(range(100), range(1, 101)) is None
    assert other_numbering([3], [4]) is None


@examples(500)
@given(st.integers(1, 9), st.integers(0, 4), st.sampled_from([2, 5, 10**9]), st.integers(0, 2**32 - 1))
def test_an_assignment_is_as_good_as_scipys(rows: int, more: int, levels: int, seed: int) -> None:
    """With ties and without; the core has no scipy."""
    costs = np.random.default_rng(seed).integers(levels, size=(rows, rows + more)) / levels
    found = _assignment(costs)
    assert len(set(found.tolist())) == rows
    assert costs[np.arange(rows), found].sum() == pytest.approx(costs[linear_sum_assignment(costs)].sum())
