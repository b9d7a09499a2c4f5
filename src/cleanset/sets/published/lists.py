"""The published lists of SCOOTER: the choice among the sets they give, and score tables made from them.

The published files that decide a set (lists, original labels, verdicts) are part of the package. `data` and `reviews`
are links to the ImageNet edition's folders; a wheel holds the files themselves.

A list gives a model a score table that says no more than the list:

- A listed image is classified correctly with the listed confidence.
- An image from beyond the list is, too. Its confidence is not known; in the table it has the next lower float32 after
  the last image of its class, which orders it and means nothing else.
- Every other image counts as misclassified, with probability 0.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable, imagenet
from cleanset.edition.lists import LIST_COLUMNS, MEND, ListedImage, images_beyond
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.image_ids import VALIDATION_IMAGES, image_number
from cleanset.plumbing.csv_files import read_rows
from cleanset.plumbing.validation import check_known, shown
from cleanset.review.file_format import review_fields
from cleanset.review.store import Votes, read_file, read_reviews
from cleanset.review.verdicts import Review
from cleanset.scoring.brought import LabelsOfImages, scores_of
from cleanset.sets.description import InputDigest, digest_of
from cleanset.vocabulary import SCOOTER

PUBLISHED_SET = "scooter"
"""The name of the published set for `cleanset.load`."""
PUBLISHED_MODEL = "norm_robust"
"""The model that the published set was made for."""
PUBLISHED_ROLES = (PUBLISHED_MODEL, "standard", "corruption_robust")
"""The models with published lists."""


@dataclass(frozen=True, slots=True)
class PublishedChoice:
    """A model with published lists, the way with unreviewed images, the folders of further reviews and of studies."""

    model: str = PUBLISHED_MODEL
    unreviewed: str = "pending"
    reviews: tuple[Path, ...] = ()
    labels: Path | None = None
    """The folder of the files of label sources; None: the images are not compared with any."""

    def check(self) -> None:
        """Raise CleansetError for an unknown model or an unknown way with unreviewed images."""
        check_known("model", self.model, PUBLISHED_ROLES)
        if self.unreviewed not in ("pending", "clean"):
            raise CleansetError(f"unreviewed {self.unreviewed!r}; expected pending or clean")


_HERE = Path(__file__).resolve().parent
_DATA = _HERE / "data"
TOP5, BEYOND, LABELS_FILE, DIGESTS_FILE = (
    _DATA / name for name in ("top5.csv", "beyond.csv", "ilsvrc_labels.txt", "digests.csv")
)
REVIEWS = _HERE / "reviews" / SCOOTER
RATINGS = _DATA / "ratings"
"""The folder with a file of ratings for each of the seven studies of the published images."""


@cache
def ilsvrc_classes() -> tuple[int, ...]:
    """The class index of each validation image's original label, image 1 first."""
    classes = tuple(map(int, LABELS_FILE.read_text(encoding="ascii").split()))
    if len(classes) != VALIDATION_IMAGES:
        raise CleansetError(
            f"{LABELS_FILE}: {len(classes):,} labels; expected {VALIDATION_IMAGES:,}: install cleanset again"
        )
    return classes


def ilsvrc_class(image_id: str) -> int:
    """The class index of an image's original label."""
    return ilsvrc_classes()[image_number(image_id) - 1]


def published_verdicts() -> Votes:
    """The published verdicts, by class index and image id."""
    # these files alone: in a checkout other reviewers' folders are next to them
    votes = [vote for path in sorted(REVIEWS.glob("n*.yaml")) for vote in read_file(path, imagenet())]
    return {(imagenet().indices[vote.wnid], vote.image_id): {SCOOTER: vote} for vote in votes}


def with_further_reviews(votes: Votes, folders: Iterable[Path]) -> Votes:
    """The votes, with those by further reviewers in `folders`, each laid out like an edition's `reviews/`.

    Raises CleansetError as `read_reviews` does, and for a reviewer who is in two folders with different verdicts.
    """
    joined = {key: dict(by_reviewer) for key, by_reviewer in votes.items()}
    for folder in folders:
        for key, by_reviewer in read_reviews(folder, imagenet()).items():
            for reviewer, vote in by_reviewer.items():
                known = joined.setdefault(key, {}).setdefault(reviewer, vote)
                if known.review != vote.review:
                    raise CleansetError(
                        f"{vote.where}: another verdict of {reviewer} than {known.where}; expected each reviewer once: "
                        "rename the folder, or remove one of the two"
                    )
    return joined


def published_candidates(model: str) -> pd.DataFrame:
    """The candidates of a model, in the order of its published list: image_id, class_index, tier, rank, confidence.

    The images from beyond its list follow the listed ones of their class, with confidence NaN. As published, the
    model's own images make up tier top5 (`protocol: as_published`).
    """
    # float, because pandas' own parser may be off by one digit
    top5 = pd.read_csv(TOP5, converters={"confidence": float}).astype({"confidence": "float32"})
    listed = top5.loc[top5["model"] == model, ["class_index", "image_id", "confidence"]]
    beyond = pd.read_csv(BEYOND)
    beyond = beyond.loc[beyond["model"] == model, ["class_index", "image_id"]]
    frame = pd.concat([listed, beyond], ignore_index=True)
    # stable: within a class the list's order, then the images from beyond it
    frame = frame.sort_values("class_index", kind="stable")
    rank = frame.groupby("class_index").cumcount() + 1
    return frame.assign(rank=rank, tier=rank.le(MOST).map({True: "top5", False: "reserve"}))


