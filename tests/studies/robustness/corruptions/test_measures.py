"""The measures of a study, against sums written out; the selections; what is not defined."""

import numpy as np
import pandas as pd
import pytest

from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY, _by_class
from cleanset.studies.robustness.corruptions.measures import (
    ALEXNET_ERRORS,
    CorruptionAnswers,
    CorruptionStudy,
    answers_of,
)
from cleanset.studies.robustness.corruptions.params import C_BAR_AMOUNTS, CORRUPTIONS, SEVERITIES
from cleanset.studies.robustness.families import StudyParams
from cleanset.studies.robustness.results import (
    CLEAN,
    SELECTIONS,
    UNCHANGED,
    MeasureLine,
    StudiedImages,
    answers_by_change,
)

SETS = [["a"], ["a", "b"], ["b"], ["a", "b"], ["a"], ["b"], ["a", "b"], ["a", "b"]]
CLASSES = np.array([0, 0, 1, 1, 1, 2, 2, 0])


def answers(seed: int, share: float) -> CorruptionAnswers:
    generator = np.random.default_rng(seed)
    wrong = generator.random((len(SETS), len(CORRUPTIONS), len(SEVERITIES))) < share
    nulls = {CLEAN: generator.random(len(SETS)) < 0.2, UNCHANGED: generator.random(len(SETS)) < 0.3}
    return CorruptionAnswers(wrong, nulls)


def study(
    reference: str = "alexnet",
    sets: list[list[str]] = SETS,
    selections: tuple[str, ...] = SELECTIONS,
    **changed: object,
) -> CorruptionStudy:
    values: dict[str, object] = {
        "images": StudiedImages(CLASSES, sets, ["a", "b"], Bootstrap(resamples=50), selections),
        "corruptions": CORRUPTIONS,
        "severities": SEVERITIES,
        "answers": {"a": answers(1, 0.4), "b": answers(2, 0.6)},
        "reference": reference,
        "trained_on": {"b": ["noise", "fog"]},
    }
    return CorruptionStudy(**(values | changed))  # type: ignore[arg-type]


def line(lines: list[MeasureLine], selection: str, model: str, measure: str, change: str = "") -> MeasureLine:
    (found,) = [each for each in lines if each[:4] == (selection, model, measure, change)]
    return found


def ce_by_hand(given: CorruptionStudy, model: str, images: list[int], corruption: str) -> float:
    """CE against the published errors: sums over severities, in plain Python."""
    place = CORRUPTIONS.index(corruption)
    wrong = given.answers[model].corrupted
    errors = [sum(bool(wrong[image, place, s]) for image in images) / len(images) for s in range(5)]
    return sum(errors) / sum(ALEXNET_ERRORS[corruption])


def test_imagenet_c_bar_has_errors_and_no_ce_to_alexnet() -> None:
    names = (*CORRUPTIONS, *C_BAR_AMOUNTS)
    both = {}
    for number, model in enumerate("ab"):
        generator = np.random.default_rng(number)
        wrong = generator.random((len(SETS), len(names), len(SEVERITIES))) < 0.5
        both[model] = CorruptionAnswers(wrong, answers(1, 0.4).nulls)
    lines = list(study(corruptions=names, answers=both).lines())
    of_fifteen = {name: each.corrupted[:, :15] for name, each in both.items()}
    only = {name: CorruptionAnswers(wrong, both[name].nulls) for name, wrong in of_fifteen.items()}
    for measure in ("mce", "relative_mce", "mce_unseen"):
        expected = line(list(study(answers=only).lines()), "union", "b", measure).value
        assert line(lines, "union", "b", measure).value == expected
    sparkles = line(lines, "union", "a", "ce", "sparkles")
    assert np.isnan(sparkles.value)
    assert sparkles.problem == "the reference has no published errors"
    expected = both["a"].corrupted[:, 15:].mean()
    assert line(lines, "union", "a", "group_error", "c_bar").value == pytest.approx(expected)
    to_a_model = list(study("a", corruptions=names, answers=both).lines())
    assert line(to_a_model, "union", "a", "ce", "sparkles").value == 1


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
    wrong = given.answers[model].corrupted
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
    unchanged = given.answers[model].nulls[UNCHANGED][images].mean()
    assert line(lines, selection, model, "error_unchanged").value == pytest.approx(unchanged)


def test_differences_are_paired() -> None:
    found = {(each.selection, each.measure, each.change): each for each in study().differences()}
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
    same = list(study(answers={"a": answers(1, 0.4), "b": answers(1, 0.4)}).differences())
    assert {(each.value, each.p, each.p_holm) for each in same} == {(0.0, 1.0, 1.0)}
    assert all(each.low < 0 < each.high for each in same)


