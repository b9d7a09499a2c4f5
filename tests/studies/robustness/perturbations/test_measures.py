"""The measures of perturbation sequences, against counts written out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from cleanset.classes import class_table, imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.measures import Measure
from cleanset.statistics.basics import Ints
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.answer_arrays import Answers, answers_by_change
from cleanset.studies.robustness.families import StudyParams
from cleanset.studies.robustness.perturbations.family import PERTURBATION_FAMILY
from cleanset.studies.robustness.perturbations.measures import (
    DEFINITION_SUFFIXES,
    MAX_TOP5_DISTANCE,
    Pairs,
    PerturbationDefinition,
    PerturbationStudy,
    Top5,
    by_frame,
    flips,
    pairs,
    top5_distance,
    top5_distances,
)
from cleanset.studies.robustness.perturbations.params import (
    ALL_PERTURBATIONS,
    NOISE_PERTURBATIONS,
    PERTURBATIONS,
    PerturbationMeasures,
    Perturbations,
)
from cleanset.studies.robustness.results import ALL, StudiedImages
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED
from tests.properties import examples

SETS = [["a"], ["a", "b"], ["b"], ["a", "b"], ["a", "b"], ["b"]]
CLASSES = np.array([0, 0, 1, 1, 2, 2])
FRAMES = 6


def answers(seed: int, classes: int) -> dict[str, Top5]:
    """Lists of five distinct classes; fewer classes to draw from flip less."""
    generator = np.random.default_rng(seed)
    lists = [generator.permutation(classes)[:5] for _ in range(len(SETS) * FRAMES * len(PERTURBATIONS))]
    whole = np.array(lists).reshape(len(PERTURBATIONS), len(SETS), FRAMES, 5)
    return {name: whole[place] for place, name in enumerate(PERTURBATIONS)}


def study(reference: str | None = "a", difficulty: int = 1, names: Sequence[str] = PERTURBATIONS) -> PerturbationStudy:
    images = StudiedImages(
        class_indices=CLASSES, sets=SETS, roles=["a", "b"], bootstrap=Bootstrap(resamples=40), classes=imagenet()
    )
    wanted = Perturbations(names=list(names), difficulty=difficulty)
    found = {"a": answers(1, 12), "b": answers(2, 6)}
    return PerturbationStudy(images, found, wanted, PerturbationMeasures(reference=reference))


def value(lines: list[Measure], *key: str) -> float:
    (found,) = [each.value for each in lines if (each.selection, each.model, each.measure, each.change) == key]
    return found


def flipped(top5: Top5, images: list[int], step: int, *, first: bool = False) -> float:
    """FP in plain Python."""
    pairs = [(0 if first else frame - step, frame) for frame in range(1 if first else step, FRAMES)]
    changed = [top5[i, one, 0] != top5[i, other, 0] for i in images for one, other in pairs]
    return sum(map(bool, changed)) / len(changed)


@pytest.mark.parametrize("difficulty", [1, 2])
@pytest.mark.parametrize(
    ("selection", "model", "images"), [("union", "b", [0, 1, 2, 3, 4, 5]), ("own", "a", [0, 1, 3, 4])]
)
def test_fp_by_hand(selection: str, model: str, images: list[int], difficulty: int) -> None:
    given = study(difficulty=difficulty)
    lines = list(given.lines())
    by_name = {name: value(lines, selection, model, "fp", name) for name in PERTURBATIONS}
    for name, found in by_name.items():
        first = "noise" in name
        assert found == pytest.approx(flipped(given.answers[model][name], images, difficulty, first=first)), name
    consecutive = value(lines, selection, model, "fp_consecutive", "shot_noise")
    assert consecutive == pytest.approx(flipped(given.answers[model]["shot_noise"], images, 1))
    assert value(lines, selection, model, "mean_fp", "") == pytest.approx(sum(by_name.values()) / 10)
    assert not [each for each in lines if each.measure == "fp_consecutive" and each.change == "snow"]
    (mean,) = [each for each in lines if (each.selection, each.model, each.measure) == (selection, model, "mean_fp")]
    assert mean.low <= mean.value <= mean.high


def test_ratios_to_the_reference() -> None:
    lines = list(study().lines())
    fr = {name: value(lines, "union", "b", "fr", name) for name in PERTURBATIONS}
    for name, found in fr.items():
        fp = [value(lines, "union", model, "fp", name) for model in "ba"]
        assert found == pytest.approx(fp[0] / fp[1])
    assert value(lines, "union", "b", "mfr", "") == pytest.approx(np.mean(list(fr.values())))
    assert value(lines, "union", "a", "mfr", "") == value(lines, "union", "a", "mt5d", "") == 1
    assert not [each for each in study(reference=None).lines() if each.measure in ("fr", "mfr", "mt5d")]


def test_some_perturbations_have_the_means_of_these() -> None:
    """FP, T5D and mFR of the benchmark are of all ten; which are missing is reported."""
    whole = study()
    given = study(names=["snow", "tilt"])
    lines = list(given.lines())
    means = {"mean_fp_measured", "mean_t5d_measured"}
    assert {each.measure for each in lines} == {"fp", "t5d", "fr", "mean_fp", *means}
    for kind in ("fp", "t5d"):
        both = [value(lines, "union", "b", kind, name) for name in ("snow", "tilt")]
        assert value(lines, "union", "b", f"mean_{kind}_measured", "") == pytest.approx(sum(both) / 2)
    (mean,) = [each for each in lines if (each.selection, each.model, each.measure) == ("union", "b", "mean_fp")]
    assert np.isnan(mean.value)
    missing = "gaussian_noise, shot_noise, motion_blur, zoom_blur, brightness, translate, rotate, scale"
    assert mean.problem == f"no mean FP: 8 of its 10 perturbations were not measured: {missing}"
    assert {each.measure for each in given.differences()} == {"fp", "t5d", *means}
    assert not [each for each in whole.lines() if each.measure in means]


def test_differences_are_paired() -> None:
    lines = list(study().lines())
    found = {(each.selection, each.measure, each.change): each for each in study().differences()}
    for measure, change in (("mean_fp", ""), ("mt5d", ""), ("fp", "tilt"), ("t5d_consecutive", "shot_noise")):
        each = found["union", measure, change]
        ends = [value(lines, "union", model, measure, change) for model in "ab"]
        assert each.value == pytest.approx(ends[0] - ends[1])
        assert each.low <= each.value <= each.high
    assert {selection for selection, _, _ in found} == {"union", "common"}
    assert not [measure for _, measure, _ in found if measure.startswith("fr")]


def test_flips_by_frame() -> None:
    given = study()
    rows = {tuple(row[:4]): tuple(row[4:]) for row in by_frame(given).itertuples(index=False)}
    top1 = given.answers["b"]["tilt"][..., 0]
    for frame in range(1, FRAMES):
        assert rows["b", "tilt", "as_written", frame] == (6, sum(top1[:, frame] != top1[:, frame - 1]))
    first = given.answers["a"]["gaussian_noise"][..., 0]
    assert rows["a", "gaussian_noise", "as_written", 4] == (6, sum(first[:, 4] != first[:, 0]))
    assert rows["a", "gaussian_noise", "consecutive", 4] == (6, sum(first[:, 4] != first[:, 3]))


def rows() -> pd.DataFrame:
    nulls = [(file, change, 0, 0) for file in "xy" for change in (CLEAN, UNCHANGED)]
    frames = [(file, "snow", frame, 10 * frame + place) for place, file in enumerate("xy") for frame in (2, 0, 1)]
    table = pd.DataFrame(nulls + frames, columns=["file", "change", "step", "first"])
    lists: Any = [list(range(each, each + 5)) for each in table.pop("first")]
    table["top5_class"] = lists
    return table


def read(files: str, seen: list[bool], frames: int) -> Answers:
    changes = [(CLEAN, 0), (UNCHANGED, 0), *(("snow", frame) for frame in range(frames))]
    values = PERTURBATION_FAMILY.read(rows(), StudyParams.model_validate({}))
    return answers_by_change(pd.Series(list(files)), rows(), changes, values, np.array(seen))


def test_answers_are_read() -> None:
    found = read("xwy", [True, False, True], 3)["snow"]
    assert found[..., 0].tolist() == [[0, 10, 20], [0, 0, 0], [1, 11, 21]]
    assert found[2, 1].tolist() == [11, 12, 13, 14, 15]


def test_sequences_of_several_lengths_are_distinguished() -> None:
    """For each perturbation its own frames, after the clean and the unchanged image."""
    changes = [(CLEAN, 0), (UNCHANGED, 0), *Perturbations(names=["translate", "snow"]).changes()]
    answers = pd.DataFrame([(file, *each) for file in "xy" for each in changes], columns=["file", "change", "step"])
    values = np.arange(2 * (2 + 31 + 41) * 5).reshape(-1, 5)
    found = answers_by_change(pd.Series(["x", "y"]), answers, changes, values, np.array([True, True]))
    assert {name: each.shape for name, each in found.items()} == {
        CLEAN: (2, 1, 5), UNCHANGED: (2, 1, 5), "snow": (2, 31, 5), "translate": (2, 41, 5),
    }  # fmt: skip
    assert found["snow"][1, 0].tolist() == [380, 381, 382, 383, 384]
    assert found["translate"][0, 40, 4] == 74 * 5 - 1


def test_a_frame_is_missing() -> None:
    with pytest.raises(CleansetError, match="predictions: 2 of 12 cells are missing: file x change snow 3, "):
        read("xy", [True, True], 4)
    with pytest.raises(CleansetError, match=r"column change: found .*snow.*2.*; expected one of 4 values"):
        read("xy", [True, True], 2)


TOP = [0, 1, 2, 3, 4]


Lines = dict[tuple[str, str, str], Measure]


def measured(models: Mapping[str, Mapping[str, Ints]], difficulty: int = 1, reference: str | None = None) -> Lines:
    """What stage measure reports of these top-5 lists, by model, measure and perturbation."""
    first = next(iter(models.values()))
    images = len(next(iter(first.values())))
    studied = StudiedImages(
        class_indices=np.zeros(images, np.int64),
        sets=[[]] * images,
        roles=list(models),
        bootstrap=Bootstrap(resamples=2),
        selections=(ALL,),
        classes=imagenet(),
    )
    wanted = Perturbations(names=list(first), difficulty=difficulty)
    lines = PerturbationStudy(studied, models, wanted, PerturbationMeasures(reference=reference)).lines()
    return {(each.model, each.measure, each.change): each for each in lines}


def lists(top1: Sequence[Sequence[int]]) -> Ints:
    """Top-5 lists with these predictions, images x frames."""
    return 10 * np.array(top1)[..., np.newaxis] + np.arange(5)


def as_listed(compared: Pairs) -> list[tuple[int, int]]:
    return list(zip(*(each.tolist() for each in compared), strict=True))


def test_the_frames_that_are_compared() -> None:
    assert as_listed(pairs("snow", 4)) == [(0, 1), (1, 2), (2, 3)]
    assert as_listed(pairs("snow", 4, "consecutive")) == [(0, 1), (1, 2), (2, 3)]
    assert as_listed(pairs("shot_noise", 4)) == [(0, 1), (0, 2), (0, 3)]
    assert as_listed(pairs("shot_noise", 4, "consecutive")) == [(0, 1), (1, 2), (2, 3)]
    assert sorted(as_listed(pairs("tilt", 7, difficulty=3))) == [(0, 3), (1, 4), (2, 5), (3, 6)]


@pytest.mark.parametrize("definition", ["as_written", "consecutive"])
def test_the_difficulty_of_noise_is_in_its_frames(definition: PerturbationDefinition) -> None:
    for name in NOISE_PERTURBATIONS:
        assert as_listed(pairs(name, 5, definition, 3)) == as_listed(pairs(name, 5, definition))


@pytest.mark.parametrize(
    ("predictions", "perturbation", "definition", "difficulty", "expected"),
    [
        ([0, 1, 1, 1, 0], "snow", "as_written", 1, 0.5),
        ([0, 1, 1, 1, 0], "gaussian_noise", "as_written", 1, 0.75),
        ([0, 1, 1, 1, 0], "gaussian_noise", "consecutive", 1, 0.5),
        ([0, 0, 1, 1, 0, 0, 0, 2], "snow", "as_written", 1, 0.428571),
        ([0, 0, 1, 1, 0, 0, 0, 2], "snow", "as_written", 2, 0.833333),
        ([0, 0, 1, 1, 0, 0, 0, 2], "snow", "as_written", 3, 0.8),
    ],
)
def test_golden_flip_probabilities(
    predictions: list[int], perturbation: str, definition: PerturbationDefinition, difficulty: int, expected: float
) -> None:
    given = {perturbation: lists([predictions, predictions])}
    suffix = DEFINITION_SUFFIXES[definition] if "noise" in perturbation else ""
    assert round(measured({"a": given}, difficulty)["a", "fp" + suffix, perturbation].value, 6) == expected


def test_flips_by_image_and_by_comparison() -> None:
    top1 = np.array([[7, 7, 8], [7, 9, 7], [3, 3, 3]])
    compared = pairs("snow", 3)
    assert flips(top1, compared, axis=1).tolist() == [1, 2, 0]
    assert flips(top1, compared, axis=0).tolist() == [1, 2]
    assert measured({"a": {"snow": lists(top1.tolist())}})["a", "fp", "snow"].value == 0.5


def published(videos: Ints, distance: Callable[[Ints, Ints], Ints], noise: bool, difficulty: int) -> float:
    """The mean over videos of the mean over comparisons, from the runs of frames that the published code forms."""
    means = []
    for video in videos:
        if noise:
            compared = [(video[0], frame) for frame in video[1:]]
        else:
            compared = [each for start in range(difficulty) for each in pairwise(video[start::difficulty])]
        means.append(np.mean([distance(reference, frame) for reference, frame in compared]))
    return float(np.mean(means))


@examples(200)
@given(
    st.integers(0, 2**32), st.integers(2, 5), st.integers(4, 12), st.sampled_from(ALL_PERTURBATIONS), st.integers(1, 3)
)
def test_flips_and_distances_are_those_of_the_published_code(
    seed: int, videos: int, frames: int, name: str, difficulty: int
) -> None:
    generator = np.random.default_rng(seed)
    top5 = generator.random((videos, frames, 8)).argsort(axis=-1)[..., :5]
    noise = "noise" in name
    found = measured({"a": {name: top5}}, difficulty)
    expected = published(top5[..., 0], np.not_equal, noise, difficulty)
    assert found["a", "fp", name].value == pytest.approx(expected)
    expected = published(top5, top5_distance, noise, difficulty)
    assert found["a", "t5d", name].value == pytest.approx(expected)


def by_full_ranks(reference: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> int:
    """T5D by its definition, of logits of all classes."""
    first = rankdata(-reference, method="ordinal").astype(int)
    second = rankdata(-other, method="ordinal").astype(int)
    sigma = second[np.argsort(first)]
    return sum(
        1
        for i in range(1, 6)
        for j in range(min(i, sigma[i - 1]) + 1, max(i, sigma[i - 1]) + 1)
        if 1 <= j - 1 <= 5
    )  # fmt: skip


def test_two_lists_of_five_give_the_distance_of_the_full_ranks() -> None:
    generator = np.random.default_rng(11)
    for number in range(1000):
        one = generator.random(12 if number % 2 else 1000)
        other = one + generator.random(len(one)) * generator.choice([0.005, 0.1, 2])
        lists = [np.argsort(-each, kind="stable")[:5] for each in (one, other)]
        assert int(top5_distance(*lists)) == by_full_ranks(one, other)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([0, 1, 2, 3, 4], 0),
        ([1, 0, 2, 3, 4], 2),
        ([0, 1, 2, 3, 5], 1),
        ([5, 1, 2, 3, 4], 5),
        ([999, 1, 2, 3, 4], 5),
        ([4, 3, 2, 1, 0], 12),
        ([5, 6, 7, 8, 9], 15),
        ([3, 4, 7, 8, 9], 18),
    ],
)
def test_golden_top5_distances(other: list[int], expected: int) -> None:
    assert int(top5_distance(np.array(TOP), np.array(other))) == expected


@examples(300)
@given(st.permutations(range(10)))
def test_no_distance_is_above_the_maximum(order: list[int]) -> None:
    assert 0 <= int(top5_distance(np.array(TOP), np.array(order[:5]))) <= MAX_TOP5_DISTANCE


def test_distances_by_image() -> None:
    swapped, gone = [1, 0, 2, 3, 4], [5, 6, 7, 8, 9]
    top5 = np.array([[TOP, swapped, TOP], [TOP, TOP, gone]])
    assert top5_distances(top5, pairs("snow", 3)).tolist() == [4, 15]
    assert top5_distances(top5, pairs("gaussian_noise", 3)).tolist() == [2, 15]
    assert measured({"a": {"snow": top5}})["a", "t5d", "snow"].value == 19 / 4


def flipping(count: int, name: str = "", images: int = 25, frames: int = 5) -> Ints:
    """Lists with this number of flips of the perturbation, each to five other classes."""
    flips = np.zeros(images * (frames - 1), np.int64)
    flips[:count] = 1
    steps = flips.reshape(images, frames - 1)
    if name not in NOISE_PERTURBATIONS:
        steps = steps.cumsum(axis=1)
    return lists(np.concatenate([np.zeros((images, 1), np.int64), steps], axis=1).tolist())


def test_means_and_ratios_are_over_the_ten_test_perturbations() -> None:
    """Over 100 comparisons; a list of five other classes has a T5D of 15."""
    own = {name: flipping(place + 10, name) for place, name in enumerate(PERTURBATIONS)} | {"shear": flipping(99)}
    reference = {name: flipping(20 + 2 * place, name) for place, name in enumerate(PERTURBATIONS)}
    reference["shear"] = flipping(50)
    found = measured({"a": own, "b": reference}, reference="b")
    assert found["a", "mean_fp", ""].value == pytest.approx(0.145)
    assert found["a", "mean_t5d", ""].value == pytest.approx(15 * 0.145)
    assert found["b", "mean_fp", ""].value == pytest.approx(0.29)
    assert found["a", "fr", "shear"].value == pytest.approx(99 / 50)
    for name in PERTURBATIONS:
        assert found["a", "fr", name].value == pytest.approx(0.5)
    assert found["a", "mfr", ""].value == found["a", "mt5d", ""].value == pytest.approx(0.5)
    other = measured({"a": own | {"tilt": flipping(36)}, "b": reference}, reference="b")
    assert other["a", "mfr", ""].value == other["a", "mt5d", ""].value == pytest.approx((9 * 0.5 + 1) / 10)


def test_ratios_of_noise() -> None:
    """For each image four flips against the first frame, the reference's two; one and two against the one before."""
    steady = dict.fromkeys(PERTURBATIONS, flipping(50))
    own = steady | {"shot_noise": lists([[0, 1, 1, 1, 1]] * 25)}
    reference = steady | {"shot_noise": lists([[0, 1, 1, 0, 0]] * 25)}
    found = measured({"a": own, "b": reference}, reference="b")
    assert found["a", "fr", "shot_noise"].value == pytest.approx(2)
    assert found["a", "fr_consecutive", "shot_noise"].value == pytest.approx(1 / 2)
    assert found["a", "mfr", ""].value == found["a", "mt5d", ""].value == pytest.approx(1.1)
    assert found["a", "mfr_consecutive", ""].value == pytest.approx(0.95)
    assert found["a", "mt5d_consecutive", ""].value == pytest.approx(0.95)
    assert ("a", "fr_consecutive", "snow") not in found


