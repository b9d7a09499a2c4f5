"""Stage pages: the measures and some changed images as pages that open without a server or a network."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import UndefinedError
from PIL import Image

from cleanset.dataset.class_names import class_names
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.files import replacing, write_text
from cleanset.images.base import jpeg
from cleanset.studies.robustness.changed_images import ChangedImages, ChangeName
from cleanset.studies.robustness.families import ChangePlan, change_plan, families_in, notice
from cleanset.studies.robustness.family import PagesData, SheetImage
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.measure_files import REMEDY, read_measures
from cleanset.studies.robustness.names import UNCHANGED
from cleanset.studies.robustness.pages import pages
from cleanset.studies.robustness.scenarios.image_masks import unsuitable_counts
from cleanset.studies.robustness.settings import StudyParams, read_study_params
from cleanset.studies.robustness.study import Study

SHOWN_PIXELS, QUALITY = 112, 85


def run(study: Study) -> None:
    """Read the measures and some images of the finished sets, write report/."""
    edition = read_params(study.edition.folder)
    roles, top1 = list(edition.models), edition.count.published_top1
    params = read_study_params(study.params_yaml, roles)
    sources = Sources.read(study)
    masks = sources.masks
    families, models = families_in(params), params.models(roles)
    tables = read_measures(study.measures, families, models)
    usable = masks[masks["left_out"].isna()]
    plans = [change_plan(family, sources, params) for family in families]
    notices = {plan.name: notice(plan.family, params, sources.images) for plan in plans}
    with replacing(study.report) as folder:
        sheets = save_sheets(plans, sources, params, folder)
        origins = {str(name): int(count) for name, count in usable["origin"].value_counts().sort_index().items()}
        left_out = unsuitable_counts(masks)
        data = PagesData(models, params, tables, sheets, notices, origins, left_out, top1)
        try:
            texts = pages(data)
        except (IndexError, KeyError, UndefinedError) as error:  # each table is whole, but not the set of them
            raise CleansetError(
                f"{study.measures}: rows are missing ({error}); expected tables of one run of stage measure: {REMEDY}"
            ) from None
        for name, text in texts.items():
            write_text(folder / name, text)


def save_sheets(
    plans: Sequence[ChangePlan], sources: Sources, params: StudyParams, folder: Path
) -> dict[str, list[SheetImage]]:
    """Write small copies of some images with the changes of each family."""
    found = {}
    for plan in plans:
        rows = spread_over_classes(plan.images, plan.family.sheet.images)
        if len(rows):
            changed = plan.changed_images(sources.files_in(rows), params)
            found[plan.name] = save_sheet(changed, rows, shown_changes(plan), folder, f"images/{plan.name}")
    return found


def shown_changes(plan: ChangePlan) -> list[tuple[str, int]]:
    """The changes of a family that are on the page of changed images."""
    return [*([(UNCHANGED, 0)] if plan.family.sheet.has_unchanged else []), *plan.changes]


def spread_over_classes(images: pd.DataFrame, count: int) -> pd.DataFrame:
    """The first image of each of `count` classes, spread over all classes."""
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
