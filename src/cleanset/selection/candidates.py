"""Which images may be in a class, and in what order.

An image's label is its reassessed label, where there is exactly one. A model classifies an image *correctly*
if its top-1 class is that label; its *confidence* is the softmax probability of that class. Equal
confidences: the lower `image_id` first.
"""

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.vocabulary import TIERS


def top5_predictions(scores: pd.DataFrame) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """The classes and probabilities of a score table, each of shape (n, 5)."""
    classes = np.array(scores["top5_class"].to_list(), np.int16).reshape(-1, 5)
    return classes, np.array(scores["top5_probability"].to_list(), np.float32).astype(np.float64).reshape(-1, 5)


def check_same_images(index: pd.DataFrame, scores: pd.DataFrame, where: str = "scores") -> None:
    """Raise CleansetError, naming `where`, unless `scores` have a row for each image of the index, and no other."""
    if index["image_id"].reset_index(drop=True).equals(scores["image_id"].reset_index(drop=True)):
        return  # the usual case: two tables sorted by id
    expected, found = set(index["image_id"]), set(scores["image_id"])
    missing, surplus = sorted(expected - found), sorted(found - expected)
    if missing or surplus:
        which = f"no row for {missing[0]}" if missing else f"a row too many for {surplus[0]}"
        raise CleansetError(
            f"{where}: {which}; expected one for each of the {len(index):,} images of the index: run dvc repro"
        )


def top1(index: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The index with a model's top-1 class and its probability: columns top1, confidence.

    Raises CleansetError unless the scores are of exactly the images of the index.
    """
    check_same_images(index, scores)
    classes, probabilities = top5_predictions(scores)
    first = {"top1": classes[:, 0], "confidence": probabilities[:, 0].astype(np.float32)}
    return index.merge(
        pd.DataFrame({"image_id": scores["image_id"].to_numpy()} | first), on="image_id", validate="one_to_one"
    )


def correct(index: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The images with one label that a model classifies correctly: image_id, class_index, confidence."""
    joined = top1(index[["image_id", "real_classes", "single"]], scores)
    joined = joined[joined["single"]]
    joined = joined.assign(class_index=joined["real_classes"].str[0].astype("int16"))
    return joined.loc[joined["top1"] == joined["class_index"], ["image_id", "class_index", "confidence"]]


def shared(index: pd.DataFrame, ensemble: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The images with one label that all models of the ensemble classify correctly: image_id, class_index."""
    first, *others = (correct(index, scores)[["image_id", "class_index"]] for scores in ensemble)
    for other in others:
        first = first.merge(other, how="inner", on=["image_id", "class_index"], validate="one_to_one")
    return first


def relaxed(index: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The images with several labels, one of which is the model's top-1 class."""
    joined = top1(index[["image_id", "real_classes"]], scores)
    joined = joined[joined["real_classes"].str.len() > 1]
    among = [top in labels for top, labels in zip(joined["top1"], joined["real_classes"], strict=True)]
    return joined.loc[among, ["image_id", "top1", "confidence"]].rename(columns={"top1": "class_index"})


def candidates(
    index: pd.DataFrame, shared: pd.DataFrame, scores: pd.DataFrame, count: int, classes: Collection[int]
) -> pd.DataFrame:
    """Every image that may be in one of `classes` for one model, with its tier and rank.

    Tier `top5`: of the images that all models classify correctly, the `count` with the highest confidence
    in each class. Tier `reserve`: every other image with one label that this model classifies correctly.
    Tier `relaxed`: images with several labels, the model's top-1 class among them. Ranks run
    from 1 within a class, by tier, then confidence.

    Raises CleansetError if this model misclassifies a shared image: then `shared` is of other scores.
    """
    single = correct(index, scores)
    strange = sorted(set(shared["image_id"]) - set(single["image_id"]))
    if strange:
        raise CleansetError(
            f"{strange[0]}: shared, but misclassified by this model; expected the images that all models classify "
            "correctly: run dvc repro intersect"
        )
    single["tier"] = np.where(single["image_id"].isin(shared["image_id"]), "top5", "reserve")
    single = ordered(single)
    single.loc[single.groupby(["class_index", "tier"]).cumcount() >= count, "tier"] = "reserve"
    several = relaxed(index, scores).assign(tier="relaxed")
    every = ordered(pd.concat([single, several], ignore_index=True))
    every = every[every["class_index"].isin(classes)]
    every["rank"] = every.groupby("class_index").cumcount() + 1
    return every


def of_tiers(candidates: pd.DataFrame, tiers: Collection[str]) -> pd.DataFrame:
    """The candidates of these tiers. Ranks stay without gaps where the tiers are the first ones."""
    return candidates[candidates["tier"].isin(tiers)]


def margins(candidates: pd.DataFrame, shared: pd.DataFrame) -> pd.DataFrame:
    """By how much the last image of tier `top5` is ahead of the first one out, the best of the other shared ones.

    `candidates` are those of all tiers. One row for each class that has both: image_id, class_index,
    confidence, next_image_id, next_confidence, margin.
    """
    common = candidates[candidates["image_id"].isin(shared["image_id"])].sort_values("rank")
    inside, outside = (
        common.loc[common["tier"] == tier, ["class_index", "image_id", "confidence"]].groupby("class_index")
        for tier in ("top5", "reserve")
    )
    out = outside.head(1).rename(columns={"image_id": "next_image_id", "confidence": "next_confidence"})
    # inner: a class has no margin where all its shared images are in the tier
    both = inside.tail(1).merge(out, how="inner", on="class_index", validate="one_to_one")
    # exact: the difference of two float32 fits into a float64
    return both.assign(margin=both["confidence"].astype("float64") - both["next_confidence"].astype("float64"))


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows sorted by class, tier, falling confidence, image id."""
    order = pd.DataFrame(
        {
            "class_index": frame["class_index"],
            "tier": frame["tier"].map(TIERS.index),
            "confidence": -frame["confidence"],
            "image_id": frame["image_id"],
        }
    )
    return frame.loc[order.sort_values(list(order.columns)).index]