def test_a_ratio_needs_ten_flips_of_the_reference() -> None:
    own = dict.fromkeys(PERTURBATIONS, flipping(30))
    found = measured({"a": own, "b": own | {"tilt": flipping(9), "snow": flipping(10)}}, reference="b")
    assert np.isnan(found["a", "fr", "tilt"].value)
    assert found["a", "fr", "tilt"].problem == "the reference's predictions flip too rarely"
    assert found["a", "fr", "snow"].value == pytest.approx(3)
    assert np.isnan(found["a", "mfr", ""].value)
    assert found["a", "mfr", ""].problem == "1 of 10 perturbations have no ratio: tilt"
    # nine flips are a distance of 135
    assert found["a", "mt5d", ""].value == pytest.approx((8 + 3 + 30 / 9) / 10)


def test_top5_distance_needs_five_classes() -> None:
    """The class table is that of the images: two studies of different ones are measured by turns."""
    whole = study(names=["snow"])
    few = class_table([("cat", "cat"), ("dog", "dog"), ("fox", "fox")], "here")
    own = replace(whole, images=replace(whole.images, classes=few))
    first = [each.measure for each in whole.lines()]
    assert {each.measure for each in own.lines() if each.measure.startswith("t5d")} == set()
    assert [each.measure for each in whole.lines()] == first
    assert "t5d" in first
