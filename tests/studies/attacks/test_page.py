"""The page on attacks: what it shows of literal results, and the small images on it."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import log10
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.evaluation.measures import Measure
from cleanset.scoring.logits import Groups
from cleanset.studies.attacks.baselines import AtRadius, Baselines, BySearch
from cleanset.studies.attacks.page import (
    AttacksData,
    attacks_page,
    corner_points,
    coverage_line,
    limited_points,
    linf_values,
    log10_covered,
    parameters,
)
from cleanset.studies.attacks.shown_images import names_of, prediction_text, some_results
from cleanset.studies.attacks.signs import SeenSign
from cleanset.studies.attacks.study import AttackParams, WrappedModel
from cleanset.studies.attacks.warnings import WarningRecord
from tests.properties import examples
from tests.report.pages import cells

pytestmark = pytest.mark.slow

SETTINGS = AttackParams.model_validate(
    {"attacks": {"none": {}, "pgd": {"eps": "8/255", "steps": 3}, "far": {"kind": "pgd", "norm": "L2", "eps": 0.2}}}
)
NAN = float("nan")


def answers(before: Sequence[tuple[float, bool]], after: Sequence[tuple[float, bool]]) -> pd.DataFrame:
    """Images with the largest logit and whether the prediction is correct; all confidences have the same order."""
    frame = pd.DataFrame({"file": [f"n0/{place}.png" for place in range(len(before))]})
    frame["was_correct"] = [correct for _, correct in before]
    frame["is_error"] = [not correct for _, correct in after]
    for suffix, pairs in (("", before), ("_after", after)):
        largest = np.array([value for value, _ in pairs])
        frame[f"largest_logit{suffix}"], frame[f"second_logit{suffix}"] = largest, 0.0
        frame[f"log_sum_exp{suffix}"], frame[f"log_odds{suffix}"] = largest, largest
    return frame


CLEAN = [(9, True), (8, True), (7, True), (6, True), (5, False)]
ATTACKED = [(9, False), (8, True), (7, True), (6, False), (5, False)]
ROW = {
    "image_id": "ILSVRC2012_val_00000007", "name": "goldfish", "before": "goldfish 0.99", "after": "banana 0.51",
    "success": True, "l2": 4.5, "linf": 0.03, "files": ("a", "b", "c"), "factor": 8.0,
}  # fmt: skip


def data(**changed: Any) -> AttacksData:
    lines = [
        Measure.of(value, (low, high), "none", change=name, model="mine", measure=measure, images=images)
        for name in SETTINGS.names
        for measure, images, value, low, high in (
            ("success", 4, 0.5, 0.25, 0.75), ("error", 5, 0.6, NAN, NAN), ("queries", 5, 3.0, 3.0, 3.0),
            ("l2", 2, 1.5, 1.25, 1.75), ("ssim", 0, NAN, NAN, NAN),
        )
    ]  # fmt: skip
    shown: dict[str, Any] = {
        "models": ["mine"],
        "settings": SETTINGS,
        "lines": lines,
        "answers": {(name, "mine"): answers(CLEAN, ATTACKED) for name in SETTINGS.names},
        "warnings": [WarningRecord(role="mine", images=8, parameters={}, warnings=())],
        "sheets": {("pgd", "mine"): [ROW]},
        "sizes": {"mine": 160},
        "probes": {},
    }
    return AttacksData(**(shown | changed))


def page(found: AttacksData) -> BeautifulSoup:
    return BeautifulSoup(attacks_page(found, imagenet()), "html.parser")


def rows(shown: BeautifulSoup, label: str) -> list[list[str]]:
    table = shown.select_one(f'[aria-label="{label}"]')
    assert table is not None
    return [cells(row) for row in table.find_all("tr")]


def test_the_measures() -> None:
    found = page(data())
    assert rows(found, "Success by attack and model")[2] == ["pgd", "5", "50.0 25.0 to 75.0"]
    assert rows(found, "Error by attack and model")[2] == ["pgd", "5", "60.0"]
    assert rows(found, "Distances and queries by attack and model")[2] == [
        "pgd", "mine", "3.0", "–", "1.50 1.25 to 1.75", "–", "–", "–", "–",
    ]  # fmt: skip
    assert "Robustness" in found.nav.get_text()  # type: ignore[union-attr]


def test_growing_balls_and_the_checklist() -> None:
    """A line and a row for each model whose probe made searches, and a checklist of every model."""
    found = Baselines(
        images=8,
        by_radius=(AtRadius(eps=4 / 255, broken=2), AtRadius(eps=1, broken=6)),
        by_search=(
            BySearch(search="pgd of 10 steps", broken=2),
            BySearch(search="pgd of 1 step", broken=1),
            BySearch(search="random points", broken=1),
        ),
        noise_points=100,
        noise_broken=1,
    )
    record = WarningRecord(role="mine", images=8, parameters={}, warnings=(), baselines=found)
    shown = page(data(warnings=[record]))
    assert rows(shown, "Images broken in growing balls and by random points") == [
        ["model", "images", "4", "255", "random points"],
        ["mine", "8", "2", "6", "1"],
    ]
    (line,) = shown.select("svg.growing polyline")
    assert line["points"] == "50.0,90.5 370.0,35.5"
    answers_by_point = {row[0]: row[1:] for row in rows(shown, "Checklist of mine") if len(row) == 3}
    assert answers_by_point["With high distortion nothing withstands"] == [
        "not seen",
        "PGD breaks 6 of 8 correctly classified images where every pixel is free",
    ]
    assert "Growing balls and random points" not in page(data()).get_text()


def test_robust_accuracies() -> None:
    """By threat model: a number, bounds of a model with a sign, an upper bound of fewer images, nothing."""
    measures = {
        "Linf 8/255": {
            "clean_accuracy": (4, 1, 0.6, 1), "robust_accuracy": (4, 0.5, 0.15, 0.85), "robust_low": (4, 0.5, NAN, NAN),
            "robust_high": (4, 0.5, NAN, NAN), "robust_at_most": (9, 0.25, NAN, NAN),
            "reached": (4, 8 / 255, NAN, NAN),
        },
        "L2 0.2": {
            "clean_accuracy": (5, 0.8, 0.4, 0.9), "robust_accuracy": (5, NAN, NAN, NAN),
            "robust_low": (5, 0.2, NAN, NAN), "robust_high": (5, 0.6, NAN, NAN),
        },
    }  # fmt: skip
    lines = [
        Measure.of(value, (low, high), "none", change=name, model="mine", measure=measure, images=images)
        for name, of_name in measures.items()
        for measure, (images, value, low, high) in of_name.items()
    ]
    found = page(data(lines=[*data().lines, *lines], probes={"mine": "the probe breaks 3 of 4"}))
    assert rows(found, "Robust accuracy by threat model and model")[1:] == [
        ["Linf 8/255pgd", "mine", "4", "100.0 60.0 to 100.0", "50.0 15.0 to 85.0≤ 25.0 of 9 images", "0.0314"],
        ["L2 0.2far", "mine", "5", "80.0 40.0 to 90.0", "20.0 to 60.0", "–"],
    ]
    assert "mine: the probe breaks 3 of 4" in found.select_one("#warnings").get_text()  # type: ignore[union-attr]
    assert [row[2:] for row in rows(page(data()), "Robust accuracy by threat model and model")[1:]] == [["–"] * 4] * 2


def test_accuracy_over_coverage() -> None:
    """Clean: all correct but the least confident. Attacked: two of the four most confident ones, two of all."""
    found = page(data())
    assert [heading.get_text() for heading in found.select("#coverage h3")] == [
        "clean 5 images", "pgd 5 images", "far 5 images", "guess 5 images",
    ]  # fmt: skip
    clean = rows(found, "Accuracy on clean at 80 and 100 % coverage")
    attacked = rows(found, "Accuracy on pgd at 80 and 100 % coverage")
    kinds = ["max logit", "softmax", "margin", "energy"]
    assert clean[1:] == [*([f"{kind}, at 80 %", "100.0"] for kind in kinds), ["at 100 %", "80.0"]]
    assert attacked[1:] == [*([f"{kind}, at 80 %", "50.0"] for kind in kinds), ["at 100 %", "40.0"]]
    line = found.select_one('[aria-label="pgd, accuracy over coverage by softmax"] polyline')
    assert line is not None
    assert line["points"] == "83.6,118.0 135.2,63.0 186.8,44.7 238.4,63.0 290.0,74.0"


def test_where_the_published_kit_differs() -> None:
    """Equally confident images are covered together."""
    equal = [(5, correct) for _, correct in ATTACKED]
    found = page(data(answers={(name, "mine"): answers(CLEAN, equal) for name in SETTINGS.names}))
    attacked = rows(found, "Accuracy on pgd at 80 and 100 % coverage")
    assert attacked[1] == ["max logit, at 80 %", "50.0 as published 40.0"]


def test_the_clean_images_are_those_of_the_attack_that_has_most() -> None:
    few = {(name, "mine"): answers(CLEAN[:1], ATTACKED[:1]) for name in SETTINGS.names}
    found = page(data(answers=few | {("far", "mine"): answers(CLEAN, ATTACKED)}))
    assert [heading.get_text() for heading in found.select("#coverage h3")][:2] == ["clean 5 images", "pgd 1 images"]


def test_warnings() -> None:
    """In red with what was seen; a model without any is listed as well."""
    found = page(data())
    assert "No sign was seen of mine (8 images)." in found.select_one("#warnings").get_text()  # type: ignore[union-attr]
    assert not found.select("#warnings table")
    sign = SeenSign(sign="no_gradient", text="8 of 8 images have no gradient")
    seen = WarningRecord(role="mine", images=8, parameters={}, warnings=(sign,))
    found = page(data(warnings=[seen]))
    assert rows(found, "Warnings")[1:] == [["mine", "8", "no gradient", "8 of 8 images have no gradient"]]
    assert "do not measure how robust" in found.select_one("#warnings").get_text()  # type: ignore[union-attr]
    assert "No sign" not in found.select_one("#warnings").get_text()  # type: ignore[union-attr]
    unclear = WarningRecord(role="mine", images=8, parameters={}, warnings=(), not_told=(sign,))
    assert "No sign" not in page(data(warnings=[unclear])).select_one("#warnings").get_text()  # type: ignore[union-attr]


def test_what_a_bound_covers() -> None:
    """17 values within 8/255, 76,800 colors, 5 images; an L2 ball is not one; and the source's own example."""
    assert rows(page(data()), "Fraction of all images")[1:] == [
        ["pgd, eps 8/255", "160 × 160", "17", "5", "10−90453.7"],
        ["ImageNet's test images, as in appendix D", "229 × 229", "32", "40,152", "10−142072.2"],
    ]


