"""The numbers of the report, from the outputs of the stages; also as small JSON files for `dvc plots`."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.selection.fill import Filled
from cleanset.selection.metrics import per_class, short_classes
from cleanset.selection.rule import ImagesPerClass, is_full
from cleanset.vocabulary import NO_TIER, TIERS

CandidateKey = tuple[int, str]
"""Class index and image id: an image in a class."""

CountsByName = dict[str, int]
"""A number for each model, by role."""

HISTOGRAM_BINS = 20
"""Each is 1 / HISTOGRAM_BINS wide in confidence on the whole image; the last one is closed."""

MAX_SIZES = 20
"""Rows of the table of classes by their number of images, next to that of empty ones."""

_WIDTHS = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
"""Numbers of images that may be counted together in a row."""

LEFT_OVER = ("not_needed", "unreviewed")
"""Reasons other than a flaw of the image; nothing is shown for them."""


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """Number of images left at one step on the way to the finished sets."""

    name: str
    counts: CountsByName


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bin of confidence: one model's candidates of one tier, and the kept ones among them."""

    role: str
    tier: str
    candidates: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClassState:
    """The state of a class: by model the images kept, those still open, and why it is short, if it is."""

    class_index: int
    kept: CountsByName
    open: CountsByName
    short: dict[str, str]
    is_full: bool
    """Whether it is full for every model."""


@dataclass(frozen=True, slots=True)
class Rejects:
    """The candidates that a model's set lacks for one reason.

    `counts`: by model. `images`: how many different images these are. `examples`: the best ranked of them.
    """

    reason: str
    counts: CountsByName
    images: int
    examples: tuple[CandidateKey, ...]


def candidates(filled: Filled) -> pd.DataFrame:
    """Every candidate of one model, kept or not: class_index, image_id, tier, rank, confidence."""
    columns = ["class_index", "image_id", "tier", "rank", "confidence"]
    return pd.concat([filled.selection[columns], filled.rejected[columns]], ignore_index=True)


def keys(frame: pd.DataFrame) -> list[CandidateKey]:
    """Class index and image id of each row."""
    return list(zip(frame["class_index"].tolist(), frame["image_id"].tolist(), strict=True))


def funnel(
    index: pd.DataFrame, shared: pd.DataFrame | None, sets: Mapping[str, Filled], reviewed: Collection[CandidateKey]
) -> list[FunnelStep]:
    """The steps from all images to the finished sets, without those that the edition does not take.

    `shared`: the images that all models classify correctly, None if candidates need not be among them. `reviewed`:
    the images with at least one verdict.
    """
    every = {role: candidates(filled) for role, filled in sets.items()}
    reviewed_counts = {role: sum(key in reviewed for key in keys(frame)) for role, frame in every.items()}
    steps = [FunnelStep("all images", dict.fromkeys(sets, len(index)))]
    if not index["single"].all():
        steps.append(FunnelStep("with one label", dict.fromkeys(sets, int(index["single"].sum()))))
    if shared is not None:
        correct = "correct for all models" if len(sets) > 1 else "classified correctly"
        steps.append(FunnelStep(correct, dict.fromkeys(sets, len(shared))))
    tiers = {tier: {role: int((frame["tier"] == tier).sum()) for role, frame in every.items()} for tier in TIERS}
    return [
        *steps,
        *(FunnelStep(f"candidates, {tier}", counts) for tier, counts in tiers.items() if any(counts.values())),
        FunnelStep("all candidates", {role: len(frame) for role, frame in every.items()}),
        FunnelStep("reviewed", reviewed_counts),
        FunnelStep("kept", {role: len(filled.selection) for role, filled in sets.items()}),
    ]


def histograms(sets: Mapping[str, Filled]) -> list[Histogram]:
    """A histogram of the known confidences for each model and tier, by model first; none of a set without a model."""
    return [
        Histogram(role, tier, _binned(candidates(filled), tier), _binned(filled.selection, tier))
        for role, filled in sets.items()
        if not (candidates(filled)["tier"] == NO_TIER).any()
        for tier in TIERS
    ]


def _binned(frame: pd.DataFrame, tier: str) -> tuple[int, ...]:
    # without those that are not known
    confidences = frame.loc[frame["tier"] == tier, "confidence"].dropna().astype("float64")
    return tuple(np.histogram(confidences, bins=HISTOGRAM_BINS, range=(0, 1))[0].tolist())


