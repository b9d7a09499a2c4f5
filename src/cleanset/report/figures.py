"""The numbers of the report, from what the stages hand on."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from cleanset.counting import per_class, short_classes
from cleanset.selection import Filled
from cleanset.tiers import TIERS

Key = tuple[int, str]
"""Class index and image id: a picture as it stands in a class."""

Counts = dict[str, int]
"""A number for each model, by role."""

BINS = 20
"""Of a histogram of confidences; each is 1 / BINS wide, the last one closed."""

LEFT_OVER = ("not_needed", "unreviewed")
"""Reasons that say nothing against a picture, so that there is nothing to show."""


@dataclass(frozen=True, slots=True)
class Step:
    """How many pictures are left at one step on the way to the finished sets."""

    name: str
    counts: Counts


@dataclass(frozen=True, slots=True)
class Histogram:
    """One model's candidates of one tier by confidence, and those of them that were kept; BINS numbers each."""

    role: str
    tier: str
    candidates: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClassState:
    """How a class stands: by model the pictures kept, those still open, and where it is short, why."""

    class_index: int
    kept: Counts
    open: Counts
    short: dict[str, str]


@dataclass(frozen=True, slots=True)
class Rejects:
    """The candidates that are in no set for one reason, and the first of them to be looked at."""

    reason: str
    counts: Counts
    pictures: int
    examples: tuple[Key, ...]


def candidates(filled: Filled) -> pd.DataFrame:
    """Every candidate of one model, kept or not: class_index, image_id, tier, rank, confidence."""
    columns = ["class_index", "image_id", "tier", "rank", "confidence"]
    return pd.concat([filled.selection[columns], filled.rejected[columns]], ignore_index=True)


def keys(frame: pd.DataFrame) -> list[Key]:
    """Class index and image id of each row."""
    return list(zip(frame["class_index"].tolist(), frame["image_id"].tolist(), strict=True))


def funnel(
    index: pd.DataFrame, shared: pd.DataFrame, sets: Mapping[str, Filled], reviewed: Collection[Key]
) -> list[Step]:
    """From all pictures to the finished sets. `reviewed`: the pictures with at least one verdict."""
    every = {role: candidates(filled) for role, filled in sets.items()}
    looked_at = {role: sum(key in reviewed for key in keys(frame)) for role, frame in every.items()}
    return [
        Step("all pictures", dict.fromkeys(sets, len(index))),
        Step("with one label", dict.fromkeys(sets, int(index["single"].sum()))),
        Step("right by all models", dict.fromkeys(sets, len(shared))),
        *(
            Step(f"candidates, {tier}", {role: int((frame["tier"] == tier).sum()) for role, frame in every.items()})
            for tier in TIERS
        ),
        Step("candidates in all", {role: len(frame) for role, frame in every.items()}),
        Step("reviewed", looked_at),
        Step("kept", {role: len(filled.selection) for role, filled in sets.items()}),
    ]


def histograms(sets: Mapping[str, Filled]) -> list[Histogram]:
    """By model, then tier."""
    return [
        Histogram(role, tier, _binned(candidates(filled), tier), _binned(filled.selection, tier))
        for role, filled in sets.items()
        for tier in TIERS
    ]


def _binned(frame: pd.DataFrame, tier: str) -> tuple[int, ...]:
    confidences = frame.loc[frame["tier"] == tier, "confidence"]
    return tuple(np.histogram(confidences, bins=BINS, range=(0, 1))[0].tolist())


def class_states(sets: Mapping[str, Filled], classes: Collection[int], images_per_class: int) -> list[ClassState]:
    """Every class, by class index."""
    kept = {role: per_class(filled.selection, classes) for role, filled in sets.items()}
    still_open = {role: per_class(filled.rejected[filled.rejected["open"]], classes) for role, filled in sets.items()}
    short = {
        role: _reasons(short_classes(filled.selection, filled.rejected, classes, images_per_class))
        for role, filled in sets.items()
    }
    return [
        ClassState(
            index,
            {role: kept[role][index] for role in sets},
            {role: still_open[role][index] for role in sets},
            {role: short[role][index] for role in sets if index in short[role]},
        )
        for index in sorted(classes)
    ]


def _reasons(short: pd.DataFrame) -> dict[int, str]:
    return dict(zip(short["class_index"].tolist(), short["rejected"].tolist(), strict=True))


def by_size(states: Sequence[ClassState], roles: Collection[str], images_per_class: int) -> dict[int, Counts]:
    """How many classes have so many pictures, from the most down to none."""
    return {
        size: {role: sum(state.kept[role] == size for state in states) for role in roles}
        for size in range(images_per_class, -1, -1)
    }


def overlaps(sets: Mapping[str, Filled]) -> list[tuple[tuple[str, ...], int]]:
    """How many pictures are in the sets of exactly these models; the most frequent first, empty ones left out.

    A picture is common to two sets if it stands in the same class of both.
    """
    members: dict[Key, tuple[str, ...]] = {}
    for role, filled in sets.items():
        for key in keys(filled.selection):
            members[key] = (*members.get(key, ()), role)
    order = list(sets)
    return sorted(
        Counter(members.values()).items(), key=lambda item: (-item[1], [order.index(role) for role in item[0]])
    )


def pairwise(overlap: Sequence[tuple[tuple[str, ...], int]], roles: Sequence[str]) -> dict[tuple[str, str], int]:
    """How many pictures two models have in common, whoever else has them."""
    return {
        (a, b): sum(count for members, count in overlap if a in members and b in members)
        for a, b in combinations(roles, 2)
    }


def rejects(sets: Mapping[str, Filled], examples: int) -> list[Rejects]:
    """By reason, the most frequent first; what was merely left over comes last and has no examples."""
    every = pd.concat([filled.rejected.assign(role=role) for role, filled in sets.items()])
    order = every.sort_values(["rank", "class_index", "image_id"]).drop_duplicates(
        ["reason", "class_index", "image_id"]
    )
    found = []
    for reason, rows in every.groupby("reason"):
        counts, distinct = rows["role"].value_counts(), order[order["reason"] == reason]
        shown = () if reason in LEFT_OVER else tuple(keys(distinct.head(examples)))
        found.append(Rejects(str(reason), {role: int(counts.get(role, 0)) for role in sets}, len(distinct), shown))
    return sorted(found, key=lambda each: (each.reason in LEFT_OVER, -each.pictures, each.reason))
