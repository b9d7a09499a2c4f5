"""Stage scenarios: one model's answers to images with another background, or with it or the object changed."""

from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import read_params
from cleanset.files import sha256
from cleanset.robustness.backgrounds import generated_files, photograph_files
from cleanset.robustness.changed_images import SetImages, files_of
from cleanset.robustness.changes import SceneImage, SceneMask, StoredFile
from cleanset.robustness.image_masks import MASKS, has_scenarios
from cleanset.robustness.images import STUDY_IMAGES, box_of, images_for
from cleanset.robustness.names import scenarios_of
from cleanset.robustness.predicting import Family, predict
from cleanset.robustness.scenarios import Placing
from cleanset.robustness.settings import GENERATED, RANDOM, Scenarios, read_study_params
from cleanset.robustness.study import Study
from cleanset.tables import read_table


def run(study: Study, role: str) -> None:
    """Read images, masks, backgrounds and the model's weights, write data/scenarios/<role>.parquet and .json.

    Raises CleansetError as `predict` does, and for photographs and generated images that cannot be used.
    """
    wanted = read_study_params(study.params_yaml, list(read_params(study.edition.folder).models))
    everything, masks = read_table(study.images, STUDY_IMAGES), read_table(study.masks_table, MASKS)
    scenes = scene_images(study, wanted.scenarios, everything, masks)
    images = images_for(has_scenarios(everything, masks), wanted.images, role)
    settings = settings_of(wanted.scenarios, scenes)
    predict(study, role, wanted, Family("scenarios", images, wanted.scenarios.changes(), scenes, settings))


def scene_images(study: Study, wanted: Scenarios, everything: pd.DataFrame, masks: pd.DataFrame) -> SceneImage:
    """The scenarios of the study's images that have a mask; photographs are compared with all of its images."""
    images = has_scenarios(everything, masks)
    files = files_of(study.edition, images)
    changes = scenarios_of(wanted.names)
    photographs: tuple[StoredFile, ...] = ()
    if RANDOM in changes:
        every = files_of(study.edition, everything)
        ids = {file: each.image_id for file, each in every.items()}
        photographs = photograph_files(study.backgrounds, SetImages(every), ids)
    generated: dict[Path, StoredFile] = {}
    if GENERATED in changes:
        by_id = generated_files(study.generated, [each.image_id for each in files.values()])
        generated = {each.path: by_id[each.image_id] for each in files.values()}
    placing = Placing((wanted.object_scales[0], wanted.object_scales[1]), wanted.object_weight, wanted.object_moved)
    return SceneImage(masks_of(study, images), photographs, generated, wanted.definition, wanted.matte, placing)


def masks_of(study: Study, images: pd.DataFrame) -> dict[Path, SceneMask]:
    """The mask of each image, by the image's path; `images` are rows of `has_scenarios`."""
    names, found = wnids(), {}
    files = files_of(study.edition, images)
    columns = (images[name] for name in ("file", "mask", "mask_sha256", "mask_format", "class_index", "crop"))
    for file, mask, digest, mask_format, class_index, crop in zip(*columns, strict=True):
        stored = StoredFile(study.masks / mask, digest)
        found[files[file].path] = SceneMask(stored, mask_format, names[class_index], box_of(crop))
    return found


def settings_of(wanted: Scenarios, scenes: SceneImage) -> dict[str, Any]:
    """What the changed pixels depend on, for the record: the params and the digests of all files."""
    used = [each.file for each in scenes.masks.values()] + list(scenes.photographs)
    used += list((scenes.generated or {}).values())
    digests = "\n".join(f"{each.path.name} {each.sha256}" for each in used)
    return {**wanted.model_dump(exclude={"names", "answers", "baselines"}), "files_sha256": sha256(digests.encode())}
