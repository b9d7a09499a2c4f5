"""Abstaining: the published kit's golden case and its oddities, plain coverage, thresholds, eligibility."""

import math
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.statistics.coverage import (
    CONFIDENCES,
    Confidence,
    Eligibility,
    Ranking,
    at_coverage,
    confidences,
    covered,
    eligibility,
    images_of,
    threshold,
)
from tests.properties import examples

LOGITS = np.array(  # float32, as the kit has them, in which 1.5 - 1.4 is more than .2 - .1
    [[2, 1], [0, 3], [1.5, 1.4], [0.2, 0.1], [5, 0], [0, 0.5], [3, 3.5], [1, 0], [0.9, 4], [0.05, 0]], np.float32
).astype(np.float64)
CLASSES = np.array([0, 1, 1, 1, 0, 0, 1, 0, 1, 1])
CORRECT = (LOGITS[:, 0] < LOGITS[:, 1]).astype(int) == CLASSES
NAMES = [f"image {number}" for number in range(10)]


def stored(logits: np.ndarray) -> pd.DataFrame:
    """The columns that are kept of logits, each as the definition has it, in float32."""
    rows = []
    for row in logits.tolist():
        second, first = sorted(row)[-2:]
        others = [each for place, each in enumerate(row) if place != row.index(first)]
        rest = math.log(sum(map(math.exp, others)))
        rows.append((first, second, math.log(sum(map(math.exp, row))), first - rest))
    frame = pd.DataFrame(rows, columns=["largest_logit", "second_logit", "log_sum_exp", "log_odds"])
    return frame.astype("float32")


def kit(confidence: list[float], correct: list[bool], coverage: float) -> tuple[int, int]:
    """Covered images and errors, as the published lines have it."""
    ordered = sorted(confidence, reverse=True)
    last = ordered[int(coverage * len(ordered)) - 1]
    inside = [place for place, each in enumerate(confidence) if each >= last]
    return len(inside), sum(not correct[place] for place in inside)


@pytest.mark.parametrize("ranking", get_args(Ranking))
@pytest.mark.parametrize("kind", CONFIDENCES)
def test_the_golden_case(kind: Confidence, ranking: Ranking) -> None:
    """FACTS, section 4: at 80 % eight covered, mistakes 2 and 5; at 100 % mistakes 2, 3, 5 and 9."""
    found = confidences(stored(LOGITS), kind)
    assert at_coverage(found, CORRECT, NAMES, 0.8, ranking) == (0.8, 8, 2, 0.75)
    assert at_coverage(found, CORRECT, NAMES, 1, ranking) == (1, 10, 4, 0.6)


def test_the_four_confidences() -> None:
    answers = stored(np.array([[3.0, 1.0], [0.0, 0.0]]))
    assert confidences(answers, "max_logit").tolist() == [3, 0]
    assert confidences(answers, "margin").tolist() == [2, 0]
    assert confidences(answers, "softmax") == pytest.approx([math.exp(2) / (math.exp(2) + 1), 0.5], abs=1e-7)
    assert confidences(answers, "energy") == pytest.approx([3 + math.log1p(math.exp(-2)), math.log(2)], abs=1e-6)


def test_softmax_tells_apart_what_rounds_to_one() -> None:
    log_odds = pd.DataFrame({"log_odds": np.array([20, 25, -1000, 1000], np.float32)})
    found = confidences(log_odds, "softmax")
    assert found[0] < found[1] < 1
    assert (found[2], found[3]) == (pytest.approx(0), 1)


def test_equal_confidences() -> None:
    """All of them are covered as published, the first eight by name in plain."""
    equal, names = np.ones(10), [f"image {9 - place}" for place in range(10)]
    assert covered(equal, names, 0.8, "as_published").all()
    assert covered(equal, names, 0.8, "plain").tolist() == [False] * 2 + [True] * 8
    assert at_coverage(equal, CORRECT, NAMES, 0.8, "as_published").accuracy == 0.6


