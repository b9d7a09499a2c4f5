"""Stage export: one model's finished set with its manifest and descriptions."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import pandas as pd
from pydantic import ValidationError

from cleanset.classes import ClassTable
from cleanset.dataset.archives import read_md5_list
from cleanset.dataset.duplicates import REFUSED_DUPLICATES, DuplicatePair, refuse_pairs
from cleanset.dataset.folder import groups_of
from cleanset.dataset.label_findings import denials, findings_of, labels_by_name
from cleanset.dataset.label_sources import PLACE, SourceLabels, read_sources
from cleanset.edition.lists import unknown_confidences
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.edition.pipeline import check_tables_named
from cleanset.edition.readings import readings, review_policy
from cleanset.edition.versions import check_versions
from cleanset.errors import CleansetError
from cleanset.image_ids import check_matched, expected_id, parse_image_id
from cleanset.images.boxes import UNKNOWN_BOX, known_box
from cleanset.images.codec import Read
from cleanset.plumbing.csv_files import read_rows
from cleanset.plumbing.files import is_there, sha256
from cleanset.plumbing.folder_updates import FolderUpdate, updating
from cleanset.plumbing.kept_files import kept_files
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import first_problem, join_names, shown
from cleanset.review.audit import AuditResult
from cleanset.review.audit_files import read_audit_json
from cleanset.review.guidelines import GUIDELINES
from cleanset.review.vote_table import reviewer_counts, verdicts_by_reviewer
from cleanset.scoring.record import ListRecord, ScoreRecord, read_record
from cleanset.selection.metrics import per_class
from cleanset.selection.rule import is_full, least_images
from cleanset.selection.selected import SelectedImage, selected_images
from cleanset.sets import description
from cleanset.sets.card import card
from cleanset.sets.delivered import (
    DeliveredImage,
    SourceImage,
    delivered_confidences,
    name_of,
    whole_entry,
    with_known_confidences,
    without_unknown_boxes,
    write_image,
)
from cleanset.sets.folder import CARD, REJECTED_CSV, description_texts
from cleanset.sets.made_from import made_from, vote_rows
from cleanset.sets.manifest import EXPECTED_FURTHER, FURTHER, Entry, form_of, is_further, manifest_csv
from cleanset.sets.manifest_checks import twins
from cleanset.tables import CROP_SCORES, INDEX, REJECTED, SELECTION, VOTES, read_table, text_of_table
from cleanset.vocabulary import SourceCheck


@dataclass(frozen=True, slots=True)
class ExportInputs:
    """All that the stage reads, next to the images."""

    params: Params
    classes: ClassTable
    index: pd.DataFrame
    selection: pd.DataFrame
    rejected: pd.DataFrame
    votes: pd.DataFrame
    crop_scores: pd.DataFrame | None
    """None for a published list, whose crops nobody has scored."""

    scored: ScoreRecord | ListRecord
    audit: AuditResult | None
    guidelines: str | None
    """The edition's own guidelines for reviewers, if any."""

    groups: Mapping[str, str]
    """The group of an image by its id, where the images have groups."""

    further: Mapping[str, tuple[tuple[str, str], ...]]
    """The values of `export.columns`, by image id."""

    unknown_confidences: Collection[str]
    """The ids of images from beyond a published list."""

    studies: Sequence[SourceLabels]
    """The label sources that the images are compared with."""

    archive_md5: str
    """The MD5 of the archive of the images in raw.md5; empty for a folder, which is in no such list."""

    digests: Sequence[description.InputDigest]
    """Digests of the set's input files, besides the images, which the index checks."""


def read_inputs(edition: Edition, role: str) -> ExportInputs:
    """Read params, tables, the record of the scores and the audit. Raises CleansetError for an unknown role."""
    params = read_params(edition.folder)
    params.model(role)
    classes = edition.read_classes()
    scored = read_record(edition.scored_with(role))
    audit = read_audit_json(edition.audit(role))
    crop_scores = None
    if not isinstance(scored, ListRecord):
        crop_scores = read_table(edition.crop_scores(role), CROP_SCORES, classes)
    columns = params.export.columns
    tables = [] if columns is None else [edition.path(columns.file)]
    if columns is not None:
        check_tables_named(edition, "export", {"export.columns.file": columns.file})
    files = input_files(edition, role, audited=audit is not None)
    digests = read_md5_list(edition.raw_md5) if is_there(edition.raw_md5) else {}
    return ExportInputs(
        params=params,
        classes=classes,
        index=read_table(edition.index, INDEX, classes),
        selection=read_table(edition.selection(role), SELECTION, classes),
        rejected=read_table(edition.rejected(role), REJECTED, classes),
        votes=read_table(edition.votes(role), VOTES, classes),
        crop_scores=crop_scores,
        scored=scored,
        audit=audit,
        guidelines=text_of_table(edition.votes(role), GUIDELINES),
        groups=groups_of(edition.index),
        further={} if columns is None else read_columns(edition.path(columns.file), columns.names, classes),
        unknown_confidences=unknown_confidences(edition.folder, params)[role],
        studies=read_studies(edition, params),
        archive_md5=digests.get(params.dataset.images, ""),
        digests=description.input_digests(edition.folder, [*files, *tables]),
    )


