"""The candidate images of each class and their order, by a `Rule`.

An image's label is its reassessed label, if it has exactly one. A model classifies an image *correctly* if its top-1
class is that label; its *confidence* is the softmax probability of that class, its *log-odds* the log-odds of that
probability. If a source's text differs from its authors' practice, `rule.Rule` has a name for each.
"""

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.selection.rule import OWN_LABELS, Label, Order, Rule
from cleanset.statistics.basics import Floats
from cleanset.vocabulary import NO_TIER, TIER_ORDER

DEFAULT = Rule()
NAMED_CLASSES = "named_classes"
"""The column of an index with the classes that the study names which `Rule.label` names; empty if it has none."""


def top5_predictions(scores: pd.DataFrame) -> tuple[NDArray[np.int16], Floats]:
    """The classes and probabilities of a score table, each of shape (n, 5)."""
    classes = np.array(scores["top5_class"].to_list(), np.int16).reshape(-1, 5)
    return classes, np.array(scores["top5_probability"].to_list(), np.float32).astype(np.float64).reshape(-1, 5)


def check_same_images(index: pd.DataFrame, scores: pd.DataFrame, where: str = "scores") -> None:
    """Raise CleansetError, naming `where`, unless `scores` have a row for each image of the index, and no other."""
    if index["image_id"].reset_index(drop=True).equals(scores["image_id"].reset_index(drop=True)):
        return  # the usual case: two tables sorted by id
    expected = set(index["image_id"])
    found = set(scores["image_id"])
    missing = sorted(expected - found)
    surplus = sorted(found - expected)
    if missing or surplus:
        which = f"no row for {missing[0]}" if missing else f"an unexpected row for {surplus[0]}"
        raise CleansetError(
            f"{where}: {which}; expected one for each of the {len(index):,} images of the index: run dvc repro"
        )


