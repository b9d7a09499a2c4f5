"""The measures of a study, against sums written out; the selections; what is not defined."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from cleanset.classes import class_table, imagenet
from cleanset.evaluation.measures import Difference, Measure
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.answer_arrays import Answers, answers_by_change
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY, _by_class
from cleanset.studies.robustness.corruptions.measures import (
    ALEXNET_ERRORS,
    ALEXNET_ERRORS_3DCC,
    CorruptionStudy,
)
from cleanset.studies.robustness.corruptions.params import (
    C_BAR_AMOUNTS,
    CORRUPTIONS,
    CORRUPTIONS_3DCC,
    SEVERITIES,
    CorruptionMeasures,
    Corruptions,
)
from cleanset.studies.robustness.families import StudyParams
from cleanset.studies.robustness.results import SELECTIONS, StudiedImages
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED

SETS = [["a"], ["a", "b"], ["b"], ["a", "b"], ["a"], ["b"], ["a", "b"], ["a", "b"]]
CLASSES = np.array([0, 0, 1, 1, 1, 2, 2, 0])


EVERY = np.ones(len(SETS), np.bool_)
CALIBRATION = ("ece", "nll", "mean_ece", "mean_nll", "ece_clean", "ece_unchanged", "nll_clean", "nll_unchanged")


def answers_of(
    wrong: np.ndarray, clean: np.ndarray, unchanged: np.ndarray, names: Sequence[str] = CORRUPTIONS
) -> Answers:
    """A model's answers: misclassified images, and of images x corruptions x severities; with any confidences."""
    given = {CLEAN: clean[:, None], UNCHANGED: unchanged[:, None]}
    given |= {name: wrong[:, place] for place, name in enumerate(names)}
    generator = np.random.default_rng(3)
    return {
        name: np.stack([each, generator.random(each.shape), 9 * generator.random(each.shape)], axis=-1)
        for name, each in given.items()
    }


def answers(seed: int, share: float) -> Answers:
    generator = np.random.default_rng(seed)
    wrong = generator.random((len(SETS), len(CORRUPTIONS), len(SEVERITIES))) < share
    return answers_of(wrong, generator.random(len(SETS)) < 0.2, generator.random(len(SETS)) < 0.3)


def study(
    reference: str = "alexnet",
    answers: Mapping[str, Answers] = MappingProxyType({"a": answers(1, 0.4), "b": answers(2, 0.6)}),
    names: Sequence[str] = CORRUPTIONS,
    severities: Sequence[int] = SEVERITIES,
    selections: tuple[str, ...] = SELECTIONS,
    line: Sequence[str] = (),
) -> CorruptionStudy:
    images = StudiedImages(
        class_indices=CLASSES,
        sets=SETS,
        roles=["a", "b"],
        bootstrap=Bootstrap(resamples=50),
        selections=selections,
        classes=imagenet(),
    )
    published = "folder" if set(names) & set(CORRUPTIONS_3DCC) else None
    section = {"names": list(names), "severities": list(severities), "published": published}
    measures = {"reference": reference, "trained_on": {"b": ["noise", "fog"]}, "line": list(line)}
    return CorruptionStudy(
        images, answers, Corruptions.model_validate(section), CorruptionMeasures.model_validate(measures)
    )


def differences_of_errors(given: CorruptionStudy) -> list[Difference]:
    """The differences in what pseudo-images are added to."""
    return [each for each in given.differences() if each.measure not in CALIBRATION]


def line(lines: list[Measure], selection: str, model: str, measure: str, change: str = "") -> Measure:
    (found,) = [
        each
        for each in lines
        if (each.selection, each.model, each.measure, each.change) == (selection, model, measure, change)
    ]
    return found


def ce_by_hand(given: CorruptionStudy, model: str, images: list[int], corruption: str) -> float:
    """CE against the published errors: sums over severities, in plain Python."""
    place = CORRUPTIONS.index(corruption)
    wrong = given.wrong(model, EVERY)
    errors = [sum(bool(wrong[image, place, s]) for image in images) / len(images) for s in range(5)]
    return sum(errors) / sum(ALEXNET_ERRORS[corruption])


