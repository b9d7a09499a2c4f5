"""What of a published benchmark is read for the images of a study, by family, and whether it is the whole benchmark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleanset.dataset.ilsvrc import VALIDATION_IMAGES
from cleanset.studies.robustness.changed_images import StudyFile
from cleanset.studies.robustness.names import CORRUPTIONS, PERTURBATIONS, SEVERITIES, frame_count
from cleanset.studies.robustness.published_images import VIDEOS, PublishedFrames, PublishedImages, find_published
from cleanset.studies.robustness.settings import StudyParams


@dataclass(frozen=True, slots=True)
class PublishedBenchmark:
    """Published images as a change, the params that their pixels depend on, and whether all changes are measured."""

    change: PublishedImages | PublishedFrames
    params: Mapping[str, Any]
    has_all_changes: bool

    def settings(self) -> dict[str, Any]:
        """What the pixels depend on, for the record: the params and the digest of all files."""
        return {**self.params, "published_sha256": self.change.files.digest()}

    @property
    def is_official(self) -> bool:
        """Whether all changes of a whole benchmark are measured on all its images."""
        files = self.change.files
        counts = {*files.counts.values(), *map(len, files.of_place.values())}
        return self.has_all_changes and counts == {VALIDATION_IMAGES}


def published_benchmark(
    family: str, folder: Path, images: Sequence[StudyFile], wanted: StudyParams
) -> PublishedBenchmark:
    """What is read for one of FAMILIES. Raises CleansetError as `find_published` does."""
    return _READ[family](folder, images, wanted)


def _corruptions(folder: Path, images: Sequence[StudyFile], wanted: StudyParams) -> PublishedBenchmark:
    changes = wanted.corruptions.changes()
    places = {(name, severity): f"{name}/{severity}" for name, severity in changes}
    files = find_published(folder, "corruptions", list(places.values()), images)
    has_all = {(name, severity) for name in CORRUPTIONS for severity in SEVERITIES} <= set(changes)
    return PublishedBenchmark(PublishedImages(files, places), {}, has_all)


def _perturbations(folder: Path, images: Sequence[StudyFile], wanted: StudyParams) -> PublishedBenchmark:
    levels = wanted.perturbations.levels()
    folders = {name: name if level == 1 else f"{name}_{level}" for name, level in levels.items()}
    places = {(name, frame): folders[name] for name, frame in wanted.perturbations.changes()}
    files = find_published(folder, "perturbations", list(folders.values()), images, VIDEOS)
    frames = PublishedFrames(files, places, {name: frame_count(name) for name in levels})
    has_all = set(PERTURBATIONS) <= set(levels) and wanted.perturbations.frames == "as_published"
    return PublishedBenchmark(frames, {"levels": levels}, has_all)


def _scenarios(folder: Path, images: Sequence[StudyFile], wanted: StudyParams) -> PublishedBenchmark:
    places, matte = {change: change[0] for change in wanted.scenarios.changes()}, wanted.scenarios.matte
    files = find_published(folder, "scenarios", list(places.values()), images)
    return PublishedBenchmark(PublishedImages(files, places, matte, any_size=True), {"matte": matte}, False)


_READ: dict[str, Callable[[Path, Sequence[StudyFile], StudyParams], PublishedBenchmark]] = {
    "corruptions": _corruptions,
    "perturbations": _perturbations,
    "scenarios": _scenarios,
}
