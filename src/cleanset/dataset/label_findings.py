"""What label sources say about the class of an image, and how far sources agree. Nothing here reads a file."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from cleanset.dataset.label_sources import ImageLabels, LabelSource, SourceLabels

Finding = Literal["same", "among", "unclear", "other", "none", "absent"]
"""What a source says about the class that an image has in a set.

same: names this class alone; among: this and others; unclear: its experts do not agree on this class; other: names
others; none: names no class; absent: does not have the image.
"""
FINDINGS: tuple[Finding, ...] = ("same", "among", "unclear", "other", "none", "absent")
DENYING: tuple[Finding, ...] = ("unclear", "other", "none")
"""The findings with which a source denies the class: it has the image, and does not name the class."""

LabelsOf = Mapping[str, ImageLabels]
"""A source's labels by image id."""


def finding(labels: ImageLabels | None, class_index: int) -> Finding:
    """What a source says about an image in this class; `labels`: None if it does not have the image."""
    if labels is None:
        return "absent"
    if class_index in labels.classes:
        return "same" if len(labels.classes) == 1 else "among"
    if class_index in labels.unclear:
        return "unclear"
    return "other" if labels.classes else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFindings:
    """An image with its class, and what each source says about it."""

    image_id: str
    class_index: int
    findings: Mapping[str, Finding]
    """By the name of the source."""

    @property
    def denied_by(self) -> tuple[str, ...]:
        """The names of the sources that deny the class, in the order of the sources."""
        return tuple(name for name, found in self.findings.items() if found in DENYING)


def findings_of(images: Iterable[tuple[str, int]], sources: Mapping[str, LabelsOf]) -> list[ImageFindings]:
    """What each source says about each image, given by image id and class index."""
    return [
        ImageFindings(
            image_id=image_id,
            class_index=class_index,
            findings={name: finding(labels.get(image_id), class_index) for name, labels in sources.items()},
        )
        for image_id, class_index in images
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDenials:
    """A label source next to the images of a set: how many it has, and in how many it denies the class."""

    source: LabelSource
    images: int
    denied: int


def denials(images: Iterable[tuple[str, int]], sources: Sequence[SourceLabels]) -> tuple[StudyDenials, ...]:
    """The denials of each source, of images given by image id and class index."""
    found = counts_by_source(findings_of(images, labels_by_name(sources)))
    return tuple(
        StudyDenials(
            source=each.source,
            images=sum(found[each.source.name].values()) - found[each.source.name]["absent"],
            denied=sum(found[each.source.name][kind] for kind in DENYING),
        )
        for each in sources
        if each.source.name in found
    )


def labels_by_name(sources: Iterable[SourceLabels]) -> dict[str, LabelsOf]:
    """The labels of each source by its name."""
    return {each.source.name: each.labels for each in sources}


def counts_by_source(found: Sequence[ImageFindings]) -> dict[str, dict[Finding, int]]:
    """The number of images of each finding, by source."""
    counts: dict[str, Counter[Finding]] = {}
    for image in found:
        for name, of_source in image.findings.items():
            counts.setdefault(name, Counter())[of_source] += 1
    return {name: {each: of_source[each] for each in FINDINGS} for name, of_source in counts.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAgreement:
    """How far two sources agree on the images that both have; every image is counted once."""

    first: str
    second: str
    images: int
    same: int
    """Both name the same classes, or both name none."""

    overlapping: int
    """They name different classes, at least one of them in common."""

    disjoint: int
    """Both name classes, none in common."""

    one_names_none: int
    """One of the two names classes, the other none."""


def agreements(sources: Mapping[str, LabelsOf], image_ids: Iterable[str]) -> list[SourceAgreement]:
    """The agreement of each pair of sources on these images, in the order of the sources."""
    of_interest = set(image_ids)
    found = []
    for (first, first_labels), (second, second_labels) in combinations(sources.items(), 2):
        counts = Counter(
            _kind(set(labels.classes), set(second_labels[image_id].classes))
            for image_id, labels in first_labels.items()
            if image_id in of_interest and image_id in second_labels
        )
        found.append(
            SourceAgreement(
                first=first,
                second=second,
                images=counts.total(),
                same=counts["same"],
                overlapping=counts["overlapping"],
                disjoint=counts["disjoint"],
                one_names_none=counts["one names none"],
            )
        )
    return found


def _kind(first: set[int], second: set[int]) -> str:
    if first == second:
        return "same"
    if not first or not second:
        return "one names none"
    return "overlapping" if first & second else "disjoint"