def read_columns(path: Path, names: Sequence[str], classes: ClassTable) -> dict[str, tuple[tuple[str, str], ...]]:
    """The columns of a table, as the manifest has them, by image id. Raises CleansetError for an invalid table."""
    remedy = "correct the table"
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for where, cells in read_rows(path, ("image", *names), dict[str, str], remedy, others=True):
        image_id = parse_image_id(cells["image"], classes)
        if image_id is None or image_id in found:
            problem = "a second time" if image_id else expected_id(classes)
            raise CleansetError(f"{where}: image {shown(cells['image'])}; {problem}: {remedy}")
        for name in names:
            if not is_further(cells[name]):
                raise CleansetError(f"{where}, {name}: {shown(cells[name])}; expected {EXPECTED_FURTHER}: {remedy}")
        found[image_id] = tuple((f"{FURTHER}{name}", cells[name]) for name in names)
    return found


def read_studies(edition: Edition, params: Params) -> list[SourceLabels]:
    """The label sources of export.label_sources. Raises CleansetError as `read_sources`, and for your own images."""
    names = params.export.label_sources
    if names and params.dataset.is_own:
        raise CleansetError(
            f"{edition.params_yaml}: export.label_sources: {', '.join(names)} with your own images; expected none, as "
            "they are studies of ImageNet's: remove it"
        )
    return read_sources(edition.folder / PLACE, names) if names else []


def input_files(edition: Edition, role: str, *, audited: bool = False) -> list[Path]:
    """The files that a set is made from, next to the images."""
    tables = (edition.crop_scores, edition.votes, edition.selection, edition.rejected)
    # without an audit its file says nothing, and cards made before there were audits stay unchanged
    audit = [edition.audit(role)] if audited else []
    return [edition.index, edition.scored_with(role), *(table(role) for table in tables), *audit]


def run(edition: Edition, role: str) -> None:
    """Read selection, votes, scores of crops, index and images; write data/export/<role>/.

    The rejected candidates, the provenance of the scores, and the digests of all these go into its data card.
    """
    read = read_inputs(edition, role)
    params = read.params
    check_versions(edition, params.root, "export")
    unknown = [image.image_id for image in selected_images(read.selection) if image.box is UNKNOWN_BOX]
    if params.export.strict:
        check_full(read, role)
        check_boxes_known(unknown, role)
    selection, rejected = without_unknown_boxes(read.selection, read.rejected)
    delivered = delivered_images(read, selection, role)
    images = verified_images(edition, params.dataset.images, read.index, read.classes)
    with updating(edition.export(role), kept_files("exports", (), "")) as update:
        entries = write_images(update, delivered, source_reader(read, images.read), role=role, classes=read.classes)
        if not read.classes.is_imagenet:
            refuse_pairs(
                set_pairs(entries),
                f"export {role}: the same image twice in the set",
                "each image once: reject one of each pair as duplicate",
                edition.folder / "data" / f"{role}_{REFUSED_DUPLICATES}",
            )
        for name, text in set_texts(read, role, entries, selection, rejected).items():
            update.write_text(name, text)
    if unknown:
        print(
            f"{role}: images left out, as their crop boxes are not known: {len(unknown)}, the first is {unknown[0]}: "
            "draw the boxes (review.unknown_boxes: open asks for them)",
            file=sys.stderr,
        )


def set_texts(
    read: ExportInputs, role: str, entries: Sequence[Entry], selection: pd.DataFrame, rejected: pd.DataFrame
) -> dict[str, str]:
    """The files that describe the set, by name: manifest, card, rejected candidates, what is made from these."""
    manifest = manifest_csv(entries, read.classes)
    provenance = provenance_of(read, role, entries, sha256(manifest.encode()))
    pinned = dict(zip(read.index["image_id"], read.index["sha256"], strict=True))
    texts = {
        CARD: card(provenance, selection, rejected, votes=read.votes, audit=read.audit),
        REJECTED_CSV: description.rejected_csv(rejected, read.classes, pinned if read.params.dataset.is_own else None),
    }
    if read.guidelines:
        texts[GUIDELINES] = read.guidelines
    return description_texts(manifest, entries, provenance.release, texts)


