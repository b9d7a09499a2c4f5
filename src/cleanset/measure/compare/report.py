"""The command `compare`: the differences of two score tables, two exports, or a score table and a published list.

For people or as JSON.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.files import check_regular
from cleanset.measure.compare.lists import ConfidenceComparison, ListComparison, compare_with_list, labels_of, list_of
from cleanset.measure.compare.releases import (
    CHANGES,
    by_class,
    compare_exports,
    size_of,
)
from cleanset.review.queue import decide_all
from cleanset.review.store import checked_reviews
from cleanset.scoring.comparison import ScoreComparison, compare_scores
from cleanset.scoring.record import ListRecord, ScoreRecord, read_record
from cleanset.selection.candidates import candidates, of_tiers, shared
from cleanset.selection.crop_check import predictions_of_crops
from cleanset.selection.fill import Decision, Filled, fill, with_decisions
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import COLUMNS as MANIFEST_COLUMNS
from cleanset.sets.manifest import Entry
from cleanset.tables import CROP_SCORES, INDEX, SCORES, read_table


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The lines for people, the content of the JSON, and whether both sides are the same."""

    lines: list[str]
    content: dict[str, Any]
    same: bool


def run(a: Path, b: Path, edition: Edition | None, role: str | None, most: int) -> ComparisonResult:
    """Compare two score tables, two exports, or a score table with published Top-5 lists.

    With `edition`, list the classes of it that another score table would change. For a published list, it is the one
    whose index has the labels, if that does not lie beside the folder of the score table.
    """
    for table, lists in ((a, b), (b, a)):
        if _is_table(table) and _has_lists(lists):
            return _of_list(table, lists, edition, role, most)
    kinds = [_is_export(path) for path in (a, b)]
    if kinds[0] != kinds[1]:
        export, table = (a, b) if kinds[0] else (b, a)
        raise CleansetError(f"{export} is an export, {table} is not; expected two of a kind")
    if not kinds[0]:
        return _of_scores(a, b, edition, role, most)
    if edition or role:
        raise CleansetError("compare: --edition and --model go with score tables; these are exports")
    return _of_exports(a, b)


def _is_export(path: Path) -> bool:
    if not path.exists():
        raise CleansetError(f"{path}: missing; expected a score table (.parquet) or the folder of an export")
    if path.is_dir():
        return True
    check_regular(path)  # reading a pipe would wait for ever
    return path.suffix == ".csv"


def _is_table(path: Path) -> bool:
    return path.is_file() and path.suffix != ".csv"


def _has_lists(path: Path) -> bool:
    """Whether a path is a CSV file other than the manifest of an export."""
    if not (path.is_file() and path.suffix == ".csv"):
        return False
    with path.open("rb") as file:
        return not file.readline().startswith(",".join(MANIFEST_COLUMNS).encode())


# Score tables


def _of_scores(a: Path, b: Path, edition: Edition | None, role: str | None, most: int) -> ComparisonResult:
    tables = read_table(a, SCORES), read_table(b, SCORES)
    found = compare_scores(*tables)
    records = compare_records(a, b)
    content: dict[str, Any] = {
        "kind": "scores",
        "a": str(a),
        "b": str(b),
        "same": found.same,
        "images": found.images,
        "only_a": found.only_a,
        "only_b": found.only_b,
        "different": len(found.different),
        "top1_changed": found.top1_changed,
        "largest_difference": found.largest_difference,
        "most_different": [_json_row(row) for row in found.different.head(most).to_dict("records")],
        **records.as_json(),
    }
    lines = [f"A  {a}", f"B  {b}", *records.lines(), "", *_score_lines(found, most)]
    if edition:
        params = read_params(edition.folder)
        changed = class_changes(edition, params, role or _role_of(params, a, b), *tables)
        lines += ["", "Classes whose images would change, unreviewed ones taken for clean,"]
        lines += ["crops that were never scored for correct"]
        lines += [line for name, classes in changed.items() for line in class_lines(name, classes)]
        content["classes"] = {
            name: [
                {"wnid": wnids()[change.class_index], "a": list(change.before), "b": list(change.after)}
                for change in classes
            ]
            for name, classes in changed.items()
        }
    elif role:
        raise CleansetError("compare: --model without --edition; expected both, or neither")
    return ComparisonResult(lines, content, found.same)


def _score_lines(found: ScoreComparison, most: int) -> Iterator[str]:
    only = f"{len(found.only_a)} only in A, {len(found.only_b)} only in B"
    yield f"images             {found.images} in both, {only}"
    yield f"other scores         {len(found.different)}"
    yield f"other top-1 class    {found.top1_changed}"
    yield f"largest difference   {found.largest_difference:.3g} (in probability)"
    if len(found.different):
        yield ""
        yield f"{'most different':<24}{'difference':>10}  {'A':<18}  B"
    for row in map(_json_row, found.different.head(most).to_dict("records")):
        sides = (f"{row[f'top1_{side}']} {row[f'confidence_{side}']:.6f}" for side in "ab")
        yield f"{row['image_id']:<24}{row['difference']:>10.3g}  {'  '.join(sides)}"


def _json_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {**row, **{side: wnids()[row[side]] for side in ("top1_a", "top1_b")}}


def _role_of(params: Params, a: Path, b: Path) -> str:
    """The role that is the name of one of the tables."""
    for path in (a, b):
        if path.stem in params.models:
            return path.stem
    raise CleansetError(f"compare: whose scores are these? give --model, one of {', '.join(params.models)}")


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


