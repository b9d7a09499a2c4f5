"""Label Studio's configuration, and the reviews in its answers: literal cases and every refusal."""

import json
import xml.etree.ElementTree as ET
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.review.label_studio.format import CONTROLS, labeling_config, read_votes
from cleanset.review.verdicts import Review
from cleanset.vocabulary import Reason
from tests.properties import examples
from tests.review.answers import Json, answered, choice, rectangle, result, results

SHA = "3f6c0a" + "0" * 58
IMAGE = "ILSVRC2012_val_00002138"
TASK: Json = {"data": {"image": "/data/local-files/?d=a/b.JPEG", "image_id": IMAGE, "wnid": "n01440764", "sha256": SHA}}
SIZES = {IMAGE: (500, 375)}
CLEAN, CROP, TEXT = choice("verdict", "clean"), choice("verdict", "crop"), choice("reason", "text")
VISIBLE = choice("object_fully_visible", "the object stays fully visible")
BOX = rectangle([0, 0, 480, 330], 500, 375)


def read(tasks: object, annotator: str | None = None) -> list[Review]:
    return [vote.review for vote in read_votes(json.dumps(tasks), "answers.json", annotator, SIZES)]


def read_one(*results: Json) -> Review:
    [review] = read([answered(TASK, 7, list(results))])
    return review


# The configuration, checked against labelstud.io/tags

ATTRIBUTES = {
    "View": set[str](),
    "Header": {"value"},
    "Text": {"name", "value"},
    "Image": {"name", "value", "zoomControl", "rotateControl"},
    "RectangleLabels": {"name", "toName", "canRotate"},
    "Label": {"value", "maxUsages"},
    "Choices": {"name", "toName", "choice", "showInline", "required", "requiredMessage", "visibleWhen", "whenTagName",
                "whenChoiceValue"},
    "Choice": {"value"},
    "TextArea": {"name", "toName", "placeholder", "rows", "maxSubmissions"},
}  # fmt: skip
RESULT_TYPES = {"Choices": "choices", "RectangleLabels": "rectanglelabels", "TextArea": "textarea"}


def test_the_configuration() -> None:
    view = ET.fromstring(labeling_config())
    for element in view.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
    controls = {element.get("name"): element for element in view if element.tag in RESULT_TYPES}
    assert {name: RESULT_TYPES[element.tag] for name, element in controls.items()} == CONTROLS
    assert {element.get("toName") for element in controls.values()} == {"image"}
    values = {name: [child.get("value") for child in element] for name, element in controls.items()}
    assert values["verdict"] == ["clean", "crop", "reject", "unsure"]
    assert values["reason"] == list(get_args(Reason))
    assert values["object_fully_visible"] == ["the object stays fully visible"]
    assert {element.get("whenTagName") for element in controls.values()} == {"verdict", None}
    for element in controls.values():
        assert set((element.get("whenChoiceValue") or "clean").split(",")) <= set(values["verdict"])
    variables = {word.strip("$()") for element in view for word in (element.get("value") or "").split() if "$" in word}
    assert variables == {"names", "wnid", "gloss", "image", "asked"}


# Answers


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "clean"},
        {"verdict": "unsure", "note": "is it a tench?"},
        {"verdict": "reject", "reason": "several_objects"},
        {"verdict": "crop", "reason": "text", "crop": [1, 2, 499, 375], "object_fully_visible": True, "note": "a\nb"},
    ],
)
def test_verdicts(fields: dict[str, Any]) -> None:
    review = Review.model_validate(fields | {"sha256": SHA})
    assert read_one(*results(review, 500, 375)) == review


def test_an_answer_may_come_in_any_order_and_with_empty_fields() -> None:
    unanswered = (result("note", "textarea", {"text": [" "]}), choice("reason"), choice("object_fully_visible"), CLEAN)
    assert read_one(*unanswered) == Review(verdict="clean", sha256=SHA)