def test_imagenet_c_bar_has_errors_and_no_ce_to_alexnet() -> None:
    names = (*CORRUPTIONS, *C_BAR_AMOUNTS)
    both = {}
    for number, model in enumerate("ab"):
        generator = np.random.default_rng(number)
        wrong = generator.random((len(SETS), len(names), len(SEVERITIES))) < 0.5
        both[model] = answers_of(wrong, EVERY, generator.random(len(SETS)) < 0.3, names)
    lines = list(study(names=names, answers=both).lines())
    only = {model: {name: each[name] for name in (CLEAN, UNCHANGED, *CORRUPTIONS)} for model, each in both.items()}
    for measure in ("mce", "relative_mce", "mce_unseen"):
        expected = line(list(study(answers=only).lines()), "union", "b", measure).value
        assert line(lines, "union", "b", measure).value == expected
    sparkles = line(lines, "union", "a", "ce", "sparkles")
    assert np.isnan(sparkles.value)
    assert sparkles.problem == "the reference has no published errors"
    expected = np.mean([both["a"][name][..., 0].mean() for name in C_BAR_AMOUNTS])
    assert line(lines, "union", "a", "group_error", "c_bar").value == pytest.approx(expected)
    assert "mce_c_bar" not in {each.measure for each in lines}
    to_a_model = list(study("a", names=names, answers=both).lines())
    assert line(to_a_model, "union", "a", "ce", "sparkles").value == 1
    assert line(to_a_model, "union", "a", "mce_c_bar").value == 1


def test_mce_of_3dcc_by_hand() -> None:
    """Errors of both models at every severity: mean CE over 12 corruptions; without ImageNet-C there is no mCE."""
    generator = np.random.default_rng(5)
    both = {}
    for model in "ab":
        wrong = generator.random((len(SETS), 12, len(SEVERITIES))) < 0.5
        both[model] = answers_of(wrong, EVERY, EVERY, CORRUPTIONS_3DCC)
    lines = list(study(names=CORRUPTIONS_3DCC, answers=both).lines())
    ces = {
        name: sum(both["b"][name][:, severity, 0].sum() / len(SETS) for severity in range(5)) / sum(alexnet)
        for name, alexnet in ALEXNET_ERRORS_3DCC.items()
    }
    assert line(lines, "union", "b", "ce", "flash").value == pytest.approx(ces["flash"])
    assert line(lines, "union", "b", "mce_3dcc").value == pytest.approx(sum(ces.values()) / 12)
    assert line(lines, "union", "b", "group_error", "3dcc").value == line(lines, "union", "b", "mean_error").value
    assert not {"mce", "relative_mce"} & {each.measure for each in lines}
    two = list(study(names=CORRUPTIONS_3DCC, answers=both, severities=SEVERITIES[:2]).lines())
    assert line(two, "union", "b", "mce_3dcc").problem == "no mCE: severities 1, 2; CE needs 1 to 5, and lacks 3, 4, 5"
    assert "mce" not in {each.measure for each in two}
    some = list(study(names=CORRUPTIONS_3DCC[:11], answers=both).lines())
    assert "mce_3dcc" not in {each.measure for each in some}


