"""The command `replay`: the published procedure on the published inputs, compared with the published set."""

import csv
import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.create import CHECKOUT
from cleanset.edition.lists import check_lists
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import write_text
from cleanset.published.choice import PUBLISHED_MODEL
from cleanset.published.edition import (
    PUBLISHED_EDITION,
    copy_edition,
    real_labels,
    reproduce,
    write_edition,
)
from cleanset.published.golden import PublishedNumber, differences, numbers, out_of_order
from cleanset.published.inputs import published_verdicts
from cleanset.published.list_scores import extras_of, read_extras
from cleanset.published.lists import check_pool, read_pool, read_top5
from cleanset.review.decisions import decide_all
from cleanset.review.queue import candidates_by_class
from cleanset.review.status import ReviewProgress, status_of
from cleanset.review.store import Votes
from cleanset.tables import CANDIDATES, REJECTED, SELECTION, read_table

AS_PUBLISHED, CROPS_LAST = "as_published", "crops_last"
"""The two editions of the replay; in the second, cropped images come after the clean ones, as source 000 says."""

SELECTION_CSV, CROPS_LAST_CSV = "selection.csv", "crops_last.csv"

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
    """Make both editions in `out`, run them, and compare; write selection.csv and crops_last.csv beside them.

    Raises CleansetError if an input is not as it must be, or if `out` holds anything but an earlier replay.
    """
    folder, params = PUBLISHED_EDITION.folder, read_params(PUBLISHED_EDITION.folder)
    check_lists(folder, params)
    labels, model = real_labels(), params.model(PUBLISHED_MODEL)
    top5 = read_top5(folder / str(model.file), labels)
    votes = published_verdicts()
    mine = top5[top5["model"] == model.name]
    extras = read_extras(folder, model, mine, labels)
    check_pool(read_pool(CHECKOUT / "imagenet" / "published" / "pool.csv"), mine, extras)
    _make_empty(out)
    first = write_edition(out / AS_PUBLISHED, labels)
    reproduce(first)
    second = copy_edition(first, out / CROPS_LAST, crops="last")
    reproduce(second)
    changes = changes_by_rule(first, second)
    write_text(out / SELECTION_CSV, selection_csv(first, read_params(first.folder)))
    write_text(out / CROPS_LAST_CSV, _csv(("class_index", "image_id", "change"), changes))
    lines = numbers(read_table(first.selection(PUBLISHED_MODEL), SELECTION), votes)
    remaining = still_to_review(first, votes)
    problems = [*_beyond_problems(extras, mine, votes), *_in_order(mine, votes), *differences(lines)]
    return Replay(lines, changes, remaining, problems)


def _make_empty(out: Path) -> None:
    """Remove an earlier replay. Raises CleansetError if `out` holds anything else."""
    ours = {AS_PUBLISHED, CROPS_LAST, SELECTION_CSV, CROPS_LAST_CSV}
    others = sorted({path.name for path in out.iterdir()} - ours) if out.is_dir() else []
    if others or out.is_file():
        raise CleansetError(f"{out}: there is {others[0] if others else 'a file'}; expected a new or empty folder")
    shutil.rmtree(out, ignore_errors=True)


def _beyond_problems(extras: Mapping[int, list[str]], mine: pd.DataFrame, votes: Votes) -> Iterator[str]:
    """A sentence for each class in which the images from beyond the list are not the reviewed images without a rank."""
    reviewed: dict[int, list[str]] = {}
    for class_index, image_id in sorted(votes):
        reviewed.setdefault(class_index, []).append(image_id)
    expected = extras_of(mine, reviewed)
    for index in sorted({*expected, *extras}):
        if expected.get(index) != extras.get(index):
            found, wanted = (", ".join(each.get(index, [])) or "none" for each in (extras, expected))
            yield f"{wnids()[index]}: from beyond the list {found}; by the verdicts {wanted}"


def _in_order(mine: pd.DataFrame, votes: Votes) -> Iterator[str]:
    ranks = {int(str(index)): list(names) for index, names in mine.groupby("class_index")["image_id"]}
    for class_index, name, skipped in out_of_order(ranks, set(votes)):
        yield f"{wnids()[class_index]}: {name} was looked at, {skipped} before it was not; published from rank 1 down"


def changes_by_rule(first: Edition, second: Edition) -> list[RuleChange]:
    """Changes to the set of PUBLISHED_MODEL by another rule, and the unreviewed images that only it asks for."""
    before, after = (_ids(read_table(each.selection(PUBLISHED_MODEL), SELECTION)) for each in (first, second))
    asked_before, asked = (_ids(_asked(each)) for each in (first, second))
    kinds = (("added", after - before), ("dropped", before - after), ("asked", asked - asked_before))
    return sorted((*key, kind) for kind, keys in kinds for key in keys)


def _asked(edition: Edition) -> pd.DataFrame:
    rejected = read_table(edition.rejected(PUBLISHED_MODEL), REJECTED)
    return rejected[rejected["open"]]


def _ids(table: pd.DataFrame) -> set[tuple[int, str]]:
    return set(zip(table["class_index"].tolist(), table["image_id"], strict=True))


def still_to_review(edition: Edition, votes: Votes) -> Mapping[str, ReviewProgress]:
    """By role, and for all together, the images that lack a verdict or a box, once boxes are asked for."""
    params = read_params(edition.folder)
    # the published crops have no boxes, and the replay only counts them; a laboratory has to draw them
    asking = params.review.model_copy(update={"unknown_boxes": "open"})
    tables = {role: read_table(edition.candidates(role), CANDIDATES) for role in params.models}
    classes = candidates_by_class(tables, params.dataset.class_list())
    # nobody has scored these crops, so that none counts as misclassified
    decided = decide_all(asking, votes, {role: {} for role in params.models})
    return status_of(classes, decided, params.model_copy(update={"review": asking})).progress


def selection_csv(edition: Edition, params: Params) -> str:
    """The images of every model: model, class_index, place, image_id, cropped."""
    rows: list[tuple[object, ...]] = []
    for role in params.models:
        table = read_table(edition.selection(role), SELECTION).sort_values(["class_index", "place"])
        cropped = (table["box_unknown"] | table["crop"].notna()).map({True: "yes", False: "no"})
        rows += zip([role] * len(table), table["class_index"], table["place"], table["image_id"], cropped, strict=True)
    return _csv(("model", "class_index", "place", "image_id", "cropped"), rows)


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def render(replay: Replay) -> str:
    """The output of the command."""
    classes = {kind: len({index for index, _, each in replay.crops_last if each == kind}) for kind in _KINDS}
    images = {kind: sum(each == kind for _, _, each in replay.crops_last) for kind in _KINDS}
    lines = [f"{'set of ' + PUBLISHED_MODEL:<24}{'published':>14}{'found':>14}"]
    lines += [f"{name:<24}{_number(wanted):>14}{_number(found):>14}" for name, wanted, found in replay.lines]
    lines += ["", "With crops after clean images (crops: last), as source 000 says; crops_last.csv has them:"]
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