def test_tasks_without_an_answer() -> None:
    skipped = answered(TASK, 1, [], was_cancelled=True)
    empty = {"id": 2, "data": TASK["data"], "annotations": [], "drafts": [{"result": [{"from_name": "verdict"}]}]}
    assert read([skipped, empty, TASK, answered(TASK, 4, [CLEAN])]) == [Review(verdict="clean", sha256=SHA)]
    assert read([]) == []


@pytest.mark.parametrize(("annotator", "verdict"), [("1", "clean"), ("2", "unsure"), ("zoe@example.org", "unsure")])
def test_answers_of_one_annotator(annotator: str, verdict: str) -> None:
    both = answered(TASK, 1, [CLEAN])
    zoe = {"completed_by": {"id": 2, "email": "zoe@example.org"}, "result": [choice("verdict", "unsure")]}
    both["annotations"].append(zoe)
    assert [review.verdict for review in read([both], annotator)] == [verdict]
    assert read([both], "3") == []
    with pytest.raises(CleansetError, match="task 1: 2 answers; expected one: name whose, with --annotator"):
        read([both])


# Boxes


@examples(300)
@given(st.data(), st.integers(1, 5000), st.integers(1, 5000), st.sampled_from([None, 10, 6]))
def test_whole_pixels_come_back_exactly(data: st.DataObject, width: int, height: int, digits: int | None) -> None:
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    box = [left, top, data.draw(st.integers(left + 1, width)), data.draw(st.integers(top + 1, height))]
    drawn = rectangle(box, width, height)
    if digits is not None:
        drawn["value"] |= {side: round(drawn["value"][side], digits) for side in ("x", "y", "width", "height")}
    task = {"data": TASK["data"]}
    text = json.dumps([answered(task, 1, [drawn, CROP, TEXT, VISIBLE])])
    [vote] = read_votes(text, "f", None, {IMAGE: (width, height)})
    assert vote.review.box == tuple(box)


@pytest.mark.parametrize(
    ("value", "box"),
    [
        ({"x": 0, "y": 0, "width": 50, "height": 50}, [0, 0, 250, 188]),  # 187.5
        ({"x": 10.1, "y": 10.1, "width": 9.8, "height": 9.8}, [50, 37, 100, 75]),  # 50.5 37.875 99.5 74.625
        ({"x": 10.0001, "y": 20, "width": 9.9998, "height": 20}, [50, 75, 100, 150]),  # 50.0005 to 99.9995
        ({"x": 9.9999, "y": 20, "width": 10.0002, "height": 20}, [50, 75, 100, 150]),  # 49.9995 to 100.0005
        ({"x": 9.99, "y": 20, "width": 10.02, "height": 20}, [49, 75, 101, 150]),  # 49.95 to 100.05
        ({"x": -1e-9, "y": 0, "width": 99, "height": 100.000000001}, [0, 0, 495, 375]),
        ({"x": 99.9, "y": 99.9, "width": 0.1, "height": 0.1}, [499, 374, 500, 375]),
    ],
)
def test_a_box_becomes_the_pixels_that_it_touches(value: Json, box: list[int]) -> None:
    drawn = BOX | {"value": value | {"rectanglelabels": ["keep"]}}
    assert read_one(drawn, CROP, TEXT, VISIBLE).box == tuple(box)


# Refusals


def box_with(**value: Any) -> list[Json]:
    return [BOX | {"value": BOX["value"] | value}, CROP, TEXT, VISIBLE]


