"""The family of perturbations: its params, and what the study knows about it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, field_validator

from cleanset.sections import Section
from cleanset.studies.robustness.changed_images import StudyFile
from cleanset.studies.robustness.family import Changing, FamilyStudy, NamedModel, Sheet
from cleanset.studies.robustness.images import first_images
from cleanset.studies.robustness.names import (
    LEVELS,
    NOISE_PERTURBATIONS,
    PERTURBATION_GROUPS,
    frame_count,
    known_names,
    perturbations_of,
)
from cleanset.studies.robustness.names import PERTURBATIONS as TEST_PERTURBATIONS
from cleanset.tables import FRAME

if TYPE_CHECKING:
    from cleanset.studies.robustness.families import Sources
    from cleanset.studies.robustness.measuring import Studied
    from cleanset.studies.robustness.pages import PagesData
    from cleanset.studies.robustness.settings import StudyParams


class Perturbations(Section):
    """The perturbations of source 003 that are measured, by name or group.

    `difficulty`: for noise, its level; for all others, the step between the frames that are compared. `frames`: 31,
    and 41 of translate (`as_published`), or 30 of each (`as_written`). `max_images`: the number of images, taken as
    the first of each class, then the second, and so on; None: all. `published`: a folder of ImageNet-P's videos, which
    are read instead of made; None: they are made.
    """

    names: Annotated[list[str], Field(default_factory=list)]
    difficulty: Annotated[int, Field(ge=LEVELS[0], le=LEVELS[-1])] = 1
    frames: Literal["as_published", "as_written"] = "as_published"
    max_images: Annotated[int, Field(ge=1)] | None = None
    published: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("names")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return known_names(names, perturbations_of)

    def levels(self) -> dict[str, int]:
        """The level at which each perturbation is made; except for noise, the difficulty does not change the frames."""
        noise = dict.fromkeys(NOISE_PERTURBATIONS, self.difficulty)
        return {name: noise.get(name, 1) for name in perturbations_of(self.names)}

    def frame_counts(self) -> dict[str, int]:
        """The number of frames of each perturbation, in the order of the benchmark."""
        as_in_text = self.frames == "as_written"
        return {name: frame_count(name, as_in_text=as_in_text) for name in perturbations_of(self.names)}

    def changes(self) -> list[tuple[str, int]]:
        """Each frame of each perturbation."""
        return [(name, frame) for name, count in self.frame_counts().items() for frame in range(count)]


class PerturbationMeasures(Section):
    """`reference`: the role that FR is relative to; None: no FR."""

    reference: str | None = None


class PerturbationFamily:
    """Perturbations of ImageNet-P: sequences of frames."""

    name, singular = "perturbations", "perturbation"
    section = Perturbations
    measures_section = PerturbationMeasures
    default_names: tuple[str, ...] = tuple(PERTURBATION_GROUPS)
    steps: Mapping[str, Any] = {"frame": FRAME}
    changing_modules: tuple[str, ...] = (
        "cleanset.studies.robustness.perturbations.changes",
        "cleanset.studies.robustness.published_images",
    )
    reserved_names: tuple[str, ...] = ()
    layout = "<perturbation>/<wnid>/<image id>.mp4"
    benchmark = "ImageNet-P"
    notice_if_made = (
        "No official ImageNet-P numbers: a subset of the validation images, and frames made in memory without the "
        "benchmark's video codec."
    )
    files: Mapping[str, tuple[str, ...]] = {
        "perturbation_frames": ("model", "change", "definition", "frame", "images", "flips"),
        "flips_by_frame": ("model", "change", "frame", "flips"),
    }
    optional_files: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    with_intervals = ("mean_fp", "mfr", "mean_t5d", "mt5d")
    summary: Mapping[str, str] = {"mean_fp": "mean FP", "mean_t5d": "mean T5D", "mfr": "mFR"}
    unit = "flips in percent"
    headlines: Mapping[str, str] = {
        "mean_fp": "mean FP",
        "mean_fp_as_published": "mean FP, noise against frame 1",
        "mfr": "mFR",
        "mfr_as_published": "mFR, noise against frame 1",
        "mean_t5d": "mean T5D",
        "mean_t5d_as_published": "mean T5D, noise against frame 1",
        "mt5d": "mT5D",
        "mt5d_as_published": "mT5D, noise against frame 1",
    }
    shown_differences = ("mean_fp", "mean_t5d")
    not_shares = ("mean_t5d", "t5d")
    page = "perturbations.html"
    sheet = Sheet(1, has_unchanged=False, caption="Frame by frame, from the first on.")

    def of(self, params: "StudyParams") -> Perturbations:
        """The section of the params."""
        section: Perturbations = params.section(self.name)
        return section

    def measures_of(self, params: "StudyParams") -> PerturbationMeasures:
        """Its section of `measures`."""
        section: PerturbationMeasures = params.measures_section(self.name)
        return section

    def remark(self, params: "StudyParams") -> str:
        return ""

    def labels(self, params: "StudyParams") -> dict[str, str]:
        return {}

    def named_models(self, params: "StudyParams") -> list[NamedModel]:
        reference = self.measures_of(params).reference
        return [] if reference is None else [NamedModel("reference", reference, is_reference=True)]

    def problem(self, params: "StudyParams") -> str | None:
        return None

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: "StudyParams") -> pd.DataFrame:
        return first_images(images, self.of(params).max_images)

    def making(self, sources: "Sources", images: pd.DataFrame, params: "StudyParams") -> Changing:
        from cleanset.studies.robustness.perturbations.changes import PerturbedImage

        levels = self.of(params).levels()
        return Changing(PerturbedImage(levels), {"levels": levels})

    def published(self, folder: Path, images: Sequence[StudyFile], params: "StudyParams") -> Changing:
        from cleanset.studies.robustness.published_images import VIDEOS, PublishedFrames, find_published

        wanted = self.of(params)
        levels = wanted.levels()
        # noise of difficulty 2 and 3 lies in folders of its own
        folders = {name: name if level == 1 else f"{name}_{level}" for name, level in levels.items()}
        places = {(name, frame): folders[name] for name, frame in wanted.changes()}
        files = find_published(folder, self, list(folders.values()), images, VIDEOS)
        frames = PublishedFrames(files, places, {name: frame_count(name) for name in levels})
        has_all = set(TEST_PERTURBATIONS) <= set(levels) and wanted.frames == "as_published"
        return Changing(frames, {"levels": levels, **files.settings()}, has_all and files.has_all_images())

    def study(self, studied: "Studied", images: pd.DataFrame) -> FamilyStudy:
        from cleanset.studies.robustness.perturbations.results import read_study

        wanted, measures = self.of(studied.params), self.measures_of(studied.params)
        return read_study(wanted, measures, studied.answers(self, images), studied.images_of(self, images))

    def page_context(self, data: "PagesData") -> dict[str, Any]:
        from cleanset.studies.robustness.results import percentages

        wanted, frames = self.of(data.params), data.tables["perturbation_frames"]
        names = perturbations_of(wanted.names)
        as_written = frames[frames["definition"] == "as_written"]
        shares = percentages(as_written, ["change", "model", "frame"], "flips")
        curves: dict[str, dict[str, list[tuple[int, float]]]]
        curves = {name: {role: [] for role in data.roles} for name in names}
        for (name, role, frame), share in sorted(shares.items()):
            curves[name][role].append((frame, share))
        return {
            "perturbations": names,
            "curves": curves,
            "largest": max(10.0, 10 * float(np.ceil(max(shares.values(), default=0) / 10))),
            "frames": wanted.frame_counts(),
        }

    def sheet_changes(self, params: "StudyParams") -> Sequence[str]:
        return perturbations_of(self.of(params).names)


PERTURBATIONS = PerturbationFamily()
