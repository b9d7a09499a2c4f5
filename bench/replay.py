"""The published procedure on the published inputs, compared with the published set: `make published`.

Needs a checkout, but no images; `cleanset published` writes the set itself. Exit code 1 unless it gives the set.
"""

import hashlib
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import pandas as pd

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import CLASSES, timm_info
from cleanset.dataset.labels import read_reassessed
from cleanset.edition.code_link import CHECKOUT
from cleanset.edition.lists import MEND, check_lists
from cleanset.edition.params import Params, read_params
from cleanset.errors import CleansetError
from cleanset.image_ids import image_id
from cleanset.plumbing.csv_files import csv_text, read_rows
from cleanset.plumbing.files import write_text
from cleanset.plumbing.validation import numeric
from cleanset.review.decided import decide_all
from cleanset.review.queue import candidates_by_class
from cleanset.review.status import ReviewProgress, status_of
from cleanset.review.store import Votes
from cleanset.selection.fill import Filled
from cleanset.sets.published.image_set import fill_classes
from cleanset.sets.published.lists import (
    MOST,
    PUBLISHED_MODEL,
    published_candidates,
    published_verdicts,
    read_extras,
    read_top5,
)

IMAGES = 2_966
CLASSES_WITH_IMAGES = 995
CLASSES_WITH_THREE = 982
CROPPED = 109
SHORT = {
    472: 2, 482: 2, 501: 2, 550: 2, 618: 2, 620: 1, 638: 1, 664: 1, 681: 0, 744: 2, 782: 2, 836: 0, 837: 0, 848: 0,
    876: 1, 885: 1, 899: 1,
}  # fmt: skip
"""The short classes and their images, but for class 916."""
EXCLUDED = 916
"""The class "web site", excluded as digital by nature."""
VERDICTS_SHA256 = "996253ee6ab898766862b109da4e86c8dc8b1a30f9068c2a7769a56f8a9ea25d"
"""Digest of the published verdicts, by `digest_of`: a changed verdict need not change any number."""


class PublishedNumber(NamedTuple):
    """A number as published and as found."""

    name: str
    published: int | str
    found: int | str


def numbers(selection: pd.DataFrame, votes: Votes) -> list[PublishedNumber]:
    """Each published number, and the one found in a selection that was made by these votes."""
    counts = selection["class_index"].value_counts()
    cropped = int(selection["box_unknown"].sum() + selection["crop"].notna().sum())
    lines = [
        PublishedNumber("images", IMAGES, len(selection)),
        PublishedNumber("classes with images", CLASSES_WITH_IMAGES, len(counts)),
        PublishedNumber("classes with three", CLASSES_WITH_THREE, int((counts == 3).sum())),
        PublishedNumber("cropped images", CROPPED, cropped),
    ]
    lines += [
        PublishedNumber(f"class {index}", count, int(counts.get(index, 0)))
        for index, count in (SHORT | {EXCLUDED: 0}).items()
    ]
    lines.append(PublishedNumber("verdicts, SHA-256", VERDICTS_SHA256[:12], digest_of(votes)[:12]))
    return lines


def differences(lines: Collection[PublishedNumber]) -> list[str]:
    """A sentence for each number that is not the published one."""
    return [f"{each.name}: {each.found}; published {each.published}" for each in lines if each.found != each.published]


