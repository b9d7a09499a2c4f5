"""Facts about a set beyond its manifest: release, provenance, licences, notices, rejections; the works to cite."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.classes import ClassTable
from cleanset.dataset.ilsvrc import OFFICIAL_IMAGES_MD5
from cleanset.edition.about import About
from cleanset.edition.readings import COUNTS_AS_CLEAN
from cleanset.errors import CleansetError
from cleanset.image_ids import VALIDATION_IMAGES
from cleanset.plumbing.csv_files import csv_text, parse_rows
from cleanset.plumbing.files import md5, sha256
from cleanset.plumbing.json_files import JsonMapping, JsonObject
from cleanset.sets.manifest import have_tiers
from cleanset.sets.manifest_checks import twins
from cleanset.sets.texts import Texts, citation, templates, texts_of
from cleanset.vocabulary import NO_TIER, SCOOTER, TIER_ORDER

if TYPE_CHECKING:
    import pandas as pd

    from cleanset.dataset.label_findings import StudyDenials
    from cleanset.edition.params import Params
    from cleanset.scoring.record import ListRecord, ScoreRecord
    from cleanset.selection.rule import ImagesPerClass
    from cleanset.sets.manifest import Entry


UNPUBLISHED = "0.0.0"
"""The version of an unpublished set, such as one that was rebuilt from a manifest alone."""

ABOUT = "export.about"
MADE_FROM = "made_from"
"""The names of the properties of a Croissant description that hold these fields of a release."""

_MD5 = re.compile(r"urn:md5:([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Release:
    """What a finished set is released as: its classes, version, images, review and publishers."""

    classes: ClassTable = field(kw_only=True)
    version: str = UNPUBLISHED
    """MAJOR.MINOR.PATCH."""

    date: str = ""
    """ISO 8601, or empty."""

    archive: str = ""
    """The name of the tar or folder of the images."""

    archive_md5: str = ""
    """Empty for a folder, unless the table that its images were compared with is of another archive than ImageNet's."""

    review: str = ""
    """A sentence on how the reviewers' verdicts became one."""

    reviewers: tuple[str, ...] = ()
    """The names of the reviewers' folders, sorted."""

    about: About | None = None
    """The publishers' description of the set, if any."""

    made_from: Mapping[str, str] = field(default_factory=dict)
    """Digests of what the set was made from, by name; empty if the edition is not known. See made_from.py."""

    @property
    def texts(self) -> Texts:
        """Texts of card, licence and catalogues on the images and publishers, and the facts of the release."""
        facts = {name: getattr(self, name) for name in ("version", "date", "archive", "archive_md5", "review")}
        recorded = json.dumps(self.made_from) if self.made_from else None
        released = self.version if self.version != UNPUBLISHED else ""
        found = texts_of(self.classes, self.about, self.reviewers, self.archive, version=released, date=self.date)
        return {**found, **facts, "made_from": recorded, "has_properties": bool(self.about or recorded)}


def release_of(croissant: bytes, classes: ClassTable) -> Release:
    """The release in a Croissant description of a set of these classes; one without facts for any other file."""
    try:
        described = json.loads(croissant)
        files = next(each for each in described["distribution"] if each["@type"] == "cr:FileSet")
        archive = files["prov:wasDerivedFrom"]
        (review, _) = files["prov:wasGeneratedBy"]
        md5 = _MD5.fullmatch(archive.get("@id", ""))
        properties = {each["name"]: str(each["value"]) for each in described.get("additionalProperty", ())}
        return Release(
            classes=classes,
            # without the digest of the manifest, which is not a part of the release's name
            version=str(described["version"]).partition("+")[0],
            date=str(described.get("datePublished", "")),
            archive=str(archive["prov:label"]),
            archive_md5=md5[1] if md5 else "",
            review=str(review["description"]),
            reviewers=tuple(str(each["prov:label"]) for each in review["prov:wasAssociatedWith"]),
            about=About.model_validate_json(properties[ABOUT]) if ABOUT in properties else None,
            made_from=dict(json.loads(properties.get(MADE_FROM, "{}"))),
        )
    # a file from elsewhere may hold anything; verify then finds that it is not the one made from the manifest
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError):
        return Release(classes=classes)


