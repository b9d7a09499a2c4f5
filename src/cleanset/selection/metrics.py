"""What `dvc metrics show` counts for one model: images by class, totals, accuracy, margins, short classes."""

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.selection.candidates import check_same_images, correct, top5_predictions
from cleanset.selection.rule import ImagesPerClass, Label, is_full, least_images
from cleanset.selection.selected import boxes_of
from cleanset.statistics.basics import Floats
from cleanset.statistics.formats import in_percent, rounded
from cleanset.vocabulary import EXCLUSION_REASONS, NO_TIER, TIERS


def per_class(selection: pd.DataFrame, classes: Collection[int]) -> dict[int, int]:
    """Number of images kept in each class."""
    counts = selection["class_index"].value_counts()
    return {index: int(counts.get(index, 0)) for index in classes}


def totals(
    selection: pd.DataFrame,
    rejected: pd.DataFrame,
    classes: Collection[int],
    images_per_class: ImagesPerClass,
    further: Iterable[str] = (),
) -> dict[str, int]:
    """Images by tier, if the candidates have tiers, and verdict, classes by state, rejected candidates by reason.

    `further`: the reasons of the edition next to EXCLUSION_REASONS; those of the table are counted in any case.
    `images_cropped` includes `images_box_unknown`: those whose box nobody has drawn yet, kept for counting only.
    """
    counts = per_class(selection, classes)
    boxes = boxes_of(selection)
    tiers = selection["tier"].value_counts()
    has_tiers = not any((table["tier"] == NO_TIER).any() for table in (selection, rejected))
    reasons = rejected["reason"].value_counts()
    names = (*EXCLUSION_REASONS, *further, *sorted(reasons.index))
    undecided = per_class(rejected[rejected["open"]], classes)
    return {
        "images": len(selection),
        "images_cropped": sum(box is not None for box in boxes),
        "images_box_unknown": sum(box is UNKNOWN_BOX for box in boxes),
        **({f"images_{tier}": int(tiers.get(tier, 0)) for tier in TIERS} if has_tiers else {}),
        "classes_full": sum(is_full(count, undecided[index], images_per_class) for index, count in counts.items()),
        "classes_short": sum(count < least_images(images_per_class) for count in counts.values()),
        "classes_unsettled": int(rejected.loc[rejected["open"], "class_index"].nunique()),
        **{f"rejected_{reason}": int(reasons.get(reason, 0)) for reason in names},
    }


def accuracy(index: pd.DataFrame, scores: pd.DataFrame, label: Label = "real") -> dict[str, float | int]:
    """The model's accuracy on all images, in percent with two decimals, and its correct images with one label.

    Top-1 and top-5 (where it is known) are on the original labels; ReaL accuracy is the share of the images with any
    reassessed label whose top-1 class is among them (Beyer et al. 2020), left out if none has one. Raises
    CleansetError unless the scores are of exactly the images of the index.
    """
    check_same_images(index, scores)
    joined = index.merge(scores, on="image_id", validate="one_to_one")
    classes, probabilities = top5_predictions(joined)
    hits = classes == joined["ilsvrc_class"].to_numpy()[:, None]
    among = [top in labels for top, labels in zip(classes[:, 0], joined["real_classes"], strict=True) if len(labels)]
    numbers: dict[str, float | int] = {"accuracy_top1": in_percent(float(hits[:, 0].mean()))}
    if _has_top5(classes, probabilities):
        numbers["accuracy_top5"] = in_percent(float(hits.any(axis=1).mean()))
    if among:
        numbers["accuracy_real"] = in_percent(float(np.mean(among)))
    return numbers | {"correct_of_one_label": len(correct(index, scores, label))}


def _has_top5(classes: NDArray[np.int16], probabilities: Floats) -> bool:
    """Whether there is a top-5 accuracy.

    Not with fewer than five classes, which would all be among the top five, nor where the top-1 class alone is known:
    then those after it stand for any, with a probability of 0.
    """
    return bool((classes >= 0).all() and (probabilities[:, 1:] > 0).any())


def top1_minus_published(top1: float, published: float | None) -> dict[str, float]:
    """A model's top-1 accuracy minus the published one, in percentage points; empty without a published one."""
    return {} if published is None else {"accuracy_top1_minus_published": rounded(top1 - published, 2)}


def closeness(margins: pd.DataFrame) -> dict[str, float | int]:
    """The number of classes with a margin below 1e-5, and the smallest margins in millionths (six digits).

    In millionths, since `dvc metrics show` rounds to five decimals.
    """
    numbers: dict[str, float | int] = {"margins_below_1e-5": int((margins["margin"] < 1e-5).sum())}
    if len(margins):
        for name in ("margin", "log_odds_margin"):
            numbers[f"{name}_smallest_ppm"] = float(f"{1e6 * margins[name].min():.6g}")
    return numbers


def short_classes(
    selection: pd.DataFrame, rejected: pd.DataFrame, classes: Collection[int], images_per_class: ImagesPerClass
) -> pd.DataFrame:
    """The classes with too few images, and why: kept, candidates, reasons as "watermark 2, blur 1"."""
    rows = []
    for index, kept in per_class(selection, classes).items():
        if kept < least_images(images_per_class):
            others = rejected.loc[rejected["class_index"] == index, "reason"].value_counts()
            # value_counts leaves the order of equal counts open
            by_reason = sorted(others.items(), key=lambda item: (-item[1], str(item[0])))
            rows.append(
                {
                    "class_index": index,
                    "kept": kept,
                    "candidates": kept + int(others.sum()),
                    "rejected": ", ".join(f"{reason} {count}" for reason, count in by_reason),
                }
            )
    return pd.DataFrame(rows, columns=["class_index", "kept", "candidates", "rejected"])
