"""Tables for papers keep what their readers must know: read back from every form, literal."""

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.compare.compared_tables import ranking_for_paper
from cleanset.evaluation.compare.result_files import parse_results
from cleanset.evaluation.compare.results import ComparedResults, compare_results
from cleanset.evaluation.measured_models import MeasuredModel, measured_model, ranked_pairs, results_content
from cleanset.evaluation.notes import Note, joined_notes, ranges
from cleanset.evaluation.rendering import leaderboard_for_paper, write_page
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet
from tests.evaluation.compare.drawn_results import accuracies, corrupted, robustness
from tests.evaluation.notes_read import FORMS, notes_on_page, notes_read

CONFIDENCES = {"0": 0.875, "1": 0.75, "2": 0.625, "3": 0.9375}
IMAGES = EvaluationSet(
    name="data/export/a_b",
    kind="export",
    items=[
        EvaluationImage("0", 0, None, "a" * 64),
        EvaluationImage("1", 0, None, "b" * 64),
        EvaluationImage("2", 7, None, "c" * 64),
        EvaluationImage("3", 7, None, "d" * 64),
    ],
    read=lambda _: Image.new("RGB", (1, 1)),
    checked="the manifest",
    classes=imagenet(),
    version="1.2.0",
    selection="chosen among the images that standard classifies correctly",
    selected_by="standard",
    confidences=CONFIDENCES,
    limits=["A trial, 5 % of it."],
    manifest_sha256="e" * 64,
)
CHOSE = "standard chose these images by its own correct predictions: nothing is tested against it."
RANDOM = (
    "dice is not deterministic: the same images got other scores in a second run or another batch, so its numbers vary."
)
NOTES = {
    "set": "data/export/a_b",
    "version": "1.2.0",
    "digest": "manifest eeeeeeeeeeee, images dffc387ad6ef",
    "number of images": "4 of 2 classes",
    "selection": "chosen among the images that standard classifies correctly",
    "settings": "predictions among 1,000 classes",
    "intervals": "95 %, Wilson; confidence: Student's t; ECE has none: 15 bins, debiased",
    "tests": "p of McNemar's exact test, two-sided, against dice",
    "limits": f"A trial, 5 % of it. {CHOSE} {RANDOM}",
}


def model(name: str, correct: str, *, confident: float = 0.5, deterministic: bool = True) -> MeasuredModel:
    """A model by the images that it classifies correctly."""
    frame = pd.DataFrame({"file": list("0123"), "class_index": [0, 0, 7, 7], "tier": None, "confidence": confident})
    frame["prediction"] = [label if file in correct else 9 for file, label in zip("0123", [0, 0, 7, 7], strict=True)]
    frame["correct"] = frame["prediction"] == frame["class_index"]
    return measured_model(name, frame, IMAGES, {"deterministic": deterministic})


def models() -> list[MeasuredModel]:
    return [model("standard", "0123"), model("dice", "012", deterministic=False), model("c", "3")]


def compared(*contents: object) -> ComparedResults:
    return compare_results([parse_results(content, name) for name, content in zip("abc", contents, strict=False)])


def rows_of(text: str) -> dict[str, dict[str, str]]:
    """The rows of a CSV file by model."""
    return {row["model"]: row for row in csv.DictReader(StringIO(text))}


@pytest.mark.parametrize("form", FORMS)
def test_evaluate(form: str) -> None:
    found = notes_read(leaderboard_for_paper(IMAGES, models()).in_form(form), form)
    card = found.pop("card")
    assert found == NOTES | {"intervals": f"{NOTES['intervals']}; differences: Newcombe's for pairs"}
    assert len(card) == 12


def test_the_page_of_evaluate(tmp_path: Path) -> None:
    write_page(tmp_path, IMAGES, models())
    found = notes_on_page((tmp_path / "index.html").read_text())
    del found["card"]
    assert found == {name: text for name, text in NOTES.items() if name != "tests"}


