import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.statistics.basics import Interval
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.statistics.differences import PairedCounts, difference_interval, mcnemar_p, sign_test_p
from cleanset.statistics.finite import Draws, fixed_bound
from cleanset.statistics.groups import (
    Units,
    design_effects,
    mean_interval,
    paired_interval,
    paired_p,
    share_interval,
    unit_sign_test_p,
)
from cleanset.statistics.shares import wilson

Array = npt.NDArray[Any]
FLAGS = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 4)), min_size=6, max_size=14)


def units(*sizes: int) -> Units:
    return Units(np.repeat(np.arange(len(sizes)), sizes))


def ends(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def test_units_are_groups_and_each_image_without_one() -> None:
    found = Units.of(["b", "", "a", "b", ""])
    assert found is not None
    assert found.codes.tolist() == [0, 1, 2, 0, 3]
    assert (found.count, found.sizes.tolist(), found.text) == (4, [2, 1, 1, 1], "by 4 groups")
    assert found.mean_size == pytest.approx(7 / 5)
    assert found.effective == pytest.approx(25 / 7)
    part = found.only([0, 2, 3])
    assert part is not None
    assert part.codes.tolist() == [0, 1, 0]
    assert found.only(np.array([True, True, True, False, True])) is None


@pytest.mark.parametrize("groups", [None, [], ["", "", ""], ["a", "b", ""]])
def test_images_are_the_units_if_no_two_share_a_group(groups: list[str] | None) -> None:
    assert Units.of(groups) is None


def test_without_groups_everything_is_as_over_images() -> None:
    first = np.array([True] * 7 + [False] * 3)
    second = np.array([True] * 4 + [False] * 6)
    counts = PairedCounts(both=4, only_first=3, only_second=0, neither=3)
    assert share_interval(first, None) == wilson(7, 10)
    assert paired_interval(first, second, None) == difference_interval(counts)
    assert paired_p(first, second, None) == mcnemar_p(counts)
    assert unit_sign_test_p([0.5, -0.25, 1.0], None) == sign_test_p([0.5, -0.25, 1.0])


def plain_interval(flags: Array, sizes: list[int]) -> list[float]:
    """Wilson's interval of images by their design effect, as a loop over groups."""
    from scipy.stats import t

    count = len(flags)
    typical = sum(size * size for size in sizes) / count
    pseudo = typical / 4
    mean = (flags.sum() + pseudo) / (count + 2 * pseudo)
    between = pseudo**2 * (mean**2 + (1 - mean) ** 2)
    start = 0
    for size in sizes:
        residual = flags[start : start + size].sum() - size * mean
        between += residual**2 / (1 - size / count)
        start += size
    effect = min(max(between / ((count + 2 * pseudo) * mean * (1 - mean)), 1), typical)
    images = count / effect
    z = t.ppf(0.975, count / typical - 1)
    share = flags.mean()
    root = z * math.sqrt(share * (1 - share) / images + z * z / 4 / images**2)
    return [(share + z * z / 2 / images + sign * root) / (1 + z * z / images) for sign in (-1, 1)]


@given(st.lists(st.integers(1, 5), min_size=3, max_size=8).filter(lambda sizes: max(sizes) > 1), st.randoms())
def test_the_interval_of_a_share_has_the_images_that_the_design_effect_leaves(sizes: list[int], random: Any) -> None:
    flags = np.array([random.random() < 0.6 for _ in range(sum(sizes))])
    given_units = units(*sizes)
    if given_units.effective < 2:
        assert np.isnan(share_interval(flags, given_units)).all()
        return
    found = ends(share_interval(flags, given_units))
    assert found == pytest.approx(plain_interval(flags, sizes), abs=1e-9)
    assert 0 <= found[0] <= flags.mean() <= found[1] <= 1


def test_groups_of_equal_answers_count_as_one_image_each() -> None:
    flags = np.repeat(np.arange(40) % 2 == 0, 10)
    effect = design_effects(flags[:, np.newaxis], units(*[10] * 40))
    assert effect == pytest.approx([10], abs=0.3)
    low, high = share_interval(flags, units(*[10] * 40))
    # forty images, with Student's t in place of the normal quantile
    assert [low, high] == pytest.approx(ends(wilson(20, 40)), abs=0.01)


def test_answers_that_groups_do_not_share_have_no_design_effect() -> None:
    flags = np.tile([True, False], 100)
    assert design_effects(flags[:, np.newaxis], units(*[10] * 20)).tolist() == [1]


def test_one_group_has_no_interval() -> None:
    flags = np.array([True, False, True, True])
    assert np.isnan(share_interval(flags, units(4))).all()
    assert np.isnan(mean_interval(flags, units(4))).all()
    assert np.isnan(paired_interval(flags, ~flags, units(4))).all()
    # one large group and a small one tell hardly more
    assert np.isnan(share_interval(np.ones(101), units(100, 1))).all()


def test_all_correct_still_has_an_interval() -> None:
    low, high = share_interval(np.ones(200), units(*[10] * 20))
    assert high == 1
    # wider than that of 200 images, not as wide as that of twenty
    assert wilson(20, 20).low < low < wilson(200, 200).low


def test_a_mean_varies_as_its_groups_do() -> None:
    values = np.array([1.0, 1, 2, 2, 6, 6])
    low, high = mean_interval(values, units(2, 2, 2))
    # the t interval of 1, 2 and 6
    half = 4.302653 * math.sqrt(7 / 3)
    assert [low, high] == pytest.approx([3 - half, 3 + half])


def exchanged(first: Array, second: Array, codes: Array) -> float:
    """The p-value by all exchanges of the two models' answers to groups."""
    numbers = np.unique(codes)
    observed = abs(int(first.sum()) - int(second.sum()))
    found = 0
    for signs in itertools.product([1, -1], repeat=len(numbers)):
        total = 0
        for number, sign in zip(numbers, signs, strict=True):
            of_group = codes == number
            total += sign * (int(first[of_group].sum()) - int(second[of_group].sum()))
        found += abs(total) >= observed
    return float(found / 2 ** len(numbers))


@given(FLAGS)
def test_the_test_of_two_models_counts_all_exchanges_of_groups(rows: list[tuple[bool, bool, int]]) -> None:
    first, second, codes = map(np.array, zip(*rows, strict=True))
    found = Units.of([str(each) for each in codes])
    assert paired_p(first, second, found) == pytest.approx(exchanged(first, second, codes), abs=1e-12)


def test_five_groups_are_too_few_for_a_small_p() -> None:
    for groups in (5, 6):
        correct = np.ones(10 * groups, bool)
        assert paired_p(correct, ~correct, units(*[10] * groups)) == 2 / 2**groups


def test_p_is_never_0() -> None:
    count = 3000
    assert 0 < paired_p(np.ones(2 * count, bool), np.zeros(2 * count, bool), units(*[2] * count)) < 1e-300


def test_equal_models_have_an_interval_around_0() -> None:
    flags = np.tile([True, True, True, False], 20)
    low, high = paired_interval(flags, flags, units(*[4] * 20))
    assert low == pytest.approx(-high)
    assert 0.01 < high < 0.1


def test_the_sign_test_is_over_groups() -> None:
    # the sums are 2, 1 and -3
    assert unit_sign_test_p([1, 1, 2, -1, -3, 0], units(2, 2, 2)) == sign_test_p([2, 1, -3])


def test_whole_groups_are_drawn_within_their_class() -> None:
    classes = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    found = Bootstrap(resamples=200, seed="x").resample(classes, units(2, 2, 1, 3, 1))
    counts = found.counts
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, 5] == counts[:, 7]).all()
    # two of the three groups of class 0, one of the two of class 1
    assert (counts[:, [0, 2, 4]].sum(axis=1) == 2).all()
    assert (counts[:, [5, 8]].sum(axis=1) == 1).all()
    assert found.strata == 2


