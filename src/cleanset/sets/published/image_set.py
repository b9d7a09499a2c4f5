"""The command `published`: the published set as files, from its lists and verdicts and a user's copy of the images.

`cleanset.load` keeps the set in the cache, where it is made once:

published/<key>/
    lock               held by the process that makes the set
    <model>-<key>/     the set, from the moment that it is whole

The key is a digest of whatever decides the content: the published files, further reviews, the choice, the version of
cleanset, and the images, by the MD5 of the archive, or by path and state of the files of a folder.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from cleanset.classes import imagenet
from cleanset.dataset.archives import locate
from cleanset.dataset.ilsvrc import CLASSES
from cleanset.dataset.label_findings import denials, findings_of, labels_by_name
from cleanset.dataset.label_sources import SourceLabels, read_sources
from cleanset.edition.params import Params, ReviewPolicy, checked_params
from cleanset.edition.readings import readings, review_policy
from cleanset.errors import CleansetError
from cleanset.image_ids import VALIDATION_IMAGES
from cleanset.images.codec import ImageFacts
from cleanset.plumbing.cache import cache_folder, writing_cache
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import file_state, new_folder, remove_abandoned, replacing, sha256
from cleanset.plumbing.folder_updates import FolderUpdate
from cleanset.plumbing.machine import keep_freed_memory
from cleanset.plumbing.progress import found_in_threads
from cleanset.review.decided import decide_all
from cleanset.review.store import Votes, check_reviews
from cleanset.review.verdicts import votes_that
from cleanset.review.vote_table import reviewer_counts, verdicts_by_reviewer, vote_table
from cleanset.selection.fill import Filled, fill, with_decisions
from cleanset.selection.selected import SelectedImage, selected_images
from cleanset.sets.card import card
from cleanset.sets.delivered import (
    DeliveredImage,
    SourceImage,
    make_class_folders,
    without_unknown_boxes,
    write_image,
)
from cleanset.sets.description import (
    NOT_VERIFIED,
    Provenance,
    Release,
    determining_params,
    limits_of,
    notices_of,
    rejected_csv,
)
from cleanset.sets.folder import CARD, REJECTED_CSV, read_entries, write_descriptions
from cleanset.sets.manifest import COLUMNS, MANIFEST, Entry, manifest_csv
from cleanset.sets.published.lists import (
    PublishedChoice,
    digests_of_inputs,
    ilsvrc_class,
    published_candidates,
    published_verdicts,
    with_further_reviews,
)
from cleanset.sets.published.source_images import CHECKED, SourceImages, archive_md5, check_md5, check_sides
from cleanset.vocabulary import BOX_UNKNOWN, SCOOTER, SourceCheck

IMAGES_PER_CLASS = 3
_NAMES: dict[str, dict[str, str]] = {
    "norm_robust": {"source": "robustbench", "name": "Salman2020Do_R50", "threat_model": "Linf"},
    "standard": {"source": "timm", "name": "resnet50.a1_in1k"},
    "corruption_robust": {"source": "robustbench", "name": "Erichson2022NoisyMix_new", "threat_model": "corruptions"},
}
"""The networks behind the published lists."""


@dataclass(frozen=True, slots=True)
class SelectedImages:
    """A set by its lists and verdicts, before any image is read."""

    choice: PublishedChoice
    params: Params
    votes: Votes
    candidates: pd.DataFrame
    filled: Filled
    studies: Sequence[SourceLabels] = ()
    """The label sources that the images are compared with."""


def select_images(choice: PublishedChoice) -> SelectedImages:
    """The images of a set, by the rules of stage review_apply with `protocol: as_published`."""
    choice.check()
    # a crop without a box takes its place, as published, and is left out later
    studies = [] if choice.labels is None else read_sources(choice.labels)
    review = {"unknown_boxes": "count", "wrong_after_crop": "accept", "unreviewed": choice.unreviewed}
    params = checked_params(
        {
            "root": ".",
            "protocol": "as_published",
            "dataset": {"images": "ILSVRC2012_img_val.tar"},
            "models": {choice.model: _NAMES[choice.model]},
            "review": review,
            **({"export": {"label_sources": [each.source.name for each in studies]}} if studies else {}),
        },
        "the published set",
    )
    votes = with_further_reviews(published_verdicts(), choice.reviews)
    candidates = published_candidates(choice.model)
    filled = fill_classes(candidates, choice.model, params.review, votes)
    return SelectedImages(
        choice=choice, params=params, votes=votes, candidates=candidates, filled=filled, studies=studies
    )


def fill_classes(candidates: pd.DataFrame, model: str, review: ReviewPolicy, votes: Votes) -> Filled:
    """Fill each class from the candidates of a model, by these votes."""
    # nobody has scored a crop, so that none counts as misclassified
    decided = decide_all(review, votes, {model: {}})
    reviewed = with_decisions(candidates, partial(decided.for_candidate, model))
    return fill(reviewed, IMAGES_PER_CLASS, review.crops == "in_rank")


PUBLISHED_VERSION = "1.0.0"
PUBLISHED_DATE = "2026-11-23"
"""Version and date that card and Croissant give; raised when a changed list or verdict changes the contents of a set.

