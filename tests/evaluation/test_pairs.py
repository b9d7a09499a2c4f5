"""Pairs of models: counts by hand and by sets, which of them are shown, and answers as results keep them."""

from collections import Counter
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from cleanset.evaluation.pairs import MAX_PAIRED, answers_text, compare_pairwise, parse_answers
from cleanset.statistics.differences import PairedCounts, mcnemar_p
from cleanset.statistics.groups import Units, paired_interval, paired_p

FLAGS = st.lists(st.booleans(), min_size=5, max_size=5)
IMAGES = ["e", "b", "d", "a", "c"]


@pytest.mark.long
@given(st.lists(FLAGS, max_size=MAX_PAIRED + 3))
def test_pairs_are_those_of_sets_of_images(answers: list[list[bool]]) -> None:
    """Up to six models every pair, of more those of the first; p-values are corrected over all in any case."""
    correct = {
        f"m{place}": {image for image, is_correct in zip(IMAGES, each, strict=True) if is_correct}
        for place, each in enumerate(answers)
    }
    found = compare_pairwise([(f"m{place}", np.array(each)) for place, each in enumerate(answers)], IMAGES)
    every = list(combinations(correct, 2))
    p = [
        mcnemar_p(PairedCounts(0, len(correct[first] - correct[second]), len(correct[second] - correct[first]), 0))
        for first, second in every
    ]
    expected = [pair for pair in every if len(answers) <= MAX_PAIRED or pair[0] == "m0"]
    assert [(pair.model, pair.other) for pair in found] == expected
    corrected = dict(zip(every, multipletests(p, method="holm")[1] if p else [], strict=True))
    for pair in found:
        of_model = correct[pair.model]
        of_other = correct[pair.other]
        assert pair.only_model == tuple(sorted(of_model - of_other))
        assert pair.only_other == tuple(sorted(of_other - of_model))
        assert pair.counts == PairedCounts(
            len(of_model & of_other),
            len(of_model - of_other),
            len(of_other - of_model),
            len({*IMAGES} - of_model - of_other),
        )
        assert pair.tests == len(every)
        assert abs(pair.p_holm - corrected[pair.model, pair.other]) < 1e-12


def test_many_images_are_counted_in_blocks() -> None:
    """In 10,000 images, the first model misclassifies every third, the second every fifth."""
    place = np.arange(10_000)
    (pair,) = compare_pairwise([("a", place % 3 > 0), ("b", place % 5 > 0)], [str(each) for each in place])
    assert pair.counts == PairedCounts(both=5333, only_first=1333, only_second=2667, neither=667)


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.booleans()), max_size=12), st.randoms())
def test_answers_do_not_depend_on_the_order_or_on_which_of_two_equal_images(
    images: list[tuple[str, bool]], random: Random
) -> None:
    def text(rows: list[tuple[str, bool]]) -> str:
        return answers_text([key for key, _ in rows], np.array([is_correct for _, is_correct in rows], bool))

    shuffled = list(images)
    random.shuffle(shuffled)
    found = text(images)
    assert text(shuffled) == found
    answers = parse_answers(found)
    assert answers is not None
    assert Counter(zip(sorted(key for key, _ in images), answers.tolist(), strict=True)) == Counter(images)


def test_a_text_of_other_digits_is_no_answers() -> None:
    assert [parse_answers(text) is None for text in ("0120", "01 ", "０１", "0/", "01", "")] == [True] * 4 + [False] * 2


@given(st.lists(FLAGS, min_size=2, max_size=4), st.lists(st.sampled_from(["", "p", "q"]), min_size=5, max_size=5))
def test_pairs_by_groups_are_those_of_two_models_each(answers: list[list[bool]], groups: list[str]) -> None:
    found = compare_pairwise([(str(place), np.array(each)) for place, each in enumerate(answers)], IMAGES, groups)
    units = Units.of(groups)
    for pair in found:
        first, second = (answers[int(name)] for name in (pair.model, pair.other))
        assert pair.p == paired_p(first, second, units)
        assert (pair.low, pair.high) == pytest.approx(paired_interval(first, second, units), nan_ok=True)
        assert pair.groups == (None if units is None else units.count)