def test_groups_of_several_classes_are_drawn_from_together() -> None:
    classes = np.array([0, 1, 0, 1, 1, 1])
    found = Bootstrap(resamples=50).resample(classes, units(2, 2, 2))
    # the group of one class is alone, and joins the others
    assert found.strata == 1
    assert (found.counts[:, ::2].sum(axis=1) == 2).all()


def test_a_mean_over_drawn_groups_is_a_ratio() -> None:
    values = np.array([1.0, 1, 1, 0])
    found = Bootstrap(resamples=20).resample(np.zeros(4), units(3, 1))
    # one of the two groups is drawn: its own mean, whatever its size
    assert set(found.means(values).tolist()) == {0.0, 1.0}


def test_percentiles_are_further_out_for_fewer_groups() -> None:
    classes = np.zeros(40)
    levels = [Bootstrap(resamples=2).resample(classes, units(*[size] * (40 // size))).level for size in (2, 4, 8)]
    assert 0.95 < levels[0] < levels[1] < levels[2] < 1
    assert Bootstrap(resamples=2).resample(classes).level == 0.95
    # between two groups Student's t has one degree of freedom: 12.7 standard deviations
    assert Bootstrap(resamples=2).resample(classes, units(20, 20)).level == pytest.approx(1)
    assert math.isnan(Bootstrap(resamples=2).resample(np.zeros(41), units(40, 1)).level)


def simulated(groups: int, accuracy: float, sizes: list[int], times: int = 400) -> float:
    found = units(*(sizes * groups)[:groups])
    spread = 1 / 0.3 - 1
    generator = np.random.default_rng(groups)
    covered = 0
    for _ in range(times):
        shares = generator.beta(accuracy * spread, (1 - accuracy) * spread, found.count)
        low, high = share_interval(generator.random(len(found.codes)) < shares[found.codes], found)
        covered += low <= accuracy <= high
    return covered / times


@pytest.mark.long
@pytest.mark.parametrize("sizes", [[10], [1, 2, 4, 6, 8, 10, 12, 15, 18, 24]])
@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("groups", [10, 20, 50])
def test_intervals_cover_with_groups_that_resemble_each_other(groups: int, accuracy: float, sizes: list[int]) -> None:
    """The intraclass correlation is .3, where Wilson's interval over images covers .6 to .75."""
    # .95 less three standard errors of 400 simulations
    assert simulated(groups, accuracy, sizes) > 0.915


@pytest.mark.long
def test_the_bound_of_an_audit_holds_however_flaws_are_grouped() -> None:
    """Images are drawn at random from the set that the bound is of: their groups do not matter."""
    flawed = np.repeat([True] * 6 + [False] * 24, 10)
    generator = np.random.default_rng(0)
    bounds = [fixed_bound(Draws(300, 60, int(generator.choice(flawed, 60, replace=False).sum()))) for _ in range(600)]
    assert np.mean([bound >= flawed.sum() for bound in bounds]) >= 0.93
