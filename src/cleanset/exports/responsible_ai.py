"""The properties of Croissant RAI 1.0 of a set: how it was collected and annotated, by whom, its biases and limits.

Names and meanings: https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.exports.description import SCOOTER, Release
from cleanset.exports.manifest import Entry

RAI_VERSION = "http://mlcommons.org/croissant/RAI/1.0"

_TYPES = ["Secondary Data analysis", "Manual Human Curator"]
"""Values among those that the specification recommends."""

_BIASES = [
    "The labels are reassessed labels (ReaL, Beyer et al. 2020, arXiv:2006.07159), which have errors of their own; "
    "some classes of ImageNet overlap.",
    "ImageNet's images are photographs from the web, from before 2012, mostly from North America and Europe (Shankar "
    "et al. 2017, arXiv:1711.08536).",
    "People disagree on what is clean: of a set that was made by hand in the same way, 20.8 % of 17,300 ratings by "
    "strangers took an image for modified (Fazlija et al. 2025, arXiv:2507.07776).",
]
_LIMITATIONS = [
    "Not for the accuracy of a model, nor for comparing models by accuracy: the images are those that one model "
    "classifies correctly, with high confidence.",
    "Not for training: the set is too small, and it would spoil ImageNet's validation images for later tests.",
]
_USE_CASES = [
    "Testing: studies that start from clean images, such as adversarial examples and how people see them, corruptions, "
    "certified robustness, explanations."
]
_PERSONAL = [
    "People are in some of the photographs, and were not asked. No attribute of anyone was annotated: neither gender, "
    "age, origin nor any other."
]
_MAINTENANCE = (
    "A version is never changed: an image that turns out to be flawed is left out of the next one. Report a flaw to "
    "whoever published the set, by the image id."
)


def rai_properties(entries: Sequence[Entry], release: Release) -> dict[str, Any]:
    """The properties by name, of a set with these entries: what they and its release tell, and nothing guessed."""
    models = ", ".join(sorted({entry.model for entry in entries})) or "none"
    return {
        "rai:dataCollection": "Nothing new was collected. Of each class those validation images of ILSVRC2012 were "
        f"taken that the model `{models}` is surest of and that people, as far as they have reviewed them, found free "
        "of watermarks, filters, borders, noise and second objects.",
        "rai:dataCollectionType": _TYPES,
        "rai:dataCollectionRawData": f"The validation images of ILSVRC2012 ({release.archive or 'archive not known'}), "
        "with their labels (Russakovsky et al. 2015) and the reassessed ones (Beyer et al. 2020).",
        "rai:dataCollectionMissingData": _missing(entries),
        "rai:dataPreprocessingProtocol": [_preprocessing(entries)],
        "rai:dataAnnotationProtocol": "For each image and class a reviewer gives a verdict: clean; crop, with a box; "
        f"reject, with a reason; or unsure. {release.review or 'How the verdicts became one is not known.'}",
        "rai:dataAnnotationPlatform": _platforms(release),
        "rai:annotationsPerItem": _per_item(entries),
        "rai:annotatorDemographics": _annotators(release),
        "rai:machineAnnotationTools": [
            f"The model `{models}`, which ranks the candidates of a class; see the data card."
        ],
        "rai:dataBiases": [
            f"The images are easy ones, chosen by the confidence of `{models}`: typical views of their class, few of "
            "them small, hidden or unusual.",
            *_BIASES,
        ],
        "rai:dataLimitations": _limitations(entries),
        "rai:dataUseCases": _USE_CASES,
        "rai:personalSensitiveInformation": _PERSONAL,
        "rai:dataReleaseMaintenancePlan": _MAINTENANCE,
    }


def _missing(entries: Sequence[Entry]) -> str:
    classes = len({entry.wnid for entry in entries})
    return f"Classes with images: {classes:,} of {CLASSES:,}. A column that is empty says so in its description."


def _preprocessing(entries: Sequence[Entry]) -> str:
    cropped = sum(entry.crop is not None for entry in entries)
    return f"Images that are cropped, and PNG: {cropped:,}. The others are the original files, byte for byte."


def _platforms(release: Release) -> list[str]:
    if not release.reviewers:
        return ["None: nobody has reviewed these images."]
    found = ["The review page of cleanset, Label Studio, or review files; which of them was used is not recorded."]
    return [*found, "Notes that the authors of SCOOTER published."] if SCOOTER in release.reviewers else found


def _per_item(entries: Sequence[Entry]) -> str:
    images = sorted(Counter(entry.reviewers for entry in entries).items())
    counts = ", ".join(f"{number:,} with {reviewers}" for reviewers, number in images)
    return f"Images by their number of reviewers, the board not counted: {counts or 'none'}."


def _annotators(release: Release) -> list[str]:
    if not release.reviewers:
        return ["None."]
    names = ", ".join(release.reviewers)
    return [f"Reviewers: {len(release.reviewers)} ({names}). Nothing else is recorded about them."]


def _limitations(entries: Sequence[Entry]) -> list[str]:
    if all(entry.crop is None for entry in entries):
        return _LIMITATIONS
    return [*_LIMITATIONS, "Cropped images differ from whole ones: smaller, often less wide, PNG instead of JPEG."]
