"""Multi-label accuracy: a prediction counts if a study names it among the classes of the image. Definitions by name."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pydantic import JsonValue

from cleanset.dataset.label_sources import ImageLabels, read_sources
from cleanset.evaluation.measures import Measure
from cleanset.image_ids import check_matched, image_id_in
from cleanset.statistics.groups import Units, share_interval

REASSESSED = "real"
"""The reassessed labels that a set came with, as a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A definition of multi-label accuracy."""

    name: str
    title: str
    sources: tuple[str, ...]
    """The label sources that it may be counted by, the first that is there."""

    meaning: str
    counts_unclear: bool = False
    """Whether classes on which the experts did not agree count as correct."""

    leaves_out_problematic: bool = False
    """Whether the images that the authors call problematic are left out."""

    is_mean_of_classes: bool = False
    """Whether it is the mean of the accuracies of the classes of the original labels, and not of the images."""


_EXPERTS = ("multilabel_v3", "multilabel")
DEFINITIONS = (
    Definition(
        name="real",
        title="ReaL",
        sources=(REASSESSED,),
        meaning="of the images with reassessed labels, those whose prediction is among them (Beyer et al. 2020)",
    ),
    Definition(
        name="shankar",
        title="Shankar",
        sources=_EXPERTS,
        meaning=(
            "of the images that are not problematic, those whose prediction the experts call correct "
            "(Shankar et al. 2020)"
        ),
        leaves_out_problematic=True,
    ),
    Definition(
        name="vasudevan",
        title="Vasudevan",
        sources=_EXPERTS,
        meaning=(
            "the same, where unclear predictions count as correct, too; the mean of the classes' accuracies "
            "(Vasudevan et al. 2022)"
        ),
        counts_unclear=True,
        leaves_out_problematic=True,
        is_mean_of_classes=True,
    ),
    Definition(
        name="imagenet_m",
        title="ImageNet-M",
        sources=("imagenet_m",),
        meaning="of the images of ImageNet-M, correct or unclear predictions (Vasudevan et al. 2022)",
        counts_unclear=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLabels:
    """The labels of the images of a set, each by file."""

    original: Mapping[str, int] = field(default_factory=dict)
    """Class index of the original label."""

    sources: Mapping[str, Mapping[str, ImageLabels]] = field(default_factory=dict)
    """What each source says about the images that it has, by the name of the source."""

    @property
    def has_studies(self) -> bool:
        """Whether there are labels other than those that the set came with."""
        return any(name != REASSESSED for name in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLabelAccuracy(Measure):
    """A multi-label accuracy of a model, of at least one image; a mean of classes has no interval."""

    definition: Definition
    source: str
    """The label source that it is counted by."""

    correct: int
    """The images whose prediction counts."""

    def as_json(self) -> dict[str, JsonValue]:
        """The numbers, with the definition in words."""
        return {
            "definition": self.definition.meaning,
            "source": self.source,
            "images": self.images,
            "correct": self.correct,
            "accuracy": self.value,
            "interval": None if self.interval is None else list(self.interval),
        }


def labels_from(folder: Path, files: Collection[str], own: SetLabels) -> SetLabels:
    """The labels that a set came with and those of the sources whose files are in a folder, by file.

    An image is known by the id in its file's name. Raises CleansetError if no source has any of the images, and as
    `read_sources` does.
    """
    id_of = {file: image_id for file in files if (image_id := image_id_in(file)) is not None}
    of_sources = {
        each.source.name: {file: each.labels[image_id] for file, image_id in id_of.items() if image_id in each.labels}
        for each in read_sources(folder)
    }
    matched = len(set[str]().union(*of_sources.values()))
    expected = "a set of ImageNet's validation images, with their ids"
    check_matched(matched, len(files), f"images have labels in {folder}", expected)
    return SetLabels(original=own.original, sources={**own.sources, **of_sources})


def multilabel_accuracies(
    predicted: Mapping[str, int], labels: SetLabels, group_of: Mapping[str, str] = MappingProxyType({})
) -> list[MultiLabelAccuracy]:
    """The accuracies by each definition whose source has any of the images; `predicted`: class index by file.

    `group_of`: the group of each image, by file; empty if no two share one.

    None without labels of further studies: those that a set came with are of one class each but for tier relaxed.
    """
    found: list[MultiLabelAccuracy] = []
    if not labels.has_studies:
        return found
    for definition in DEFINITIONS:
        source = next((name for name in definition.sources if labels.sources.get(name)), None)
        if source is not None:
            accuracy = _accuracy(definition, source, predicted, labels, group_of)
            found += [] if accuracy is None else [accuracy]
    return found


def _accuracy(
    definition: Definition,
    source: str,
    predicted: Mapping[str, int],
    labels: SetLabels,
    group_of: Mapping[str, str],
) -> MultiLabelAccuracy | None:
    """The accuracy by a definition; None if no image counts."""
    is_correct: dict[str, bool] = {}
    for file, of_image in labels.sources[source].items():
        if definition.leaves_out_problematic and of_image.problematic:
            continue
        # an image with no ReaL label is left out; one that experts have seen counts, whatever they say
        if source == REASSESSED and not of_image.classes:
            continue
        accepted = of_image.classes + (of_image.unclear if definition.counts_unclear else ())
        is_correct[file] = predicted[file] in accepted
    if not is_correct:
        return None
    flags = list(is_correct.values())
    share = sum(flags) / len(flags)
    interval = None
    if definition.is_mean_of_classes:
        of_classes: dict[int, list[bool]] = defaultdict(list)
        for file, each in is_correct.items():
            of_classes[labels.original[file]].append(each)
        share = math.fsum(sum(each) / len(each) for each in of_classes.values()) / len(of_classes)
    else:
        interval = share_interval(flags, Units.of([group_of.get(file, "") for file in is_correct]))
    return MultiLabelAccuracy.of(
        share, interval, definition=definition, source=source, images=len(flags), correct=sum(flags)
    )
