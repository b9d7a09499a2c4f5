"""The scenarios of XIMAGENET-12 as changes of a study's images, with the masks, photographs and generated images.

The file of the set is changed at its own size, as the published code does, and the base image made of the result: a
filter on 224 x 224 pixels would blur more. Only scenarios with a background of 224 x 224 pixels begin with the base
image: generated_background, and random_background as_written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from PIL import Image

from cleanset.evaluation.sets import ImageFile, SetImages
from cleanset.images.boxes import Box, box_of
from cleanset.images.preprocessing import Pixels, base_image
from cleanset.plumbing.files import sha256
from cleanset.studies.robustness.images import Sources, base_pixels, whole_pixels
from cleanset.studies.robustness.scenarios.mask_files import has_scenarios
from cleanset.studies.robustness.scenarios.mask_formats import read_regions
from cleanset.studies.robustness.scenarios.masks import Regions, base_regions, cropped_regions
from cleanset.studies.robustness.scenarios.params import (
    GENERATED,
    RANDOM,
    Scenarios,
)
from cleanset.studies.robustness.scenarios.photographs import (
    StoredFile,
    decode_photograph,
    generated_files,
    photograph_files,
)
from cleanset.studies.robustness.scenarios.scenes import AS_WRITTEN, scenario_image


class SceneMask(NamedTuple):
    """The mask of an image; a small tuple, as the cache of decoded masks is looked up by it."""

    file: StoredFile
    """The file of the mask."""
    format: str
    """One of `mask_formats.FORMATS`."""
    wnid: str
    """The key of the image's class, which ImageNet-S needs."""
    crop: Box | None
    """The crop of the image; None: it is whole."""


@dataclass(frozen=True, slots=True)
class SceneImage:
    """The scenarios of images as a change: a callable that can be pickled."""

    masks: Mapping[Path, SceneMask]
    """The mask of each image, by the image's path."""
    photographs: tuple[StoredFile, ...] = ()
    """The photographs, in the order that they are drawn from."""
    generated: Mapping[Path, StoredFile] | None = None
    """The generated image of each image, by the image's path; None: no such scenario is wanted."""
    wanted: Scenarios = AS_WRITTEN
    """The params of the scenarios."""

    def __call__(self, file: ImageFile, change: str, step: int, seed: int) -> Pixels:
        """The base image in a scenario, which has no steps. Raises CleansetError as `scenario_image` does."""
        found = self.before_resizing(file, change, seed)
        return found if self._is_of_base_image(change) else base_image(Image.fromarray(found))

    def before_resizing(self, file: ImageFile, change: str, seed: int) -> Pixels:
        """The image in a scenario before it is resized and cropped; 224 x 224 pixels if made of the base image."""
        mask = self.masks[file.path]
        is_base = self._is_of_base_image(change)
        generated = (self.generated or {}).get(file.path)
        return scenario_image(
            base_pixels(file) if is_base else whole_pixels(file),
            regions_of_mask(mask) if is_base else whole_regions(mask),
            change,
            seed,
            wanted=self.wanted,
            photographs=_photographs(self.photographs) if change == RANDOM else (),
            generated=decode_photograph(generated) if generated and change == GENERATED else None,
        )

    def _is_of_base_image(self, change: str) -> bool:
        """Whether the background is of the base image's size."""
        return change == GENERATED or (change == RANDOM and self.wanted.definition == "as_written")


@lru_cache(maxsize=1)
def whole_regions(mask: SceneMask) -> Regions:
    """The regions of an image, cropped unchanged. Raises CleansetError as `read_regions` does."""
    whole = read_regions(mask.file.read(), mask.format, mask.wnid, str(mask.file.path))
    return cropped_regions(whole, mask.crop)


def regions_of_mask(mask: SceneMask) -> Regions:
    """The regions of a base image. Raises CleansetError as `whole_regions` does."""
    return base_regions(whole_regions(mask))


@lru_cache(maxsize=1)
def _photographs(files: tuple[StoredFile, ...]) -> tuple[Pixels, ...]:
    return tuple(decode_photograph(file) for file in files)


def scene_images(sources: Sources, wanted: Scenarios) -> SceneImage:
    """The scenarios of the images that have a mask; photographs are compared with all images, also of the index."""
    images = has_scenarios(sources.images, sources.masks)
    study = sources.study
    photographs: tuple[StoredFile, ...] = ()
    if RANDOM in wanted.names:
        ids = {file: each.image_id for file, each in sources.files.items()}
        # the index only refuses a photograph: nothing that is written depends on it
        photographs = photograph_files(study.backgrounds, SetImages(sources.files), ids, sources.indexed_images())
    generated: dict[Path, StoredFile] = {}
    if GENERATED in wanted.names:
        files = sources.files_in(images).values()
        by_id = generated_files(study.generated, [each.image_id for each in files])
        generated = {each.path: by_id[each.image_id] for each in files}
    return SceneImage(masks_of(sources, images), photographs, generated, wanted)


def masks_of(sources: Sources, images: pd.DataFrame) -> dict[Path, SceneMask]:
    """The mask of each image, by the image's path; `images` are rows of `has_scenarios`."""
    keys = sources.classes.keys
    found = {}
    columns = (images[name] for name in ("file", "mask", "mask_sha256", "mask_format", "class_index", "crop"))
    for file, mask, digest, mask_format, class_index, crop in zip(*columns, strict=True):
        stored = StoredFile(sources.study.masks / mask, digest)
        found[sources.files[file].path] = SceneMask(stored, mask_format, keys[class_index], box_of(crop))
    return found


def settings_of(wanted: Scenarios, scenes: SceneImage) -> dict[str, object]:
    """Everything that the changed pixels depend on, for the record: the params and a digest of all files."""
    used = [each.file for each in scenes.masks.values()] + list(scenes.photographs)
    used += list((scenes.generated or {}).values())
    # names without folders: the record must not depend on the machine
    digests = "\n".join(f"{each.path.name} {each.sha256}" for each in used)
    params = wanted.model_dump(exclude={"published", "names"})
    return {**params, "files_sha256": sha256(digests.encode())}