def test_coverages_round_as_in_the_kit() -> None:
    """With 100 images, .29, .57 and .58 give one fewer in floating point; no image covers all."""
    confidence, correct, names = np.arange(100.0), np.ones(100, np.bool_), [f"{place:02d}" for place in range(100)]
    taken = [at_coverage(confidence, correct, names, each).covered for each in (0.07, 0.29, 0.57, 0.58, 0.009)]
    assert taken == [7, 28, 56, 57, 100]
    plain = [at_coverage(confidence, correct, names, each, "plain") for each in (0.29, 0.57, 0.58, 0.009)]
    assert [each.covered for each in plain] == [29, 57, 58, 0]
    assert plain[-1].accuracy is None
    assert [images_of(each, 10) for each in (0.3, 0.7, 0.75, 1)] == [3, 7, 7, 10]


LISTS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30)


@given(LISTS, st.integers(0, 100))
@examples(200)
def test_as_the_published_lines(images: list[tuple[int, bool]], percent: int) -> None:
    confidence, correct = [float(each) for each, _ in images], [each for _, each in images]
    names = [f"{place:02d}" for place in range(len(images))]
    arrays = np.array(confidence), np.array(correct), names
    found = at_coverage(*arrays, percent / 100, "as_published")
    assert (found.covered, found.mistakes) == kit(confidence, correct, percent / 100)
    plain = covered(arrays[0], names, percent / 100, "plain")
    assert plain.sum() == percent * len(images) // 100
    ranks = sorted((-each, name) for each, name in zip(confidence, names, strict=True))
    assert {names[place] for place in np.flatnonzero(plain)} == {name for _, name in ranks[: plain.sum()]}
    assert at_coverage(*arrays, percent / 100, "plain").mistakes == (plain & ~arrays[1]).sum()


def test_a_threshold_covers_what_was_wished() -> None:
    confidence = np.array([0.1, 0.9, 0.5, 0.7, 0.3])
    assert threshold(confidence, 0.6) == threshold(confidence, 0.6, "plain") == 0.5
    assert (confidence >= threshold(confidence, 0.6)).sum() == 3
    assert threshold(confidence, 0.1) == 0.1  # none to take: all, as published
    with pytest.raises(CleansetError, match="the threshold would abstain on all; expected at least one image"):
        threshold(confidence, 0.1, "plain")


@pytest.mark.parametrize(
    ("confidence", "coverage", "ranking", "message"),
    [
        ([], 0.8, "plain", "coverage: no image; expected at least one"),
        ([0.5, math.nan], 0.8, "plain", "coverage: a confidence is NaN"),
        ([0.5], 80, "plain", "coverage: found 80; expected a share from 0 to 1"),
        ([0.5], math.nan, "as_published", "coverage: found nan; expected a share from 0 to 1"),
    ],
)
def test_refused(confidence: list[float], coverage: float, ranking: Ranking, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        covered(np.array(confidence), ["a"] * len(confidence), coverage, ranking)


def flags(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Correct and abstaining, from a letter an image: + correct, - misclassified, o abstains."""
    return np.array([each == "+" for each in text]), np.array([each == "o" for each in text])


@pytest.mark.parametrize(
    ("answers", "is_eligible"),
    [
        ("++++++++++", True),
        ("++++++++oo", True),  # abstains on just 20 %
        ("++++++++--", True),
        ("+++++++ooo", False),  # abstains on more than 20 %
        ("+++++++--o", False),
        ("++++++++o-", True),
        ("-", False),
        ("+", True),
    ],
)
def test_who_is_eligible(answers: str, is_eligible: bool) -> None:
    found = eligibility(*flags(answers))
    assert found.is_eligible == is_eligible
    assert (found.images, found.correct, found.mistakes) == (len(answers), answers.count("+"), answers.count("-"))


def test_abstaining_is_never_correct() -> None:
    found = eligibility(np.array([True, True]), np.array([True, False]))
    assert found == Eligibility(images=2, correct=1, mistakes=0)


def test_an_empty_list() -> None:
    with pytest.raises(CleansetError, match="eligibility list: no image"):
        eligibility(np.array([], bool), np.array([], bool))


def test_accuracy_is_of_the_covered_images() -> None:
    """As in the kit's table: 6 of the 7 covered. Its plot divides by the wished 7.5 instead, which gives .8667."""
    confidence = confidences(stored(LOGITS), "max_logit")
    found = at_coverage(confidence, CORRECT, NAMES, 0.75)
    assert (found.covered, found.mistakes) == (7, 1)
    assert found.accuracy == pytest.approx(6 / 7)
    assert found.accuracy != pytest.approx(1 - 1 / 7.5)