def set_pairs(entries: Sequence[Entry]) -> list[DuplicatePair]:
    """The images of a set with the source bytes or the pixels of an earlier one."""
    return [
        DuplicatePair(
            image_id=one.image_id,
            duplicate_of=first.image_id,
            same="bytes" if one.source_sha256 == first.source_sha256 else "pixels",
        )
        for one, first in twins(entries)
    ]


def source_check(read: ExportInputs) -> SourceCheck:
    """How the bytes of the images are checked: preprocess has compared a tar with raw.md5."""
    return "archive_md5" if read.archive_md5 else "none"


def release_of_set(read: ExportInputs, role: str) -> description.Release:
    """The facts about a set that card and Croissant state next to its images."""
    params = read.params
    pinned = dict(zip(read.index["image_id"], read.index["sha256"], strict=True))
    return description.Release(
        classes=read.classes,
        version=params.export.version,
        date=params.export.date,
        archive=PurePosixPath(params.dataset.images).name,
        archive_md5=read.archive_md5,
        review=review_policy(params.review),
        reviewers=tuple(verdicts_by_reviewer(read.votes)),
        about=params.export.about,
        made_from=made_from(
            params_sha256=description.params_sha256_of(params, role),
            votes=vote_rows(read.votes),
            pinned=pinned if params.dataset.is_own else None,
            tables={each.path: each.sha256 for each in read.digests},
        ),
    )


def provenance_of(
    read: ExportInputs, role: str, entries: Sequence[Entry], manifest_sha256: str
) -> description.Provenance:
    """The origin of the set with these entries, for its data card."""
    params = read.params
    notices = [
        *description.limits(
            read.classes,
            unreviewed=params.review.unreviewed == "clean",
            verified=source_check(read) != "none",
            images=read.scored.images,
        ),
        *description.twins_notice(entries),
    ]
    return description.Provenance(
        model=role,
        release=release_of_set(read, role),
        classes=params.dataset.class_list(read.classes),
        images_per_class=params.export.images_per_class,
        images=read.scored.images,
        notices=notices,
        readings=readings(params, role),
        scored=read.scored,
        params=description.determining_params(params, role),
        inputs=read.digests,
        denied=sum(bool(entry.denied_by) for entry in entries),
        further=form_of(entries).further,
        studies=denials(((entry.image_id, entry.class_index) for entry in entries), read.studies),
        manifest_sha256=manifest_sha256,
    )


def delivered_images(read: ExportInputs, selection: pd.DataFrame, role: str) -> list[DeliveredImage]:
    """The images of `selection` with what the manifest says of each: labels, confidences, reviewers, group.

    Raises CleansetError for an image that the index lacks, for a crop without scores, and for studies of other images.
    """
    images = selected_images(with_known_confidences(selection, read.unknown_confidences))
    labels = zip(read.index["image_id"], read.index["ilsvrc_class"].tolist(), read.index["real_classes"], strict=True)
    labels_of = {image_id: (ilsvrc, tuple(map(int, real))) for image_id, ilsvrc, real in labels}
    lost = sorted(image.image_id for image in images if image.image_id not in labels_of)
    if lost:
        raise CleansetError(f"data/selection/{role}.parquet: {lost[0]} is not in data/index.parquet: run dvc repro")
    columns = read.params.export.columns
    if columns and (without := sorted(image.image_id for image in images if image.image_id not in read.further)):
        raise CleansetError(
            f"{columns.file}: no line on {join_names(without)}; expected one on each image of the set: add it"
        )
    confidences = delivered_confidences(images, read.crop_scores, f"data/crop_scores/{role}.parquet")
    reviewers = reviewer_counts(read.votes)
    check = source_check(read)
    of_studies = labels_by_name(read.studies)
    if read.studies:
        matched = sum(any(image.image_id in each for each in of_studies.values()) for image in images)
        names = ", ".join(of_studies)
        expected = "images that a study of export.label_sources has"
        check_matched(matched, len(images), f"images of {role} are in {names}", expected)
    denying = {each.image_id: each.denied_by for each in findings_of(classes_of(images), of_studies)}
    delivered = []
    for image, confidence in zip(images, confidences, strict=True):
        ilsvrc_class, real_classes = labels_of[image.image_id]
        delivered.append(
            DeliveredImage(
                selected=image,
                confidence=confidence,
                ilsvrc_class=ilsvrc_class,
                real_classes=real_classes,
                reviewers=reviewers.get(image.image_id, 0),
                source_check=check,
                denied_by=denying[image.image_id] if read.studies else None,
                group=read.groups.get(image.image_id, ""),
                further=read.further[image.image_id] if read.further else (),
            )
        )
    return delivered


