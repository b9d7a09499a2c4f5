"""The measures of perturbation sequences, against counts written out."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.perturbations.params import PERTURBATIONS
from cleanset.studies.robustness.perturbations.results import PerturbationStudy, Top5, by_frame, read_answers
from cleanset.studies.robustness.results import MeasureLine, StudiedImages
from cleanset.studies.robustness.sampled import CLEAN, UNCHANGED

SETS = [["a"], ["a", "b"], ["b"], ["a", "b"], ["a", "b"], ["b"]]
CLASSES = np.array([0, 0, 1, 1, 2, 2])
FRAMES = 6


def answers(seed: int, classes: int) -> dict[str, Top5]:
    """Lists of five distinct classes; fewer classes to draw from flip less."""
    generator = np.random.default_rng(seed)
    lists = [generator.permutation(classes)[:5] for _ in range(len(SETS) * FRAMES * len(PERTURBATIONS))]
    whole = np.array(lists).reshape(len(PERTURBATIONS), len(SETS), FRAMES, 5)
    return {name: whole[place] for place, name in enumerate(PERTURBATIONS)}


def study(reference: str | None = "a", difficulty: int = 1, **given: dict[str, Top5]) -> PerturbationStudy:
    found = given or {"a": answers(1, 12), "b": answers(2, 6)}
    images = StudiedImages(CLASSES, SETS, list(found), Bootstrap(resamples=40))
    return PerturbationStudy(images, PERTURBATIONS, found, difficulty, reference)


def value(lines: list[MeasureLine], *key: str) -> float:
    (found,) = [each.value for each in lines if each[:4] == key]
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
        step = 1 if "noise" in name else difficulty
        assert found == pytest.approx(flipped(given.answers[model][name], images, step)), name
    published = value(lines, selection, model, "fp_as_published", "shot_noise")
    assert published == pytest.approx(flipped(given.answers[model]["shot_noise"], images, 1, first=True))
    assert value(lines, selection, model, "mean_fp", "") == pytest.approx(sum(by_name.values()) / 10)
    assert not [each for each in lines if each.measure == "fp_as_published" and each.change == "snow"]
    (mean,) = [each for each in lines if each[:3] == (selection, model, "mean_fp")]
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


def test_a_reference_that_hardly_flips_has_no_ratio() -> None:
    sure = answers(1, 12)
    sure["snow"][:] = np.arange(5)
    lines = list(study(a=sure, b=answers(2, 6)).lines())
    assert np.isnan(value(lines, "union", "b", "fr", "snow"))
    (mean,) = [each for each in lines if each[:3] == ("union", "b", "mfr")]
    assert np.isnan(mean.value)
    assert mean.problem == "1 of 10 perturbations have no ratio: snow"


def test_some_perturbations_have_the_means_of_these() -> None:
    """FP, T5D and mFR of the benchmark are of all ten; which are missing is said."""
    whole = study()
    given = PerturbationStudy(whole.images, ("snow", "tilt"), whole.answers, 1, "a")
    lines = list(given.lines())
    means = {"mean_fp_measured", "mean_t5d_measured"}
    assert {each.measure for each in lines} == {"fp", "t5d", "fr", "mean_fp", *means}
    for kind in ("fp", "t5d"):
        both = [value(lines, "union", "b", kind, name) for name in ("snow", "tilt")]
        assert value(lines, "union", "b", f"mean_{kind}_measured", "") == pytest.approx(sum(both) / 2)
    (mean,) = [each for each in lines if each[:3] == ("union", "b", "mean_fp")]
    assert np.isnan(mean.value)
    missing = "gaussian_noise, shot_noise, motion_blur, zoom_blur, brightness, translate, rotate, scale"
    assert mean.problem == f"no mean FP: 8 of its 10 perturbations were not measured: {missing}"
    assert {each.measure for each in given.differences()} == {"fp", "t5d", *means}
    assert not [each for each in whole.lines() if each.measure in means]


def test_differences_are_paired() -> None:
    lines = list(study().lines())
    found = {(each.selection, each.measure, each.change): each for each in study().differences()}
    for measure, change in (("mean_fp", ""), ("mt5d", ""), ("fp", "tilt"), ("t5d_as_published", "shot_noise")):
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
    assert rows["a", "gaussian_noise", "as_published", 4] == (6, sum(first[:, 4] != first[:, 0]))


IMAGES = pd.DataFrame({"file": ["x", "y"], "class_index": [1, 2]})


def rows() -> pd.DataFrame:
    nulls = [(file, change, 0, 0) for file in "xy" for change in (CLEAN, UNCHANGED)]
    frames = [(file, "snow", frame, 10 * frame + place) for place, file in enumerate("xy") for frame in (2, 0, 1)]
    table = pd.DataFrame(nulls + frames, columns=["file", "change", "frame", "first"])
    lists: Any = [list(range(each, each + 5)) for each in table.pop("first")]
    table["top5_class"] = lists
    return table


def test_answers_are_read() -> None:
    found = read_answers(IMAGES, rows(), {"snow": 3}, np.array([True, False, True]))
    assert found["snow"][..., 0].tolist() == [[0, 10, 20], [0, 0, 0], [1, 11, 21]]
    assert found["snow"][2, 1].tolist() == [11, 12, 13, 14, 15]


def test_a_frame_is_missing() -> None:
    with pytest.raises(CleansetError, match="predictions of snow: 2 of 8 cells are missing: file x frame 3"):
        read_answers(IMAGES, rows(), {"snow": 4}, np.array([True, True]))
