"""Differences between two score tables: what they were computed with, and the classes that would change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import Params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.review.queue import decide_all
from cleanset.review.store import checked_reviews
from cleanset.scoring.record import ListRecord, ScoreRecord, read_record
from cleanset.selection.candidates import candidates, of_tiers, shared
from cleanset.selection.crop_check import predictions_of_crops
from cleanset.selection.fill import Decision, Filled, fill, with_decisions
from cleanset.tables import CROP_SCORES, INDEX, SCORES, read_table


@dataclass(frozen=True, slots=True)
class RecordComparison:
    """`different`: by property, its values in both records. `unknown`: by side, why its record cannot be compared."""

    different: dict[str, tuple[str, str]]
    unknown: dict[str, str]

    def lines(self) -> Iterator[str]:
        """A line for each difference, and for each side without a record."""
        for name, values in self.different.items():
            shown = " -> ".join(f"{value[:12]}..." if len(value) == 64 else value for value in values)
            yield f"computed with other {name}: {shown}"
        for side, reason in self.unknown.items():
            yield f"no record of what {side} was computed with: {reason}"

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "computed_with_other": {name: {"a": a, "b": b} for name, (a, b) in self.different.items()},
            "computed_with_unknown": [side.lower() for side in self.unknown],
        }


def compare_records(a: Path, b: Path) -> RecordComparison:
    """Compare the records beside two score tables, such as data/scores/standard.json."""
    found: dict[str, dict[str, str]] = {}
    unknown: dict[str, str] = {}
    for side, table in (("A", a), ("B", b)):
        path = table.with_suffix(".json")
        try:
            found[side] = _properties(read_record(path))
        except CleansetError:
            unknown[side] = f"{path.name} {'unreadable' if path.exists() else 'missing'}"
    if unknown:
        return RecordComparison({}, unknown)
    of_a, of_b = found["A"], found["B"]
    names = [*of_a, *(name for name in of_b if name not in of_a)]
    different = {name: (of_a.get(name, "none"), of_b.get(name, "none")) for name in names}
    return RecordComparison({name: values for name, values in different.items() if values[0] != values[1]}, {})


def _properties(record: ScoreRecord | ListRecord) -> dict[str, str]:
    """The facts that a score depends on, by name."""
    if isinstance(record, ListRecord):
        digests = {"list": record.list_sha256, "images beyond the list": record.beyond_sha256 or "none"}
        return {"model": f"published list of {record.name}", **digests}
    model = (record.source, record.name, record.threat_model)
    preprocessing = record.preprocessing
    return {
        "model": " ".join(filter(None, model)),
        "weights": record.weights_sha256,
        "preprocessing": f"{preprocessing.name} ({preprocessing.resize}, {preprocessing.size}, "
        f"{preprocessing.interpolation})",
        "precision": record.precision,
        "code": record.code,
        **{f"version of {name}": version for name, version in sorted(record.versions.items())},
    }


@dataclass(frozen=True, slots=True)
class ClassChange:
    """The images of a class by one table and by the other: their ids in their order."""

    class_index: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def compare_sets(a: Filled, b: Filled) -> list[ClassChange]:
    """The classes whose images differ, or their order."""
    of_a, of_b = _by_class(a.selection), _by_class(b.selection)
    return [
        ClassChange(index, of_a.get(index, ()), of_b.get(index, ()))
        for index in sorted(set(of_a) | set(of_b))
        if of_a.get(index) != of_b.get(index)
    ]


def _by_class(selection: pd.DataFrame) -> dict[int, tuple[str, ...]]:
    ordered = selection.sort_values(["class_index", "place"])
    return {int(str(index)): tuple(ids) for index, ids in ordered.groupby("class_index")["image_id"]}


def class_changes(
    edition: Edition, params: Params, role: str, a: pd.DataFrame, b: pd.DataFrame
) -> dict[str, list[ClassChange]]:
    """By model, the classes that change when `b` replaces `a` as the scores of `role`.

    The scores of crops are the edition's on both sides; an image without a verdict counts as clean.
    """
    params.model(role)
    index = read_table(edition.index, INDEX)
    others = {name: read_table(edition.scores(name), SCORES) for name in params.models if name != role}
    official = images_are_official(edition, params.dataset.images)
    votes = checked_reviews(edition.reviews, index, params.review.min_crop_pixels, official)
    predictions = {
        name: predictions_of_crops(read_table(edition.crop_scores(name), CROP_SCORES)) for name in params.models
    }
    decided = replace(decide_all(params.review, votes, predictions), unreviewed=Decision("clean"))

    def sets(of_role: pd.DataFrame) -> dict[str, Filled]:
        ensemble = {name: of_role if name == role else others[name] for name in params.models}
        common = shared(index, ensemble.values(), params.dataset.label)
        every = {
            name: candidates(index, common, scores, params.dataset.class_list(), params.rule())
            for name, scores in ensemble.items()
        }
        every = {name: of_tiers(table, params.select.tiers) for name, table in every.items()}
        return {
            name: fill(
                with_decisions(table, partial(decided.for_candidate, name)),
                params.export.images_per_class,
                params.review.crops_in_rank,
            )
            for name, table in every.items()
        }

    before, after = sets(a), sets(b)
    return {name: compare_sets(before[name], after[name]) for name in params.models}


def class_lines(role: str, classes: Sequence[ClassChange]) -> Iterator[str]:
    """Yield the lines for people on one model: its number of changed classes, and the images of each."""
    yield f"{role}: {len(classes) or 'none'}"
    for change in classes:
        lost = [f"- {image_id}" for image_id in change.before if image_id not in change.after]
        won = [f"+ {image_id}" for image_id in change.after if image_id not in change.before]
        label = wnids()[change.class_index]
        for line in (lost + won) or ["the same images in another order"]:
            yield f"  {label:<9}  {line}"
            label = ""
