"""Whether answers depend on more than the image: which batches are asked, and what the answers show."""

from collections.abc import Callable

import numpy as np
import pytest

from cleanset.scoring.consistency import Logits, batches_to_ask, dependence

IMAGES = np.array([[4.0, 1.0, 0.0], [0.0, 3.0, 2.0], [1.0, 0.0, 5.0], [2.0, 6.0, 1.0]])
"""The logits of four images."""


def test_the_original_batch_comes_first() -> None:
    assert batches_to_ask(4) == [[0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0], [0, 0, 0, 0], [0, 0, 1, 1]]
    assert batches_to_ask(1) == [[0]] * 5


def normalised(logits: Logits) -> Logits:
    """As batch normalisation with the statistics of the batch."""
    found: Logits = logits - logits.mean(axis=0)
    return found


def first_doubled(logits: Logits) -> Logits:
    return np.concatenate([2 * logits[:1], logits[1:]])


def faint(logits: Logits) -> Logits:
    """Nearly the same logits for all classes, so that all probabilities are near a third in every batch."""
    return 1e-5 * normalised(logits)


@pytest.mark.parametrize(
    ("network", "when"),
    [
        (lambda logits: logits, None),
        (lambda logits: logits + 1e-5 * np.arange(len(logits))[:, None], None),
        (first_doubled, "in another order"),
        (normalised, "in another batch"),
        (faint, "in another batch"),
    ],
)
def test_what_answers_depend_on(network: Callable[[Logits], Logits], when: str | None) -> None:
    assert dependence([network(IMAGES[batch]) for batch in batches_to_ask(4)]) == when


def test_a_second_answer_is_the_same_bit_for_bit() -> None:
    answers = [IMAGES[batch] for batch in batches_to_ask(4)]
    answers[1] = answers[1] + 1e-12
    assert dependence(answers) == "when asked again"


def test_what_is_not_a_number_is_another_answer() -> None:
    answers = [IMAGES[batch] for batch in batches_to_ask(4)]
    assert dependence([*answers[:4], answers[4] * np.nan]) == "in another batch"