def digest_of(votes: Votes) -> str:
    """SHA-256 of a line for each image, class index, image id, verdict and reason, in the order of class and id."""
    lines = [
        f"{class_index} {name} {vote.review.verdict.kind} {vote.review.reason}\n"
        for (class_index, name), by_reviewer in sorted(votes.items())
        for vote in by_reviewer.values()
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def out_of_order(
    ranks: Mapping[int, list[str]], reviewed: Collection[tuple[int, str]]
) -> Iterator[tuple[int, str, str]]:
    """Class, a reviewed image, and an unreviewed one before it in the list of its class.

    `ranks`: by class, the image ids of its list. As published, images were looked at from rank 1 down.
    """
    for class_index, names in ranks.items():
        skipped = None
        for name in names:
            if (class_index, name) not in reviewed:
                skipped = skipped or name
            elif skipped:
                yield class_index, name, skipped


PUBLISHED_EDITION = CHECKOUT / "imagenet-published"
"""The edition whose params name lists and policy."""


def real_labels() -> dict[str, list[int]]:
    """The reassessed labels inside timm, by image id."""
    lists = read_reassessed(timm_info("imagenet_real_labels.json").read_text(encoding="utf-8"), "timm")
    return {image_id(number): labels for number, labels in enumerate(lists, start=1)}


POOL_COLUMNS = ("class_index", "correct", "listed")


@dataclass(frozen=True, slots=True)
class _PoolRow:
    class_index: Annotated[int, numeric(int, 0, CLASSES - 1)]
    correct: Annotated[int, numeric(int, 0, CLASSES * MOST)]
    listed: Annotated[int, numeric(int, 0, MOST)]


def read_pool(path: Path) -> pd.DataFrame:
    """Read how many images one model gets right: columns class_index, correct, listed; a row for each class.

    Raises CleansetError, naming the line, unless the classes are all there in their order and no list is longer than
    five or than what the model gets right.
    """
    rows: list[_PoolRow] = []
    for where, row in read_rows(path, POOL_COLUMNS, _PoolRow, MEND, context=imagenet()):
        if row.class_index != len(rows):
            raise CleansetError(f"{where}: class {row.class_index}; expected {len(rows)}: {MEND}")
        if row.listed > row.correct:
            raise CleansetError(f"{where}: {row.listed} images listed of {row.correct} correct ones; {MEND}")
        rows.append(row)
    if len(rows) != CLASSES:
        raise CleansetError(f"{path}: {len(rows)} classes; expected {CLASSES}: {MEND}")
    return pd.DataFrame(rows, columns=list(POOL_COLUMNS))


def check_pool(pool: pd.DataFrame, listed: pd.DataFrame, extras: dict[int, list[str]]) -> None:
    """Raise CleansetError for the first class that has other listed images, or more images than the model gets right.

    `listed`: the model's lists; `extras`: the images taken from beyond them, by class.
    """
    counts = listed["class_index"].value_counts()
    for class_index, correct, number in pool.itertuples(index=False, name=None):
        found = int(counts.get(class_index, 0))
        if found != number:
            raise CleansetError(f"pool.csv, class {class_index}: {number} images listed, top5.csv has {found}; {MEND}")
        if found + len(extras.get(class_index, [])) > correct:
            raise CleansetError(
                f"class {class_index}: {found + len(extras[class_index])} images are listed or reviewed beyond the "
                f"list, but the model classifies {correct} correctly; expected no more: correct the reviews"
            )


def extras_of(listed: pd.DataFrame, reviewed: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """By class, the reviewed images that are not in a model's list: they were taken from beyond it.

    `listed`: class_index and image_id of one model's lists.
    """
    in_list = listed.groupby("class_index")["image_id"].agg(set).to_dict()
    extras = {
        index: [name for name in names if name not in in_list.get(index, ())] for index, names in reviewed.items()
    }
    return {index: names for index, names in sorted(extras.items()) if names}


SELECTION_CSV = "selection.csv"
CROPS_LAST_CSV = "crops_last.csv"

RuleChange = tuple[int, str, str]
"""Class index, image id, and `added`, `dropped` or `asked` (a verdict on it is missing)."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Findings of the replay; `problems` are the differences from the published numbers."""

    lines: Sequence[PublishedNumber]
    crops_last: Sequence[RuleChange]
    remaining: Mapping[str, ReviewProgress]
    problems: Sequence[str]


def run(out: Path) -> Replay:
    """Fill every class from the published lists and verdicts, compare, and write selection.csv and crops_last.csv.

    Raises CleansetError if an input is not as it must be, or if `out` holds anything but an earlier replay.
    """
    params = read_params(PUBLISHED_EDITION)
    check_lists(PUBLISHED_EDITION, params)
    labels = real_labels()
    model = params.model(PUBLISHED_MODEL)
    top5 = read_top5(PUBLISHED_EDITION / str(model.file), labels)
    votes = published_verdicts()
    mine = top5[top5["model"] == model.name]
    extras = read_extras(PUBLISHED_EDITION, model, mine, labels)
    check_pool(read_pool(CHECKOUT / "imagenet" / "published" / "pool.csv"), mine, extras)
    _make_empty(out)
    # the published crops have no boxes: here they are counted, while a laboratory has to draw them
    counting = params.review.model_copy(update={"unknown_boxes": "count"})
    tables = {role: published_candidates(role) for role in params.models}
    filled = {role: fill_classes(table, role, counting, votes) for role, table in tables.items()}
    by_crops_last = counting.model_copy(update={"crops": "last"})
    crops_last = fill_classes(tables[PUBLISHED_MODEL], PUBLISHED_MODEL, by_crops_last, votes)
    changes = changes_by_rule(filled[PUBLISHED_MODEL], crops_last)
    write_text(out / SELECTION_CSV, selection_csv({role: each.selection for role, each in filled.items()}))
    write_text(out / CROPS_LAST_CSV, csv_text(("class_index", "image_id", "change"), changes))
    lines = numbers(filled[PUBLISHED_MODEL].selection, votes)
    remaining = still_to_review(tables, params, votes)
    problems = [*_beyond_problems(extras, mine, votes), *_in_order(mine, votes), *differences(lines)]
    return Replay(lines, changes, remaining, problems)


def _make_empty(out: Path) -> None:
    """Remove an earlier replay. Raises CleansetError if `out` holds anything else."""
    others = sorted({path.name for path in out.iterdir()} - {SELECTION_CSV, CROPS_LAST_CSV}) if out.is_dir() else []
    if others or out.is_file():
        raise CleansetError(f"{out}: there is {others[0] if others else 'a file'}; expected a new or empty folder")
    shutil.rmtree(out, ignore_errors=True)


def _beyond_problems(extras: Mapping[int, list[str]], mine: pd.DataFrame, votes: Votes) -> Iterator[str]:
    """A sentence for each class in which the images from beyond the list are not the reviewed images without a rank."""
    reviewed: dict[int, list[str]] = {}
    for class_index, image in sorted(votes):
        reviewed.setdefault(class_index, []).append(image)
    expected = extras_of(mine, reviewed)
    for index in sorted({*expected, *extras}):
        if expected.get(index) != extras.get(index):
            found, wanted = (", ".join(each.get(index, [])) or "none" for each in (extras, expected))
            yield f"{imagenet().keys[index]}: from beyond the list {found}; by the verdicts {wanted}"


def _in_order(mine: pd.DataFrame, votes: Votes) -> Iterator[str]:
    ranks = {int(str(index)): list(names) for index, names in mine.groupby("class_index")["image_id"]}
    for class_index, name, skipped in out_of_order(ranks, set(votes)):
        key = imagenet().keys[class_index]
        yield f"{key}: {name} was looked at, {skipped} before it was not; published from rank 1 down"


def changes_by_rule(first: Filled, second: Filled) -> list[RuleChange]:
    """Changes to a set by another rule, and the unreviewed images that only the other rule asks for."""
    before, after = (_ids(each.selection) for each in (first, second))
    asked_before, asked = (_ids(each.rejected[each.rejected["open"]]) for each in (first, second))
    kinds = (("added", after - before), ("dropped", before - after), ("asked", asked - asked_before))
    return sorted((*key, kind) for kind, keys in kinds for key in keys)


def _ids(table: pd.DataFrame) -> set[tuple[int, str]]:
    return set(zip(table["class_index"].tolist(), table["image_id"], strict=True))


def still_to_review(tables: Mapping[str, pd.DataFrame], params: Params, votes: Votes) -> Mapping[str, ReviewProgress]:
    """By role, and for all together, the images that lack a verdict or a box."""
    classes = candidates_by_class(tables, params.dataset.class_list(imagenet()))
    # nobody has scored these crops, so that none counts as misclassified
    decided = decide_all(params.review, votes, {role: {} for role in params.models})
    return status_of(classes, decided, params, imagenet()).progress


def selection_csv(selections: Mapping[str, pd.DataFrame]) -> str:
    """The images of every model: model, class_index, place, image_id, cropped."""
    rows: list[tuple[object, ...]] = []
    for role, selection in selections.items():
        table = selection.sort_values(["class_index", "place"])
        cropped = (table["box_unknown"] | table["crop"].notna()).map({True: "yes", False: "no"})
        rows += zip([role] * len(table), table["class_index"], table["place"], table["image_id"], cropped, strict=True)
    return csv_text(("model", "class_index", "place", "image_id", "cropped"), rows)


def render(replay: Replay) -> str:
    """The output of the command."""
    classes = {kind: len({index for index, _, each in replay.crops_last if each == kind}) for kind in _KINDS}
    images = {kind: sum(each == kind for _, _, each in replay.crops_last) for kind in _KINDS}
    lines = [f"{'set of ' + PUBLISHED_MODEL:<24}{'published':>14}{'found':>14}"]
    lines += [f"{name:<24}{_number(wanted):>14}{_number(found):>14}" for name, wanted, found in replay.lines]
    lines += ["", "With crops after clean images (crops: last), as SCOOTER's text says; crops_last.csv has them:"]
    lines += [f"{_KINDS[kind]:<40}{images[kind]:>6} in {classes[kind]} classes" for kind in _KINDS]
    lines += ["", "Left for a laboratory", f"{'':<24}{'at least':>10}{'at most':>10}{'boxes':>10}"]
    for role, progress in replay.remaining.items():
        lines.append(f"{role:<24}{progress.at_least:>10,}{progress.at_most:>10,}{progress.boxes:>10,}")
    lines += ["", *(f"differs: {problem}" for problem in replay.problems)]
    lines.append("The published set is not reproduced." if replay.problems else "The published set is reproduced.")
    return "\n".join(lines)


_KINDS = {"added": "images that come in", "dropped": "images that go out", "asked": "unreviewed images asked for"}


def _number(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def main() -> None:
    """Write into the given folder, by default build/published, and print the comparison."""
    try:
        found = run(Path(*(sys.argv[1:] or ["build/published"])))
    except CleansetError as error:
        sys.exit(f"error: {error}")
    print(render(found))
    sys.exit(1 if found.problems else 0)


if __name__ == "__main__":
    main()