A set with further reviews, label sources or a notice has no date: the version does not determine its contents.
"""


@dataclass(frozen=True, slots=True)
class WrittenSet:
    """A written set: its images and the rejected ones, its notices, and how the bytes of its images were checked."""

    out: str
    model: str
    entries: Sequence[Entry]
    rejected: pd.DataFrame
    notices: Sequence[str]
    source_check: SourceCheck


def run(choice: PublishedChoice, images: Path, out: Path, digests: Path | None = None) -> WrittenSet:
    """Write the set into the new or empty folder `out`, from `images`: the tar, or a folder of any layout.

    A tar must have the MD5 of the official archive, or the one in the table `digests`, with which every image is
    compared; without a table the images of a folder are taken unchanged. Everything is written, or nothing. Raises
    CleansetError for images that are missing, cannot be decoded, or are not the originals as far as can be known.
    """
    # each block of the archive and each decoded image would be new pages to clear: a quarter of the processor time
    keep_freed_memory()
    chosen = select_images(choice)
    source = SourceImages(images, digests)
    with new_folder(out) as folder:
        return write_set(folder, chosen, source, str(out))


def write_set(folder: Path, chosen: SelectedImages, source: SourceImages, out: str) -> WrittenSet:
    """Write a set into the new folder `folder`, which is to become `out`. Raises CleansetError as `run` does."""
    model = chosen.choice.model
    filled = chosen.filled
    votes = vote_table(chosen.votes, chosen.filled)
    columns = [*filled.rejected.columns.drop("open"), "open"]
    selection, rejected = without_unknown_boxes(filled.selection, filled.rejected[columns])
    reviewers = reviewer_counts(votes)
    selected = selected_images(selection)
    found = findings_of(((each.image_id, each.class_index) for each in selected), labels_by_name(chosen.studies))
    denying = {each.image_id: each.denied_by for each in found} if chosen.studies else {}
    images = [_delivered(each, reviewers, source.check, denying.get(each.image_id)) for each in selected]
    with archive_md5(source.images) if source.is_archive else nullcontext(lambda: "") as md5_of_archive:
        source.locate(selection)
        try:
            _check_further_reviews(chosen, source)
            entries = _write_images(folder, model, images, source)
        except CleansetError:
            # if the whole archive is another one, that is the reason
            if source.is_archive:
                check_md5(source.images, md5_of_archive(), source.expected_md5)
            raise
        if source.is_archive:
            check_md5(source.images, md5_of_archive(), source.expected_md5)
    release = Release(
        classes=imagenet(),
        version=PUBLISHED_VERSION,
        archive=source.images.resolve().name,
        archive_md5=source.expected_md5 if source.is_archive or not source.is_official else "",
        review=review_policy(chosen.params.review),
        reviewers=tuple(verdicts_by_reviewer(votes)),
    )
    notices = notices_of(entries, release)
    if not limits_of(entries, release) and not chosen.choice.reviews and not chosen.studies:
        release = replace(release, date=PUBLISHED_DATE)
    provenance = Provenance(
        model=model,
        release=release,
        classes=range(CLASSES),
        images_per_class=IMAGES_PER_CLASS,
        images=VALIDATION_IMAGES,
        notices=notices,
        readings=readings(chosen.params, model),
        scored=None,
        params=determining_params(chosen.params, model),
        inputs=digests_of_inputs(chosen.votes),
        denied=sum(bool(entry.denied_by) for entry in entries),
        studies=denials(((entry.image_id, entry.class_index) for entry in entries), chosen.studies),
        manifest_sha256=sha256(manifest_csv(entries, imagenet()).encode()),
    )
    texts = {CARD: card(provenance, selection, rejected, votes), REJECTED_CSV: rejected_csv(rejected, imagenet())}
    write_descriptions(folder, entries, release, texts)
    return WrittenSet(
        out=out, model=model, entries=entries, rejected=rejected, notices=notices, source_check=source.check
    )


def _delivered(
    image: SelectedImage, reviewers: Mapping[str, int], source_check: SourceCheck, denied_by: tuple[str, ...] | None
) -> DeliveredImage:
    return DeliveredImage(
        selected=image,
        # nobody has scored a crop
        confidence=image.confidence if image.box is None else None,
        ilsvrc_class=ilsvrc_class(image.image_id),
        # every image of a list, and every one with a verdict, has one reassessed label, its class
        real_classes=(image.class_index,),
        reviewers=reviewers.get(image.image_id, 0),
        source_check=source_check,
        denied_by=denied_by,
    )


def _write_images(folder: Path, model: str, images: Sequence[DeliveredImage], source: SourceImages) -> list[Entry]:
    make_class_folders(folder, (imagenet().keys[image.selected.class_index] for image in images))
    update = FolderUpdate(folder, None)

    def write(image: DeliveredImage) -> tuple[Entry, ImageFacts] | CleansetError:
        try:
            data, facts = source.read(image.selected.image_id)
        except CleansetError as error:
            return error
        whole = SourceImage(data=data, sha256=sha256(data), pixels_sha256=facts.pixels_sha256)
        return write_image(update.write, image, whole, role=model, classes=imagenet()), facts

    written = found_in_threads(write, images, f"published {model}")
    problems = [each for each in written if isinstance(each, CleansetError)]
    if problems:
        more = f"; images with a problem: {len(problems):,} of {len(images):,}" if problems[1:] else ""
        raise CleansetError(f"{problems[0]}{more}")
    pairs = [each for each in written if not isinstance(each, CleansetError)]
    entries = [entry for entry, _ in pairs]
    if source.check == "none":
        check_sides(source.images, [facts for _, facts in pairs])
    return entries


def _check_further_reviews(chosen: SelectedImages, source: SourceImages) -> None:
    """Compare the further reviewers' votes with the images. Raises CleansetError as check_reviews does."""
    class_of = dict(zip(chosen.candidates["image_id"], chosen.candidates["class_index"], strict=True))
    votes = votes_that(chosen.votes, lambda key, name, _: name != SCOOTER and class_of.get(key[1]) == key[0])
    rows = []
    for class_index, image_id in sorted(votes):
        data, facts = source.read(image_id)
        rows.append((image_id, [class_index], sha256(data), facts.width, facts.height))
    index = pd.DataFrame(rows, columns=["image_id", "real_classes", "sha256", "width", "height"])
    # an id names the image here whatever was verified; if nothing was, card and manifest state it
    check_reviews(votes, index, imagenet(), chosen.params.review.min_crop_pixels, official_images=True)