def manifest_sha256_of(croissant: bytes) -> str | None:
    """The SHA-256 of the manifest in a Croissant description of this project; None for any other."""
    try:
        return str(next(each["sha256"] for each in json.loads(croissant)["distribution"] if "sha256" in each))
    except (ValueError, LookupError, TypeError, StopIteration, RecursionError):
        return None


def licence_text(texts: Texts) -> str:
    """The file LICENSE of a set."""
    url = f"\nCC BY 4.0: {texts['licence_url']}" if texts["licence_url"] else ""
    terms = f"\nThe terms: {texts['terms_url']}" if texts["terms_url"] else ""
    return f"{texts['licences']}{url}\n\n{texts['terms']}{terms}\n\nWho uses the set cites\n\n{texts['citation']}\n"


def in_random_order(entries: "Sequence[Entry]") -> bool:
    """Whether the images of a set were taken in a random order, without a model: they have no tiers."""
    return not have_tiers(entries)


def summary_of(entries: "Sequence[Entry]", texts: Texts) -> str:
    """A sentence on the set with these entries."""
    several = ", or several where its tier is relaxed" if any(entry.tier == "relaxed" for entry in entries) else ""
    classes = len({entry.wnid for entry in entries})
    chosen = "" if in_random_order(entries) else " that the model finds easy"
    return (
        f"{len(entries):,} images of {classes:,} {texts['classes']}{chosen}, each with one label"
        f"{several}, without watermark, filter, border or noise."
    )


def name_of(model: str) -> str:
    """The name of a model's set."""
    return f"cleanset-{model}"


NOT_VERIFIED = "not verified: no digest of single images is known"


def limits(
    classes: ClassTable,
    *,
    unreviewed: bool = False,
    unseen: int = 0,
    verified: bool = True,
    images: int = VALIDATION_IMAGES,
    archive_md5: str = "",
) -> list[str]:
    """Sentences on the limits of a set that make it unfit for a study.

    `unreviewed`: images that nobody has reviewed were taken for clean; `unseen`: images that nobody is known to have
    judged; `verified`: something from outside fixes the bytes of the images; `images`: how many the set was chosen
    from; `archive_md5`: MD5 of the archive, empty for a folder.
    """
    trial = f"Made from an archive with the MD5 {archive_md5}, which is not ImageNet's official one: a trial, not for a"
    sample = (
        f"Made from {images:,} images, not from the {VALIDATION_IMAGES:,} of ImageNet's validation set: a sample or a "
        "trial, not for a study."
    )
    if not classes.is_imagenet:  # no digest and no number of other images is known
        verified = True
        images = VALIDATION_IMAGES
        archive_md5 = ""
    sentences = {
        "Images that nobody has reviewed were taken for clean: a first look, not for a study.": unreviewed,
        f"Images that no reviewer is known to have judged: {unseen:,}.": unseen,
        f"{NOT_VERIFIED.capitalize()}.": not verified,
        sample: images != VALIDATION_IMAGES,
        f"{trial} study.": archive_md5 not in ("", OFFICIAL_IMAGES_MD5),
    }
    return [sentence for sentence, holds in sentences.items() if holds]


def limits_of(entries: "Sequence[Entry]", release: Release) -> list[str]:
    """The limits that the manifest of a set and its Croissant description give; the same wherever they are read.

    Without a description, the manifest alone shows which images no reviewer but perhaps the board has judged.
    """
    return limits(
        release.classes,
        unreviewed=COUNTS_AS_CLEAN in release.review,
        unseen=0 if release.review else sum(entry.reviewers == 0 for entry in entries),
        verified=all(entry.source_check != "none" for entry in entries),
        archive_md5=release.archive_md5,
    )