def class_states(
    sets: Mapping[str, Filled], classes: Collection[int], images_per_class: ImagesPerClass
) -> list[ClassState]:
    """The state of every class, by class index."""
    kept = {role: per_class(filled.selection, classes) for role, filled in sets.items()}
    still_open = {role: per_class(filled.rejected[filled.rejected["open"]], classes) for role, filled in sets.items()}
    short = {
        role: _reasons(short_classes(filled.selection, filled.rejected, classes, images_per_class))
        for role, filled in sets.items()
    }
    return [
        ClassState(
            class_index=index,
            kept={role: kept[role][index] for role in sets},
            open={role: still_open[role][index] for role in sets},
            short={role: short[role][index] for role in sets if index in short[role]},
            is_full=all(is_full(kept[role][index], still_open[role][index], images_per_class) for role in sets),
        )
        for index in sorted(classes)
    ]


def _reasons(short: pd.DataFrame) -> dict[int, str]:
    return dict(zip(short["class_index"].tolist(), short["rejected"].tolist(), strict=True))


def by_size(
    states: Sequence[ClassState], roles: Collection[str], images_per_class: ImagesPerClass
) -> dict[range, CountsByName]:
    """Number of classes by their number of images, from a full or the largest class down to an empty one.

    If more than MAX_SIZES numbers are possible, they are counted in ranges; 0 always has its own.
    """
    sizes = [state.kept[role] for state in states for role in roles]
    largest = max(sizes, default=0) if images_per_class == "all" else images_per_class
    width = next(width for width in _WIDTHS if width * MAX_SIZES >= largest)
    starts = range(1, largest + 1, width)
    rows = [*(range(start, start + width) for start in reversed(starts)), range(1)]
    return {row: {role: sum(state.kept[role] in row for state in states) for role in roles} for row in rows}


def overlaps(sets: Mapping[str, Filled]) -> list[tuple[tuple[str, ...], int]]:
    """Number of images that are in the sets of exactly these models; the most frequent first, empty ones left out.

    An image is common to two sets if it is in the same class of both.
    """
    members: dict[CandidateKey, tuple[str, ...]] = {}
    for role, filled in sets.items():
        for key in keys(filled.selection):
            members[key] = (*members.get(key, ()), role)
    order = list(sets)
    return sorted(
        Counter(members.values()).items(), key=lambda item: (-item[1], [order.index(role) for role in item[0]])
    )


def distinct_images(sets: Mapping[str, Filled]) -> int:
    """Number of different images in all sets together."""
    return len({image_id for filled in sets.values() for image_id in filled.selection["image_id"]})


def pairwise(overlap: Sequence[tuple[tuple[str, ...], int]], roles: Sequence[str]) -> dict[tuple[str, str], int]:
    """Number of images that two models have in common, whether or not others have them."""
    return {
        (a, b): sum(count for members, count in overlap if a in members and b in members)
        for a, b in combinations(roles, 2)
    }


def rejects(sets: Mapping[str, Filled], examples: int) -> list[Rejects]:
    """The rejects by reason, the most frequent first; images merely left over come last and have no examples.

    An image that is a candidate of two classes for two models is one image, with the class where it ranks higher.
    """
    every = pd.concat([filled.rejected.assign(role=role) for role, filled in sets.items()])
    # an image that is a candidate of two classes is shown once, where it ranks higher
    images = every.sort_values(["rank", "class_index", "image_id"]).drop_duplicates(["reason", "image_id"])
    found = []
    for reason, rows in every.groupby("reason"):
        counts = rows["role"].value_counts()
        distinct = images[images["reason"] == reason]
        shown = () if reason in LEFT_OVER else tuple(keys(distinct.head(examples)))
        found.append(Rejects(str(reason), {role: int(counts.get(role, 0)) for role in sets}, len(distinct), shown))
    return sorted(found, key=lambda each: (each.reason in LEFT_OVER, -each.images, each.reason))


PlotRow = dict[str, str | int | float]


def plots(
    steps: Sequence[FunnelStep],
    states: Sequence[ClassState],
    histograms: Sequence[Histogram],
    roles: Sequence[str],
    classes: ClassTable,
) -> dict[str, str]:
    """The text of each file, by its path. `confidence` is the lower edge of a bin that is 1 / HISTOGRAM_BINS wide."""
    rows: dict[str, list[PlotRow]] = {}
    for role in roles:
        rows[f"funnel/{role}.json"] = [{"name": step.name, "images": step.counts[role]} for step in steps]
        rows[f"classes/{role}.json"] = [
            {
                "class_index": state.class_index,
                classes.key_column: classes.keys[state.class_index],
                "images": state.kept[role],
            }
            for state in states
        ]
    for each in histograms:
        rows[f"confidence/{each.role}_{each.tier}.json"] = [
            {"confidence": place / HISTOGRAM_BINS, "candidates": candidates, "kept": kept}
            for place, (candidates, kept) in enumerate(zip(each.candidates, each.kept, strict=True))
        ]
    # a row on each line
    return {name: "[\n" + ",\n".join(map(json.dumps, of_file)) + "\n]\n" for name, of_file in rows.items()}
