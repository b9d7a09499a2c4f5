"""Which pictures may stand in a class, and in what order.

A picture's label is its reassessed label, where there is exactly one. A model is *right* on a
picture if its highest class is that label; its *confidence* is the softmax probability of that
class. Equal confidences: the lower `image_id` first.
"""

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.tiers import TIERS


def top5(scores: pd.DataFrame) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """The classes and probabilities of a score table, each of shape (n, 5)."""
    classes = np.array(scores["top5_class"].to_list(), np.int16).reshape(-1, 5)
    return classes, np.array(scores["top5_probability"].to_list(), np.float32).astype(np.float64).reshape(-1, 5)


def top1(scores: pd.DataFrame) -> pd.DataFrame:
    """The highest class of each picture and its probability: columns image_id, top1, confidence."""
    classes, probabilities = top5(scores)
    return pd.DataFrame(
        {"image_id": scores["image_id"], "top1": classes[:, 0], "confidence": probabilities[:, 0].astype(np.float32)}
    )


def right(index: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The pictures with one label that a model gets right: image_id, class_index, confidence."""
    single = index[index["single"]]
    label = pd.DataFrame({"image_id": single["image_id"], "class_index": single["real_classes"].str[0].astype("int16")})
    joined = label.merge(top1(scores), on="image_id", validate="one_to_one")
    return joined.loc[joined["top1"] == joined["class_index"], ["image_id", "class_index", "confidence"]]


def shared(index: pd.DataFrame, ensemble: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The pictures with one label that all models of the ensemble get right: image_id, class_index."""
    first, *others = (right(index, scores)[["image_id", "class_index"]] for scores in ensemble)
    for other in others:
        first = first.merge(other, on=["image_id", "class_index"])
    return first


def relaxed(index: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The pictures with several labels, one of which is the model's highest class."""
    several = index.loc[index["real_classes"].str.len() > 1, ["image_id", "real_classes"]]
    joined = several.merge(top1(scores), on="image_id", validate="one_to_one")
    among = [top in labels for top, labels in zip(joined["top1"], joined["real_classes"], strict=True)]
    return joined.loc[among, ["image_id", "top1", "confidence"]].rename(columns={"top1": "class_index"})


def candidates(
    index: pd.DataFrame, shared: pd.DataFrame, scores: pd.DataFrame, count: int, classes: Collection[int]
) -> pd.DataFrame:
    """Every picture that may stand in one of `classes` for one model, with its tier and rank.

    Tier `top5`: of the pictures that all models get right, the `count` with the highest confidence
    in each class. Tier `reserve`: every other picture with one label that this model gets right.
    Tier `relaxed`: pictures with several labels, the model's highest class among them. Ranks run
    from 1 within a class, by tier, then confidence.
    """
    single = right(index, scores)
    single["tier"] = np.where(single["image_id"].isin(shared["image_id"]), "top5", "reserve")
    single = ordered(single)
    single.loc[single.groupby(["class_index", "tier"]).cumcount() >= count, "tier"] = "reserve"
    several = relaxed(index, scores).assign(tier="relaxed")
    every = ordered(pd.concat([single, several], ignore_index=True))
    every = every[every["class_index"].isin(classes)]
    every["rank"] = every.groupby("class_index").cumcount() + 1
    return every


def candidate_ids(index: pd.DataFrame, scores: pd.DataFrame, classes: Collection[int]) -> set[str]:
    """The pictures that `candidates` lists; which they are depends on neither the other models nor the tiers."""
    every = pd.concat([right(index, scores), relaxed(index, scores)])
    return set(every.loc[every["class_index"].isin(classes), "image_id"])


def margins(candidates: pd.DataFrame, shared: pd.DataFrame) -> pd.DataFrame:
    """By how much the last picture of tier `top5` is ahead of the first one out, the best of the other shared ones.

    One row for each class that has both: image_id, class_index, confidence, next_image_id, next_confidence, margin.
    """
    common = candidates[candidates["image_id"].isin(shared["image_id"])].sort_values("rank")
    inside, outside = (
        common.loc[common["tier"] == tier, ["class_index", "image_id", "confidence"]].groupby("class_index")
        for tier in ("top5", "reserve")
    )
    out = outside.head(1).rename(columns={"image_id": "next_image_id", "confidence": "next_confidence"})
    both = inside.tail(1).merge(out, on="class_index")
    # exact: the difference of two float32 fits into a float64
    return both.assign(margin=both["confidence"].astype("float64") - both["next_confidence"].astype("float64"))


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """By class, tier, falling confidence, image id."""
    order = pd.DataFrame(
        {
            "class_index": frame["class_index"],
            "tier": frame["tier"].map(TIERS.index),
            "confidence": -frame["confidence"],
            "image_id": frame["image_id"],
        }
    )
    return frame.loc[order.sort_values(list(order.columns)).index]
