"""The masks of a study's images: finding their files, the reasons why an image is in no scenario, and comparing masks.

Each image has a row of MASKS: its mask, and why scenarios cannot use it, if so.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile, SetImages
from cleanset.image_ids import ImageNames, check_matched, example_id, expected_id
from cleanset.images.boxes import Box, box_of
from cleanset.plumbing.files import sha256
from cleanset.plumbing.validation import check_known
from cleanset.sets.folder import read_regular_file
from cleanset.studies.robustness.images import MASKS
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.scenarios.imagenet_s import (
    IMAGENET_S,
    check_format_suits,
    segmented_classes,
)
from cleanset.studies.robustness.scenarios.mask_formats import FORMATS, MASK_SUFFIXES, read_regions
from cleanset.studies.robustness.scenarios.masks import (
    LeftOut,
    Mask,
    Regions,
    base_regions,
    cropped_regions,
    intersection_over_union,
    unsuitable,
    with_both,
)
from cleanset.studies.robustness.scenarios.params import GENERATED, Scenarios


class MaskSource(NamedTuple):
    """A folder of masks."""

    folder: Path
    """The folder."""
    format: str = "png"
    """The format of its files, one of `mask_formats.FORMATS`."""
    origin: str = ""
    """Who made them: person, generator or model."""

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The folder of `FORMAT:FOLDER`, or of `FOLDER` with PNG files."""
        form, colon, folder = text.partition(":")
        return cls(Path(folder), form) if colon else cls(Path(text))


class MaskFile(NamedTuple):
    """A file with the mask of an image."""

    path: Path
    """Where it is."""
    name: str
    """Its name in the folder `masks` of the study."""
    source: MaskSource
    """The folder that it is of."""


def find_masks(sources: Iterable[MaskSource], images: ImageNames, otherwise: str = "") -> dict[str, MaskFile]:
    """The mask files by image id, in folders of their own, too, such as ImageNet-S's of classes.

    A mask of none of your own `images` is there by its path. `otherwise`: the end of the error, of what else can be
    done about a folder without masks. Raises CleansetError for a source that is not a folder, one without masks, a file
    without an ImageNet id in its name if the images have them, and two masks of one image.
    """
    found = dict[str, MaskFile]()
    for source in sources:
        if not source.folder.is_dir():
            raise CleansetError(
                f"{source.folder}: no such folder; expected one with masks: correct its name{otherwise}"
            )
        files = sorted(source.folder.rglob(f"*{MASK_SUFFIXES[source.format]}"))
        # a misspelled folder would leave out all its images without a word
        if not files:
            example = Path(example_id(images.classes)).with_suffix(MASK_SUFFIXES[source.format])
            raise CleansetError(f"{source.folder}: no masks; expected files like {example}: put them there{otherwise}")
        for path in files:
            name = path.relative_to(source.folder).as_posix()
            image_id = images.find(name)
            if image_id is None and images.classes.is_imagenet:
                raise CleansetError(f"{path}: mask of an unknown image; {expected_id(images.classes)}: remove it")
            image_id = image_id or name
            if image_id in found:
                raise CleansetError(f"{image_id}: two masks of one image: remove one")
            found[image_id] = MaskFile(path, f"{source.folder.name}/{name}", source)
    return dict(sorted(found.items()))


def mask_table(
    images: pd.DataFrame,
    masks: Mapping[str, MaskFile],
    size_of: Callable[[str], tuple[int, int]],
    classes: ClassTable,
    *,
    is_placed: bool,
) -> pd.DataFrame:
    """The rows of MASKS for rows of STUDY_IMAGES; `is_placed`: images must suit a generated background.

    `size_of`: width and height of a decoded file. Raises CleansetError for a mask that cannot be read, is empty or
    full, or is of another size than its image.
    """
    keys = classes.keys
    rows: list[tuple[str | None, ...]] = []
    columns = (images[name] for name in ("file", "image_id", "class_index", "crop"))
    for file, image_id, class_index, crop in zip(*columns, strict=True):
        mask = masks.get(image_id)
        if mask is None:
            rows.append((file, None, None, None, None, "no_mask"))
            continue
        check_format_suits(mask.source.format, classes, str(mask.path))
        data = read_regular_file(mask.path)
        left_out = why_left_out(
            data, mask, keys[class_index], size=size_of(file), crop=box_of(crop), is_placed=is_placed
        )
        rows.append((file, mask.name, sha256(data), mask.source.format, mask.source.origin, left_out))
    return pd.DataFrame(rows, columns=MASKS.names)


def why_left_out(
    data: bytes, mask: MaskFile, wnid: str, size: tuple[int, int], crop: Box | None = None, *, is_placed: bool = False
) -> LeftOut | None:
    """Why scenarios cannot use an image with the mask in this file; None if they can. Raises as `mask_table`.

    `wnid`, `size` and `crop`: the image's class, width and height of the decoded file, and crop.
    """
    where = str(mask.path)
    if _is_of_other_class(mask, wnid, data):
        return "other_class"
    whole = read_regions(data, mask.source.format, wnid, where)
    _check_size(whole, size, crop, where)
    regions = cropped_regions(whole, crop)
    if is_placed and regions.object.any() and (problem := unsuitable(regions.object)):
        return problem
    base = base_regions(regions)
    if not base.object.any():
        return "no_object"
    return None if base.background.any() else "no_background"


