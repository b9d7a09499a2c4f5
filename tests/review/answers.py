"""Answers as Label Studio exports them as JSON."""

from collections.abc import Sequence
from typing import Any

from cleanset.review.verdicts import Review

Json = dict[str, Any]


def result(control: str, kind: str, value: Json, **more: Any) -> Json:
    """The answer in one control."""
    return {"id": "Dx_aB91ISN", "from_name": control, "to_name": "image", "type": kind, "origin": "manual",
            "value": value} | more  # fmt: skip


def choice(control: str, *values: str) -> Json:
    return result(control, "choices", {"choices": list(values)})


def rectangle(box: Sequence[int], width: int, height: int) -> Json:
    """A box as the browser computes it: corner and size, each divided by the image's side."""
    left, top, right, bottom = box
    value = {
        "x": left / width * 100,
        "y": top / height * 100,
        "width": (right - left) / width * 100,
        "height": (bottom - top) / height * 100,
        "rotation": 0,
        "rectanglelabels": ["keep"],
    }
    size = {"original_width": width, "original_height": height, "image_rotation": 0}
    return result("crop", "rectanglelabels", value, **size)


def results(review: Review, width: int, height: int) -> list[Json]:
    """What an annotator of this opinion clicks."""
    found = [choice("verdict", review.verdict)]
    if review.reason:
        found.append(choice("reason", review.reason))
    if review.box:
        found.insert(0, rectangle(review.box, width, height))
    if review.object_fully_visible:
        found.append(choice("object_fully_visible", "the object stays fully visible"))
    if review.note:
        found.append(result("note", "textarea", {"text": [review.note]}))
    return found


def answered(task: Json, number: int, results: list[Json], **more: Any) -> Json:
    """A task with one answer."""
    answer = {
        "id": 1000 + number, "completed_by": 1, "result": results, "was_cancelled": False, "ground_truth": False,
        "created_at": "2021-03-09T22:16:08.728353Z", "lead_time": 4.288, "task": number, "result_count": len(results),
    }  # fmt: skip
    return {"id": number, "data": task["data"], "annotations": [answer | more], "drafts": [], "predictions": [],
            "meta": {}, "inner_id": number, "total_annotations": 1, "project": 1}  # fmt: skip
