"""Stage pages: the measures and some corrupted images as pages that open without a server or a network."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.dataset.class_names import class_names
from cleanset.edition.params import read_params
from cleanset.files import replacing, write_text
from cleanset.images.encoding import jpeg
from cleanset.robustness.changed_images import ChangedImages, ChangeName, files_of
from cleanset.robustness.images import STUDY_IMAGES
from cleanset.robustness.names import UNCHANGED, corruptions_of
from cleanset.robustness.pages import PagesData, SheetImage, pages
from cleanset.robustness.study import Study, StudyParams, read_study_params
from cleanset.tables import read_table

SHEET_CLASSES = 3
"""Images on the page of corrupted images, each of another class."""
SHOWN_PIXELS, QUALITY = 112, 85


def run(study: Study) -> None:
    """Read data/measures and some images of the finished sets, write report/."""
    params = read_params(study.edition.folder)
    wanted = read_study_params(study, list(params.models))
    images = read_table(study.images, STUDY_IMAGES)
    tables = {path.stem: pd.read_csv(path) for path in sorted(study.measures.glob("*.csv"))}
    with replacing(study.report) as folder:
        data = PagesData(
            list(params.models),
            corruptions_of(wanted.corruptions.names),
            sorted(set(wanted.corruptions.severities)),
            wanted.corruptions.reference,
            wanted.jpeg,
            wanted.corruptions.trained_on,
            tables["corruptions"],
            tables["corruption_differences"],
            tables["corruption_errors"],
            save_sheet(study, wanted, images, folder),
        )
        for name, text in pages(data).items():
            write_text(folder / name, text)


def save_sheet(study: Study, wanted: StudyParams, images: pd.DataFrame, folder: Path) -> list[SheetImage]:
    """Write small copies of the first image of some classes, spread over all of them, with every change."""
    first = images.drop_duplicates("class_index").sort_values("class_index")
    count = min(SHEET_CLASSES, len(first))
    chosen = first.iloc[[place * len(first) // count for place in range(count)]]
    changed = ChangedImages(files_of(study.edition, images), wanted.jpeg, wanted.seed)
    (folder / "images").mkdir(parents=True)
    found = []
    for file, image_id, class_index in zip(chosen["file"], chosen["image_id"], chosen["class_index"], strict=True):
        files = {}
        for change in [(UNCHANGED, 0), *wanted.corruptions.changes()]:
            name = f"images/{image_id}_{change[0]}_{change[1]}.jpg"
            (folder / name).write_bytes(small(changed(str(ChangeName(file, *change)))))
            files[change] = name
        found.append(SheetImage(image_id, class_names()[class_index].name, files))
    return found


def small(image: Image.Image) -> bytes:
    """A changed image at half its size, as a JPEG."""
    return jpeg(np.asarray(image.resize((SHOWN_PIXELS, SHOWN_PIXELS), Image.Resampling.BICUBIC)), QUALITY)
