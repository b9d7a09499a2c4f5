"""The delivered form of an image: its file, its manifest entry, and the model's confidence on its pixels."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from PIL.Image import Image

from cleanset.classes import ClassTable
from cleanset.images.boxes import UNKNOWN_BOX, Box, known_box
from cleanset.images.codec import cropped, encoder, pixels_sha256, png
from cleanset.plumbing.files import sha256
from cleanset.selection.candidates import top5_predictions
from cleanset.selection.crop_check import check_scored, crops_of, predictions_of_crops
from cleanset.selection.selected import SelectedImage, boxes_of
from cleanset.sets.manifest import Entry, file_name
from cleanset.vocabulary import BOX_UNKNOWN, SourceCheck


@dataclass(frozen=True, slots=True)
class ImageFile:
    """The file of a delivered image."""

    data: bytes
    part: Image | None
    """The pixels of a cropped image; None for a whole one."""

    encoder: str
    """What wrote the PNG of a cropped image; empty for a whole one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceImage:
    """A whole image as read: its bytes and their digests."""

    data: bytes
    sha256: str
    pixels_sha256: str
    """Digest of the decoded RGB bytes, row by row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredImage:
    """A selected image, with the values of its entry that neither its file nor its source gives."""

    selected: SelectedImage
    confidence: float | None
    """The model's softmax probability of the class on the delivered pixels; None if it is not known."""

    ilsvrc_class: int
    """Class index of the original label."""

    real_classes: tuple[int, ...]
    """Class indices of the reassessed labels, sorted."""

    reviewers: int
    """Number of reviewers who judged the image in this class, without the board."""

    source_check: SourceCheck
    denied_by: tuple[str, ...] | None = None
    """The label sources that deny the class; None if the set is not compared with any."""

    group: str = ""
    """Images of one group must not be split; empty if images have no groups."""

    further: tuple[tuple[str, str], ...] = ()
    """The columns from a table of the publishers, each with its value."""


def image_file(source: bytes, crop: Box | None) -> ImageFile:
    """A whole image byte for byte, a cropped one as PNG. Raises ValueError if it must be decoded and cannot."""
    if crop is None:
        return ImageFile(source, None, "")
    part = cropped(source, crop)
    return ImageFile(png(part), part, encoder())


def with_known_confidences(images: pd.DataFrame, unknown: Collection[str]) -> pd.DataFrame:
    """The same rows with confidence None for the images in `unknown`: those from beyond a published list."""
    if not unknown:
        return images
    pairs = zip(images["image_id"], images["confidence"], strict=True)
    known = [None if image_id in unknown else confidence for image_id, confidence in pairs]
    return images.assign(confidence=pd.Series(known, index=images.index, dtype=object))


def delivered_confidences(
    selection: Sequence[SelectedImage], crop_scores: pd.DataFrame | None, where: str
) -> list[float | None]:
    """The softmax probability of each image's class on its delivered pixels, with the scores of table CROP_SCORES.

    None for a crop whose five most probable classes lack the class; only review.wrong_after_crop: accept keeps one.
    Without `crop_scores`, as of a published list, None for every crop. Raises CleansetError, naming `where`, for a crop
    without scores.
    """
    if crop_scores is None:
        return [image.confidence if image.crop is None else None for image in selection]
    # first, so that of_crops has every crop
    check_scored((image.crop for image in selection if image.crop), predictions_of_crops(crop_scores), where)
    classes, probabilities = top5_predictions(crop_scores)
    by_class = [dict(zip(*pair, strict=True)) for pair in zip(classes.tolist(), probabilities.tolist(), strict=True)]
    of_crops = dict(zip(crops_of(crop_scores), by_class, strict=True))
    return [
        image.confidence if image.crop is None else of_crops[image.crop].get(image.class_index) for image in selection
    ]