def test_a_sheet() -> None:
    found = page(data()).select_one("#images figure")
    assert found is not None
    assert [image["src"] for image in found("img")] == ["a", "b", "c"]
    text = " ".join(found.get_text(" ").split())
    assert "difference × 8" in text
    assert "00000007 goldfish goldfish 0.99 → banana 0.51 L2 4.50, Linf 0.0300" in text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("none", ""),
        ("pgd", "norm Linf, eps 8/255, steps 3, random start yes, losses cross_entropy margin, restarts 1, files 5"),
        ("far", "norm L2, eps 0.2, steps 20, random start yes, losses cross_entropy margin, restarts 1, files 5"),
        ("guess", ""),
    ],
)
def test_parameters(name: str, text: str) -> None:
    assert parameters(SETTINGS, name) == text


def test_parameters_of_what_goes_before() -> None:
    settings = AttackParams.model_validate({"attacks": {"spsa": {"steps": 2, "after": {"max_angle": 10}}}})
    assert parameters(settings, "spsa") == (
        "eps 16/255, steps 2, samples 64, learning rate 0.01, delta 0.01, stop margin 1, "
        "after (scale 0.9107, max translation 18, max angle 10)"
    )


def test_a_prediction() -> None:
    """Class 954 has e^8 / (e^8 + 999) of the probability, and the second group e^2 / (e^2 + 1)."""
    logits = np.zeros(1000, np.float32)
    logits[954] = 8
    assert prediction_text(logits, names_of(None, imagenet())) == "banana 0.75"
    groups = Groups.of({"fish": ["n01443537"], "fruit": ["n07753592"]}, imagenet())
    assert prediction_text(np.array([1, 3], np.float32), names_of(groups, imagenet())) == "fruit 0.88"


