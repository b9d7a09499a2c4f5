"""Stage export: one model's finished set with its manifest and descriptions."""

import sys
from collections.abc import Hashable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from pydantic import ValidationError

from cleanset.dataset.archives import read_md5_list
from cleanset.dataset.folder import groups_of
from cleanset.edition.lists import unknown_confidences
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.edition.readings import readings, review_policy
from cleanset.edition.versions import check_versions
from cleanset.errors import CleansetError
from cleanset.files import is_there, replacing
from cleanset.images.codec import Read
from cleanset.progress import found_in_threads
from cleanset.review.audit import read_audit_json
from cleanset.review.store import GUIDELINES, reviewer_counts, verdicts_by_reviewer
from cleanset.scoring.record import ListRecord, read_record
from cleanset.sets import description
from cleanset.sets.card import card
from cleanset.sets.delivered import (
    delivered_confidences,
    make_class_folders,
    with_known_confidences,
    without_unknown_boxes,
    write_image,
)
from cleanset.sets.folder import CARD, REJECTED_CSV, write_descriptions
from cleanset.sets.manifest import Entry, duplicates
from cleanset.tables import CROP_SCORES, INDEX, REJECTED, SELECTION, VOTES, read_table, text_of_table
from cleanset.validation import first_problem
from cleanset.vocabulary import SourceCheck, class_keys


def run(edition: Edition, role: str) -> None:
    """Read selection, votes, scores of crops, index and images; write data/export/<role>/.

    The rejected candidates, the provenance of the scores, and the digests of all these go into its data card.
    """
    params = read_params(edition.folder)
    params.model(role)
    check_versions(edition, params.root, "export")
    classes, per_class = params.dataset.class_list(), params.export.images_per_class
    selection = read_table(edition.selection(role), SELECTION)
    unknown = selection.loc[selection["box_unknown"], "image_id"].tolist()
    if params.export.strict:
        check_full(selection, classes, per_class, role)
        check_boxes_known(unknown, role)
    selection, rejected = without_unknown_boxes(selection, read_table(edition.rejected(role), REJECTED))
    scored = read_record(edition.scored_with(role))
    index = read_table(edition.index, INDEX)
    votes = read_table(edition.votes(role), VOTES)
    released = release(edition, params, votes)
    # preprocess has compared a tar with raw.md5; a folder is in no such list
    source_check: SourceCheck = "archive_md5" if released.archive_md5 else "none"
    audit = read_audit_json(edition.audit(role))
    is_list = isinstance(scored, ListRecord)
    known = with_known_confidences(selection, unknown_confidences(edition.folder, params)[role])
    rows = described(edition, role, known, index, reviewer_counts(votes), is_list).assign(source_check=source_check)
    read = verified_images(edition, params.dataset.images, index).read
    with replacing(edition.export(role)) as folder:
        entries = write_images(folder, role, rows, read)
        for problem in duplicates(dict(enumerate(entries))):
            raise CleansetError(f"export {role}: {problem}: reject one as duplicate")
        provenance = description.Provenance(
            model=role,
            release=released,
            classes=classes,
            images_per_class=per_class,
            images=scored.images,
            notices=[
                *description.limits(
                    unreviewed=params.review.unreviewed == "clean",
                    verified=source_check != "none",
                    images=scored.images,
                ),
                *description.twins_notice(entries),
            ],
            readings=readings(params),
            scored=scored,
            params=description.determining_params(params),
            inputs=description.input_digests(edition.folder, inputs(edition, role, audited=audit is not None)),
        )
        texts = {
            CARD: card(provenance, selection, rejected, votes, audit),
            REJECTED_CSV: description.rejected_csv(rejected),
        }
        guidelines = text_of_table(edition.votes(role), GUIDELINES)
        if guidelines:
            texts[GUIDELINES] = guidelines
        write_descriptions(folder, entries, provenance.release, texts)
    if unknown:
        print(
            f"{role}: images left out, as their crop boxes are not known: {len(unknown)}, the first is {unknown[0]}: "
            "draw the boxes (review.unknown_boxes: open asks for them)",
            file=sys.stderr,
        )