def without_unknown_boxes(selection: pd.DataFrame, rejected: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The images that can be delivered, in places without a gap; and the rejected ones with all others."""
    is_unknown = pd.Series([box is UNKNOWN_BOX for box in boxes_of(selection)], index=selection.index, dtype=bool)
    known = selection[~is_unknown].sort_values(["class_index", "place"])
    others = selection[is_unknown].assign(reason=BOX_UNKNOWN, open=False)
    every = pd.concat([rejected, others[list(rejected.columns)]]) if len(others) else rejected
    places = known.groupby("class_index").cumcount() + 1
    return known.assign(place=places).sort_values("image_id"), every


def make_class_folders(folder: Path, keys: Iterable[str]) -> None:
    """Make a new folder, and in it one for each of these class keys."""
    folder.mkdir()
    for key in set(keys):
        (folder / key).mkdir()


def name_of(image: DeliveredImage, classes: ClassTable) -> str:
    """The path of an image's file below the folder of its set."""
    selected = image.selected
    return file_name(classes.keys[selected.class_index], selected.image_id, known_box(selected.box), classes)


def write_image(
    save: Callable[[str, bytes], object], image: DeliveredImage, source: SourceImage, *, role: str, classes: ClassTable
) -> Entry:
    """Write one image of the set of a model, and return its entry; `save` takes a path below the set, and the bytes.

    Raises pydantic's ValidationError for values that contradict each other, and ValueError for an image that must be
    decoded and cannot.
    """
    made = image_file(source.data, known_box(image.selected.box))
    save(name_of(image, classes), made.data)
    if made.part is None:
        return whole_entry(image, source.sha256, source.pixels_sha256, role=role, classes=classes)
    return _entry(
        _Written(
            image=image,
            role=role,
            classes=classes,
            source_sha256=source.sha256,
            file_sha256=sha256(made.data),
            pixels_sha256=pixels_sha256(made.part),
            encoder=made.encoder,
        )
    )


def whole_entry(image: DeliveredImage, of_bytes: str, of_pixels: str, *, role: str, classes: ClassTable) -> Entry:
    """The entry of a whole image, by the SHA-256 of its bytes and pixels. Raises ValidationError as `write_image`."""
    return _entry(
        _Written(
            image=image,
            role=role,
            classes=classes,
            source_sha256=of_bytes,
            file_sha256=of_bytes,
            pixels_sha256=of_pixels,
            encoder="",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """An image whose file is written, with all that its entry is made of."""

    image: DeliveredImage
    role: str
    classes: ClassTable
    source_sha256: str
    file_sha256: str
    pixels_sha256: str
    encoder: str

    @property
    def selected(self) -> SelectedImage:
        return self.image.selected


_VALUES: Mapping[str, Callable[[_Written], object]] = {
    "model": lambda of: of.role,
    "wnid": lambda of: of.classes.keys[of.selected.class_index],
    "class_index": lambda of: of.selected.class_index,
    "class_name": lambda of: of.classes.labels[of.selected.class_index],
    "rank": lambda of: of.selected.place,
    "image_id": lambda of: of.selected.image_id,
    "tier": lambda of: of.selected.tier,
    "confidence": lambda of: of.image.confidence,
    "source_confidence": lambda of: of.selected.confidence,
    "ilsvrc_class": lambda of: of.image.ilsvrc_class,
    "real_classes": lambda of: of.image.real_classes,
    "reviewers": lambda of: of.image.reviewers,
    "crop": lambda of: known_box(of.selected.box),
    "file": lambda of: name_of(of.image, of.classes),
    "source_sha256": lambda of: of.source_sha256,
    "source_check": lambda of: of.image.source_check,
    "file_sha256": lambda of: of.file_sha256,
    "pixels_sha256": lambda of: of.pixels_sha256,
    "encoder": lambda of: of.encoder,
    "denied_by": lambda of: of.image.denied_by,
    "group": lambda of: of.image.group,
    "further": lambda of: of.image.further,
}
"""Where the value of each field of an entry comes from."""

if _VALUES.keys() != Entry.model_fields.keys():
    raise TypeError(f"values of {', '.join(_VALUES.keys() ^ Entry.model_fields.keys())}; expected those of Entry")


def _entry(written: _Written) -> Entry:
    return Entry.checked({name: value(written) for name, value in _VALUES.items()}, written.classes)
