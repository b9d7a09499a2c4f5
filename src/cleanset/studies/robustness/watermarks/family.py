"""The `Family` of watermarks, images under that of ImageNet-W: params, images, answers, measures and page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.evaluation.sets import ImageFile
from cleanset.statistics.basics import Ints
from cleanset.studies.robustness.answer_arrays import Answers
from cleanset.studies.robustness.family import Changing, Family, PagesData, page_texts
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.results import FamilyStudy, StudiedImages
from cleanset.studies.robustness.sections import UNCHANGED
from cleanset.studies.robustness.watermarks.params import WATERMARK, Watermarks

# tf_efficientnet_lite0 of timm
LIKE_THE_AUTHORS = (
    "The text is drawn in strokes like those of the authors' font: on 500 photographs, EfficientNet-Lite0's accuracy "
    "fell from .882 to .680 under it, and to .676 under the authors' watermark."
)

SHOWN_CLASSES = 40
"""Classes in the table of losses; with more, those that lose most."""


def _losses(cells: pd.DataFrame) -> pd.DataFrame:
    """By class: its images, and by model the share that is classified correctly without the watermark minus with it."""
    shares = cells.assign(share=100 * cells["correct"] / cells["images"])
    wide = shares.pivot_table(index=["class_index", "model"], columns="change", values="share")
    return (wide[UNCHANGED] - wide[WATERMARK]).unstack("model")


class WatermarkFamily(Family):
    """The watermark of ImageNet-W."""

    def make_images(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        from cleanset.studies.robustness.watermarks.changes import FontFile, WatermarkedImage

        wanted = params.section(Watermarks)
        if wanted.font is None or wanted.font_sha256 is None:
            return Changing(WatermarkedImage(), {"font_sha256": None})
        font = FontFile(sources.study.folder / wanted.font, wanted.font_sha256)
        # a missing font is reported before a model is loaded
        font.font()
        return Changing(WatermarkedImage(font), {"font_sha256": font.sha256})

    def read_images(self, folder: Path, images: Sequence[ImageFile], params: CommonParams) -> Changing:
        from cleanset.studies.robustness.published_images import PublishedImages, find_published

        places = {change: change[0] for change in params.section(Watermarks).changes()}
        files = find_published(folder, self, list(places.values()), images)
        return Changing(PublishedImages(files, places), files.settings())

    def remark(self, params: CommonParams) -> str:
        wanted = params.section(Watermarks)
        if wanted.published is not None:
            return ""
        if wanted.is_of_authors:
            return "The watermark is the authors': their font, their text, size, place and opacity."
        return LIKE_THE_AUTHORS if wanted.font is None else "The text is set in another font than the authors'."

    def read(self, answers: pd.DataFrame, params: CommonParams) -> Ints:
        """The predicted class."""
        return answers["top5_class"].str[0].to_numpy(np.int64)

    def study(self, images: StudiedImages, answers: Mapping[str, Answers], params: CommonParams) -> FamilyStudy:
        from cleanset.studies.robustness.watermarks.measures import WatermarkStudy

        return WatermarkStudy(images, answers)

    def page_context(self, data: PagesData) -> dict[str, object]:
        cells = data.tables["watermark_accuracies"]
        losses = _losses(cells)
        worst = losses.mean(axis=1).sort_values(ascending=False, kind="stable").index[:SHOWN_CLASSES]
        counts = cells.groupby("class_index")["images"].max()
        return {
            "classes": [(index, data.classes.names[index].name, int(counts[index])) for index in worst],
            "all_classes": len(losses),
            "losses": losses.stack().to_dict(),
        }


WATERMARK_FAMILY = WatermarkFamily(
    name="watermarks",
    section=Watermarks,
    layout="watermark/<wnid>/<image id>.png",
    notice_if_made=(
        "The watermark of ImageNet-W on these images; the numbers of its paper are of all 50,000 validation images."
    ),
    stores_jpeg=False,
    files={"watermark_accuracies": ("model", "change", "class_index", "images", "correct")},
    with_intervals=("in_w_gap", "carton_gap"),
    page="watermarks.html",
    **page_texts("watermarks"),
)