def digests_of_inputs(votes: Votes) -> list[InputDigest]:
    """The digests of the published files, and of the reviews that were read next to them, by reviewer."""
    found = [digest_of(f"imagenet/published/{path.name}", [path.read_bytes()]) for path in (LABELS_FILE, TOP5, BEYOND)]
    found.append(digest_of("imagenet/reviews/scooter", [path.read_bytes() for path in sorted(REVIEWS.glob("n*.yaml"))]))
    others = sorted({reviewer for by_reviewer in votes.values() for reviewer in by_reviewer} - {SCOOTER})
    for reviewer in others:
        # of their content, whichever folder they are in
        lines = [
            f"{key[0]} {key[1]} {_content_json(by_reviewer[reviewer].review)}\n".encode()
            for key, by_reviewer in sorted(votes.items())
            if reviewer in by_reviewer
        ]
        found.append(digest_of(f"reviews of {reviewer}", lines))
    return found


def _content_json(review: Review) -> str:
    fields = review_fields(review)
    # however the image was seen
    content = {name: value for name, value in fields.items() if name != "seen"}
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


MOST = 5


def read_top5(path: Path, labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """Read Top-5 lists: columns model, class_index, rank, image_id, confidence (float32), in the order of the file.

    `labels`: the reassessed labels of every image of the index, by image id. Raises CleansetError, naming the line,
    for an image that is not in the index, that is listed twice for a model, or whose one label is not the class; and
    for a list that is out of order: ranks run from 1, confidences fall, equal ones are in the order of the image ids.
    """
    found: list[tuple[object, ...]] = []
    begun: set[tuple[str, int]] = set()
    before = ("", -1)
    rank = 0
    last = (np.float32(0), "")
    rows = read_rows(path, LIST_COLUMNS, ListedImage, MEND, key=("model", "image_id"), context=imagenet())
    for where, row in rows:
        check_label(where, row.image_id, row.class_index, labels)
        # rounded as the table stores it: what is equal there has to be in the order of the image ids
        of_list = (row.model, row.class_index)
        key = (-np.float32(row.confidence), row.image_id)
        begins = of_list != before
        if row.rank != (1 if begins else rank + 1) or (begins and of_list in begun):
            raise CleansetError(
                f"{where}: rank {row.rank} out of order; expected ranks from 1, a list at a time: {MEND}"
            )
        if not begins and key < last:
            raise CleansetError(
                f"{where}: {row.image_id} out of order; expected falling confidence, equal ones by image id: {MEND}"
            )
        begun.add(of_list)
        before = of_list
        rank = row.rank
        last = key
        found.append((row.model, row.class_index, rank, row.image_id, row.confidence))
    table = pd.DataFrame(found, columns=list(LIST_COLUMNS))
    return table.astype({"class_index": "int16", "rank": "int16", "confidence": "float32"})


def check_label(where: str, image_id: str, class_index: int, labels: Mapping[str, Sequence[int]]) -> None:
    """Raise CleansetError, naming `where`, unless the image is in the index and the class is its only label."""
    if image_id not in labels:
        raise CleansetError(f"{where}: {shown(image_id)} is not in the index; expected an image of it: {MEND}")
    if list(labels[image_id]) != [class_index]:
        found = ", ".join(map(str, labels[image_id])) or "none"
        raise CleansetError(
            f"{where}: {image_id} in the list of class {class_index}, its labels: {found}; "
            f"expected this class as its only label: {MEND}"
        )


WITHOUT_A_LIST = np.float32(0.5)
"""The confidence below which the images of a class without a list begin."""


@dataclass(frozen=True, slots=True)
class ListScores:
    """The scores that a list gives: a row of table SCORES for each image of the index.

    `listed`: how many images are in the list; `beyond`: the ids of those from beyond it, sorted.
    """

    table: pd.DataFrame
    listed: int
    beyond: Sequence[str]


def list_scores(folder: Path, model: Model, labels: LabelsOfImages, classes: ClassTable) -> ListScores:
    """The scores that a list gives the images of `labels`; `folder` is the edition's.

    Raises CleansetError as `read_top5` and `images_beyond` do, and for an image from beyond the list that is in it, or
    that the index lacks.
    """
    top5 = read_top5(folder / str(model.file), labels)
    listed = top5[top5["model"] == model.name]
    extras = read_extras(folder, model, listed, labels)
    beyond = sorted(name for names in extras.values() for name in names)
    return ListScores(scores_of(with_extras(listed, extras), labels, classes), len(listed), beyond)


def read_extras(folder: Path, model: Model, listed: pd.DataFrame, labels: LabelsOfImages) -> dict[int, list[str]]:
    """By class, the images from beyond a model's list, `listed`. Raises CleansetError as `list_scores` does."""
    known = set(listed["image_id"])
    extras: dict[int, list[str]] = {}
    for each in images_beyond(folder, model):
        check_label(each.where, each.image_id, each.class_index, labels)
        if each.image_id in known:
            raise CleansetError(f"{each.where}: {each.image_id} is in the list; expected images from beyond it")
        extras.setdefault(each.class_index, []).append(each.image_id)
    return extras


def with_extras(listed: pd.DataFrame, extras: Mapping[int, Sequence[str]]) -> pd.DataFrame:
    """The rows of one model's lists and, each next in float32 below the one before, the extras of each class.

    Columns class_index, image_id, confidence. In a class without a list they begin next below one half.
    """
    last = listed.groupby("class_index")["confidence"].min()
    rows = []
    for class_index, names in extras.items():
        confidence = np.float32(last.get(class_index, WITHOUT_A_LIST))
        for name in names:
            # the next float32 below: behind every listed image, and above every image that is not listed
            confidence = np.nextafter(confidence, np.float32(0))
            rows.append((class_index, name, confidence))
    columns = ["class_index", "image_id", "confidence"]
    return pd.concat([listed[columns], pd.DataFrame(rows, columns=columns)], ignore_index=True).astype(
        {"class_index": "int16", "confidence": "float32"}
    )