@pytest.mark.parametrize(
    ("selection", "model", "images"),
    [
        ("union", "a", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("own", "a", [0, 1, 3, 4, 6, 7]),
        ("own", "b", [1, 2, 3, 5, 6, 7]),
        ("common", "b", [1, 3, 6, 7]),
    ],
)
def test_every_measure_by_hand(selection: str, model: str, images: list[int]) -> None:
    given = study()
    lines = list(given.lines())
    wrong = given.wrong(model, EVERY)
    mean = sum(bool(wrong[i, c, s]) for i in images for c in range(15) for s in range(5)) / (75 * len(images))
    found = line(lines, selection, model, "mean_error")
    assert found.images == len(images)
    assert found.value == pytest.approx(mean)
    assert found.low <= found.value <= found.high
    blur = line(lines, selection, model, "group_error", "blur").value
    assert blur == pytest.approx(
        sum(line(lines, selection, model, "error", CORRUPTIONS[place]).value for place in range(3, 7)) / 4
    )
    ratios = {name: ce_by_hand(given, model, images, name) for name in CORRUPTIONS}
    for name in ("gaussian_noise", "jpeg_compression"):
        assert line(lines, selection, model, "ce", name).value == pytest.approx(ratios[name])
    assert line(lines, selection, model, "mce").value == pytest.approx(sum(ratios.values()) / 15)
    seen = {"gaussian_noise", "shot_noise", "impulse_noise", "fog"} if model == "b" else set[str]()
    unseen = [value for name, value in ratios.items() if name not in seen]
    assert line(lines, selection, model, "mce_unseen").value == pytest.approx(sum(unseen) / len(unseen))
    unchanged = given.answers[model][UNCHANGED][images, 0, 0].mean()
    assert line(lines, selection, model, "error_unchanged").value == pytest.approx(unchanged)


def test_differences_are_paired() -> None:
    found = {(each.selection, each.measure, each.change): each for each in differences_of_errors(study())}
    lines = list(study().lines())
    measures = [(measure, name) for measure in ("error", "ce") for name in CORRUPTIONS]
    measures += [("group_error", name) for name in ("noise", "blur", "weather", "digital")]
    measures += [("mean_error", ""), ("mce", ""), ("relative_mce", "")]
    assert set(found) == {(selection, *each) for selection in ("union", "common") for each in measures}
    for (selection, measure, change), each in found.items():
        values = [line(lines, selection, model, measure, change).value for model in "ab"]
        assert (each.model, each.other) == ("a", "b")
        assert each.value == pytest.approx(values[0] - values[1])
        assert each.low <= each.value <= each.high
    same = differences_of_errors(study(answers={"a": answers(1, 0.4), "b": answers(1, 0.4)}))
    assert {(each.value, each.p, each.p_holm) for each in same} == {(0.0, 1.0, 1.0)}
    assert all(each.low < 0 < each.high for each in same)


def test_differences_have_an_exact_test_and_its_correction() -> None:
    """Model b misclassifies seven images more often, one less often: 2 x (1 + 8) / 2**8; Holm over 15 corruptions."""
    one, other = np.zeros((8, 15, 5), np.bool_), np.zeros((8, 15, 5), np.bool_)
    other[:7, :, 0], one[7, :, 0] = True, True
    given = study(answers={"a": answers_of(one, ~EVERY, ~EVERY), "b": answers_of(other, ~EVERY, ~EVERY)})
    found = {(each.measure, each.change): each for each in given.differences() if each.selection == "union"}
    p = 18 / 256
    for measure, count in (("mean_error", 1), ("mce", 1), ("group_error", 4), ("error", 15), ("ce", 15)):
        of_measure = [each for each in found.values() if each.measure == measure]
        assert len(of_measure) == count
        assert {(each.p, each.p_holm) for each in of_measure} == {(p, min(1.0, count * p))}


def test_no_interval_without_a_width() -> None:
    """All images correct, all misclassified, or whole classes; calibration errors have no interval at all."""
    shape = len(SETS), len(CORRUPTIONS), len(SEVERITIES)
    for of_images in (np.zeros(8, np.bool_), np.ones(8, np.bool_), CLASSES == 1):
        wrong = np.broadcast_to(of_images[:, None, None], shape)
        same = answers_of(wrong, of_images, of_images)
        given = study(answers={"a": same, "b": same}, selections=("union",))
        for each in given.lines():
            if "ece" in each.measure:
                assert math.isnan(each.low)
                assert math.isnan(each.high)
            elif math.isfinite(each.value):
                assert each.low < each.high, each
        assert all(each.low < each.high for each in differences_of_errors(given) if np.isfinite(each.value))


def test_fewer_severities_give_errors_and_no_ce() -> None:
    few = {role: {name: values[:, :2] for name, values in each.items()} for role, each in study().answers.items()}
    lines = list(study(severities=(2, 1), answers=few).lines())
    assert {each.measure for each in lines} - {*CALIBRATION} == {
        "error_clean", "error_unchanged", "error", "group_error", "mean_error", "mce",
    }  # fmt: skip
    mce = line(lines, "union", "a", "mce")
    assert np.isnan(mce.value)
    assert mce.problem == "no mCE: severities 1, 2; CE needs 1 to 5, and lacks 3, 4, 5"


def test_each_model_on_its_own_images_alone() -> None:
    """The same lines as those of the models that saw all images; what was not seen counts nowhere."""
    whole = study()
    part = {}
    for role, each in whole.answers.items():
        seen = whole.images.selected("own", role)
        part[role] = {name: values * seen[:, np.newaxis, np.newaxis] for name, values in each.items()}
    alone = study(answers=part, selections=("own",))
    assert list(alone.lines()) == [each for each in whole.lines() if each.selection == "own"]
    assert list(alone.differences()) == []


def rows(**changed: object) -> pd.DataFrame:
    cells = [("x", CLEAN, 0, 1), ("x", UNCHANGED, 0, 2), ("x", "fog", 1, 1), ("x", "fog", 2, 7)]
    table = pd.DataFrame(cells, columns=["file", "change", "step", "class"])
    table["top5_class"] = [[each] for each in table.pop("class")]
    table["largest_logit"] = np.array([2.0, 1.0, 5.0, 0.5], np.float32)
    table["log_sum_exp"] = np.array([2.0, 2.0, 6.0, 3.0], np.float32)
    table["class_logit"] = np.array([2.0, -1.0, 5.0, 0.25], np.float32)
    return table.assign(class_index=1, **changed)  # type: ignore[arg-type]


FILES = pd.Series(["w", "x"])


def test_answers_are_read() -> None:
    """The second of two images is seen; the other counts as not misclassified."""
    changes = [(CLEAN, 0), (UNCHANGED, 0), ("fog", 1), ("fog", 2)]
    values = CORRUPTION_FAMILY.read(rows(), StudyParams.model_validate({}))
    found = answers_by_change(FILES, rows(), changes, values, np.array([False, True]))
    assert list(found) == [CLEAN, UNCHANGED, "fog"]
    assert found["fog"][..., 0].tolist() == [[0, 0], [0, 1]]
    assert (found[CLEAN][..., 0].tolist(), found[UNCHANGED][..., 0].tolist()) == ([[0], [0]], [[0], [1]])
    np.testing.assert_allclose(found["fog"][1, :, 1:], [[np.exp(-1), 1], [np.exp(-2.5), 2.75]])
    np.testing.assert_allclose([found[name][1, 0, 1:] for name in (CLEAN, UNCHANGED)], [[1, 0], [np.exp(-1), 3]])


def test_robust_accuracy_by_class() -> None:
    """Over all corruptions and severities, the hardest class first; a model that saw none of its images has none."""
    rows = [
        ("a", "fog", 1, 3, 2, 1), ("a", "fog", 2, 3, 2, 2), ("a", "fog", 1, 7, 1, 0), ("a", "fog", 2, 7, 1, 0),
        ("b", "fog", 1, 3, 0, 0), ("b", "fog", 2, 3, 0, 0), ("b", "fog", 1, 7, 1, 1), ("b", "fog", 2, 7, 1, 0),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["model", "change", "severity", "class_index", "images", "errors"])
    found = _by_class(table, imagenet())
    assert found["class_accuracies"] == {("a", 3): 25, ("a", 7): 100, ("b", 7): 50}
    assert [(index, images) for index, _, images in found["classes"]] == [(3, 2), (7, 1)]
    assert found["all_classes"] == 2


def test_other_images_have_no_mce_to_alexnet() -> None:
    given = study()
    few = class_table([("cat", "cat"), ("dog", "dog")], "here")
    own = replace(given, images=replace(given.images, classes=few))
    for each in (given, own, given):
        problems = {line.problem for line in each.lines() if line.measure == "mce"}
        expected = "" if each is given else "no mCE without a reference: name a model in measures.corruptions.reference"
        assert problems == {expected}
