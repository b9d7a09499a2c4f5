"""Label Studio's formats: its labeling configuration, and the annotations that it exports.

Sources: labelstud.io/guide/task_format (tasks, annotations, results; boxes in percent of the image)
and labelstud.io/tags (the labeling configuration).
"""

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, check_box
from cleanset.review.verdicts import Review, Vote
from cleanset.validation import first_problem
from cleanset.vocabulary import REASONS, VERDICTS

KEEP = "keep"
FULLY_VISIBLE = "the object stays fully visible"
TASKS = {False: "Give a verdict.", True: "This image is to be cropped: draw the box, or give another verdict."}
"""The request of a task, by whether only the box of a crop is missing."""

CONTROLS = {
    "verdict": "choices",
    "reason": "choices",
    "crop": "rectanglelabels",
    "object_fully_visible": "choices",
    "note": "textarea",
}
"""Name of each control in the configuration, and the type of its results."""

_PIXEL_TOLERANCE = 1e-3
"""Overlap of a box with a pixel, in pixels, up to which the pixel is left out: percentages are not exact."""


def labeling_config() -> str:
    """The labeling configuration that goes with the tasks."""
    view = ET.Element("View")
    ET.SubElement(view, "Header", value="$names ($wnid)")
    ET.SubElement(view, "Text", name="gloss", value="$gloss")
    ET.SubElement(view, "Text", name="asked", value="$asked")
    # no rotation: a box is read in the pixels as they are stored
    ET.SubElement(view, "Image", name="image", value="$image", zoomControl="true", rotateControl="false")
    crop = ET.SubElement(view, "RectangleLabels", name="crop", toName="image", canRotate="false")
    ET.SubElement(crop, "Label", value=KEEP, maxUsages="1")
    _add_choices(view, "verdict", VERDICTS, required="true", requiredMessage="Choose a verdict.")
    _add_choices(view, "reason", REASONS, **_shown_for("crop,reject,unsure"))
    _add_choices(view, "object_fully_visible", (FULLY_VISIBLE,), choice="multiple", **_shown_for("crop"))
    ET.SubElement(view, "TextArea", name="note", toName="image", placeholder="Note", rows="2", maxSubmissions="1")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _add_choices(view: ET.Element, name: str, values: tuple[str, ...], **attributes: str) -> None:
    usual = {"name": name, "toName": "image", "choice": "single-radio", "showInline": "true"}
    choices = ET.SubElement(view, "Choices", usual | attributes)
    for value in values:
        ET.SubElement(choices, "Choice", value=value)


def _shown_for(verdicts: str) -> dict[str, str]:
    return {"visibleWhen": "choice-selected", "whenTagName": "verdict", "whenChoiceValue": verdicts}


class _Result(BaseModel):
    """The result of one control, or one box."""

    from_name: str
    type: str
    value: dict[str, Any]
    original_width: int | None = None
    original_height: int | None = None
    image_rotation: float = 0


class _Annotation(BaseModel):
    """One person's answer; `was_cancelled`: the task was skipped."""

    result: list[_Result]
    was_cancelled: bool = False
    completed_by: int | str | dict[str, Any] | None = None


class _Data(BaseModel):
    """The data of a task: the image, and the digest of the bytes that were shown."""

    wnid: str
    image_id: str
    sha256: str


class _Task(BaseModel):
    data: _Data
    annotations: list[_Annotation] = []


def read_votes(text: str, where: str, annotator: str | None, sizes: Mapping[str, tuple[int, int]]) -> list[Vote]:
    """The verdicts in what Label Studio exports as JSON; unanswered and skipped tasks are left out.

    `annotator`: take only this person's answers, by number or e-mail address. `sizes`: width and height in
    stored pixels, by image id. A box becomes the smallest box of whole pixels that holds it.

    Raises CleansetError, naming `where` and the task, for anything that is not a complete verdict.
    """
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CleansetError(f"{where}: not JSON ({error}); expected an export of Label Studio") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise CleansetError(f"{where}: not a list of tasks; expected what Label Studio exports as JSON, not JSON-MIN")
    votes = []
    for number, content in enumerate(tasks, start=1):
        place = f"{where}, task {content.get('id', f'number {number}')}"
        try:
            task = _Task.model_validate(content)
            answers = [answer for answer in task.annotations if not answer.was_cancelled and _by(answer, annotator)]
            if len(answers) > 1:
                raise CleansetError(f"{place}: {len(answers)} answers; expected one: name whose, with --annotator")
            if answers:
                review = _review(answers[0], task.data, place, sizes)
                votes.append(Vote(task.data.wnid, task.data.image_id, review, place))
        except ValidationError as error:
            raise CleansetError(f"{place}: {first_problem(error)}") from None
    return votes


