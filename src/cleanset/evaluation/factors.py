"""The factors of ImageNet-X, what sets an image apart from prototypes of its class, and error ratios of models by them.

Source: Idrissi and others, "ImageNet-X: Understanding Model Mistakes with Factor of Variation Annotations" (ICLR 2023).
The error ratio of a factor is the error on images that have it divided by that on all annotated images; above 1, the
model is worse on such images. Prototypes, which images were annotated against, are left out, as their program does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from cleanset.errors import CleansetError
from cleanset.evaluation.measures import Measure
from cleanset.image_ids import image_id_in
from cleanset.plumbing.csv_files import parse_rows
from cleanset.plumbing.files import read_bytes, read_text, sha256
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.validation import shown
from cleanset.statistics.basics import LEVEL, Flags, Floats, Ints
from cleanset.statistics.bootstrap import PSEUDO_IMAGES, RESAMPLES, Bootstrap, Resamples, percentile_interval
from cleanset.statistics.formats import percent
from cleanset.statistics.shares import wilson

FACTORS = (
    "pose", "background", "pattern", "color", "smaller", "shape", "partial_view", "subcategory", "texture", "larger",
    "darker", "object_blocking", "person_blocking", "style", "brighter", "multiple_objects",
)  # fmt: skip
"""The factors of ImageNet-X, in the order of its tables."""

AUTHORS_FILES = {
    "083253dfe7c3491c76c4745d00d2c1c6eb19615f3935cfc80c6b914dcd4bd177": "the most important factor of each image",
    "85b5a1fd60e627dd26b963530e31eea5906f25465e66e77f7295d726b23281e7": "all factors of each image",
}
"""The SHA-256 of the two files of validation images in imagenet-x 0.0.7, and what each has."""

PROTOTYPES = "prototypical_paths.csv"
"""File of the prototypes, next to the annotations."""

MIN_IMAGES = 2
"""Annotated images that an interval needs."""
_REMEDY = (
    "name imagenet_x_val_top_factor.jsonl or imagenet_x_val_multi_factor.jsonl of imagenet-x 0.0.7, in the folder "
    "annotations of its wheel"
)
_EXPECTED = "a line for each image with file_name, class and the 16 factors of ImageNet-X, each 0 or 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """The annotation of an image."""

    class_index: int
    """Its class there, ILSVRC2012's."""
    factors: frozenset[str]
    """Those of FACTORS that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """The annotations of ImageNet-X."""

    sha256: str
    """Digest of the file."""
    of_images: Mapping[str, Annotation]
    """By image id."""
    prototypes: frozenset[str]
    """The image ids of the prototypes."""

    @property
    def origin(self) -> str:
        """Which file it is, in words."""
        known = AUTHORS_FILES.get(self.sha256)
        return f"ImageNet-X, {known}" if known else f"another file than ImageNet-X's (SHA-256 {self.sha256[:12]})"


def read_annotations(path: Path) -> Annotations:
    """The annotations in a file of ImageNet-X, and the prototypes in the file next to it.

    Raises CleansetError for a file that is missing, for a row that is not valid, and for a second one of an image.
    """
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; {_REMEDY}") from None
    return Annotations(
        sha256=sha256(data),
        of_images=parse_annotations(data, str(path)),
        prototypes=_prototypes(path.with_name(PROTOTYPES)),
    )


def parse_annotations(data: bytes, where: str) -> dict[str, Annotation]:
    """The annotations in lines of JSON, by image id. Raises CleansetError for a line that is not valid."""
    found = dict[str, Annotation]()
    for number, line in enumerate(data.splitlines(), start=1):
        at = f"{where}, line {number}"
        row = parse_json(line, at, f"{_EXPECTED}: {_REMEDY}")
        if not isinstance(row, dict) or {row.get(name) for name in FACTORS} - {0, 1}:
            raise CleansetError(f"{at}: {shown(row)}; expected {_EXPECTED}: {_REMEDY}")
        name = row.get("file_name")
        label = row.get("class")
        if not isinstance(name, str) or type(label) is not int:
            raise CleansetError(f"{at}: file_name {shown(name)}, class {shown(label)}; expected {_EXPECTED}: {_REMEDY}")
        image_id = image_id_in(name)
        if image_id is None:
            raise CleansetError(f"{at}: file_name {shown(name)}; expected a validation image of ImageNet: {_REMEDY}")
        if image_id in found:
            raise CleansetError(f"{at}: {image_id} a second time; expected each image once")
        factors = frozenset(factor for factor in FACTORS if row[factor])
        found[image_id] = Annotation(class_index=label, factors=factors)
    if not found:
        raise CleansetError(f"{where}: no annotations; expected {_EXPECTED}: {_REMEDY}")
    return found


def _prototypes(path: Path) -> frozenset[str]:
    remedy = f"put {PROTOTYPES} of imagenet-x 0.0.7 next to the annotations: its images are left out"
    rows = parse_rows(read_text(path, remedy), ("file_name",), dict[str, str], str(path), remedy=remedy)
    return frozenset(found for _, row in rows if (found := image_id_in(row["file_name"])) is not None)


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageFactors:
    """The factors of the images of a set, without those that have no annotation and without prototypes."""

    origin: str
    """Where the annotations are from, in words."""
    sha256: str
    """Digest of the annotations' file."""
    files: Sequence[str]
    """The annotated images."""
    class_indices: Ints
    """Their classes in the set."""
    has: Flags
    """Whether each has each of FACTORS: images x factors."""
    not_annotated: int
    """Images of the set without an annotation."""
    prototypes: int
    """Prototypes in the set."""
    other_class: int
    """Annotated images that have another class in the set."""

    @cached_property
    def resamples(self) -> Resamples:
        """The resamples of the annotated images, within their classes; the same for all models."""
        return Bootstrap().resample(self.class_indices)

    @property
    def note(self) -> str:
        """How many images are annotated, and which are not, in a sentence."""
        left_out = f"{self.not_annotated:,} have no annotation, {self.prototypes:,} are prototypes"
        total = len(self.files) + self.not_annotated + self.prototypes
        other = f"; {self.other_class:,} of them have another class there" if self.other_class else ""
        return f"factors of {len(self.files):,} of {total:,} images ({left_out}), {self.origin}{other}"

    def as_json(self) -> dict[str, JsonValue]:
        """What was annotated, and the intervals of the measures."""
        level = percent(LEVEL, 0)
        return {
            "annotations": self.origin,
            "annotations_sha256": self.sha256,
            "images": len(self.files),
            "not_annotated": self.not_annotated,
            "prototypes": self.prototypes,
            "other_class": self.other_class,
            "error_interval": f"Wilson, {level}",
            "ratio_interval": f"bootstrap within classes, one_fewer, with pseudo-images, {RESAMPLES:,} draws, {level}",
        }


