"""The command `compare` of two score tables or two exports, not of results: what differs, for people or as JSON."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.labels import read_labelled_index
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.compare.releases import ComparisonResult, diff, short
from cleanset.plumbing.files import check_regular, is_there
from cleanset.plumbing.json_files import JsonObject
from cleanset.review.decided import checked_votes, decide_all
from cleanset.scoring.distance import ScoreComparison, compare_scores
from cleanset.scoring.record import ListRecord, ScoreRecord, read_record
from cleanset.selection.candidates import candidates, of_tiers, shared
from cleanset.selection.crop_check import predictions_of_crops
from cleanset.selection.fill import Decision, fill, with_decisions
from cleanset.statistics.formats import decimal
from cleanset.tables import CROP_SCORES, SCORES, read_table

ImagesOfClass = tuple[str, ...]
"""Image ids in the order of a class."""
ClassChanges = dict[int, tuple[ImagesOfClass, ImagesOfClass]]
"""By class index, the images of a class that changes, before and after."""


def run(a: Path, b: Path, edition: Edition | None, role: str | None, most: int) -> ComparisonResult:
    """Compare two score tables or two exports; with `edition`, list its classes that another score table changes."""
    kinds = [_is_export(path) for path in (a, b)]
    if kinds[0] != kinds[1]:
        export, table = (a, b) if kinds[0] else (b, a)
        raise CleansetError(f"{export} is an export, {table} is not; expected two of a kind")
    if not kinds[0]:
        return _of_scores(a, b, edition, role, most=most)
    if edition or role:
        raise CleansetError("compare: --edition and --model go with score tables; these are exports")
    return diff(a, b)


def _is_export(path: Path) -> bool:
    if not path.exists():
        raise CleansetError(f"{path}: missing; expected a score table (.parquet) or the folder of an export")
    if path.is_dir():
        return True
    check_regular(path)  # reading a pipe would wait for ever
    return path.suffix == ".csv"


def _of_scores(a: Path, b: Path, edition: Edition | None, role: str | None, most: int) -> ComparisonResult:
    classes = _classes_of(a, b, edition)
    keys = classes.keys
    scores_a = read_table(a, SCORES, classes)
    scores_b = read_table(b, SCORES, classes)
    found = compare_scores(scores_a, scores_b)
    different, unknown = compare_records(a, b)
    rows = [
        {**row, **{side: keys[row[side]] for side in ("top1_a", "top1_b")}}
        for row in found.different.head(most).to_dict("records")
    ]
    content: JsonObject = {
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
        "most_different": rows,
        "computed_with_other": {name: dict(zip("ab", values, strict=True)) for name, values in different.items()},
        "computed_with_unknown": [side.lower() for side in unknown],
    }
    lines = [f"A  {a}", f"B  {b}"]
    lines += [f"computed with other {name}: {' -> '.join(map(short, values))}" for name, values in different.items()]
    lines += [f"no record of what {side} was computed with: {reason}" for side, reason in unknown.items()]
    lines += ["", *_score_lines(found, rows)]
    if edition:
        params = read_params(edition.folder)
        changed = class_changes(edition, params, role or _role_of(params, a, b), (scores_a, scores_b), classes)
        lines += ["", "Classes whose images would change, unreviewed ones taken for clean,"]
        lines += ["crops that were never scored for correct"]
        lines += [line for name, changes in changed.items() for line in class_lines(name, changes, keys)]
        content["classes"] = {
            name: [
                {classes.key_column: keys[index], "a": list(before), "b": list(after)}
                for index, (before, after) in changes.items()
            ]
            for name, changes in changed.items()
        }
    elif role:
        raise CleansetError("compare: --model without --edition; expected both, or neither")
    return ComparisonResult(lines, content, found.same)


def _classes_of(a: Path, b: Path, edition: Edition | None) -> ClassTable:
    """The classes of the scores: from `edition`, else from the one around a table, else ImageNet's."""
    folders = [edition.folder] if edition else [path.parent / ".." / ".." for path in (a, b)]
    own = [folder for folder in folders if is_there(Edition(folder).classes)]
    return Edition((own or folders)[0]).read_classes()


def _score_lines(found: ScoreComparison, rows: Sequence[Mapping[Hashable, object]]) -> Iterator[str]:
    only = f"{len(found.only_a)} only in A, {len(found.only_b)} only in B"
    yield f"images             {found.images} in both, {only}"
    yield f"other scores         {len(found.different)}"
    yield f"other top-1 class    {found.top1_changed}"
    yield f"largest difference   {found.largest_difference:.3g} (in probability)"
    if len(found.different):
        yield ""
        yield f"{'most different':<24}{'difference':>10}  {'A':<18}  B"
    for row in rows:
        sides = (f"{row[f'top1_{side}']} {decimal(float(str(row[f'confidence_{side}'])), 6)}" for side in "ab")
        yield f"{row['image_id']:<24}{row['difference']:>10.3g}  {'  '.join(sides)}"