def top1(index: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The index with a model's top-1 class, its probability and log-odds: columns top1, confidence, log_odds.

    Raises CleansetError unless the scores are of exactly the images of the index.
    """
    check_same_images(index, scores)
    classes, probabilities = top5_predictions(scores)
    first = scores[["image_id", "log_odds"]].assign(
        top1=classes[:, 0], confidence=probabilities[:, 0].astype(np.float32)
    )
    return index.merge(first, on="image_id", validate="one_to_one")


def correct(index: pd.DataFrame, scores: pd.DataFrame, label: Label = "real") -> pd.DataFrame:
    """The images with one label that a model classifies correctly: image_id, class_index, confidence, log_odds."""
    joined = top1(index, scores)
    joined = joined[joined["single"]]
    if label not in OWN_LABELS:
        joined = joined[joined[NAMED_CLASSES].str.len() == 1]
    joined = joined.assign(class_index=joined["real_classes"].str[0].astype("int16"))
    return _of_label(joined[joined["top1"] == joined["class_index"]], label)


def shared(index: pd.DataFrame, ensemble: Iterable[pd.DataFrame], label: Label = "real") -> pd.DataFrame:
    """The images with one label that all models of the ensemble classify correctly: image_id, class_index."""
    first, *others = (correct(index, scores, label)[["image_id", "class_index"]] for scores in ensemble)
    for other in others:
        first = first.merge(other, how="inner", on=["image_id", "class_index"], validate="one_to_one")
    return first


def relaxed(index: pd.DataFrame, scores: pd.DataFrame, label: Label = "real") -> pd.DataFrame:
    """The images with several labels that include the model's top-1 class."""
    joined = top1(index, scores)
    joined = joined[joined["real_classes"].str.len() > 1].rename(columns={"top1": "class_index"})
    among = [top in labels for top, labels in zip(joined["class_index"], joined["real_classes"], strict=True)]
    return _of_label(joined.loc[among], label)


def _of_label(correct: pd.DataFrame, label: Label) -> pd.DataFrame:
    if label == "both":
        correct = correct[correct["class_index"] == correct["ilsvrc_class"]]
    elif label not in OWN_LABELS:
        named = zip(correct["class_index"], correct[NAMED_CLASSES], strict=True)
        correct = correct.loc[[index in classes for index, classes in named]]
    return correct[["image_id", "class_index", "confidence", "log_odds"]]


def candidates(
    index: pd.DataFrame,
    shared: pd.DataFrame,
    scores: pd.DataFrame,
    classes: Collection[int],
    rule: Rule = DEFAULT,
) -> pd.DataFrame:
    """Every image that may be in one of `classes` for one model, with its tier and rank, and whether it is `in_pool`.

    Tier `top5`: in each class, the first images of the pool. Tier `reserve`: every other image with one label that
    this model classifies correctly. Tier `relaxed`: images with several labels, the model's top-1 class among them.
    Ranks run from 1 within a class, by tier, then in the rule's order. In a random order every image with one label is
    a candidate, in the order of its drawn number, and has no tier.

    Raises CleansetError if this model misclassifies a shared image: then `shared` is of other scores.
    """
    single = correct(index, scores, rule.label)
    if rule.in_random_order:
        return _ranked(ordered(single.assign(tier=NO_TIER, in_pool=False)), classes)
    strange = sorted(set(shared["image_id"]) - set(single["image_id"]))
    if strange:
        raise CleansetError(
            f"{strange[0]}: shared, but misclassified by this model; expected the images that all models classify "
            "correctly: run dvc repro intersect"
        )
    single["in_pool"] = single["image_id"].isin(shared["image_id"]) if rule.pool == "ensemble" else True
    single["tier"] = np.where(single["in_pool"], "top5", "reserve")
    single = ordered(single, rule.order)
    single.loc[single.groupby(["class_index", "tier"]).cumcount() >= rule.count, "tier"] = "reserve"
    several = relaxed(index, scores, rule.label).assign(tier="relaxed", in_pool=False)
    return _ranked(ordered(pd.concat([single, several], ignore_index=True), rule.order), classes)


def _ranked(candidates: pd.DataFrame, classes: Collection[int]) -> pd.DataFrame:
    """The candidates of these classes, each with its rank in its class, by the order of the rows."""
    every = candidates[candidates["class_index"].isin(classes)].copy()
    every["rank"] = every.groupby("class_index").cumcount() + 1
    return every


def of_tiers(candidates: pd.DataFrame, tiers: Collection[str]) -> pd.DataFrame:
    """The candidates of these tiers, or without one. Ranks stay without gaps where the tiers are the first ones."""
    return candidates[candidates["tier"].isin([NO_TIER, *tiers])]


def margins(candidates: pd.DataFrame) -> pd.DataFrame:
    """The margin, by class, of the last image of tier `top5` over the first one out: the best other image of the pool.

    `candidates` include all tiers. One row for each class that has both: image_id, class_index, confidence and
    log_odds; the first one out has them as next_*; margin, between the confidences, and log_odds_margin.
    """
    common = candidates[candidates["in_pool"].astype(bool)].sort_values("rank")
    values = ["image_id", "confidence", "log_odds"]
    inside, outside = (
        common.loc[common["tier"] == tier, ["class_index", *values]].groupby("class_index")
        for tier in ("top5", "reserve")
    )
    out = outside.head(1).rename(columns={name: f"next_{name}" for name in values})
    # inner: a class has no margin where all its images of the pool are in the tier
    both = inside.tail(1).merge(out, how="inner", on="class_index", validate="one_to_one")
    # float32 differences would lose the digits that small margins consist of
    exact = both.astype(dict.fromkeys(["confidence", "log_odds", "next_confidence", "next_log_odds"], "float64"))
    return both.assign(
        margin=exact["confidence"] - exact["next_confidence"],
        log_odds_margin=exact["log_odds"] - exact["next_log_odds"],
    )


def ordered(frame: pd.DataFrame, order: Order = "log_odds") -> pd.DataFrame:
    """The rows sorted by class, tier, and the order. Ties: the lower image id first.

    Log-odds that are equal in float32 are sorted by confidence, which is finer where it is small.
    """
    keys = ["log_odds", "confidence"] if order == "log_odds" else ["confidence"]
    sorting = pd.DataFrame(
        {
            "class_index": frame["class_index"],
            # by place in TIERS: the names themselves sort otherwise
            "tier": frame["tier"].map(TIER_ORDER.index),
            **{key: -frame[key] for key in keys},
            "image_id": frame["image_id"],
        }
    )
    return frame.loc[sorting.sort_values(list(sorting.columns)).index]