WRAPPED = SETTINGS.model_copy(
    update={
        "wrapped": {
            "noisy": WrappedModel(model="mine", wrapper="uninteresting"),
            "two": WrappedModel.model_validate(
                {"model": "mine", "groups": {"fish": ["n01443537"], "fruit": ["n07753592"]}}, context=imagenet()
            ),
        }
    }
)


def test_wrapped_models() -> None:
    """They are last; what was not run on them is left out; the number of images, if there are fewer."""
    lines = data().lines
    noisy = [replace(line, model="noisy") for line in lines if line.change != "guess"]
    few = [replace(line, model="two", images={5: 3}.get(line.images, line.images)) for line in noisy]
    of_two = {(name, "two"): answers(CLEAN[2:], ATTACKED[2:]) for name in ("none", "pgd", "far")}
    of_noisy = {(name, "noisy"): answers(CLEAN, ATTACKED) for name in ("none", "pgd", "far")}
    found = page(
        data(
            models=["mine", "noisy", "two"],
            settings=WRAPPED,
            lines=[*lines, *noisy, *few],
            answers={**data().answers, **of_noisy, **of_two},
            sizes={"mine": 160, "noisy": 160, "two": 160},
        )
    )
    error = {row[0]: row[1:] for row in rows(found, "Error by attack and model")}
    assert error["error"] == ["images", "mine", "noisy", "two"]
    assert error["pgd"] == ["5", "60.0", "60.0", "60.0 3 images"]
    assert error["guess"] == ["5", "60.0", "–", "–"]
    distances = [row[:2] for row in rows(found, "Distances and queries by attack and model")]
    assert distances[4:7] == [["pgd", "mine"], ["noisy", "3.0"], ["two", "3.0"]]
    assert distances[-1] == ["guess", "mine"]
    guessed = rows(found, "Accuracy on guess at 80 and 100 % coverage")
    assert guessed[0] == ["accuracy", "mine"]
    assert rows(found, "Accuracy on pgd at 80 and 100 % coverage")[-1] == ["at 100 %", "40.0", "40.0", "33.3"]
    text = found.select_one("#success").get_text(" ", strip=True)  # type: ignore[union-attr]
    assert "noisy mine; wrapper uninteresting two mine; two groups: fish, fruit" in text
    assert "A prediction of two is a group of classes." in text
    assert "it is not run on noisy, two" in text
    assert "noisy draws noise again" in text