def _role_of(params: Params, a: Path, b: Path) -> str:
    """The role that is the name of one of the tables."""
    for path in (a, b):
        if path.stem in params.models:
            return path.stem
    raise CleansetError(f"compare: unknown model of the scores; pass --model, one of {', '.join(params.models)}")


def compare_records(a: Path, b: Path) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Compare the records next to two score tables, such as data/scores/standard.json.

    The values in both by the property that differs, and by side, A or B, why its record cannot be compared.
    """
    found: dict[str, dict[str, str]] = {}
    unknown: dict[str, str] = {}
    for side, table in (("A", a), ("B", b)):
        path = table.with_suffix(".json")
        try:
            found[side] = _properties(read_record(path))
        except CleansetError:
            unknown[side] = f"{path.name} {'unreadable' if path.exists() else 'missing'}"
    if unknown:
        return {}, unknown
    values = {name: (found["A"].get(name, "none"), found["B"].get(name, "none")) for name in found["A"] | found["B"]}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}, {}


def _properties(record: ScoreRecord | ListRecord) -> dict[str, str]:
    """The facts that a score depends on, by name."""
    if isinstance(record, ListRecord):
        digests = {"list": record.list_sha256 or "none", "images beyond the list": record.beyond_sha256 or "none"}
        return {"model": f"published list of {record.name}", **digests}
    preprocessing = record.preprocessing
    return {
        "model": " ".join(filter(None, (record.source, record.name, record.threat_model))),
        "weights": record.weights_sha256,
        "preprocessing": f"{preprocessing.name} ({preprocessing.resize}, {preprocessing.size}, "
        f"{preprocessing.interpolation})",
        "precision": record.precision,
        "code": record.code,
        **{f"version of {name}": version for name, version in sorted(record.versions.items())},
    }


def compare_sets(a: pd.DataFrame, b: pd.DataFrame) -> ClassChanges:
    """The classes whose images differ, or their order, between two selections."""
    of_a, of_b = (
        {
            int(str(index)): tuple(ids)
            for index, ids in selection.sort_values(["class_index", "place"]).groupby("class_index")["image_id"]
        }
        for selection in (a, b)
    )
    pairs = {index: (of_a.get(index, ()), of_b.get(index, ())) for index in sorted(of_a | of_b)}
    return {index: (before, after) for index, (before, after) in pairs.items() if before != after}


def class_changes(
    edition: Edition, params: Params, role: str, pair: tuple[pd.DataFrame, pd.DataFrame], classes: ClassTable
) -> Mapping[str, ClassChanges]:
    """By model, the classes that change when the second of two tables replaces the first as the scores of `role`.

    The scores of crops are the edition's on both sides; an image without a verdict counts as clean.
    """
    params.model(role)
    index = read_labelled_index(edition, params.dataset, classes)
    others = {name: read_table(edition.scores(name), SCORES, classes) for name in params.models if name != role}
    votes = checked_votes(edition, params, index, classes)
    predictions = {
        name: predictions_of_crops(read_table(edition.crop_scores(name), CROP_SCORES, classes))
        for name in params.models
    }
    decided = replace(decide_all(params.review, votes, predictions), unreviewed=Decision("clean"))

    def selections(of_role: pd.DataFrame) -> dict[str, pd.DataFrame]:
        ensemble = {name: of_role if name == role else others[name] for name in params.models}
        common = shared(index, ensemble.values(), params.dataset.label)
        found = {}
        for name, scores in ensemble.items():
            every = candidates(index, common, scores, params.dataset.class_list(classes), params.rule(name))
            decisions = with_decisions(of_tiers(every, params.select.tiers), partial(decided.for_candidate, name))
            found[name] = fill(decisions, params.export.images_per_class, params.review.crops == "in_rank").selection
        return found

    before, after = map(selections, pair)
    return {name: compare_sets(before[name], after[name]) for name in params.models}


def class_lines(role: str, changes: ClassChanges, keys: Sequence[str]) -> Iterator[str]:
    """Yield the lines for people on one model: its number of changed classes, and the images of each."""
    yield f"{role}: {len(changes) or 'none'}"
    for index, (before, after) in changes.items():
        lost = [f"- {image_id}" for image_id in before if image_id not in after]
        won = [f"+ {image_id}" for image_id in after if image_id not in before]
        label = keys[index]
        for line in (lost + won) or ["the same images in another order"]:
            yield f"  {label:<9}  {line}"
            label = ""
