"""Lines of measures on selections of images, some of them too small."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from cleanset.classes import imagenet
from cleanset.evaluation.measures import Measure
from cleanset.statistics.basics import Interval
from cleanset.statistics.bootstrap import Bootstrap, Resamples, percentile_interval
from cleanset.statistics.groups import Units
from cleanset.studies.robustness.answer_arrays import Chosen
from cleanset.studies.robustness.corruptions.measures import relative_to
from cleanset.studies.robustness.corruptions.params import CORRUPTIONS
from cleanset.studies.robustness.results import Definition, StudiedImages
from cleanset.studies.robustness.sampled import Sampled, constant, mean_of, ratio_to, sampled_means, undefined_names
from cleanset.studies.robustness.scenarios.measures import sampled_score
from tests.studies.robustness.one_measure import OneMeasure

ROLES = ["a", "b", "c"]


def lines(*sets: tuple[str, ...]) -> list[Measure]:
    """The only measure, of the images 0, 1, ... their number, of images in these sets."""
    images = StudiedImages(
        class_indices=np.zeros(len(sets), np.int64),
        sets=sets,
        roles=ROLES,
        bootstrap=Bootstrap(resamples=20),
        classes=imagenet(),
    )

    def measured(role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        found = sampled_means(np.arange(len(sets))[chosen][:, None], ["fog"], resamples, role, len(sets))
        yield found["fog"].named("number", "fog")

    return list(OneMeasure(images, {}, measured).lines())


def test_a_selection_with_fewer_than_two_images() -> None:
    found = lines(("a",), ("a", "b"), ("a",), ("b",))
    assert [(each.selection, each.model, each.images) for each in found] == [
        ("union", "a", 4), ("union", "b", 4), ("union", "c", 4),
        ("own", "a", 3), ("own", "b", 2), ("own", "c", 0),
        ("common", "a", 0), ("common", "b", 0), ("common", "c", 0),
    ]  # fmt: skip
    assert {(each.measure, each.change) for each in found} == {("number", "fog")}
    assert [each.value for each in found[:5]] == [1.5, 1.5, 1.5, 1.0, 2.0]
    assert all(each.problem == "" and each.low <= each.value <= each.high for each in found[:5])
    assert np.isnan([[each.value, each.low, each.high] for each in found[5:]]).all()
    assert {each.problem for each in found[5:]} == {"0 images; intervals need 2 or more"}


def test_a_model_without_a_set() -> None:
    images = StudiedImages(
        class_indices=np.zeros(2, np.int64),
        sets=[["a"], ["a"]],
        roles=["a", "other"],
        bootstrap=Bootstrap(resamples=20),
        owners=["a"],
        classes=imagenet(),
    )
    found = OneMeasure(
        images, {}, lambda _, __, resamples: iter([constant(1.0, resamples).named("number", "fog")])
    ).lines()
    assert [(each.selection, each.model, each.images) for each in found] == [
        ("union", "a", 2), ("union", "other", 2), ("own", "a", 2), ("common", "a", 2), ("common", "other", 2),
    ]  # fmt: skip


def test_groups_of_images_are_the_unit() -> None:
    wrong = np.repeat([[1, 1], [0, 0], [1, 0], [0, 0], [0, 0], [1, 1], [0, 0], [0, 0]], 3, axis=0)

    def measured(role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        values = wrong[chosen][:, [0 if role == "a" else 1]]
        yield sampled_means(values, ["error"], resamples, role)["error"].named("accuracy", "fog")

    def study(units: Units | None) -> OneMeasure:
        images = StudiedImages(
            class_indices=np.zeros(24, np.int64),
            sets=[("a", "b")] * 24,
            roles=["a", "b"],
            bootstrap=Bootstrap(resamples=500),
            classes=imagenet(),
            units=units,
        )
        return OneMeasure(images, {}, measured)

    grouped = study(Units(np.repeat(np.arange(8), 3)))
    (line,) = (each for each in grouped.lines() if (each.selection, each.model) == ("union", "a"))
    (plain,) = (each for each in study(None).lines() if (each.selection, each.model) == ("union", "a"))
    assert line.value == plain.value == 9 / 24
    assert line.high - line.low > 1.5 * (plain.high - plain.low)
    (found, *_) = grouped.differences()
    # of three images of one group
    assert found.p == 1.0
    (of_images, *_) = study(None).differences()
    assert of_images.p == 0.25
    # one group: nothing is measured
    assert list(study(Units(np.zeros(24, np.int64))).lines()) == []


def test_one_image() -> None:
    assert {each.problem for each in lines(("a",), ("b",)) if each.selection == "own"} == {
        "1 image; intervals need 2 or more",
        "0 images; intervals need 2 or more",
    }


@pytest.mark.parametrize("sets", [(), (("a", "b", "c"),)])
def test_nothing_to_measure(sets: tuple[tuple[str, ...], ...]) -> None:
    assert lines(*sets) == []


CLASSES = np.repeat(np.arange(20), 3)
RESAMPLES = Bootstrap(resamples=200).resample(CLASSES)
GENERATOR = np.random.default_rng(21)
HARD = GENERATOR.random((60, 15, 1))
OWN, OTHER = np.less(HARD, np.linspace(0.2, 0.6, 5)), np.less(HARD, np.linspace(0.3, 0.8, 5))
CLEAN, OTHER_CLEAN = HARD[:, 0, 0] < 0.1, HARD[:, 0, 0] < 0.2


def means(misclassified: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], answers: str = "own") -> dict[str, Sampled]:
    sums = sampled_means(misclassified.sum(axis=2), CORRUPTIONS, RESAMPLES, answers, 5)
    return {name: each.scaled(1 / 5) for name, each in sums.items()}


def adjusted(misclassified: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], answers: str) -> np.ndarray:
    """The errors of each resample, with pseudo-images that are misclassified at all severities or at none."""
    flat = misclassified.reshape(len(misclassified), -1)
    draws = RESAMPLES.adjusted_means(flat, answers)
    return draws.reshape(len(draws), *misclassified.shape[1:])


def test_mean_errors() -> None:
    found = means(OWN)
    assert [each.value for each in found.values()] == pytest.approx(OWN.mean(axis=(0, 2)))
    assert found["fog"].draws == pytest.approx(adjusted(OWN, "own")[:, CORRUPTIONS.index("fog")].mean(axis=-1))
    assert found["fog"].by_image == pytest.approx(OWN[:, CORRUPTIONS.index("fog")].mean(axis=-1))


def test_ratios_to_a_measured_reference() -> None:
    others = means(OTHER, "other")
    found = {name: ratio_to(others[name], each, 60 * 5) for name, each in means(OWN).items()}
    assert [each.value for each in found.values()] == pytest.approx(OWN.sum(axis=(0, 2)) / OTHER.sum(axis=(0, 2)))
    draws = adjusted(OWN, "own").sum(axis=-1) / adjusted(OTHER, "other").sum(axis=-1)
    assert np.stack([each.draws for each in found.values()], axis=1) == pytest.approx(draws)
    mean = mean_of(found, CORRUPTIONS)
    assert mean.draws == pytest.approx(draws.mean(axis=1))
    interval = mean.interval()
    assert interval.low < mean.value < interval.high


def test_relative_ce() -> None:
    clean, other_clean = (
        sampled_means(each[:, None], ["clean"], RESAMPLES, name)["clean"]
        for each, name in ((CLEAN, "own clean"), (OTHER_CLEAN, "other clean"))
    )
    found = relative_to(means(OWN), means(OTHER, "other"), 60 * 5, (clean, other_clean))
    beyond = [
        adjusted(corrupted, name).sum(axis=-1) - 5 * adjusted(unchanged, f"{name} clean")[:, None]
        for corrupted, unchanged, name in ((OWN, CLEAN, "own"), (OTHER, OTHER_CLEAN, "other"))
    ]
    assert np.stack([each.draws for each in found.values()], axis=1) == pytest.approx(beyond[0] / beyond[1])


def test_a_ratio_to_too_few_has_no_value_and_no_interval() -> None:
    for count, answers in ((9, 60.0), (0, math.inf), (math.nan, math.inf)):
        others = means(OTHER, "other") | {"fog": constant(count / 60, RESAMPLES)}
        found = {name: ratio_to(others[name], each, answers) for name, each in means(OWN).items()}
        assert undefined_names(found, CORRUPTIONS) == ["fog"]
        assert all(math.isnan(end) for end in (found["fog"].interval().low, found["fog"].interval().high))
        assert math.isnan(mean_of(found, CORRUPTIONS).value)
        assert math.isnan(mean_of(found, CORRUPTIONS).interval().high)
        assert math.isfinite(mean_of(found, CORRUPTIONS[4:8]).interval().high)
    for count, answers in ((10, 60.0), (0.01, math.inf)):
        assert math.isfinite(ratio_to(constant(count / 60, RESAMPLES), means(OWN)["fog"], answers).value)


def test_the_difference_of_two_models_is_paired() -> None:
    one, other = mean_of(means(OWN), CORRUPTIONS), mean_of(means(OTHER, "other"), CORRUPTIONS)
    difference = one - other
    assert difference.value == one.value - other.value
    assert difference.interval() == percentile_interval(one.draws - other.draws)
    assert difference.by_image == pytest.approx(OWN.mean(axis=(1, 2)) - OTHER.mean(axis=(1, 2)))


def test_an_interval_ends_at_the_largest_value() -> None:
    """Percentiles reflected at a Score of .9 may be above 1, which no Score does."""
    drawn = np.linspace(0.6, 0.95, 1000)
    found = Sampled(0.9, drawn, shifted=True, largest=1).interval()
    assert (round(found.low, 3), found.high) == (0.859, 1.0)
    assert round(Sampled(0.9, drawn, shifted=True).interval().high, 3) == 1.191


def test_an_interval_has_the_value_and_a_width_or_is_none() -> None:
    drawn = np.linspace(0.2, 0.4, 41)
    above, below = Sampled(0.5, drawn).interval(), Sampled(0.1, drawn).interval()
    assert (above.low, above.high, below.low, below.high) == pytest.approx((0.205, 0.5, 0.1, 0.395))
    same = means(OWN)["fog"] / means(OWN)["fog"]
    for none in (
        same,
        constant(0.5, RESAMPLES),
        Sampled(1.0, np.array([0.5, math.inf])),
        Sampled(1.0, drawn * math.nan),
    ):
        assert math.isnan(none.interval().low)
        assert math.isnan(none.interval().high)


@pytest.mark.parametrize("wrong", [np.zeros(9, bool), np.ones(9, bool), np.repeat([True, False, False], 3)])
def test_classes_all_correct_or_all_misclassified(wrong: np.ndarray) -> None:
    """A bootstrap within classes alone would have no width."""
    resamples = Bootstrap().resample(np.repeat([0, 1, 2], 3))
    one, other = (sampled_means(wrong[:, None], ["fog"], resamples, name)["fog"] for name in "ab")
    interval, difference = one.interval(), (one - other).interval()
    assert interval.low <= one.value <= interval.high
    assert interval.high - interval.low > 0.2
    assert difference.low < -0.2 < 0.2 < difference.high


def test_what_is_computed_of_a_shifted_statistic_is_shifted() -> None:
    one, other = Sampled(0.5, np.array([0.2, 0.4]), shifted=True), Sampled(0.25, np.array([0.1, 0.2]))
    for found in (one - other, other - one, one / other, other / one, one.scaled(2), mean_of({"a": one}, ["a"])):
        assert found.shifted
    assert not (other - other).shifted
    plain = mean_of({"a": one, "b": other}, ["b"]).interval()
    assert [plain.low, plain.high] == pytest.approx([0.1025, 0.25])


def test_a_ratio_to_nothing_is_infinite() -> None:
    found = Sampled(1.0, np.array([1.0, 0.0])) / Sampled(0.0, np.array([0.0, 0.0]))
    assert found.value == math.inf
    assert found.draws[0] == math.inf
    assert math.isnan(found.draws[1])


@pytest.mark.parametrize("definition", ["as_published", "as_written"])
def test_the_score(definition: Definition) -> None:
    correct = GENERATOR.random((60, 4)) < 0.7
    unchanged = GENERATOR.random(60) < 0.9
    found = sampled_score(correct, unchanged, definition, RESAMPLES)

    def by_hand(counts: np.ndarray) -> float:
        """By the squares of the scenarios' accuracies, and of the classes' means, over images drawn so often."""
        shares = np.array([correct[each == CLASSES].T @ counts[each == CLASSES] / 3 for each in range(20)])
        mu = unchanged @ counts / counts.sum()
        outside, inside = (correct.T @ counts / counts.sum() - mu) ** 2, (shares.mean(axis=1) - mu) ** 2
        if definition == "as_written":
            return float(1 - outside.mean() ** 0.5 - inside.mean() ** 0.5)
        return float(1 - outside.sum() / 3 - inside.sum() / 19)

    assert found.value == pytest.approx(by_hand(np.ones(60)))
    assert found.draws.shape == (200,)
    assert found.shifted
    # two of the three images of a class are drawn, with the weight of three
    assert found.draws[7] == pytest.approx(by_hand(RESAMPLES.counts[7] * 1.5))
    low, high = np.quantile(found.draws, [0.025, 0.975])
    interval = found.interval()
    assert interval == Interval(2 * found.value - high, min(1, 2 * found.value - low))