def _by(answer: _Annotation, annotator: str | None) -> bool:
    who = answer.completed_by
    names = (who.get("id"), who.get("email")) if isinstance(who, dict) else (who,)
    return annotator is None or annotator in map(str, names)


def _review(answer: _Annotation, data: _Data, place: str, sizes: Mapping[str, tuple[int, int]]) -> Review:
    by_control: dict[str, _Result] = {}
    for result in answer.result:
        name = result.from_name
        if CONTROLS.get(name) != result.type:
            expected = ", ".join(f"{control} ({kind})" for control, kind in CONTROLS.items())
            raise CleansetError(f"{place}: a result of {name} ({result.type}); expected {expected}")
        if name in by_control:
            raise CleansetError(f"{place}: two results of {name}; expected one: remove one of the two")
        by_control[name] = result
    if data.image_id not in sizes:
        raise CleansetError(f"{place}: no image {data.image_id!r} in the index; export the tasks of this edition")
    choices = {name: result for name, result in by_control.items() if result.type == "choices"}
    chosen = {name: "".join(_value(_Choices, result, place).choices) for name, result in choices.items()}
    if not chosen.get("verdict"):
        raise CleansetError(f"{place}: no verdict; choose one")
    fields: dict[str, Any] = {name: chosen[name] for name in ("verdict", "reason") if chosen.get(name)}
    if "crop" in by_control:
        fields["crop"] = _pixels(by_control["crop"], place, *sizes[data.image_id])
    if chosen.get("object_fully_visible") == FULLY_VISIBLE:
        fields["object_fully_visible"] = True
    if "note" in by_control and (note := _note(by_control["note"], place)):
        fields["note"] = note
    return Review.model_validate(fields | {"sha256": data.sha256})


class _Choices(BaseModel):
    choices: Annotated[list[str], Field(max_length=1)]


class _Text(BaseModel):
    text: list[str] | str


_Percent = Annotated[float, Field(ge=-1000, le=1000)]
"""Bounds wider than any box that is drawn, and narrow enough for exact arithmetic on pixels."""


class _Rectangle(BaseModel):
    """A rectangle in percent of the image."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    x: _Percent
    y: _Percent
    width: _Percent
    height: _Percent
    rotation: float = 0


_Value = TypeVar("_Value", bound=BaseModel)


def _value(kind: type[_Value], result: _Result, place: str) -> _Value:
    try:
        return kind.model_validate(result.value)
    except ValidationError as error:
        raise CleansetError(f"{place}, {result.from_name}: {first_problem(error)}") from None


def _note(result: _Result, place: str) -> str:
    lines = _value(_Text, result, place).text
    return (lines if isinstance(lines, str) else "\n".join(lines)).strip()


def _pixels(result: _Result, place: str, width: int, height: int) -> Box:
    """The smallest box of whole pixels that holds the rectangle; right and bottom excluded."""
    shown = result.original_width, result.original_height
    if shown != (width, height):
        raise CleansetError(
            f"{place}: box on an image of {shown[0]} x {shown[1]} pixels, but it has {width} x {height}: "
            "show the exported copy, whose pixels lie as they are stored"
        )
    rectangle = _value(_Rectangle, result, place)
    if result.image_rotation % 360 or rectangle.rotation % 360:
        raise CleansetError(f"{place}: a turned image or box; turn it back")
    left, right = _whole(rectangle.x, rectangle.width, width)
    top, bottom = _whole(rectangle.y, rectangle.height, height)
    try:
        check_box((left, top, right, bottom), width, height)
    except ValueError as error:
        raise CleansetError(f"{place}: {error}") from None
    return left, top, right, bottom


def _whole(start: float, length: float, pixels: int) -> tuple[int, int]:
    """First pixel and end (excluded) of a stretch given in percent."""
    begin, end = start / 100 * pixels, (start + length) / 100 * pixels
    return math.floor(begin + _PIXEL_TOLERANCE), math.ceil(end - _PIXEL_TOLERANCE)