def _check_size(regions: Regions, size: tuple[int, int], crop: Box | None, where: str) -> None:
    """Raise CleansetError unless the mask is of the original's size, as far as a cropped image shows it."""
    height, width = regions.object.shape
    if crop is None:
        if (width, height) != size:
            wide, high = size
            raise CleansetError(
                f"{where}: mask of {width} x {height} pixels for an image of {wide} x {high}; expected the size of the "
                "original, uncropped image"
            )
        with_both(regions.object, where)
    elif crop[2] > width or crop[3] > height:
        raise CleansetError(
            f"{where}: mask of {width} x {height} pixels; expected the size of the original image, in which the crop "
            f"{list(crop)} is"
        )


def has_scenarios(images: pd.DataFrame, masks: pd.DataFrame) -> pd.DataFrame:
    """The rows of STUDY_IMAGES whose mask scenarios can use, joined with the columns of MASKS."""
    if images["file"].tolist() != masks["file"].tolist():
        raise CleansetError(
            f"masks of {len(masks):,} images for {len(images):,} other images; expected the same: run dvc repro"
        )
    joined = images.merge(masks, on="file", validate="one_to_one")
    return joined[joined["left_out"].isna()].reset_index(drop=True)


def counts_by_value(column: pd.Series) -> dict[str, int]:
    """The number of rows of each value, such as a reason of `left_out`, sorted; missing values are not counted."""
    return {str(value): int(count) for value, count in column.value_counts().sort_index().items()}


def masks_found(
    images: pd.DataFrame,
    files: Mapping[str, ImageFile],
    folder: Path,
    wanted: CommonParams,
    classes: ClassTable,
    *,
    is_placed: bool | None = None,
) -> pd.DataFrame:
    """The rows of MASKS of some rows of STUDY_IMAGES, from the masks of a study; `files`: where the images are.

    `is_placed`: images must suit a generated background; None: if the params name that scenario. Raises CleansetError
    as `find_masks` and `mask_table` do.
    """
    sources = [MaskSource(folder / each.folder, each.format, each.origin) for each in wanted.masks]
    masks = find_masks(sources, ImageNames(images["image_id"], classes), ", or take the folder out of masks")
    matched = len(masks.keys() & set(images["image_id"]))
    what = f"masks in {folder} are of images that are measured"
    check_matched(matched, len(masks), what, f"names like those of the images, such as {images['image_id'].iat[0]}")
    read = SetImages(files)
    if is_placed is None:
        section = wanted.section(Scenarios)
        is_placed = section.published is None and GENERATED in section.names
    return mask_table(images, masks, lambda file: read(file).size, classes, is_placed=is_placed)


@dataclass(frozen=True)
class MaskAgreement:
    """How far the masks of two folders agree."""

    table: pd.DataFrame
    """Columns image_id and iou, 0 to 1, of each image that is compared, sorted."""
    other_class: int
    """Images left out, since their mask of ImageNet-S is of other classes than their set's."""
    unlisted: int
    """Images left out, since masks of ImageNet-S need a class, and none is known of them."""


def agreement(one: MaskSource, other: MaskSource, wnids: Mapping[str, str], classes: ClassTable) -> MaskAgreement:
    """Compare the images that have a mask in both folders. `wnids`: the class of each image, which ImageNet-S needs.

    Raises CleansetError for an unknown format, a mask that cannot be read, two of other sizes, and folders that have
    no image in common that can be compared.
    """
    for each in (one, other):
        check_known("mask format", each.format, FORMATS)
    found = [find_masks([each], ImageNames(wnids, classes)) for each in (one, other)]
    common = sorted(set(found[0]) & set(found[1]))
    if not common:
        raise CleansetError(f"{one.folder} and {other.folder}: no image has a mask in both folders")
    needs_class = IMAGENET_S in (one.format, other.format)
    compared = [image_id for image_id in common if not needs_class or image_id in wnids]
    if not compared:
        raise CleansetError(
            f"{one.folder} and {other.folder}: the study has listed no image with a mask in both; expected images "
            f"whose class it knows, for masks of format {IMAGENET_S}: run cleanset robustness stage images"
        )
    rows = []
    for image_id in compared:
        wnid = wnids.get(image_id, "")
        files = [(masks[image_id], read_regular_file(masks[image_id].path)) for masks in found]
        if any(_is_of_other_class(file, wnid, data) for file, data in files):
            continue
        masks = [_object(file, wnid, data) for file, data in files]
        if masks[0].shape != masks[1].shape:
            sizes = " and ".join(f"{mask.shape[1]} x {mask.shape[0]}" for mask in masks)
            raise CleansetError(
                f"{image_id}: masks of {sizes} pixels; expected the size of the original in both folders"
            )
        rows.append((image_id, intersection_over_union(masks[0], masks[1])))
    if not rows:
        raise CleansetError(f"{one.folder} and {other.folder}: no image has a mask of its set's class in both folders")
    return MaskAgreement(
        table=pd.DataFrame(rows, columns=["image_id", "iou"]),
        other_class=len(compared) - len(rows),
        unlisted=len(common) - len(compared),
    )


def _is_of_other_class(file: MaskFile, wnid: str, data: bytes) -> bool:
    return file.source.format == IMAGENET_S and wnid not in segmented_classes(data, str(file.path))


def _object(file: MaskFile, wnid: str, data: bytes) -> Mask:
    return read_regions(data, file.source.format, wnid, str(file.path)).object
