"""The `Family` of perturbations, which are sequences of frames: params, images, answers, measures and page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.evaluation.sets import ImageFile
from cleanset.statistics.basics import Ints
from cleanset.studies.robustness.answer_arrays import Answers
from cleanset.studies.robustness.family import Changing, Family, PagesData, ReferencedModel, page_texts
from cleanset.studies.robustness.images import Sources, first_images
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.perturbations.params import (
    PERTURBATION_GROUPS,
    PERTURBATIONS,
    PerturbationMeasures,
    Perturbations,
    frame_count,
)
from cleanset.studies.robustness.results import FamilyStudy, StudiedImages, percentages
from cleanset.tables import FRAME


class PerturbationFamily(Family):
    """The perturbations of ImageNet-P."""

    def named_models(self, params: CommonParams) -> list[ReferencedModel]:
        reference = params.section(PerturbationMeasures).reference
        return [] if reference is None else [ReferencedModel(key="reference", name=reference, is_reference=True)]

    def measured_images(self, images: pd.DataFrame, masks: pd.DataFrame, params: CommonParams) -> pd.DataFrame:
        return first_images(images, params.section(Perturbations).max_images)

    def make_images(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        from cleanset.studies.robustness.perturbations.changes import PerturbedImage
        from cleanset.studies.robustness.perturbations.videos import EncodedFrames, encoder_version

        wanted = params.section(Perturbations)
        levels = wanted.levels()
        if wanted.codec is None:
            return Changing(PerturbedImage(levels), {"levels": levels})
        return Changing(EncodedFrames(PerturbedImage(levels)), {"levels": levels, "encoder": encoder_version()})

    def read_images(self, folder: Path, images: Sequence[ImageFile], params: CommonParams) -> Changing:
        from cleanset.studies.robustness.published_images import VIDEOS, PublishedFrames, find_published

        wanted = params.section(Perturbations)
        levels = wanted.levels()
        # noise of difficulty 2 and 3 is in folders of its own
        folders = {name: name if level == 1 else f"{name}_{level}" for name, level in levels.items()}
        places = {(name, frame): folders[name] for name, frame in wanted.changes()}
        files = find_published(folder, self, list(folders.values()), images, suffixes=VIDEOS)
        frames = PublishedFrames(files, places, {name: frame_count(name) for name in levels})
        has_all = set(PERTURBATIONS) <= set(levels) and wanted.frames == "as_published"
        return Changing(frames, {"levels": levels, **files.settings()}, has_all and files.has_all_images())

    def remark(self, params: CommonParams) -> str:
        wanted = params.section(Perturbations)
        if wanted.codec is not None or wanted.published is not None:
            return ""
        return (
            "The frames have not been through the benchmark's video codec, which perturbations.codec: h264 applies: on "
            "10 photographs mean FP of consecutive frames was .0180 without it and .0210 with it, mean T5D 1.52 both "
            "times."
        )

    def read(self, answers: pd.DataFrame, params: CommonParams) -> Ints:
        """The five most probable classes, best first."""
        return np.array(answers["top5_class"].tolist(), np.int64)

    def study(self, images: StudiedImages, answers: Mapping[str, Answers], params: CommonParams) -> FamilyStudy:
        from cleanset.studies.robustness.perturbations.measures import PerturbationStudy

        return PerturbationStudy(images, answers, params.section(Perturbations), params.section(PerturbationMeasures))

    def page_context(self, data: PagesData) -> dict[str, object]:
        wanted = data.params.section(Perturbations)
        frames = data.tables["perturbation_frames"]
        as_written = frames[frames["definition"] == "as_written"]
        shares = percentages(as_written, ["change", "model", "frame"], "flips")
        curves: dict[str, dict[str, list[tuple[int, float]]]]
        curves = {name: {role: [] for role in data.roles} for name in wanted.names}
        for (name, role, frame), share in sorted(shares.items()):
            curves[name][role].append((frame, share))
        return {
            "perturbations": wanted.names,
            "curves": curves,
            # at least 10 %, so that a few flips do not fill the height of the charts
            "largest": max(10.0, 10 * float(np.ceil(max(shares.values(), default=0) / 10))),
            "frames": wanted.frame_counts(),
        }


PERTURBATION_FAMILY = PerturbationFamily(
    name="perturbations",
    section=Perturbations,
    measures_section=PerturbationMeasures,
    default_names=tuple(PERTURBATION_GROUPS),
    steps={"frame": FRAME},
    layout="<perturbation>/<wnid>/<image id>.mp4",
    benchmark="ImageNet-P",
    notice_if_made=(
        "No official ImageNet-P numbers: a subset of the validation images, and frames made again from them."
    ),
    stores_jpeg=False,
    files={
        "perturbation_frames": ("model", "change", "definition", "frame", "images", "flips"),
        "flips_by_frame": ("model", "change", "frame", "flips"),
    },
    with_intervals=("mean_fp", "mfr", "mean_t5d", "mt5d"),
    page="perturbations.html",
    **page_texts("perturbations"),
)