def twins_notice(entries: "Iterable[Entry]") -> list[str]:
    """A notice if images of the set have the same pixels, as some of ImageNet's have."""
    found = twins(entries)
    if not found:
        return []
    later, first = (entry.file for entry in found[0])
    return [f"Images with the bytes or pixels of another one: {len(found):,}, the first is {later}, as {first}."]


def notices_of(entries: "Sequence[Entry]", release: Release) -> list[str]:
    """The limits of a set, and its twins."""
    return [*limits_of(entries, release), *twins_notice(entries)]


def rejected_columns(classes: ClassTable, *, has_tiers: bool = True) -> tuple[str, ...]:
    """The columns of the table of rejected candidates; a set without a model `has_tiers` not.

    Your own images have their digest, as they may have another name in another release.
    """
    tier = ("tier",) if has_tiers else ()
    digest = () if classes.is_imagenet else ("source_sha256",)
    return (classes.key_column, "class_index", "class_name", "image_id", *tier, "rank", "reason", *digest)


def rejected_csv(rejected: "pd.DataFrame", classes: ClassTable, digests: Mapping[str, str] | None = None) -> str:
    """Table REJECTED as CSV with a header; by class, tier and rank.

    `digests`: the SHA-256 of your own images by id; None for ImageNet's.
    """
    rows = rejected[["class_index", "tier", "rank", "image_id", "reason"]].itertuples(index=False, name=None)
    in_order = sorted(rows, key=lambda row: (row[0], TIER_ORDER.index(row[1]), *row[2:4]))
    has_tiers = not (rejected["tier"] == NO_TIER).any()
    return csv_text(
        rejected_columns(classes, has_tiers=has_tiers),
        (
            (
                classes.keys[index],
                index,
                classes.labels[index],
                image_id,
                *((tier,) if has_tiers else ()),
                rank,
                reason,
                *(() if digests is None else (digests[image_id],)),
            )
            for index, tier, rank, image_id, reason in in_order
        ),
    )


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line of the table of rejected candidates."""

    image_id: str
    reason: str
    sha256: str | None
    """Digest of the whole image; None for ImageNet's, which are identified by id."""


def rejections(text: str, where: str, classes: ClassTable) -> Mapping[tuple[str, str], Rejection]:
    """The rejected candidates by class key and image id. Raises CleansetError, naming `where`."""
    has_tiers = "tier" in text.partition("\n")[0].split(",")
    names = rejected_columns(classes, has_tiers=has_tiers)
    rows = parse_rows(text, names, dict[str, str], where, remedy="export or fetch the set again", is_own=True)
    return {
        (row[classes.key_column], row["image_id"]): Rejection(
            image_id=row["image_id"], reason=row["reason"], sha256=row.get("source_sha256")
        )
        for _, row in rows
    }


_CHANGES_NO_SET: JsonObject = {
    "root": True,
    "engine": True,
    "count": True,
    # paths, whose files are known by digests, and what decides how they are read: the index has the result
    "dataset": dict.fromkeys(
        ("reader", "labels", "names", "classes_are_folders", "devkit", "reassessed", "expect_images"), True
    ),
    "models": {"__all__": dict.fromkeys(("weights", "file", "beyond"), True)},
    "score": {"device": True, "batch_size": True},
    "review": dict.fromkeys(("assign", "gold", "hints", "opinions", "overlap", "seconds_per_image"), True),
}
"""The parameters that change no byte of a set, its card and catalogues, while the files that they name are the same.

Every other one does, those that are added later among them.
"""

_NOT_IN_CARD: JsonObject = {
    "dataset": {"images": True},
    "models": {"__all__": {"module_sha256": True, "files": True}},
    "score": True,
    "export": {"version": True, "date": True, "about": True},
}
"""Others that do not decide which images a set has, or that the card has elsewhere."""