@pytest.mark.parametrize("form", FORMS)
def test_compare(form: str) -> None:
    """For two files the limits of both, and what is left out."""
    one = results_content(IMAGES, models())
    other = results_content(replace(IMAGES, limits=["Another trial"]), [model("d", "01")])
    strange = accuracies({"e": (0.75, 0.5, 0.875)})
    table = ranking_for_paper(compared(one, other, strange))
    found = notes_read(table.in_form(form), form)
    card = found.pop("card")
    (left_out,) = compared(one, other, strange).left_out
    assert left_out.field == "number of images"
    assert found == NOTES | {
        "intervals": "95 %, Wilson; differences: Newcombe's for pairs",
        "tests": "p of McNemar's exact test, two-sided, against dice, corrected by Holm's method, over 3 pairs",
        "limits": f"A trial, 5 % of it. {CHOSE} {RANDOM} Another trial. Left out as not comparable: c, accuracy: "
        f"number of images 3, but 4 in a. predictions made elsewhere, by a preprocessing that is not known: "
        "standard (a), dice (a), c (a), d (b).",
    }
    assert card == compared(one).cards["accuracy"][1].short_digest


def test_each_measurement_of_a_comparison_keeps_its_settings() -> None:
    """A mean over one severity does not pass for one over five."""
    one = corrupted({"mine": 0.5}, changes={"fog": "1"})
    flips = corrupted({"mine": 0.5}, "perturbations", changes={"fog": "1"}, settings={})
    flips["notice"] = "No official numbers."
    found = dict(compared(robustness(one, flips)).notes)
    assert found["set"] == "standard"
    assert found["settings"] == (
        "corruptions: corruptions: fog, at steps 1; jpeg 85; seed 0; reference alexnet, published; predictions among "
        "1,000 classes; perturbations: perturbations: fog, at steps 1; predictions among 1,000 classes"
    )
    assert found["limits"] == "corruptions: A trial.; perturbations: A trial. No official numbers."


def test_nothing_is_tested_against_the_model_that_chose_the_images() -> None:
    pairs = ranked_pairs(models())
    assert [(pair.model, pair.other) for pair in pairs] == [("dice", "c")]
    csv_text = leaderboard_for_paper(IMAGES, models()).in_form("csv")
    assert {name: row["p"] for name, row in rows_of(csv_text).items()} == {"standard": "", "dice": "", "c": "0.6250"}
    content = results_content(IMAGES, models())
    assert [row["model"] for row in content["models"] if row["chose_images"]] == ["standard"]
    assert [pair.other for pair in compared(content).pairs] == ["c"]


@pytest.mark.parametrize(
    ("confident", "correct", "chose"),
    [(0.0005, "0123", True), (0.002, "0123", False), (0.0005, "012", False)],
)
def test_a_model_that_chose_the_images_is_known_by_its_confidences(confident: float, correct: str, chose: bool) -> None:
    """Whatever it is called: within a thousandth in every image."""
    frame = pd.DataFrame({"file": list("0123"), "class_index": [0, 0, 7, 7], "tier": None, "prediction": 0})
    frame["correct"] = [file in correct for file in "0123"]
    frame["confidence"] = [CONFIDENCES[file] - confident for file in "0123"]
    assert measured_model("timm:resnet50", frame, IMAGES, {}).chose_images is chose


@pytest.mark.parametrize("broken", [None, [], {}, {"name": 3}, {"selection": None}, {"version": 2}, {"limits": "A"}])
def test_a_result_without_the_facts_about_its_set_is_refused(broken: Any) -> None:
    content = accuracies({"e": (0.75, 0.5, 0.875)})
    content["set"] = content["set"] | broken if isinstance(broken, dict) and broken else broken
    with pytest.raises(CleansetError, match=r"a: set: .*; expected its name, version, selection and limits: run"):
        compared(json.loads(json.dumps(content)))


def test_steps_as_ranges() -> None:
    assert [ranges(text) for text in ("3", "1 2 3 4 5", "1 3 4 7")] == ["3", "1 to 5", "1, 3 to 4, 7"]


def test_joined_notes_name_the_measurement_of_a_text_that_differs() -> None:
    notes = {"x": [Note("set", "a"), Note("card", "1")], "y": [Note("set", "a"), Note("limits", "b")]}
    assert joined_notes(notes) == [Note("set", "a"), Note("limits", "y: b"), Note("card", "x: 1")]