def test_which_images_are_shown() -> None:
    """Successes, each of another class, spread over all classes; any if there is no success."""
    table = pd.DataFrame({"file": list("abcdefg"), "class_index": [5, 3, 3, 9, 7, 1, 4]})
    table["was_correct"], table["is_error"] = [True] * 6 + [False], [True] * 5 + [False, True]
    assert [row["file"] for row in some_results(table)] == ["b", "a", "e"]
    assert [row["file"] for row in some_results(table.assign(is_error=False))] == ["f", "g", "e"]


def test_the_example_of_the_source() -> None:
    """32 values, 40,152 images of 229 x 229 x 3: 10^-142072.2."""
    assert f"{log10_covered(229, 32, 40_152):.1f}" == "-142072.2"


@pytest.mark.parametrize(("eps", "values"), [(0.5 / 255, 1), (16 / 255, 33), (0.3, 153), (10, 256)])
def test_the_values_within_eps(eps: float, values: int) -> None:
    assert linf_values(eps) == values


@given(st.integers(0, 255))
def test_as_many_values_as_are_counted(steps: int) -> None:
    """Around the value that has the most neighbors."""
    counted = max(sum(abs(value - center) <= steps for value in range(256)) for center in range(256))
    assert linf_values(steps / 255) == counted


@given(st.integers(1, 3), st.integers(1, 256), st.integers(1, 10**6))
def test_as_many_images_as_are_counted(side: int, values: int, images: int) -> None:
    """In whole numbers, which a small image allows."""
    colors = 3 * side**2
    fraction = min(Fraction(1), Fraction(images * values**colors, 256**colors))
    expected = log10(fraction.numerator) - log10(fraction.denominator)
    assert log10_covered(side, values, images) == pytest.approx(expected, abs=1e-9)


