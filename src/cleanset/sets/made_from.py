"""What a finished set was made from: digests in its Croissant description, and whether its edition still has the same.

DVC decides by dvc.lock what is up to date, and after a merge of two branches that file may hold entries of both. A set
says itself what it was made from. Only what stage preprocess has read of ImageNet, the devkit and the reassessed
labels, is known by its entry in dvc.lock.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.dataset.archives import read_md5_list
from cleanset.dataset.folder import read_images
from cleanset.dataset.pinned import pinned_text, read_pinned
from cleanset.edition.models import changed_files
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, edition_of_set
from cleanset.edition.stage_inputs import changed_inputs
from cleanset.errors import CleansetError
from cleanset.images.boxes import box_of, known_box
from cleanset.plumbing.files import is_there, sha256, sha256_of
from cleanset.plumbing.validation import first_names
from cleanset.plumbing.waiting import announced
from cleanset.review.guidelines import GUIDELINES, own_guidelines
from cleanset.review.store import AUDIT, accepted_votes, read_reviews
from cleanset.sets.delivered import without_unknown_boxes
from cleanset.sets.description import params_sha256_of, rejected_csv, rejections
from cleanset.sets.folder import REJECTED_CSV, manifest_text, read_regular_file, read_release
from cleanset.sets.manifest import MANIFEST
from cleanset.sets.manifest_checks import check_manifest

if TYPE_CHECKING:
    import pandas as pd

PARAMS = "params.yaml"
REVIEWS = "reviews"
AUDITS = f"{REVIEWS}/{AUDIT}"
IMAGES = "images.sha256"
ARCHIVE = "raw.md5"
REMEDY = "run dvc repro; after a merge remove dvc.lock first"

VoteRow = tuple[str, str, str, str | None, tuple[int, ...] | None]
"""A vote that decides: image id, reviewer, verdict, reason, crop box."""


def made_from(
    params_sha256: str, votes: Iterable[VoteRow], pinned: Mapping[str, str] | None, tables: Mapping[str, str]
) -> dict[str, str]:
    """The digests of what a set is made from, by name.

    `votes`: those on its images and on candidates excluded for a reason other than not_needed; `pinned`: the SHA-256 of
    your own images by id, None for ImageNet's; `tables`: the SHA-256 of tables by their path in the edition.
    """
    images = {} if pinned is None else {IMAGES: sha256(pinned_text(pinned).encode())}
    return {PARAMS: params_sha256, REVIEWS: _votes_sha256(votes), **images, **tables}


def vote_rows(votes: "pd.DataFrame") -> Iterator[VoteRow]:
    """The rows of table VOTES."""
    columns = (votes[name].tolist() for name in ("image_id", "reviewer", "verdict", "reason", "crop"))
    for image_id, reviewer, verdict, reason, crop in zip(*columns, strict=True):
        # pandas has nan for a text that is missing
        yield image_id, reviewer, verdict, reason if isinstance(reason, str) else None, box_of(crop)


def _votes_sha256(votes: Iterable[VoteRow]) -> str:
    rows = sorted(votes, key=lambda row: row[:2])
    return sha256(json.dumps(rows, separators=(",", ":")).encode())


def outdated(folder: Path) -> list[str]:
    """The names of what a set was made from, and its edition has changed since; empty for a set outside of an edition.

    A file that is not there, such as a table that was not pulled, is taken for unchanged. Raises CleansetError for an
    edition that cannot be read.
    """
    edition = edition_of_set(folder)
    release = read_release(folder)
    if edition is None or not release.made_from:
        return []
    params = read_params(edition.folder)
    role = folder.absolute().name
    if role not in params.models:
        return [PARAMS]
    recorded = release.made_from
    found = {PARAMS: params_sha256_of(params, role)}
    if IMAGES in recorded and is_there(edition.images_sha256):
        found[IMAGES] = sha256(pinned_text(read_pinned(edition.images_sha256)).encode())
    for path in recorded.keys() - {PARAMS, REVIEWS, IMAGES}:
        if is_there(edition.path(path)):
            found[path] = sha256_of(edition.path(path))
    differing = [name for name, digest in recorded.items() if found.get(name, digest) != digest]
    if is_there(edition.raw_md5):
        digest = read_md5_list(edition.raw_md5).get(params.dataset.images, "")
        differing += [ARCHIVE] if release.archive_md5 and digest != release.archive_md5 else []
    differing += _changed_labels(edition, params)
    differing += [name for model in params.models.values() for name in changed_files(model, edition.folder)]
    if is_there(edition.reviews):
        votes = _votes_sha256(_votes_on(folder, edition, params.review.accept))
        differing += [REVIEWS] if votes != recorded[REVIEWS] else []
        if own_guidelines(edition.reviews) != _text_of(folder / GUIDELINES):
            differing.append(f"{REVIEWS}/{GUIDELINES}")
        # of other params or tables this would be another set, too
        differing = differing or _changed_by_reviews(folder, edition, params, recorded)
    return list(dict.fromkeys(differing))


def _changed_labels(edition: Edition, params: Params) -> list[str]:
    """What says something else of the images and their labels than the index does."""
    if not params.dataset.is_own:
        return changed_inputs(edition.folder, "preprocess")
    dataset = params.dataset
    names = [name for name in (dataset.labels, dataset.names) if name]
    if not (is_there(edition.index) and is_there(edition.path(dataset.images))):
        return []
    # needs pyarrow, which a set's users may lack
    from cleanset.tables import INDEX, read_table, text_of_table

    labels, of_names = (edition.path(name) if name else None for name in (dataset.labels, dataset.names))
    try:
        found = read_images(
            edition.path(dataset.images), labels, of_names, classes_are_folders=dataset.classes_are_folders
        )
    except CleansetError:
        # they name other images than are there: a stage would refuse them
        return names
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    if dataset.expect_images not in (None, len(index)):
        return [PARAMS]
    before = {row["image_id"]: classes.keys[row["real_classes"][0]] for row in index.to_dict("records")}
    after = {name: found.classes.keys[label] for name, label in found.class_of.items()}
    if not names and before.keys() != after.keys():
        # until they are pinned, they are not this edition's
        return []
    texts = {name: text_of_table(edition.index, name) for name in ("classes", "groups")}
    same = before == after and texts == {name: found.texts.get(name) for name in texts}
    return [] if same else names or [PARAMS]


def _changed_by_reviews(folder: Path, edition: Edition, params: Params, recorded: Mapping[str, str]) -> list[str]:
    """The parts of the reviews that give another set, also by verdicts on images that it did not need before."""
    role = folder.absolute().name
    if not all(map(is_there, (edition.index, edition.candidates(role), edition.crop_scores(role)))):
        return []
    # need pyarrow, which a set's users may lack
    from cleanset.review.applied import apply_reviews, read_inputs
    from cleanset.review.audit_files import audit_json

    try:
        read = read_inputs(edition, role)
        applied = apply_reviews(read)
    except CleansetError:
        # such as a new crop, which the model has to answer first
        return [REVIEWS]
    _, rejected = without_unknown_boxes(applied.filled.selection, applied.filled.rejected)
    digests = dict(zip(read.index["image_id"], read.index["sha256"], strict=True)) if params.dataset.is_own else None
    same_votes = _votes_sha256(vote_rows(applied.votes)) == recorded[REVIEWS]
    if not same_votes or rejected_csv(rejected, read.classes, digests) != _text_of(folder / REJECTED_CSV):
        return [REVIEWS]
    path = edition.audit(role).relative_to(edition.folder).as_posix()
    audit = None if applied.audit is None else sha256(audit_json(applied.audit).encode())
    return [AUDITS] if audit != recorded.get(path) else []


def _text_of(path: Path) -> str | None:
    """The text of a file of a set; None without it."""
    return read_regular_file(path).decode("utf-8", "replace") if is_there(path) else None


def outdated_line(folder: Path) -> str:
    """A line on a set that is not what its edition gives today; empty for any other."""
    names = outdated(folder)
    return f"{folder}: made before a change of {first_names(names, 3)}: {REMEDY}" if names else ""


@announced("comparing the sets with the edition")
def outdated_sets(edition: Edition) -> list[str]:
    """A line for each set in data/export of an edition that is not what the edition gives today."""
    roles = read_params(edition.folder).models
    sets = (edition.export(role) for role in roles)
    lines = (outdated_line(folder) for folder in sets if is_there(folder / MANIFEST))
    return [line for line in lines if line]


def _votes_on(folder: Path, edition: Edition, accept: Collection[str]) -> list[VoteRow]:
    """The votes in an edition that decide on the images of a set, and on the candidates that it excluded."""
    read = manifest_text(folder)
    entries = check_manifest(read.text, read.where, read.classes).entries.values()
    keys = {(entry.class_index, entry.image_id) for entry in entries}
    path = folder / REJECTED_CSV
    if is_there(path):
        others = rejections(read_regular_file(path).decode("utf-8", "replace"), str(path), read.classes)
        keys |= {
            (read.classes.indices[key], name) for (key, name), each in others.items() if each.reason != "not_needed"
        }
    votes = accepted_votes(read_reviews(edition.reviews, read.classes), accept)
    return [
        (image_id, reviewer, vote.review.verdict.kind, vote.review.reason, known_box(vote.review.box))
        for class_index, image_id in keys
        for reviewer, vote in votes.get((class_index, image_id), {}).items()
    ]