def inputs(edition: Edition, role: str, audited: bool = False) -> list[Path]:
    """The files that a set is made from, beside the images, which the index checks."""
    tables = (edition.crop_scores, edition.votes, edition.selection, edition.rejected)
    # without an audit its file says nothing, and cards made before there were audits stay as they are
    audit = [edition.audit(role)] if audited else []
    return [edition.index, edition.scored_with(role), *(table(role) for table in tables), *audit]


def release(edition: Edition, params: Params, votes: pd.DataFrame) -> description.Release:
    """The facts about a set that card and Croissant state beside its images."""
    images = params.dataset.images
    digests = read_md5_list(edition.raw_md5) if is_there(edition.raw_md5) else {}
    return description.Release(
        version=params.export.version,
        date=params.export.date,
        archive=PurePosixPath(images).name,
        archive_md5=digests.get(images, ""),
        review=review_policy(params.review),
        reviewers=tuple(verdicts_by_reviewer(votes)),
        about=params.export.about,
    )


def described(
    edition: Edition,
    role: str,
    selection: pd.DataFrame,
    index: pd.DataFrame,
    reviewers: Mapping[str, int],
    is_list: bool = False,
) -> pd.DataFrame:
    """The rows of `selection` with the manifest's further columns: labels, digests, confidences.

    `reviewers`, the number of them by image id, is added too. `is_list`: the model is a published list, without scores
    of crops. Raises CleansetError for an image that the index lacks,
    and for a crop without scores.
    """
    columns = ["image_id", "sha256", "pixels_sha256", "ilsvrc_class", "real_classes"]
    rows = selection.merge(index[columns], on="image_id", validate="one_to_one")
    if len(rows) != len(selection):
        lost = sorted(set(selection["image_id"]) - set(rows["image_id"]))
        raise CleansetError(f"{edition.selection(role)}: {lost[0]} is not in {edition.index}: run dvc repro")
    crop_scores = None if is_list else read_table(edition.crop_scores(role), CROP_SCORES)
    groups = groups_of(text_of_table(edition.index, "groups"), str(edition.index))
    delivered = delivered_confidences(rows, crop_scores, str(edition.crop_scores(role)))
    return rows.assign(
        delivered=pd.Series(delivered, index=rows.index, dtype=object),
        reviewers=[reviewers.get(image_id, 0) for image_id in rows["image_id"]],
        group=[groups.get(image_id, "") for image_id in rows["image_id"]],
    )


def check_full(selection: pd.DataFrame, classes: list[int], images_per_class: int, role: str) -> None:
    """Raise CleansetError if a class has fewer images than it should."""
    counts = selection["class_index"].value_counts()
    short = [index for index in classes if counts.get(index, 0) < images_per_class]
    if short:
        raise CleansetError(
            f"{role}: short classes: {len(short)}, the first is {class_keys()[short[0]]} with "
            f"{counts.get(short[0], 0)} of {images_per_class} images: review more, "
            "or set export.strict: false (then data/short_classes.csv lists them all)"
        )


def check_boxes_known(unknown: list[str], role: str) -> None:
    """Raise CleansetError if the crop box of any image is unknown."""
    if unknown:
        raise CleansetError(
            f"{role}: images with an unknown crop box: {len(unknown)}, the first is {unknown[0]}; expected a box "
            "for each: draw them (review.unknown_boxes: open asks for them), or set export.strict: false, which leaves "
            "them out"
        )


def write_images(folder: Path, role: str, rows: pd.DataFrame, read: Read) -> list[Entry]:
    """Write the images of `rows` into the new folder `folder`; return their entries of the manifest."""
    make_class_folders(folder, rows["class_index"])
    return found_in_threads(lambda row: _write_one(folder, role, row, read), rows.to_dict("records"), f"export {role}")


def _write_one(folder: Path, role: str, row: dict[Hashable, Any], read: Read) -> Entry:
    try:
        return write_image(folder, role, row, read(row["image_id"]))
    except ValidationError as error:  # the tables do not go together
        raise CleansetError(f"export {role}, {row['image_id']}: {first_problem(error)}: run dvc repro") from None