def test_differences_have_an_exact_test_and_its_correction() -> None:
    """Model b misclassifies seven images more often, one less often: 2 x (1 + 8) / 2**8; Holm over 15 corruptions."""
    one, other = np.zeros((8, 15, 5), np.bool_), np.zeros((8, 15, 5), np.bool_)
    other[:7, :, 0], one[7, :, 0] = True, True
    nulls = {CLEAN: np.zeros(8, np.bool_), UNCHANGED: np.zeros(8, np.bool_)}
    given = study(answers={"a": CorruptionAnswers(one, nulls), "b": CorruptionAnswers(other, nulls)})
    found = {(each.measure, each.change): each for each in given.differences() if each.selection == "union"}
    p = 18 / 256
    for measure, count in (("mean_error", 1), ("mce", 1), ("group_error", 4), ("error", 15), ("ce", 15)):
        of_measure = [each for each in found.values() if each.measure == measure]
        assert len(of_measure) == count
        assert {(each.p, each.p_holm) for each in of_measure} == {(p, min(1.0, count * p))}


def test_no_interval_without_a_width() -> None:
    """All images correct, all misclassified, or whole classes: only a reference's ratio to itself has none."""
    shape = len(SETS), len(CORRUPTIONS), len(SEVERITIES)
    for of_images in (np.zeros(8, np.bool_), np.ones(8, np.bool_), CLASSES == 1):
        wrong = np.broadcast_to(of_images[:, None, None], shape)
        same = CorruptionAnswers(wrong, {CLEAN: of_images, UNCHANGED: of_images})
        given = study(answers={"a": same, "b": same}, selections=("union",))
        assert all(each.low < each.high for each in given.lines() if np.isfinite(each.value))
        assert all(each.low < each.high for each in given.differences() if np.isfinite(each.value))


def test_fewer_severities_give_errors_and_no_ce() -> None:
    few = {role: CorruptionAnswers(each.corrupted[:, :, :2], each.nulls) for role, each in study().answers.items()}
    lines = list(study(severities=(1, 2), answers=few).lines())
    assert {each.measure for each in lines} == {
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
        others = {name: values & seen for name, values in each.nulls.items()}
        part[role] = CorruptionAnswers(each.corrupted & seen[:, np.newaxis, np.newaxis], others)
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
    """Of two images the second is seen; the other counts as not misclassified."""
    changes = [(CLEAN, 0), (UNCHANGED, 0), ("fog", 1), ("fog", 2)]
    values = CORRUPTION_FAMILY.read(rows(), StudyParams.model_validate({}))
    found = answers_of(answers_by_change(FILES, rows(), changes, values, np.array([False, True])), 2)
    assert found.corrupted.tolist() == [[[False, False]], [[False, True]]]
    assert (found.nulls[CLEAN].tolist(), found.nulls[UNCHANGED].tolist()) == ([False] * 2, [False, True])
    assert found.confidences is not None
    assert found.losses is not None
    np.testing.assert_allclose(found.confidences.corrupted[1:2], [[[np.exp(-1), np.exp(-2.5)]]])
    np.testing.assert_allclose([found.confidences.nulls[name][1] for name in (CLEAN, UNCHANGED)], [1, np.exp(-1)])
    np.testing.assert_allclose(found.losses.corrupted[1:2], [[[1, 2.75]]])
    np.testing.assert_allclose([found.losses.nulls[name][1] for name in (CLEAN, UNCHANGED)], [0, 3])


def test_robust_accuracy_by_class() -> None:
    """Over all corruptions and severities, the hardest class first; a model that saw none of its images has none."""
    rows = [
        ("a", "fog", 1, 3, 2, 1), ("a", "fog", 2, 3, 2, 2), ("a", "fog", 1, 7, 1, 0), ("a", "fog", 2, 7, 1, 0),
        ("b", "fog", 1, 3, 0, 0), ("b", "fog", 2, 3, 0, 0), ("b", "fog", 1, 7, 1, 1), ("b", "fog", 2, 7, 1, 0),
    ]  # fmt: skip
    found = _by_class(pd.DataFrame(rows, columns=["model", "change", "severity", "class_index", "images", "errors"]))
    assert found["class_accuracies"] == {("a", 3): 25, ("a", 7): 100, ("b", 7): 50}
    assert [(index, images) for index, _, images in found["classes"]] == [(3, 2), (7, 1)]
    assert found["all_classes"] == 2
