"""The score table of a model that is a published list: no more than the list says.

- A listed image is classified correctly with the listed confidence.
- An image from beyond the list is, too. Its confidence is not known; in the table it has the next lower float32 after
  the last image of its class, which orders it and means nothing else.
- Every other image counts as misclassified, with probability 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.lists import images_beyond
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.published.lists import check_label, read_top5
from cleanset.scoring.logits import TOP, log_odds_of

WITHOUT_A_LIST = np.float32(0.5)
"""The confidence below which the images of a class without a list begin."""

Labels = Mapping[str, Sequence[int]]
"""The reassessed labels of every image of an index, by image id."""


@dataclass(frozen=True, slots=True)
class ListScores:
    """The scores that a list gives: a row of table SCORES for each image of the index.

    `listed`: how many images are in the list; `beyond`: the ids of those from beyond it, sorted.
    """

    table: pd.DataFrame
    listed: int
    beyond: Sequence[str]


def list_scores(folder: Path, model: Model, labels: Labels) -> ListScores:
    """The scores that a list gives the images of `labels`; `folder` is the edition's.

    Raises CleansetError as `read_top5` and `images_beyond` do, and for an image from beyond the list that is in it, or
    that the index lacks.
    """
    top5 = read_top5(folder / str(model.file), labels)
    listed = top5[top5["model"] == model.name]
    extras = read_extras(folder, model, listed, labels)
    beyond = sorted(name for names in extras.values() for name in names)
    return ListScores(scores_of(with_extras(listed, extras), labels), len(listed), beyond)


def read_extras(folder: Path, model: Model, listed: pd.DataFrame, labels: Labels) -> dict[int, list[str]]:
    """By class, the images from beyond a model's list, `listed`. Raises CleansetError as `list_scores` does."""
    known = set(listed["image_id"])
    extras: dict[int, list[str]] = {}
    for each in images_beyond(folder, model):
        check_label(each.where, each.image_id, each.class_index, labels)
        if each.image_id in known:
            raise CleansetError(f"{each.where}: {each.image_id} is in the list; expected images from beyond it")
        extras.setdefault(each.class_index, []).append(each.image_id)
    return extras


def extras_of(listed: pd.DataFrame, reviewed: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """By class, the reviewed images that are not in a model's list: they were taken from beyond it.

    `listed`: class_index and image_id of one model's lists.
    """
    in_list = listed.groupby("class_index")["image_id"].agg(set).to_dict()
    extras = {
        index: [name for name in names if name not in in_list.get(index, ())] for index, names in reviewed.items()
    }
    return {index: names for index, names in sorted(extras.items()) if names}


def with_extras(listed: pd.DataFrame, extras: Mapping[int, Sequence[str]]) -> pd.DataFrame:
    """The rows of one model's lists and, each next in float32 below the one before, the extras of each class.

    Columns class_index, image_id, confidence. In a class without a list they begin next below one half.
    """
    last = listed.groupby("class_index")["confidence"].min()
    rows = []
    for class_index, names in extras.items():
        confidence = np.float32(last.get(class_index, WITHOUT_A_LIST))
        for name in names:
            # the next float32 below: behind every listed image, and above every image that is not listed
            confidence = np.nextafter(confidence, np.float32(0))
            rows.append((class_index, name, confidence))
    columns = ["class_index", "image_id", "confidence"]
    return pd.concat([listed[columns], pd.DataFrame(rows, columns=columns)], ignore_index=True).astype(
        {"class_index": "int16", "confidence": "float32"}
    )


def scores_of(correct: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """A score table in which a model gets right the images of `correct`, with their confidence, and no other.

    `correct` has columns class_index, image_id, confidence. Every other image has probability 0 for a class
    other than its labels: the lists say nothing else about it.
    """
    rows = zip(correct["image_id"], correct["class_index"], correct["confidence"], strict=True)
    known = {name: (top1, confidence) for name, top1, confidence in rows}
    top1 = [known[name][0] if name in known else _no_label(each) for name, each in labels.items()]
    confidences = np.array([known[name][1] if name in known else 0 for name in labels], dtype=np.float32)
    probabilities = np.zeros((len(labels), TOP), dtype=np.float32)
    probabilities[:, 0] = confidences
    classes = (np.array(top1)[:, None] + np.arange(TOP)) % CLASSES
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "top5_class": list(classes.astype(np.int16)),
            "top5_probability": list(probabilities),
            "log_odds": log_odds_of(confidences),
        }
    )


def _no_label(labels: Sequence[int]) -> int:
    """The lowest class that is not among the labels."""
    return next(index for index in range(CLASSES) if index not in labels)
