"""Stage count: the metrics of `selection/metrics.py` and of the reviews, written as files of all models."""

from collections.abc import Collection, Iterable
from pathlib import Path

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.labels import read_labelled_index
from cleanset.edition.lists import unknown_confidences
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.edition.pipeline import check_roles
from cleanset.errors import CleansetError
from cleanset.images.boxes import known_box
from cleanset.plumbing.csv_files import write_csv
from cleanset.plumbing.files import md5, sha256, write_text
from cleanset.plumbing.metrics import write_metrics
from cleanset.plumbing.waiting import announced
from cleanset.review.agreement import agreement_of_reviewers
from cleanset.review.audit import audit_numbers
from cleanset.review.audit_files import read_audit_files, result_of_audit
from cleanset.review.store import read_reviews
from cleanset.selection.candidates import check_same_images
from cleanset.selection.crop_check import check_scored, effect, known_crops, predictions_of_crops
from cleanset.selection.metrics import (
    accuracy,
    closeness,
    per_class,
    short_classes,
    top1_minus_published,
    totals,
)
from cleanset.selection.selected import selected_images
from cleanset.tables import CROP_SCORES, MARGINS, REJECTED, SCORES, SELECTION, read_table

CLASS_DIGEST_DIGITS = 8
"""Hexadecimal digits of the digest of a class's images, which makes a changed one show in its metrics."""


@announced("counting the images of the sets")
def run(edition: Edition) -> None:
    """Read the other stages' outputs for every model, write metrics/, data/short_classes.csv and tables.md5."""
    params = read_params(edition.folder)
    check_roles(edition, params.models)
    table = edition.read_classes()
    classes = params.dataset.class_list(table)
    per = params.export.images_per_class
    index = read_labelled_index(edition, params.dataset, table)
    votes = read_reviews(edition.reviews, table)
    unknown = unknown_confidences(edition.folder, params)
    lines: dict[str, dict[str, float | int | str]] = {}
    short = []
    contents = {index: list[str]() for index in classes}
    for role in params.models:
        selection = read_table(edition.selection(role), SELECTION, table)
        rejected = read_table(edition.rejected(role), REJECTED, table)
        for class_index, count in per_class(selection, classes).items():
            lines.setdefault(f"classes/{table.keys[class_index]}", {})[role] = count
        kept = selected_images(selection)
        for image in kept:
            contents[image.class_index].append(f"{role} {image.image_id} {known_box(image.box)}")
        check_indexed(selection, index, edition.selection(role))
        scores = read_table(edition.scores(role), SCORES, table)
        check_same_images(index, scores, str(edition.scores(role)))
        numbers: dict[str, float | int] = {**totals(selection, rejected, classes, per, params.review.reasons)}
        if params.count.accuracy:
            numbers |= accuracy(index, scores, params.dataset.label)
            numbers |= top1_minus_published(numbers["accuracy_top1"], params.count.published_top1.get(role))
        # a published list has no prediction of a crop
        if not params.models[role].is_list:
            predictions = predictions_of_crops(read_table(edition.crop_scores(role), CROP_SCORES, table))
            check_scored(known_crops(selection), predictions, str(edition.crop_scores(role)))
            numbers |= effect(kept, predictions)
        if not params.models[role].is_random:
            numbers |= closeness(measured(read_table(edition.margins(role), MARGINS, table), unknown[role]))
        numbers |= agreement_of_reviewers(votes, keys(selection) | keys(rejected))
        audit = read_audit_files(edition.reviews, role, roles=list(params.models), classes=table)
        audited = result_of_audit(audit, votes=votes, index=index, selection=selection, classes=table)
        numbers |= audit_numbers(audited)
        for name, number in numbers.items():
            lines.setdefault(f"totals/{name}", {})[role] = number
        short.append(short_classes(selection, rejected, classes, per).assign(model=role))
    for class_index, images in contents.items():
        # no role has such a name
        digest = sha256("\n".join(sorted(images)).encode())[:CLASS_DIGEST_DIGITS]
        lines[f"classes/{table.keys[class_index]}"]["SHA-256"] = digest
    write_metrics(edition.metrics, lines)
    write_short_classes(edition.short_classes, pd.concat(short), table)
    write_text(edition.tables_md5, md5_lines(edition.folder, tables_read(edition, params.models)))


def measured(margins: pd.DataFrame, unknown: Collection[str]) -> pd.DataFrame:
    """The margins between two known confidences; `unknown`: the images without one."""
    return margins[~(margins["image_id"].isin(unknown) | margins["next_image_id"].isin(unknown))]


def tables_read(edition: Edition, roles: Iterable[str]) -> list[Path]:
    """Every table that the metrics are computed from."""
    kinds = (edition.scores, edition.margins, edition.crop_scores, edition.selection, edition.rejected)
    return [edition.index, *(kind(role) for kind in kinds for role in roles)]


def md5_lines(folder: Path, paths: Iterable[Path]) -> str:
    """The MD5 of files below `folder`, as `md5sum` writes and checks them.

    git has these, and dvc.lock has DVC's digests of the same files, so that a table with other content is noticed.
    """
    names = sorted((path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths)
    return "".join(f"{md5([data])}  {name}\n" for name, data in names)


def check_indexed(selection: pd.DataFrame, index: pd.DataFrame, path: Path) -> None:
    """Raise CleansetError, naming `path`, for the first image of a selection that the index lacks."""
    unknown = sorted(set(selection["image_id"]) - set(index["image_id"]))
    if unknown:
        raise CleansetError(f"{path}: {unknown[0]}, which the index lacks; expected images of the index: run dvc repro")


def keys(table: pd.DataFrame) -> set[tuple[int, str]]:
    """Class index and image id of each row."""
    return set(zip(table["class_index"], table["image_id"], strict=True))


def write_short_classes(path: Path, short: pd.DataFrame, classes: ClassTable) -> None:
    """Write the classes that could not be filled, with the reasons."""
    short = short.assign(**{classes.key_column: [classes.keys[index] for index in short["class_index"]]})
    columns = ["model", classes.key_column, "kept", "candidates", "rejected"]
    write_csv(path, columns, short[columns].itertuples(index=False, name=None))
