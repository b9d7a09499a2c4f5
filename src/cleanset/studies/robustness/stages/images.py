"""Stage images: the images of all finished sets, each once, checked against their manifests, and their masks."""

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import read_params
from cleanset.exports.folder import read_entries, read_image
from cleanset.studies.robustness.changed_images import files_of
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES, join_sets
from cleanset.studies.robustness.scenarios.image_masks import masks_found
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study
from cleanset.tables import read_table, write_table


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
    images = join_sets(sets)
    masks = masks_found(images, files_of(edition, images), study.masks, wanted)
    write_table(study.images, images, STUDY_IMAGES)
    write_table(study.masks_table, masks, MASKS)


def wnids_of(study: Study) -> dict[str, str]:
    """The class of each of the study's images, by image id; empty before the stage has run."""
    if not study.images.is_file():
        return {}
    images, names = read_table(study.images, STUDY_IMAGES), wnids()
    pairs = zip(images["image_id"], images["class_index"], strict=True)
    return {image_id: names[class_index] for image_id, class_index in pairs}