@dataclass(frozen=True, slots=True)
class InputDigest:
    """A file that the set was made from: its path in the edition, its SHA-256, and its MD5, as in dvc.lock."""

    path: str
    sha256: str
    md5: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a set, for its data card."""

    model: str
    """The model's role."""

    release: Release
    classes: Sequence[int]
    """Class indices of the classes that the set should have, sorted."""

    images_per_class: "ImagesPerClass"
    """Number of images that each class should have."""

    images: int
    """Number of images that the set was chosen from."""

    notices: Sequence[str]
    """Warnings in sentences, which come first in the card."""

    readings: Sequence[str]
    """The choices where a source's text and its authors' practice differ, in sentences."""

    scored: "ScoreRecord | ListRecord | None"
    """The record of the model's scores; None for a set that was made from the published lists."""

    params: JsonMapping
    """The parameters that decide the contents of the set."""

    inputs: Sequence[InputDigest]
    """The files that the set was made from, next to the images."""

    manifest_sha256: str
    """SHA-256 of the set's manifest; libraries that cache what they load distinguish sets by it."""

    studies: "Sequence[StudyDenials]" = ()
    """The label sources that the images were compared with."""

    further: tuple[str, ...] = ()
    """The columns of the manifest from a table of the publishers."""

    denied: int = 0
    """Number of images whose class at least one of these denies."""

    @property
    def is_random(self) -> bool:
        """Whether the images of a class were taken in a random order, without a model."""
        return getattr(self.scored, "source", "") == "random"

    @property
    def params_sha256(self) -> str:
        """SHA-256 of the parameters as JSON with sorted keys and no spaces."""
        return _params_sha256(self.params)


def params_sha256_of(params: "Params", role: str) -> str:
    """SHA-256 of every parameter that changes a byte of a model's set, its card and catalogues among them."""
    return _params_sha256(_params_of_set(params, role))


def _params_sha256(params: JsonMapping) -> str:
    return sha256(json.dumps(params, sort_keys=True, separators=(",", ":")).encode())


def determining_params(params: "Params", role: str) -> JsonObject:
    """The parameters that decide the contents of a model's set, as far as params.yaml or its protocol gives them.

    Without those of scoring, which the score record has.
    """
    return _without(_params_of_set(params, role), _NOT_IN_CARD)


def _params_of_set(params: "Params", role: str) -> JsonObject:
    found = _without(params.model_dump(mode="json", exclude_unset=True), _CHANGES_NO_SET)
    # a random order knows no choice of candidates, and no other model
    without = {"protocol", "select"} if params.model(role).is_random else set()
    # nothing is computed
    without |= {"score"} if params.model(role).is_list else set()
    return {name: values for name, values in found.items() if name not in without}


def _without(values: JsonMapping, excluded: JsonMapping) -> JsonObject:
    """Values without the excluded ones, True, and without sections that become empty."""
    found = {}
    for name, value in values.items():
        inner = excluded.get(name, excluded.get("__all__"))
        if isinstance(inner, dict) and isinstance(value, dict):
            value = _without(value, inner)
        if inner is not True and value != {}:
            found[name] = value
    return found


def digest_of(path: str, blocks: Sequence[bytes]) -> InputDigest:
    """The digest of a file, or of several, one after the other, from their bytes."""
    return InputDigest(path, sha256(b"".join(blocks)), md5(blocks))


def input_digests(folder: Path, paths: Sequence[Path]) -> list[InputDigest]:
    """The digests of files below `folder`."""
    return [digest_of(path.relative_to(folder).as_posix(), [path.read_bytes()]) for path in paths]


def render(form: str) -> str:
    """The citations of cleanset, its images and labels, and SCOOTER. Raises CleansetError for an unknown format."""
    from importlib.metadata import version

    if form not in ("bibtex", "text"):
        raise CleansetError(f"format {form!r}; expected bibtex or text")
    found = templates("citations")
    text = citation([SCOOTER]) if form == "bibtex" else str(found["as_text"])
    before, after = found[f"release_in_{form}"]
    return text.replace(before, after.format(version=version("cleanset"), address=_address()), 1)


def _address() -> str:
    """The address that pip installed cleanset from, as direct_url.json has it; otherwise the placeholder."""
    from importlib.metadata import distribution

    url = json.loads(distribution("cleanset").read_text("direct_url.json") or "{}").get("url", "")
    return str(url) if url.startswith("https://") else "https://…/cleanset.git"
