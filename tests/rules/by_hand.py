"""Tables written by hand, and one class with its candidates in words."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cleanset.after_crop import Said, reject_wrong_crops
from cleanset.boxes import Crop
from cleanset.selection import Filled, fill

SNOWMOBILE, SNOWPLOW = 802, 803
BOX = (0, 0, 9, 9)


def index_of(labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """An index with the reassessed labels of each picture."""
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "real_classes": pd.Series([np.array(of, dtype=np.int16) for of in labels.values()], dtype=object),
            "single": [len(of) == 1 for of in labels.values()],
        }
    )


def scores_of(said: Mapping[str, tuple[int, float]]) -> pd.DataFrame:
    """Scores with the highest class of each picture and its probability; four classes of no weight follow."""
    highest = np.array([class_index for class_index, _ in said.values()])
    probabilities = np.zeros((len(said), 5), dtype=np.float32)
    probabilities[:, 0] = [confidence for _, confidence in said.values()]
    classes = ((highest[:, None] + np.arange(5)) % 1000).astype(np.int16)
    return pd.DataFrame({"image_id": list(said), "top5_class": list(classes), "top5_probability": list(probabilities)})


def crop_scores_of(said: Mapping[Crop, tuple[int, float]]) -> pd.DataFrame:
    """What a model says of crops, as `scores_of`."""
    scores = scores_of({str(crop): highest for crop, highest in said.items()})
    boxes = pd.DataFrame([crop.box for crop in said], columns=["left", "top", "right", "bottom"])
    return scores.assign(image_id=[crop.image_id for crop in said]).join(boxes)


def after_crops(*words: str, images_per_class: int = 3) -> Filled:
    """What becomes of one class where the model says something else of the crops with verdict "wrong"."""
    said = {
        Crop(f"p{rank}", BOX): Said(SNOWPLOW if word.endswith("wrong") else SNOWMOBILE, 0.5)
        for rank, word in enumerate(words, start=1)
    }
    candidates = reviewed(*(word.replace("wrong", "crop") for word in words))
    return fill(reject_wrong_crops(candidates, said), images_per_class)


def reviewed(*words: str) -> pd.DataFrame:
    """One class's candidates by rank, each "<tier> <verdict>": their ids are p1, p2, ..."""
    tiers, verdicts = zip(*(word.split() for word in words), strict=True)
    reasons = {"reject": "watermark", "undecided": "unreviewed"}
    return pd.DataFrame(
        {
            "image_id": [f"p{rank}" for rank in range(1, len(words) + 1)],
            "class_index": SNOWMOBILE,
            "tier": tiers,
            "rank": range(1, len(words) + 1),
            "confidence": [1 - rank / 100 for rank in range(len(words))],
            "verdict": verdicts,
            "reason": pd.Series([reasons.get(verdict) for verdict in verdicts], dtype=object),
            "crop": pd.Series([BOX if verdict == "crop" else None for verdict in verdicts], dtype=object),
        }
    )


def filled(*words: str, images_per_class: int = 3) -> Filled:
    """What becomes of one class with these candidates."""
    return fill(reviewed(*words), images_per_class)


def kept(*words: str, images_per_class: int = 3) -> list[str]:
    """The pictures kept, in the order of their places."""
    selection = filled(*words, images_per_class=images_per_class).selection
    return list(selection.sort_values("place")["image_id"])


def removed(*words: str, images_per_class: int = 3) -> dict[str, str]:
    """The pictures not kept, with the reason."""
    rejected = filled(*words, images_per_class=images_per_class).rejected
    return dict(zip(rejected["image_id"], rejected["reason"], strict=True))


def still_open(*words: str, images_per_class: int = 3) -> set[str]:
    """The pictures whose missing verdict could still bring them in."""
    rejected = filled(*words, images_per_class=images_per_class).rejected
    return set(rejected.loc[rejected["open"], "image_id"])
