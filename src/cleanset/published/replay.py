"""The inputs of the replay: an index without images, and score tables that say what the published lists say."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.scoring.logits import TOP, log_odds_of

WITHOUT_A_LIST = np.float32(0.5)
"""The confidence below which the images of a class without a list begin."""


def index_of(labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """An index of image ids with their reassessed labels.

    What would need the images or the original labels is filled in and must not be used: one pixel, no bytes, digests
    of zeros, and the first reassessed label as the original one.
    """
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "size": 0,
            "sha256": "0" * 64,
            "width": 1,
            "height": 1,
            "mode": "RGB",
            "pixels_sha256": "0" * 64,
            "ilsvrc_class": [each[0] if each else 0 for each in labels.values()],
            "real_classes": pd.Series([list(each) for each in labels.values()], dtype=object),
            "single": [len(each) == 1 for each in labels.values()],
        }
    )


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
            confidence = np.nextafter(confidence, np.float32(0))
            rows.append((class_index, name, confidence))
    columns = ["class_index", "image_id", "confidence"]
    return pd.concat([listed[columns], pd.DataFrame(rows, columns=columns)], ignore_index=True).astype(
        {"class_index": "int16", "confidence": "float32"}
    )


def scores_of(correct: pd.DataFrame, labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """A score table in which a model gets right the images of `correct`, with their confidence, and no other.

    `correct` has columns class_index, image_id, confidence. Every other image has probability 0 for a class that is
    none of its labels: the lists do not say more of it.
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
    """The lowest class that is none of the labels."""
    return next(index for index in range(CLASSES) if index not in labels)
