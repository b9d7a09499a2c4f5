"""Error ratios by the factors of ImageNet-X, against counts written out."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from rich.console import Console

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import run
from cleanset.evaluation.factors import (
    FACTORS,
    PROTOTYPES,
    Annotation,
    Annotations,
    factors_of,
    measure_factors,
    parse_annotations,
    read_annotations,
)
from cleanset.evaluation.measured_models import measured_model
from cleanset.evaluation.rendering import as_text, factor_table, factors_for_paper
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet

ANNOTATED = {
    1: ["pose"], 2: ["pose", "darker"], 3: ["pose"], 4: ["pose"], 5: ["color"], 6: ["color"], 7: [], 8: ["style"],
}  # fmt: skip
"""The factors by the number of an image: 8 is a prototype, 9 has no annotation."""
CLASSES = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 1, 8: 0, 9: 0}
# of images 1 to 7, 1, 2 and 5 are misclassified
WRONG = {1, 2, 5, 8, 9}


def id_of(number: int) -> str:
    return f"ILSVRC2012_val_{number:08}"


def file_of(number: int) -> str:
    return f"{imagenet().keys[CLASSES[number]]}/{id_of(number)}.JPEG"


def line(number: int, factors: list[str], class_index: int) -> str:
    flags = {name: int(name in factors) for name in FACTORS}
    return json.dumps({"file_name": f"{id_of(number)}.JPEG", "class": class_index, **flags, "one_word": "a view"})


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A file of annotations with its prototypes; image 3 has another class there."""
    path = tmp_path / "imagenet_x_val_multi_factor.jsonl"
    classes = {**CLASSES, 3: 7}
    path.write_text("\n".join(line(number, each, classes[number]) for number, each in ANNOTATED.items()) + "\n")
    path.with_name(PROTOTYPES).write_text(f"file_name\n{id_of(8)}.JPEG\n{id_of(50000)}.JPEG\n")
    return path


def images_of(stored: Path) -> EvaluationSet:
    items = [EvaluationImage(file_of(number), CLASSES[number], None, "") for number in CLASSES]
    found = factors_of(read_annotations(stored), {item.file: item.class_index for item in items})
    return EvaluationSet(
        name="nine",
        kind="folder",
        items=items,
        read=lambda _: Image.new("RGB", (1, 1)),
        checked=None,
        classes=imagenet(),
        factors=found,
        limits=[found.note],
    )


def test_ratios_by_hand(stored: Path) -> None:
    images = images_of(stored)
    assert images.factors is not None
    found = measure_factors({file_of(number): number not in WRONG for number in CLASSES}, images.factors, "a")
    assert found.error == 3 / 7
    measured = {each.factor: each for each in found.of_factors}
    assert tuple(measured) == FACTORS
    pose = measured["pose"]
    assert (pose.images, pose.misclassified, pose.error.value) == (4, 2, 1 / 2)
    assert pose.ratio.value == pytest.approx((1 / 2) / (3 / 7))
    assert pose.error.interval == pytest.approx((0.15004, 0.84996), abs=1e-5)
    # seven images: some resamples have no error
    assert pose.ratio.interval is None
    assert measured["color"].ratio.value == pytest.approx((1 / 2) / (3 / 7))
    assert measured["darker"].ratio.value == pytest.approx(7 / 3)
    # a prototype's factor, and one of no image
    for name in ("style", "shape"):
        assert measured[name].as_json() == {
            "factor": name, "images": 0, "misclassified": 0, "error": None, "error_interval": None, "ratio": None,
            "ratio_interval": None,
        }  # fmt: skip


def test_a_model_without_errors_has_no_ratio(stored: Path) -> None:
    images = images_of(stored)
    assert images.factors is not None
    found = measure_factors(dict.fromkeys(map(file_of, CLASSES), True), images.factors, "a")
    assert found.error == 0
    assert {each.ratio.is_defined for each in found.of_factors} == {False}
    assert found.of_factors[0].error.value == 0


def test_intervals_of_a_factor_that_nothing_distinguishes_cover_one() -> None:
    """Every second of 2,000 images has a factor, and each is misclassified with the same probability."""
    drawn = np.random.default_rng(3)
    of_images = {
        id_of(number): Annotation(class_index=0, factors=frozenset({"pose"} if number % 2 else ()))
        for number in range(1, 2001)
    }
    annotations = Annotations(sha256="0" * 64, of_images=of_images, prototypes=frozenset())
    images = factors_of(annotations, {f"{image_id}.JPEG": number // 50 for number, image_id in enumerate(of_images)})
    correct = dict(zip(images.files, drawn.random(2000) < 0.7, strict=True))
    pose = measure_factors(correct, images, "a").of_factors[0]
    low = pose.ratio.low
    high = pose.ratio.high
    assert low < pose.ratio.value < high
    assert low < 1 < high
    # by the delta method: the standard error of the ratio is about sqrt(.7 / .3 / 2000)
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.7 / 0.3 / 2000), rel=0.15)