def classes_of(images: Iterable[SelectedImage]) -> list[tuple[str, int]]:
    """Image id and class index of each image."""
    return [(image.image_id, image.class_index) for image in images]


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads images by their ids, with the digests that the index has of them."""

    read: Read
    digests: Mapping[str, tuple[str, str]]
    """SHA-256 of the bytes and of the pixels, by image id."""

    def __call__(self, image_id: str) -> SourceImage:
        of_bytes, of_pixels = self.digests[image_id]
        return SourceImage(data=self.read(image_id), sha256=of_bytes, pixels_sha256=of_pixels)


def source_reader(read: ExportInputs, read_bytes: Read) -> SourceReader:
    """Read the images of the index by `read_bytes`."""
    index = read.index
    digests = zip(index["image_id"], index["sha256"], index["pixels_sha256"], strict=True)
    return SourceReader(read_bytes, {image_id: (of_bytes, of_pixels) for image_id, of_bytes, of_pixels in digests})


def check_full(read: ExportInputs, role: str) -> None:
    """Raise CleansetError if a class is not full."""
    images_per_class = read.params.export.images_per_class
    wanted = read.params.dataset.class_list(read.classes)
    counts = per_class(read.selection, wanted)
    short = [index for index in wanted if counts[index] < least_images(images_per_class)]
    if short:
        found = "no image" if images_per_class == "all" else f"{counts[short[0]]} of {images_per_class} images"
        raise CleansetError(
            f"{role}: short classes: {len(short)}, the first is {read.classes.keys[short[0]]} with {found}: review "
            "more, or set export.strict: false (then data/short_classes.csv lists them all)"
        )
    undecided = per_class(read.rejected[read.rejected["open"]], wanted)
    unfinished = [index for index in wanted if not is_full(counts[index], undecided[index], images_per_class)]
    if unfinished:
        raise CleansetError(
            f"{role}: classes with candidates that are not decided: {len(unfinished)}, the first is "
            f"{read.classes.keys[unfinished[0]]} with {undecided[unfinished[0]]}; expected none with "
            "export.images_per_class: all: review them, or set export.strict: false"
        )


def check_boxes_known(unknown: list[str], role: str) -> None:
    """Raise CleansetError if the crop box of any image is unknown."""
    if unknown:
        raise CleansetError(
            f"{role}: images with an unknown crop box: {len(unknown)}, the first is {unknown[0]}; expected a box "
            "for each: draw them (review.unknown_boxes: open asks for them), or set export.strict: false, which leaves "
            "them out"
        )


def write_images(
    update: FolderUpdate, images: Sequence[DeliveredImage], source: SourceReader, *, role: str, classes: ClassTable
) -> list[Entry]:
    """Write the images into the folder of the set; return their entries of the manifest.

    A whole image whose file has the bytes in the index is neither read from the archive nor written, and not read from
    the set if it is unchanged since it was written or last read.
    """

    def whole(image: DeliveredImage, is_kept: Callable[[str, str], bool]) -> Entry | None:
        of_bytes, of_pixels = source.digests[image.selected.image_id]
        name = name_of(image, classes)
        if known_box(image.selected.box) is not None or not is_kept(name, of_bytes):
            return None
        update.keep(name, of_bytes)
        with _naming(image, role):
            return whole_entry(image, of_bytes, of_pixels, role=role, classes=classes)

    def noted(image: DeliveredImage) -> Entry | None:
        return whole(image, lambda name, digest: update.note(name) == digest)

    def delivered(image: DeliveredImage) -> Entry:
        entry = whole(image, lambda name, digest: has_digest(update.content(name), digest))
        if entry is not None:
            return entry
        read = source(image.selected.image_id)
        write = update.write if known_box(image.selected.box) else partial(update.write, note=read.sha256)
        with _naming(image, role):
            return write_image(write, image, read, role=role, classes=classes)

    return found_in_threads(delivered, images, f"export {role}", noted)


@contextmanager
def _naming(image: DeliveredImage, role: str) -> Iterator[None]:
    """Raise CleansetError, naming the image, for values that do not go together."""
    try:
        yield
    except ValidationError as error:
        raise CleansetError(
            f"export {role}, {image.selected.image_id}: {first_problem(error)}: run dvc repro"
        ) from None


def has_digest(data: bytes | None, digest: str) -> bool:
    """Whether there are bytes with this SHA-256."""
    return data is not None and sha256(data) == digest
