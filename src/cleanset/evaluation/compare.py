"""The command `compare`: what two score tables or two exports disagree on, for people or as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.after_crop import reject_wrong_crops, said_of_crops
from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.set_comparison import CHANGES, ClassChange, by_class, compare_exports, compare_sets
from cleanset.ilsvrc import wnids
from cleanset.params import Params, read_params
from cleanset.ranking import candidates, shared
from cleanset.review.consensus import Decision
from cleanset.review.folder import checked_reviews, decisions
from cleanset.scoring.comparison import ScoreComparison, compare_scores
from cleanset.selection import Filled, fill, with_decisions
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import Entry
from cleanset.tables import CROP_SCORES, INDEX, SCORES, read_table


@dataclass(frozen=True, slots=True)
class Report:
    """The lines for people, the content of the JSON, and whether both sides are the same."""

    lines: list[str]
    content: dict[str, Any]
    same: bool


def run(a: Path, b: Path, edition: Edition | None, role: str | None, most: int) -> Report:
    """Compare two score tables or two exports; `edition` tells what would become of its classes."""
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
    return path.is_dir() or path.suffix == ".csv"


# Score tables


def _of_scores(a: Path, b: Path, edition: Edition | None, role: str | None, most: int) -> Report:
    tables = read_table(a, SCORES), read_table(b, SCORES)
    found = compare_scores(*tables)
    content: dict[str, Any] = {
        "kind": "scores",
        "a": str(a),
        "b": str(b),
        "same": found.same,
        "pictures": found.pictures,
        "only_a": found.only_a,
        "only_b": found.only_b,
        "different": len(found.different),
        "top1_changed": found.top1_changed,
        "largest_difference": found.largest_difference,
        "most_different": [_json_row(row) for row in found.different.head(most).to_dict("records")],
    }
    lines = [f"A  {a}", f"B  {b}", "", *_score_lines(found, most)]
    if edition:
        params = read_params(edition.folder)
        changed = class_changes(edition, params, role or _role_of(params, a, b), *tables)
        lines += ["", "Classes whose pictures would change, unreviewed ones taken for clean,"]
        lines += ["crops that were never scored for right"]
        lines += [line for name, classes in changed.items() for line in _class_lines(name, classes)]
        content["classes"] = {
            name: [
                {"wnid": wnids()[change.class_index], "a": list(change.before), "b": list(change.after)}
                for change in classes
            ]
            for name, classes in changed.items()
        }
    elif role:
        raise CleansetError("compare: --model says whose scores these are in --edition; name that too, or neither")
    return Report(lines, content, found.same)


def _score_lines(found: ScoreComparison, most: int) -> Iterator[str]:
    only = f"{len(found.only_a)} only in A, {len(found.only_b)} only in B"
    yield f"pictures             {found.pictures} in both, {only}"
    yield f"other scores         {len(found.different)}"
    yield f"other highest class  {found.top1_changed}"
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
    """The role that a table's name tells."""
    for path in (a, b):
        if path.stem in params.models:
            return path.stem
    raise CleansetError(f"compare: whose scores are these? say --model, one of {', '.join(params.models)}")


def class_changes(
    edition: Edition, params: Params, role: str, a: pd.DataFrame, b: pd.DataFrame
) -> dict[str, list[ClassChange]]:
    """By model, the classes that become others when `b` takes the place of `a` as the scores of `role`.

    What is said of crops is the edition's on both sides.
    """
    params.model(role)
    index = read_table(edition.index, INDEX)
    others = {name: read_table(edition.scores(name), SCORES) for name in params.models if name != role}
    votes = checked_reviews(edition.reviews, index)
    decided = decisions(votes, params.review.policy, params.review.min_reviewers)
    said = {name: said_of_crops(read_table(edition.crop_scores(name), CROP_SCORES)) for name in params.models}

    def decide(name: str, table: pd.DataFrame) -> pd.DataFrame:
        table = with_decisions(table, decided, Decision("clean"))
        return reject_wrong_crops(table, said[name]) if params.review.wrong_after_crop == "reject" else table

    def sets(of_role: pd.DataFrame) -> dict[str, Filled]:
        ensemble = {name: of_role if name == role else others[name] for name in params.models}
        common = shared(index, ensemble.values())
        every = {
            name: candidates(index, common, scores, params.select.candidates, params.dataset.class_list())
            for name, scores in ensemble.items()
        }
        return {name: fill(decide(name, table), params.export.images_per_class) for name, table in every.items()}

    before, after = sets(a), sets(b)
    return {name: compare_sets(before[name], after[name]) for name in params.models}


def _class_lines(role: str, classes: Sequence[ClassChange]) -> Iterator[str]:
    yield f"{role}: {len(classes) or 'none'}"
    for change in classes:
        lost = [f"- {image_id}" for image_id in change.before if image_id not in change.after]
        won = [f"+ {image_id}" for image_id in change.after if image_id not in change.before]
        label = wnids()[change.class_index]
        for line in (lost + won) or ["the same in another order"]:
            yield f"  {label:<9}  {line}"
            label = ""


# Exports


def _of_exports(a: Path, b: Path) -> Report:
    entries = read_entries(a), read_entries(b)
    changes = compare_exports(*entries)
    counts = {what: sum(change.what == what for change in changes) for what in CHANGES}
    lines = [f"{name}  {path}\n   {_summary(of)}" for name, path, of in zip("AB", (a, b), entries, strict=True)]
    lines += ["", *(f"{what if what in CHANGES[:2] else 'other ' + what:<17}{counts[what]:>6}" for what in CHANGES)]
    for wnid, of_class in by_class(changes).items():
        lines += ["", wnid]
        for change in of_class:
            what = f"  {change.image_id}  {change.what:<10}  "
            said = " -> ".join(filter(None, (_short(change.a), _short(change.b))))
            lines.append(what + said)
    content = {
        "kind": "exports",
        "a": str(a),
        "b": str(b),
        "same": not changes,
        "counts": counts,
        "changes": [asdict(change) for change in changes],
    }
    return Report(lines, content, not changes)


def _summary(entries: Sequence[Entry]) -> str:
    models = ", ".join(sorted({entry.model for entry in entries})) or "empty"
    return f"{models}: {len(entries)} pictures of {len({entry.wnid for entry in entries})} classes"


def _short(text: str) -> str:
    """A SHA-256 by its first digits, anything else whole."""
    return f"{text[:12]}..." if len(text) == 64 else text


def printed(report: Report, as_json: bool) -> str:
    """What the command prints."""
    return json.dumps(report.content, indent=2) if as_json else "\n".join(report.lines)
