"""Stage images: the images of all finished sets, each once, checked against their manifests, and their masks."""

from collections.abc import Iterator

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import read_params
from cleanset.exports.folder import read_entries, read_image
from cleanset.robustness.changed_images import SetImages, files_of
from cleanset.robustness.image_masks import MASKS, MaskedImage, MaskSource, find_masks, mask_table
from cleanset.robustness.images import STUDY_IMAGES, box_of, joined
from cleanset.robustness.names import scenarios_of
from cleanset.robustness.settings import GENERATED, StudyParams, read_study_params
from cleanset.robustness.study import Study
from cleanset.tables import write_table


def run(study: Study) -> None:
    """Read the manifests and images of the edition's exported sets, and the masks.

    Writes data/images.parquet and data/masks.parquet.
    """
    edition = study.edition
    roles = list(read_params(edition.folder).models)
    wanted = read_study_params(study.params_yaml, roles)
    sets = {role: read_entries(edition.export(role)) for role in roles}
    for role, entries in sets.items():
        for entry in entries:
            read_image(edition.export(role), entry)
    images = joined(sets)
    masks = find_masks(study.masks, sources_of(wanted))
    is_placed = GENERATED in scenarios_of(wanted.scenarios.names)
    write_table(study.images, images, STUDY_IMAGES)
    write_table(study.masks_table, mask_table(list(masked_images(study, images)), masks, is_placed=is_placed), MASKS)


def sources_of(params: StudyParams) -> list[MaskSource]:
    """The folders of masks that the params name."""
    return [MaskSource(each.folder, each.format, each.origin) for each in params.masks]


def masked_images(study: Study, images: pd.DataFrame) -> Iterator[MaskedImage]:
    """What the masks of rows of STUDY_IMAGES are checked against."""
    read, names = SetImages(files_of(study.edition, images)), wnids()
    columns = (images[name] for name in ("file", "image_id", "class_index", "crop"))
    for file, image_id, class_index, crop in zip(*columns, strict=True):
        yield MaskedImage(file, image_id, names[class_index], read(file).size, box_of(crop))