# A score table and a published list


def _of_list(table: Path, lists: Path, edition: Edition | None, role: str | None, most: int) -> ComparisonResult:
    path = edition.index if edition else Path(os.path.normpath(table.parent / ".." / "index.parquet"))
    if edition is None and not path.is_file():
        raise CleansetError(f"{path}: missing; expected the index beside the folder of {table}: give --edition")
    index, scores, role = read_table(path, INDEX), read_table(table, SCORES), role or table.stem
    try:
        listed = list_of(lists, role, labels_of(index))
    except CleansetError as error:
        raise CleansetError(
            f"{error}; or, if these lists are of other images than the {len(index):,} of {path}, give their --edition"
        ) from None
    found = compare_with_list(index, scores, listed)
    content = {
        "kind": "published list",
        "a": str(table),
        "b": str(lists),
        "model": role,
        "same": found.same,
        "classes": {
            order: {
                "listed": agreement.classes,
                "same_images": agreement.same_images,
                "same_order": len(agreement.same_order),
                "other_images": _wnids_of(agreement.other_images),
            }
            for order, agreement in found.by_order.items()
        },
        "not_listed": _wnids_of(found.not_listed),
        **confidences_as_json(found.confidences),
        "misclassified_images": found.confidences.misclassified,
        "most_different": [_json_listed(row) for row in found.confidences.differences.head(most).to_dict("records")],
    }
    lines = [f"A  {table}", f"B  {lists}, {role}", "", *_list_lines(found, most)]
    return ComparisonResult(lines, content, found.same)


def confidences_as_json(found: ConfidenceComparison) -> dict[str, Any]:
    """The comparison of confidences, for programs."""
    return {
        "images": found.listed,
        "classified": found.classified,
        "misclassified": len(found.misclassified),
        "largest_difference": found.largest,
        "mean_difference": found.mean,
    }


def _list_lines(found: ListComparison, most: int) -> Iterator[str]:
    by_log_odds, by_float32 = found.by_order["log_odds"], found.by_order["float32"]
    yield f"classes listed        {by_log_odds.classes:>8,}"
    for name, values in (
        ("the same images", [each.same_images for each in (by_log_odds, by_float32)]),
        ("in the same order", [len(each.same_order) for each in (by_log_odds, by_float32)]),
    ):
        other = "" if values[0] == values[1] else f" by log-odds, {values[1]:,} by confidence in float32"
        yield f"  {name:<20}{values[0]:>8,}{other}"
    if found.not_listed:
        yield f"classes not listed    {len(found.not_listed):>8,} of those with correct images"
    confidences = found.confidences
    yield f"images listed         {confidences.listed:>8,}"
    yield f"  misclassified       {len(confidences.misclassified):>8,}"
    if confidences.classified:
        yield f"  largest difference  {confidences.largest:>8.3g} in probability, of the others"
        yield f"  mean difference     {confidences.mean:>8.3g}"
    rows = [_json_listed(row) for row in confidences.differences.head(most).to_dict("records")]
    if rows:
        yield ""
        yield f"{'most different':<24}{'difference':>10}  {'class':<9}  rank  {'A':<8}  B"
    for row in rows:
        sides = f"{row['found']:.6f}  {row['published']:.6f}"
        yield f"{row['image_id']:<24}{row['difference']:>10.3g}  {row['wnid']:<9}  {row['rank']:>4}  {sides}"


def _wnids_of(classes: Sequence[int]) -> list[str]:
    return [wnids()[class_index] for class_index in classes]


def _json_listed(row: Mapping[Any, Any]) -> dict[str, Any]:
    wnid = wnids()[row["class_index"]]
    return {"wnid": wnid, **{name: value for name, value in row.items() if name != "class_index"}}


# Exports


def _of_exports(a: Path, b: Path) -> ComparisonResult:
    entries = read_entries(a), read_entries(b)
    changes = compare_exports(*entries)
    counts = {what: sum(change.what == what for change in changes) for what in CHANGES}
    lines = [f"{name}  {path}\n   {_summary(of)}" for name, path, of in zip("AB", (a, b), entries, strict=True)]
    lines += ["", *(f"{what if what in CHANGES[:2] else 'other ' + what:<23}{counts[what]:>6}" for what in CHANGES)]
    for wnid, of_class in by_class(changes).items():
        lines += ["", wnid]
        for change in of_class:
            what = f"  {change.image_id}  {change.what:<17}  "
            values = " -> ".join(filter(None, (_short(change.a), _short(change.b))))
            lines.append(what + values)
    content = {
        "kind": "exports",
        "a": str(a),
        "b": str(b),
        "same": not changes,
        "counts": counts,
        "changes": [asdict(change) for change in changes],
    }
    return ComparisonResult(lines, content, not changes)


def _summary(entries: Sequence[Entry]) -> str:
    models = ", ".join(sorted({entry.model for entry in entries})) or "empty"
    return f"{models}: {size_of(entries)}"


def _short(text: str) -> str:
    """A SHA-256 by its first digits, anything else whole."""
    return f"{text[:12]}..." if len(text) == 64 else text


def render(result: ComparisonResult, as_json: bool) -> str:
    """The output of the command."""
    return json.dumps(result.content, indent=2) if as_json else "\n".join(result.lines)
