"""Exchange of reviews with Label Studio: `cleanset review export` and `cleanset review import`."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from PIL import ExifTags, Image

from cleanset.dataset.ilsvrc import class_indices, class_names, wnids
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, images_are_official, verified_images
from cleanset.errors import CleansetError
from cleanset.files import read_text, replacing, write_text
from cleanset.images.codec import decode
from cleanset.progress import tracked
from cleanset.review.label_studio.format import TASKS, labeling_config, read_votes
from cleanset.review.queue import Question, candidates_by_class, questions
from cleanset.review.save import save
from cleanset.review.status import read_decisions
from cleanset.review.store import Votes, check_note, check_reviews, checked_reviews, review_file, reviews_of_reviewer
from cleanset.review.verdicts import Vote
from cleanset.tables import CANDIDATES, INDEX, read_table

_EXPECTED = "expected what Label Studio exports as JSON"


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Numbers of verdicts: newly saved, and already there."""

    saved: int
    unchanged: int


def export_tasks(edition: Edition, path: Path, reviewer: str | None, every: bool) -> int:
    """Write tasks (`path`, .json), their configuration (.xml beside it) and a folder of images; return their number.

    Tasks are the images that must be reviewed whatever the verdicts on others will be; with `every`, also those that
    are needed only if others are not clean. `reviewer`: the images to ask this reviewer. An image that viewers would
    rotate is written as PNG without its EXIF orientation, because boxes are in the pixels as stored; all others are
    written byte for byte. The folder of an earlier export is replaced; CleansetError if it holds anything else.
    """
    if path.suffix != ".json":
        raise CleansetError(f"{path}: expected a name that ends in .json")
    folder = path.with_name(f"{path.stem}_images")
    _check_only_images(folder)
    index = read_table(edition.index, INDEX)
    digests = dict(zip(index["image_id"].tolist(), index["sha256"].tolist(), strict=True))
    params = read_params(edition.folder)
    official = images_are_official(edition, params.dataset.images)
    votes = checked_reviews(edition.reviews, index, params.review.min_crop_pixels, official)
    asked = _asked(edition, params, votes, reviewer, every)
    read = verified_images(edition, params.dataset.images, index).read
    names = {}
    with replacing(folder) as partial:
        partial.mkdir()
        images = sorted({question.image_id for _, question in asked})
        for image_id in tracked(images, len(images), "images"):
            data, suffix = _as_stored(read(image_id))
            names[image_id] = f"{image_id}{suffix}"
            (partial / names[image_id]).write_bytes(data)
    tasks = [
        {
            "data": {
                # the address under which Label Studio serves files of its local storage
                "image": f"/data/local-files/?d={quote(folder.name)}/{names[question.image_id]}",
                "image_id": question.image_id,
                "wnid": wnid,
                "names": class_names()[class_indices()[wnid]].names,
                "gloss": class_names()[class_indices()[wnid]].gloss,
                "asked": TASKS[question.box_unknown],
                "sha256": digests[question.image_id],
            }
        }
        for wnid, question in asked
    ]
    write_text(path.with_suffix(".xml"), labeling_config())
    write_text(path, json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
    return len(tasks)


def _check_only_images(folder: Path) -> None:
    """Raise CleansetError if a folder that is to be replaced holds anything but images of an export."""
    others = sorted(set(folder.iterdir()) - set(folder.glob("ILSVRC2012_val_*"))) if folder.is_dir() else []
    if others:
        raise CleansetError(
            f"{others[0]}: expected only images in this folder, which the export replaces: "
            "move it, or choose another name"
        )


def _asked(
    edition: Edition, params: Params, votes: Votes, reviewer: str | None, every: bool
) -> list[tuple[str, Question]]:
    """The images to be reviewed, each with its wnid, class by class, the most likely to be kept first."""
    tables = {role: read_table(edition.candidates(role), CANDIDATES) for role in params.models}
    decided = read_decisions(edition, params, votes)
    if reviewer is not None:
        review_file(edition.reviews, reviewer, wnids()[0])  # refuses an invalid name
    own_reviews = {} if reviewer is None else reviews_of_reviewer(votes, reviewer)
    asked: list[tuple[str, Question]] = []
    for class_index, by_role in candidates_by_class(tables, params.dataset.class_list()).items():
        if reviewer is None:
            decide = decided.for_class(class_index)
        else:
            decide = decided.for_reviewer(reviewer, own_reviews.get(class_index, {}), class_index)
        found = questions(by_role, decide, params.export.images_per_class, params.review.crops_in_rank)
        asked += [(wnids()[class_index], question) for question in found if every or question.certain]
    return asked


def _as_stored(data: bytes) -> tuple[bytes, str]:
    """The bytes and file suffix of an image that every viewer shows as its pixels are stored."""
    image = decode(data)
    if image.getexif().get(ExifTags.Base.Orientation, 1) == 1:
        return data, ".JPEG"
    out = io.BytesIO()
    # through an array, which leaves the metadata behind, the orientation included
    Image.fromarray(np.asarray(image.convert("RGB"))).save(out, format="PNG", compress_level=6)
    return out.getvalue(), ".png"


def import_answers(edition: Edition, path: Path, reviewer: str, annotator: str | None, replace: bool) -> ImportCounts:
    """Save what Label Studio exported as JSON as the verdicts of `reviewer`.

    All answers are checked before the first is saved. If a file then cannot be changed or written, saving stops, and
    what was saved before stays. An existing verdict of the reviewer that differs is an error, unless `replace` is set.
    """
    index = read_table(edition.index, INDEX)
    columns: Any = (index[name].tolist() for name in ("image_id", "width", "height"))
    sizes = {image_id: (width, height) for image_id, width, height in zip(*columns, strict=True)}
    params = read_params(edition.folder)
    min_crop_pixels = params.review.min_crop_pixels
    official = images_are_official(edition, params.dataset.images)
    votes_before = checked_reviews(edition.reviews, index, min_crop_pixels, official)
    answers: dict[tuple[int, str], Vote] = {}
    for vote in read_votes(read_text(path, _EXPECTED), str(path), annotator, sizes):
        review_file(edition.reviews, reviewer, vote.wnid)
        check_note(reviewer, vote.review, vote.where)
        key = class_indices()[vote.wnid], vote.image_id
        if key in answers:
            raise CleansetError(
                f"{vote.where}: {vote.image_id} again, as in {answers[key].where}; remove one of the two"
            )
        answers[key] = vote
    check_reviews({key: {reviewer: vote} for key, vote in answers.items()}, index, min_crop_pixels)
    before = {key: of[reviewer] for key, of in votes_before.items() if reviewer in of}
    new = {
        key: vote
        for key, vote in answers.items()
        # Label Studio does not tell how an image was seen
        if key not in before or not before[key].review.is_same_verdict(vote.review)
    }
    for key, vote in new.items():
        if key in before and not replace:
            raise CleansetError(
                f"{vote.where}: another verdict is in {before[key].where}; "
                "remove it there, or say --replace to take the new ones"
            )
    for key, vote in new.items():
        expected = before[key].review if key in before else None
        save(edition.reviews, reviewer, vote.wnid, vote.image_id, vote.review, expected=expected)
    return ImportCounts(len(new), len(answers) - len(new))
