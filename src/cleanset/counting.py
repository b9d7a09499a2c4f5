"""What the metrics count, for one model."""

from collections.abc import Collection
from typing import get_args

import numpy as np
import pandas as pd

from cleanset.after_crop import WRONG_AFTER_CROP
from cleanset.ranking import right, top5
from cleanset.review.agreement import differences, overall, verdict_counts, without_board
from cleanset.review.folder import Votes
from cleanset.review.verdicts import Reason
from cleanset.tiers import TIERS

REASONS: tuple[str, ...] = (
    *get_args(Reason), "unsure", WRONG_AFTER_CROP, "conflict", "too_few_reviewers", "unreviewed", "not_needed",
)  # fmt: skip
"""Why a candidate is not in the set; a closed list."""


def per_class(selection: pd.DataFrame, classes: Collection[int]) -> dict[int, int]:
    """Number of pictures kept in each class."""
    counts = selection["class_index"].value_counts()
    return {index: int(counts.get(index, 0)) for index in classes}


def totals(
    selection: pd.DataFrame, rejected: pd.DataFrame, classes: Collection[int], images_per_class: int
) -> dict[str, int]:
    """Pictures by tier and verdict, classes by state, rejected candidates by reason."""
    counts = per_class(selection, classes)
    tiers, reasons = selection["tier"].value_counts(), rejected["reason"].value_counts()
    return {
        "pictures": len(selection),
        "pictures_cropped": int(selection["crop"].notna().sum()),
        **{f"pictures_{tier}": int(tiers.get(tier, 0)) for tier in TIERS},
        "classes_full": sum(count == images_per_class for count in counts.values()),
        "classes_short": sum(count < images_per_class for count in counts.values()),
        "classes_unsettled": int(rejected.loc[rejected["open"], "class_index"].nunique()),
        **{f"rejected_{reason}": int(reasons.get(reason, 0)) for reason in REASONS},
    }


def accuracy(index: pd.DataFrame, scores: pd.DataFrame) -> dict[str, float | int]:
    """How right the model is on all pictures, in percent with two decimals, and on how many with one label.

    Top-1 and top-5 are on the original labels; ReaL accuracy is the share of the pictures with any
    reassessed label on which the highest class is among them (Beyer et al. 2020).
    """
    joined = index.merge(scores, on="image_id", validate="one_to_one")
    classes, _ = top5(joined)
    hits = classes == joined["ilsvrc_class"].to_numpy()[:, None]
    any_label = joined["real_classes"].str.len() > 0
    among = [top in labels for top, labels in zip(classes[:, 0], joined["real_classes"], strict=True)]
    return {
        "accuracy_top1": _percent(hits[:, 0]),
        "accuracy_top5": _percent(hits.any(axis=1)),
        "accuracy_real": _percent(np.array(among)[any_label]),
        "right_of_one_label": len(right(index, scores)),
    }


def top1_minus_published(top1: float, published: float | None) -> dict[str, float]:
    """How far a model's top-1 accuracy is from the published one, in percentage points; nothing where there is none."""
    return {} if published is None else {"accuracy_top1_minus_published": round(top1 - published, 2)}


def closeness(margins: pd.DataFrame) -> dict[str, float | int]:
    """How many classes have a margin that a difference of 1e-5 uses up, and the smallest margin (six digits)."""
    numbers: dict[str, float | int] = {"margins_below_1e-5": int((margins["margin"] < 1e-5).sum())}
    if len(margins):
        numbers["margin_smallest"] = float(f"{margins['margin'].min():.6g}")
    return numbers


def agreement_of_reviewers(votes: Votes, selection: pd.DataFrame, rejected: pd.DataFrame) -> dict[str, float | int]:
    """On this model's candidates: pictures that several reviewers saw, on how many they differ, agreement, kappa.

    Agreement is in percent with two decimals, kappa has four; each is left out where nothing can be said.
    """
    columns = ("class_index", "image_id")
    candidates = {
        key for table in (selection, rejected) for key in zip(*(table[name] for name in columns), strict=True)
    }
    of_model = {key: by_reviewer for key, by_reviewer in votes.items() if key in candidates}
    found = overall(verdict_counts(without_board(of_model).values()))
    numbers: dict[str, float | int] = {
        "reviewed_by_several": found.pictures,
        "reviewers_differ": len(differences(of_model)),
    }
    if found.agreement is not None:
        numbers["reviewers_agreement"] = round(100 * found.agreement, 2)
    if found.kappa is not None:
        numbers["reviewers_kappa"] = round(found.kappa, 4)
    return numbers


def _percent(hits: "np.ndarray[tuple[int], np.dtype[np.bool]]") -> float:
    return round(100 * float(hits.mean()), 2) if len(hits) else 0.0


def short_classes(
    selection: pd.DataFrame, rejected: pd.DataFrame, classes: Collection[int], images_per_class: int
) -> pd.DataFrame:
    """The classes with too few pictures, and why: kept, candidates, reasons as "watermark 2, blur 1"."""
    rows = []
    for index, kept in per_class(selection, classes).items():
        if kept < images_per_class:
            others = rejected.loc[rejected["class_index"] == index, "reason"].value_counts()
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
