"""Stage pages: the measures and some changed images as pages that open without a server or a network."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.dataset.class_names import class_names
from cleanset.edition.params import read_params
from cleanset.files import replacing, write_text
from cleanset.images.encoding import jpeg
from cleanset.robustness.changed_images import Change, ChangedImages, ChangeName, files_of
from cleanset.robustness.changes import PerturbedImage, corrupted_image
from cleanset.robustness.image_masks import MASKS, has_scenarios, unsuitable_counts
from cleanset.robustness.images import STUDY_IMAGES, first_images
from cleanset.robustness.names import UNCHANGED
from cleanset.robustness.pages import PagesData, SheetImage, pages
from cleanset.robustness.settings import StudyParams, read_study_params
from cleanset.robustness.study import Study
from cleanset.stages.robustness.scenarios import scene_images
from cleanset.tables import read_table

SHEET_CLASSES = 3
"""Images of a family on the page of changed images, each of another class; of perturbations one."""
SHEET_FRAMES = 5
"""Every so many frames are shown."""
SHOWN_PIXELS, QUALITY = 112, 85


def run(study: Study) -> None:
    """Read data/measures and some images of the finished sets, write report/."""
    roles = list(read_params(study.edition.folder).models)
    params = read_study_params(study.params_yaml, roles)
    images, masks = read_table(study.images, STUDY_IMAGES), read_table(study.masks_table, MASKS)
    tables = {path.stem: pd.read_csv(path) for path in sorted(study.measures.glob("*.csv"))}
    usable = masks[masks["left_out"].isna()]
    with replacing(study.report) as folder:
        sheets = save_sheets(study, params, images, masks, folder)
        origins = {str(name): int(count) for name, count in usable["origin"].value_counts().sort_index().items()}
        data = PagesData(roles, params, tables, sheets, origins, unsuitable_counts(masks))
        for name, text in pages(data).items():
            write_text(folder / name, text)


def save_sheets(
    study: Study, params: StudyParams, images: pd.DataFrame, masks: pd.DataFrame, folder: Path
) -> dict[str, list[SheetImage]]:
    """Write small copies of some images with the changes of each family that is measured."""
    unchanged = [(UNCHANGED, 0)]
    found = {}

    def save(family: str, rows: pd.DataFrame, changes: Sequence[tuple[str, int]], change: Change) -> None:
        changed = ChangedImages(files_of(study.edition, rows), change, params.jpeg, params.seed)
        found[family] = save_sheet(changed, rows, changes, folder, f"images/{family}")

    save("corruptions", spread(images, SHEET_CLASSES), unchanged + params.corruptions.changes(), corrupted_image)
    if shown := [each for each in params.perturbations.changes() if each[1] % SHEET_FRAMES == 0]:
        of_family = spread(first_images(images, params.perturbations.max_images), 1)
        levels = {name: params.perturbations.level(name) for name, _ in shown}
        save("perturbations", of_family, shown, PerturbedImage(levels))
    usable = has_scenarios(images, masks)
    if params.scenarios.names and len(usable):
        scenes = scene_images(study, params.scenarios, images, masks)
        save("scenarios", spread(usable, SHEET_CLASSES), unchanged + params.scenarios.changes(), scenes)
    return found


def spread(images: pd.DataFrame, count: int) -> pd.DataFrame:
    """The first image of so many classes, spread over all of them."""
    first = images.drop_duplicates("class_index").sort_values("class_index")
    count = min(count, len(first))
    return first.iloc[[place * len(first) // count for place in range(count)]]


def save_sheet(
    changed: ChangedImages, rows: pd.DataFrame, changes: Sequence[tuple[str, int]], folder: Path, images: str
) -> list[SheetImage]:
    """Write each image with each of the changes into a folder."""
    (folder / images).mkdir(parents=True)
    found = []
    for file, image_id, class_index in zip(rows["file"], rows["image_id"], rows["class_index"], strict=True):
        files = {}
        for change in changes:
            name = f"{images}/{image_id}_{change[0]}_{change[1]}.jpg"
            (folder / name).write_bytes(small(changed(str(ChangeName(file, *change)))))
            files[change] = name
        found.append(SheetImage(image_id, class_names()[class_index].name, files))
    return found


def small(image: Image.Image) -> bytes:
    """A changed image at half its size, as a JPEG."""
    return jpeg(np.asarray(image.resize((SHOWN_PIXELS, SHOWN_PIXELS), Image.Resampling.BICUBIC)), QUALITY)