def test_files_of_other_names_have_no_annotation(stored: Path) -> None:
    """The names of the copy on Hugging Face have the wnid; a training image has no id."""
    files = {f"0/{id_of(number)}_n01440764.JPEG": CLASSES[number] for number in CLASSES}
    found = factors_of(read_annotations(stored), files | {"n01440764/n01440764_18.JPEG": 0})
    assert (len(found.files), found.not_annotated, found.prototypes) == (7, 2, 1)
    with pytest.raises(CleansetError, match=r"file_name 'dog\.JPEG'; expected a validation image of ImageNet"):
        parse_annotations(line(1, [], 0).replace(id_of(1), "dog").encode(), "file")


def test_what_is_left_out_is_reported(stored: Path) -> None:
    images = images_of(stored)
    assert images.limits[0].startswith(
        "factors of 7 of 9 images (1 have no annotation, 1 are prototypes), another file than ImageNet-X's (SHA-256 "
    )
    assert images.limits[0].endswith("; 1 of them have another class there")


def test_the_tables_have_every_factor(stored: Path) -> None:
    images = images_of(stored)
    predictions = pd.DataFrame({
        "file": [item.file for item in images.items],
        "class_index": [item.class_index for item in images.items],
        "tier": None,
        "prediction": [5 if number in WRONG else CLASSES[number] for number in CLASSES],
        "correct": [number not in WRONG for number in CLASSES],
    })  # fmt: skip
    rows = [measured_model(name, predictions, images, {}) for name in "abcd"]
    console = Console(width=80, highlight=False, no_color=True)
    with console.capture() as caught:
        console.print(as_text(images, rows))
    lines = caught.get().splitlines()
    assert max(map(len, lines)) <= 80
    at = next(place for place, text in enumerate(lines) if text.startswith("error ratio by factor"))
    # the three most accurate models
    assert lines[at].split() == ["error", "ratio", "by", "factor", "images", "#1", "#2", "#3"]
    assert lines[at + 1].split() == ["pose", "4", "1.17", "1.17", "1.17"]
    assert "counted as independent" not in caught.get()
    # two images of one group
    grouped = replace(images, items=[replace(each, group="one") for each in images.items])
    of_groups = [measured_model("a", predictions, grouped, {})]
    assert factor_table(of_groups).caption.endswith("Images are counted as independent, those of one group, too.")
    assert "counted as independent" in dict(factors_for_paper(grouped, of_groups).notes)["intervals"]
    text = factors_for_paper(images, rows).in_form("csv").splitlines()
    assert text[0].startswith("factor,images,a,b,c,d,no value,set,version,digest,")
    assert [row.partition(",")[0] for row in text[1:17]] == list(FACTORS)


def test_the_command_measures_predictions_made_elsewhere(stored: Path, tmp_path: Path) -> None:
    for number in CLASSES:
        path = tmp_path / "nine" / file_of(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(path)
    predictions = tmp_path / "mine.csv"
    rows = [f"{file_of(number)},{5 if number in WRONG else CLASSES[number]}" for number in CLASSES]
    predictions.write_text("\n".join(["image,class_index", *rows]) + "\n")
    wanted = Arguments(
        str(tmp_path / "nine"),
        [],
        predictions=[f"mine={predictions}"],
        out=tmp_path / "out",
        report=tmp_path / "page",
        factors=stored,
    )
    run(Edition(tmp_path), wanted)
    content = json.loads((tmp_path / "out" / "results.json").read_text())
    assert content["factors"]["images"] == 7
    assert content["factors"]["prototypes"] == 1
    (model,) = content["models"]
    assert model["by_factor"]["error"] == 3 / 7
    assert model["by_factor"]["factors"][0]["ratio"] == pytest.approx(7 / 6)
    assert "Error ratios by factor" in (tmp_path / "page" / "index.html").read_text()
    run(Edition(tmp_path), replace(wanted, factors=None))
    assert "factors" not in json.loads((tmp_path / "out" / "results.json").read_text())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no annotations; expected a line for each image"),
        ("[]", "line 1: "),
        ("{", "line 1: not JSON"),
        (line(1, [], 0).replace('"pose": 0', '"pose": 2'), "line 1: "),
        (line(1, [], 0).replace('"pose": 0, ', ""), "line 1: "),
        (line(1, [], 0).replace('"class": 0', '"class": "0"'), "class '0'; expected a line for each image"),
        (f"{line(1, [], 0)}\n{line(1, ['pose'], 0)}", "line 2: ILSVRC2012_val_00000001 a second time"),
    ],
)
def test_another_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        parse_annotations(text.encode(), "some.jsonl")
    assert message in str(error.value)


def test_missing_files_are_reported(stored: Path, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"none.jsonl: missing; name imagenet_x_val_top_factor.jsonl or "):
        read_annotations(tmp_path / "none.jsonl")
    stored.with_name(PROTOTYPES).unlink()
    with pytest.raises(CleansetError, match=r"prototypical_paths.csv: missing; put prototypical_paths.csv of imagenet"):
        read_annotations(stored)


def test_other_images_have_no_factors(stored: Path) -> None:
    with pytest.raises(CleansetError, match=r"--factors: 1 of 2 images annotated; expected 2 or more images"):
        factors_of(read_annotations(stored), {file_of(1): 0, "mine/photo.png": 1})