def factors_of(annotations: Annotations, images: Mapping[str, int]) -> ImageFactors:
    """The factors of the images of a set: the class index of each by its file, which is named by its image id.

    Raises CleansetError if fewer than MIN_IMAGES are annotated.
    """
    ids = {file: image_id_in(file) or "" for file in images}
    known = {file: annotations.of_images.get(image_id) for file, image_id in ids.items()}
    prototypes = {file for file, each in known.items() if each is not None and ids[file] in annotations.prototypes}
    found = {file: each for file, each in known.items() if each is not None and file not in prototypes}
    if len(found) < MIN_IMAGES:
        raise CleansetError(
            f"--factors: {len(found):,} of {len(images):,} images annotated; expected {MIN_IMAGES} or more images of "
            "the validation set of ILSVRC2012, named by their ids"
        )
    return ImageFactors(
        origin=annotations.origin,
        sha256=annotations.sha256,
        files=list(found),
        class_indices=np.array([images[file] for file in found], np.int64),
        has=np.array([[factor in each.factors for factor in FACTORS] for each in found.values()], np.bool_),
        not_annotated=sum(each is None for each in known.values()),
        prototypes=len(prototypes),
        other_class=sum(images[file] != each.class_index for file, each in found.items()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorMeasure:
    """A model's error on the images that have a factor."""

    factor: str
    """One of FACTORS."""
    images: int
    """Annotated images that have it."""
    misclassified: int
    """Those of them that the model misclassifies."""
    error: Measure
    """Their share, with Wilson's interval; without a value if there are no images."""
    ratio: Measure
    """The error divided by that on all annotated images; without a value if that is 0, or there are no images.

    Its interval, by bootstrap over the images, is missing if a resample has no image of the factor, or no error."""

    def as_json(self) -> dict[str, JsonValue]:
        """The fields, by name; value and interval of each measure."""
        content: dict[str, JsonValue] = {
            "factor": self.factor,
            "images": self.images,
            "misclassified": self.misclassified,
        }
        for name, each in (("error", self.error), ("ratio", self.ratio)):
            found = each.as_json()
            content |= {name: found["value"], f"{name}_interval": found["interval"]}
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorMeasures:
    """A model's errors by factor."""

    error: float
    """The share of the annotated images that the model misclassifies."""
    of_factors: Sequence[FactorMeasure]
    """In the order of FACTORS."""

    def as_json(self) -> dict[str, JsonValue]:
        """The fields, by name."""
        return {"error": self.error, "factors": [each.as_json() for each in self.of_factors]}


def measure_factors(correct: Mapping[str, bool], images: ImageFactors, name: str) -> FactorMeasures:
    """The errors of a model by factor; `correct`: whether it classifies each image of the set correctly, by file.

    `name`: the model's, from which the pseudo-images of the bootstrap follow.
    """
    wrong = ~np.array([correct[file] for file in images.files], np.bool_)
    mean = float(wrong.mean())
    both = images.has & wrong[:, np.newaxis]
    count = len(wrong)
    # the mean of the resampled images and pseudo-images, times their number, is a sum; then over those of the factor
    sums = images.resamples.adjusted_means(both, f"{name} factors") * (count + PSEUDO_IMAGES)
    of_factor = images.resamples.means(images.has) * count
    means = images.resamples.adjusted_means(wrong[:, np.newaxis], f"{name} all")
    # a resample without errors, or without images of a factor, has no ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = np.where(of_factor > 0, sums / (of_factor + PSEUDO_IMAGES) / means, np.nan)
    measures = [
        _measure(factor, images=int(total), misclassified=int(errors), mean=mean, draws=draws[:, place])
        for place, (factor, total, errors) in enumerate(
            zip(FACTORS, images.has.sum(axis=0), both.sum(axis=0), strict=True)
        )
    ]
    return FactorMeasures(error=mean, of_factors=measures)


def _measure(factor: str, *, images: int, misclassified: int, mean: float, draws: Floats) -> FactorMeasure:
    """The measure of a factor; `mean`: the error on all images, `draws`: the ratio in each resample."""
    error = Measure(problem="no image has the factor")
    ratio = error
    if images:
        error = Measure.of(misclassified / images, wilson(misclassified, images))
        ratio = Measure(problem="no image is misclassified")
    if images and mean > 0:
        value = error.value / mean
        interval = None
        if np.isfinite(draws).all():
            low, high = percentile_interval(draws)
            # pseudo-images draw the percentiles to the middle
            interval = min(low, value), max(high, value)
        ratio = Measure.of(value, interval)
    return FactorMeasure(factor=factor, images=images, misclassified=misclassified, error=error, ratio=ratio)