def render(written: WrittenSet) -> str:
    """The lines that the command prints; the last says how the images were checked."""
    entries = written.entries
    rejected = written.rejected
    cropped = sum(entry.crop is not None for entry in entries)
    crops = f", {cropped:,} cropped images" if cropped else ""
    classes = len({entry.class_index for entry in entries})
    lines = [
        f"{written.out}: {len(entries) - cropped:,} whole images{crops} of {classes:,} classes, model {written.model}"
    ]
    if boxes := int((rejected["reason"] == BOX_UNKNOWN).sum()):
        lines.append(f"left out, because nobody has drawn their crop boxes yet: {boxes:,} (rejected.csv)")
    if asked := int(rejected["open"].sum()):
        lines.append(f"without a verdict, and could still come in: {asked:,} (rejected.csv: unreviewed)")
    if unreviewed := sum(entry.reviewers == 0 for entry in entries):
        lines.append(f"images that nobody has reviewed: {unreviewed:,}")
    lines += [notice for notice in written.notices if NOT_VERIFIED not in notice.lower()]
    return "\n".join([*lines, CHECKED[written.source_check]])


def kept_set(choice: PublishedChoice, images: Path, digests: Path | None = None, force: bool = False) -> Path:
    """The folder of the set in the cache, made there unless it is there already; `force` makes it again.

    Once a set has been made from an archive, a later call does not read the archive again. Raises CleansetError as
    `run` does, and if the cache cannot be written.
    """
    source = SourceImages(images, digests)
    chosen = select_images(choice)
    home = cache_folder() / "published" / _key(chosen, source)
    # libraries that cache by a folder's name are to distinguish two sets
    whole = home / f"{choice.model}-{home.name}"
    if not force and _is_whole(whole):
        return whole
    with writing_cache():
        home.mkdir(parents=True, exist_ok=True)
        with locked(home, "lock"):
            # looked at again under the lock: another process may have made it meanwhile
            if force or not _is_whole(whole):
                remove_abandoned(home)
                with replacing(whole) as folder:
                    write_set(folder, chosen, source, str(whole))
    return whole


def _key(chosen: SelectedImages, source: SourceImages) -> str:
    described = {
        "inputs": [(each.path, each.sha256) for each in digests_of_inputs(chosen.votes)],
        "model": chosen.choice.model,
        "unreviewed": chosen.choice.unreviewed,
        "label_sources": [(each.source.name, each.source.sha256) for each in chosen.studies],
        "cleanset": [version("cleanset"), PUBLISHED_VERSION, *COLUMNS],
        "digests": source.table_sha256,
        "images": source.expected_md5 if source.is_archive else _state_of_folder(source.images, chosen),
    }
    return sha256(json.dumps(described, sort_keys=True).encode())[:16]


def _state_of_folder(images: Path, chosen: SelectedImages) -> list[object]:
    """Path of the folder; the state of each image that the set may need."""
    locations = locate(images)
    found = [locations[name].path for name in sorted(chosen.candidates["image_id"]) if name in locations]
    return [str(images.resolve()), *([path.name, *file_state(path.stat())] for path in found)]


def _is_whole(folder: Path) -> bool:
    """Whether no image is missing; the bytes are checked whenever an image is read."""
    if not (folder / MANIFEST).is_file():
        return False
    try:
        return all((folder / entry.file).is_file() for entry in read_entries(folder))
    except CleansetError:  # a damaged manifest
        return False
