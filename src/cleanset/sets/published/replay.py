"""The published numbers of the set, and a comparison of a selection with them.

The edition of the replay: imagenet-published/ on an index without images, run by DVC like any other.

The command `replay`: the published procedure on the published inputs, compared with the published set.
"""

import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from cleanset.dataset.ilsvrc import image_id, wnids
from cleanset.dataset.labels import timm_reassessed
from cleanset.edition.create import CHECKOUT
from cleanset.edition.models import check_lists
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import write_text
from cleanset.parsing import read_yaml
from cleanset.review.queue import candidates_by_class, decide_all
from cleanset.review.status import ReviewProgress, status_of
from cleanset.review.store import Votes
from cleanset.sets.description import SCOOTER
from cleanset.sets.published.inputs import PUBLISHED_MODEL, published_verdicts
from cleanset.sets.published.lists import check_pool, extras_of, read_extras, read_pool, read_top5
from cleanset.tables import CANDIDATES, INDEX, LOCATIONS, REJECTED, SELECTION, read_table, write_table

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
    """Each published number beside the one found in a selection that was made by these votes."""
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
        f"{class_index} {name} {vote.review.verdict} {vote.review.reason}\n"
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


PUBLISHED_EDITION = Edition(CHECKOUT / "imagenet-published")
"""The edition that is replayed."""
LAST_STAGE = "count"
"""The replay ends with this stage; export and report need the images."""
_EXPECTED = "expected the published edition of this checkout: git checkout it"


def real_labels() -> dict[str, list[int]]:
    """The reassessed labels inside timm, by image id."""
    return {image_id(number): labels for number, labels in enumerate(timm_reassessed(), start=1)}


def index_of(labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """An index of image ids with their reassessed labels.

    What would need the images or the original labels is filled in and must not be used: one pixel, no bytes, digests
    of zeros, and the first reassessed label as the original one.
    """
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "size": 0,
            "sha256": "0" * 64,
            "width": 1,
            "height": 1,
            "mode": "RGB",
            "pixels_sha256": "0" * 64,
            "ilsvrc_class": [each[0] if each else 0 for each in labels.values()],
            "real_classes": pd.Series([list(each) for each in labels.values()], dtype=object),
            "single": [len(each) == 1 for each in labels.values()],
        }
    )


def write_edition(folder: Path, labels: Mapping[str, Sequence[int]]) -> Edition:
    """Write the published edition in `folder`, a new one, with an index of these labels and the published reviews.

    In place of stage preprocess, whose outputs are written and committed here. Crops without a box are kept, for
    counting.
    """
    edition = Edition(folder)
    folder.mkdir(parents=True)
    for path in (PUBLISHED_EDITION.dvc_yaml, PUBLISHED_EDITION.raw_md5):
        shutil.copy(path, folder)
    _write_params(edition)
    shutil.copytree(PUBLISHED_EDITION.reviews / SCOOTER, edition.reviews / SCOOTER)
    write_table(edition.index, index_of(labels), INDEX)
    write_table(edition.locations, pd.DataFrame(columns=LOCATIONS.names), LOCATIONS)
    _dvc(edition, "init", "--no-scm", "--quiet")
    _dvc(edition, "commit", "--force", "--quiet", "preprocess")
    return edition


def _write_params(edition: Edition) -> None:
    params: Any = read_yaml(PUBLISHED_EDITION.params_yaml, _EXPECTED)
    params["root"] = _relative(edition, CHECKOUT)
    for model in params["models"].values():
        for key in ("file", "beyond"):
            if key in model:
                model[key] = _relative(edition, PUBLISHED_EDITION.path(model[key]))
    params["review"]["unknown_boxes"] = "count"
    write_text(edition.params_yaml, yaml.safe_dump(params, sort_keys=False))


def _relative(edition: Edition, path: Path) -> str:
    return Path(os.path.relpath(path.resolve(), edition.folder.resolve())).as_posix()


def copy_edition(edition: Edition, folder: Path, **review: str) -> Edition:
    """Copy an edition that has run to a new folder, with other values in section `review` of its params."""
    copied = Edition(Path(shutil.copytree(edition.folder, folder)))
    params: Any = read_yaml(copied.params_yaml, _EXPECTED)
    params["review"] |= review
    params["root"] = _relative(copied, CHECKOUT)
    write_text(copied.params_yaml, yaml.safe_dump(params, sort_keys=False))
    return copied


def reproduce(edition: Edition) -> None:
    """Run the stages up to LAST_STAGE by `dvc repro`. Raises CleansetError, with DVC's message, if one fails."""
    _dvc(edition, "repro", "--quiet", LAST_STAGE)


def _dvc(edition: Edition, *command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *command],
        cwd=edition.folder,
        # so that the commands of the stages find the programs of this environment
        env=os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")] or [done.stderr.strip()]
        raise CleansetError(f"{edition.folder}: dvc {command[0]} failed: {lines[0].removeprefix('error: ')}")


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
    for class_index, image in sorted(votes):
        reviewed.setdefault(class_index, []).append(image)
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