CONFIDENCE = np.array([5.0, 4.0, 4.0, 1.0, 0.0])
CORRECT = np.array([True, False, True, True, False])
NAMES = ["e", "d", "c", "b", "a"]


def test_a_line() -> None:
    """Two are equally confident, and c comes before d: correct, correct, wrong, correct, wrong."""
    line = coverage_line("mine", CONFIDENCE, CORRECT, NAMES)
    assert (line.name, line.images) == ("mine", 5)
    assert [coverage for coverage, _ in line.points] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert [accuracy for _, accuracy in line.points] == pytest.approx([1, 1, 2 / 3, 0.75, 0.6])
    assert (line.plain.covered, line.plain.accuracy) == (4, 0.75)
    assert line.full.accuracy == 0.6


def test_a_line_where_the_published_kit_differs() -> None:
    """All equally confident: the kit covers all five, exactly 80 % are four, without the last by name."""
    line = coverage_line("mine", np.zeros(5), CORRECT, NAMES)
    assert (line.as_published.covered, line.as_published.accuracy) == (5, 0.6)
    assert (line.plain.covered, line.plain.accuracy) == (4, 0.5)


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.booleans()), min_size=1, max_size=30))
def test_nothing_is_lost_by_leaving_points_out(drawn: list[tuple[float, bool]]) -> None:
    """Interpolated at every coverage, the line goes through the accuracy of the most confident images."""
    confidence, correct = (np.array(column) for column in zip(*drawn, strict=True))
    names = [f"{place:02d}" for place in range(len(drawn))]
    coverages, accuracies = zip(*coverage_line("mine", confidence, correct, names).points, strict=True)
    order = sorted(range(len(drawn)), key=lambda place: (-drawn[place][0], names[place]))
    for count in range(1, len(drawn) + 1):
        expected = sum(drawn[place][1] for place in order[:count]) / count
        assert np.interp(count / len(drawn), coverages, accuracies) == pytest.approx(expected)


def test_a_level_part_has_two_ends() -> None:
    assert corner_points([(0.25, 1), (0.5, 1), (0.75, 1), (1, 0.5)]) == [(0.25, 1), (0.75, 1), (1, 0.5)]
    assert corner_points([(0.25, 0), (0.5, 1), (0.75, 1), (1, 1)]) == [(0.25, 0), (0.5, 1), (1, 1)]
    assert corner_points([(1, 0)]) == [(1, 0)]


def test_a_line_of_many_images_has_a_hundred_points() -> None:
    """From the first to the last, as far from each other as whole numbers allow."""
    points = [(place / 1000, 0.5) for place in range(1, 1001)]
    found = limited_points(points)
    assert (len(found), found[0], found[-1]) == (100, points[0], points[-1])
    steps = np.diff([coverage for coverage, _ in found]) * 1000
    assert {round(step) for step in steps} == {10, 11}
    assert limited_points(points[:100]) == points[:100]
    assert limited_points(points[:1]) == points[:1]
    assert limited_points([]) == []