REFUSED: dict[str, tuple[list[Json], str]] = {
    "no verdict": ([TEXT], "no verdict; choose one"),
    "nothing": ([], "no verdict; choose one"),
    "unknown verdict": ([choice("verdict", "fine")], "verdict: expected 'clean', 'crop', 'reject' or 'unsure'; found"),
    "two verdicts": ([choice("verdict", "clean", "crop")], ", verdict: choices: expected at most 1 item"),
    "verdict twice": ([CLEAN, CROP], "two results of verdict; expected one: remove one of the two"),
    "no reason": ([choice("verdict", "reject")], "verdict reject without a reason"),
    "unknown reason": ([choice("verdict", "reject"), choice("reason", "ugly")], "reason: expected 'watermark'"),
    "reason of a clean one": ([CLEAN, TEXT], "verdict clean with a reason"),
    "box of a clean one": ([CLEAN, BOX], "a crop box is needed for verdict crop, and for no other"),
    "crop without a box": ([CROP, TEXT, VISIBLE], "a crop box is needed for verdict crop, and for no other"),
    "visibility not answered": (
        [BOX, CROP, TEXT],
        "a crop without object_fully_visible: true; the object must remain fully visible",
    ),
    "two boxes": ([BOX, BOX, CROP, TEXT, VISIBLE], "two results of crop; expected one"),
    "another control": (
        [CLEAN, choice("quality", "high")],
        "a result of quality (choices); expected verdict (choices), ",
    ),
    "another type": ([result("crop", "polygonlabels", {}), CROP], "a result of crop (polygonlabels); expected verdict"),
    "box to the right": (
        box_with(x=10),
        "crop [50, 0, 530, 330] in an image of 500 x 375 pixels; expected a box inside",
    ),
    "box above": (box_with(y=-1), "crop [0, -4, 480, 327] in an image of 500 x 375 pixels; expected a box inside it"),
    "box without area": (box_with(width=0), "crop [0, 0, 0, 330] in an image of"),
    "turned box": (box_with(rotation=5), "a turned image or box; turn it back"),
    "turned image": ([BOX | {"image_rotation": 90}, CROP, TEXT, VISIBLE], "a turned image or box; turn it back"),
    "box as text": (box_with(x="0"), ", crop: x: expected a number; found '0'"),
    "box without height": (
        [BOX | {"value": {"x": 0, "y": 0, "width": 9}}, CROP, TEXT, VISIBLE],
        ", crop: height: Field required",
    ),
    "endless box": (box_with(width=float("inf")), ", crop: width: expected a finite number"),
    "box out of all bounds": (
        box_with(x=1e308, width=1e308),
        ", crop: x: expected less than or equal to 1000; found 1e",
    ),
    "another copy": (
        [rectangle([0, 0, 300, 400], 375, 500), CROP, TEXT, VISIBLE],
        "box on an image of 375 x 500 pixels, but it has 500 x 375: show the exported copy",
    ),
    "box without the image's size": (
        [result("crop", "rectanglelabels", BOX["value"]), CROP, TEXT, VISIBLE],
        "box on an image of None x None pixels, but it has 500 x 375",
    ),
    "note that is no text": ([CLEAN, result("note", "textarea", {"text": [5]})], ", note: text"),
    "a relation": ([CLEAN, {"type": "relation", "from_id": "a"}], "annotations.0.result.1.from_name: Field required"),
}


@pytest.mark.parametrize(("results", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(results: list[Json], message: str) -> None:
    with pytest.raises(CleansetError) as refusal:
        read([answered(TASK, 6, [CLEAN]), answered(TASK, 7, results)])
    words = str(refusal.value)
    assert words.startswith("answers.json, task 7")
    assert message in words
    assert "\n" not in words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"answers\.json: not JSON \(Expecting value"),
        ("[" * 100_000, r"answers\.json: not JSON"),
        ('{"id": 1}', r"answers\.json: not a list of tasks; expected what Label Studio exports as JSON, not JSON-MIN"),
        ("[1]", r"answers\.json: not a list of tasks"),
        ('[{"id": 5, "image": "x", "verdict": "clean"}]', r"answers\.json, task 5: data: Field required"),
        ('[{"data": {"image": "x"}}]', r"answers\.json, task number 1: data\.wnid: Field required"),
        ('[{"id": 5, "data": 5}]', r"answers\.json, task 5: data: "),
    ],
)
def test_files_that_are_no_export(text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        read_votes(text, "answers.json", None, SIZES)


def test_an_unknown_image() -> None:
    other = {"data": TASK["data"] | {"image_id": "ILSVRC2012_val_00050001"}}
    with pytest.raises(CleansetError, match=r"task 3: no image 'ILSVRC2012_val_00050001' in the index; export the"):
        read([answered(other, 3, [CLEAN])])
