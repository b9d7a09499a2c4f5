"""Tables written by hand, and one class with its candidates in words."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cleanset.images.boxes import Crop
from cleanset.scoring.logits import log_odds_of
from cleanset.selection.crop_check import Prediction, after_crop
from cleanset.selection.fill import Decision, Filled, fill, with_decisions

SNOWMOBILE, SNOWPLOW = 802, 803
BOX = (0, 0, 9, 9)


def index_of(labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """An index with the reassessed labels of each image."""
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "ilsvrc_class": [of[0] if len(of) else 0 for of in labels.values()],
            "real_classes": pd.Series([np.array(of, dtype=np.int16) for of in labels.values()], dtype=object),
            "single": [len(of) == 1 for of in labels.values()],
        }
    )


def scores_of(predictions: Mapping[str, tuple[int, float]], others: float = 0.0) -> pd.DataFrame:
    """Scores with the top-1 class of each image and its probability; four classes with that of `others` follow."""
    top1 = np.array([class_index for class_index, _ in predictions.values()])
    probabilities = np.full((len(predictions), 5), others, dtype=np.float32)
    probabilities[:, 0] = [confidence for _, confidence in predictions.values()]
    classes = ((top1[:, None] + np.arange(5)) % 1000).astype(np.int16)
    return pd.DataFrame(
        {
            "image_id": list(predictions),
            "top5_class": list(classes),
            "top5_probability": list(probabilities),
            "log_odds": log_odds_of(probabilities[:, 0]),
        }
    )


def crop_scores_of(predictions: Mapping[Crop, tuple[int, float]]) -> pd.DataFrame:
    """A model's predictions on crops, as `scores_of`."""
    scores = scores_of({str(crop): top1 for crop, top1 in predictions.items()})
    return scores.assign(
        image_id=[crop.image_id for crop in predictions],
        crop=pd.Series([crop.box for crop in predictions], dtype=object),
    )


def after_crops(*words: str, images_per_class: int = 3) -> Filled:
    """One class, filled, where the model misclassifies the crops with verdict "miscrop"."""
    predictions = {
        Crop(f"p{rank}", BOX): Prediction(SNOWPLOW if word.endswith("miscrop") else SNOWMOBILE, 0.5)
        for rank, word in enumerate(words, start=1)
    }
    candidates = reviewed(*(word.replace("miscrop", "crop") for word in words))
    return fill(after_crop_of(candidates, predictions), images_per_class)


def after_crop_of(reviewed: pd.DataFrame, predictions: Mapping[Crop, Prediction]) -> pd.DataFrame:
    """Reviewed candidates with the decisions as they count for the model with these predictions on crops."""
    rows = reviewed.to_dict("records")
    decisions = {
        (row["class_index"], row["image_id"]): Decision(row["verdict"], row["reason"], row["crop"]) for row in rows
    }
    return with_decisions(
        reviewed, lambda index, image_id: after_crop(decisions[index, image_id], image_id, index, predictions)
    )


def reviewed(*words: str) -> pd.DataFrame:
    """One class's candidates by rank, each "<tier> <verdict>": their ids are p1, p2, ..."""
    tiers, verdicts = zip(*(word.split() for word in words), strict=True)
    reasons = {"reject": "watermark", "undecided": "unreviewed", "boxless": "box_unknown"}
    return pd.DataFrame(
        {
            "image_id": [f"p{rank}" for rank in range(1, len(words) + 1)],
            "class_index": SNOWMOBILE,
            "tier": tiers,
            "rank": range(1, len(words) + 1),
            "confidence": [1 - rank / 100 for rank in range(len(words))],
            "verdict": [verdict.replace("boxless", "undecided") for verdict in verdicts],
            "reason": pd.Series([reasons.get(verdict) for verdict in verdicts], dtype=object),
            "crop": pd.Series([BOX if verdict == "crop" else None for verdict in verdicts], dtype=object),
            "box_unknown": False,
        }
    )


def filled(*words: str, images_per_class: int = 3, crops_in_rank: bool = False) -> Filled:
    """What becomes of one class with these candidates."""
    return fill(reviewed(*words), images_per_class, crops_in_rank)


def kept(*words: str, images_per_class: int = 3, crops_in_rank: bool = False) -> list[str]:
    """The images kept, in the order of their places."""
    selection = filled(*words, images_per_class=images_per_class, crops_in_rank=crops_in_rank).selection
    return list(selection.sort_values("place")["image_id"])


def removed(*words: str, images_per_class: int = 3) -> dict[str, str]:
    """The images not kept, with the reason."""
    rejected = filled(*words, images_per_class=images_per_class).rejected
    return dict(zip(rejected["image_id"], rejected["reason"], strict=True))


def still_open(*words: str, images_per_class: int = 3, crops_in_rank: bool = False) -> set[str]:
    """The images whose missing verdict could still bring them in."""
    rejected = filled(*words, images_per_class=images_per_class, crops_in_rank=crops_in_rank).rejected
    return set(rejected.loc[rejected["open"], "image_id"])
