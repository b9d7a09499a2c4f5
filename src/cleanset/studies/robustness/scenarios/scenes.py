"""The photographs that random_background places objects on: a folder of them, and what is refused in it.

The scenarios as a change, and the files that they need: masks, photographs, and generated images.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError, reason
from cleanset.files import sha256
from cleanset.images.boxes import Box, box_of
from cleanset.images.codec import decode, pixels_sha256
from cleanset.images.preprocessing import BASE_SIZE
from cleanset.sets.folder import read_regular_file
from cleanset.studies.robustness.changed_images import SetImages, StudyFile, base_pixels
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.scenarios.changes import (
    PLACING,
    Placing,
    check_photographs,
    scenario_image,
)
from cleanset.studies.robustness.scenarios.image_masks import has_scenarios, read_base_regions
from cleanset.studies.robustness.scenarios.masks import Regions
from cleanset.studies.robustness.scenarios.params import GENERATED, RANDOM, ScenarioDefinition, Scenarios
from cleanset.vocabulary import class_keys

PHOTOGRAPH_SUFFIXES = (".jpg", ".jpeg", ".png")


def photograph_paths(folder: Path) -> list[Path]:
    """The photographs in a folder and the folders in it, also those that links lead to, sorted by path.

    Nothing is decoded, so that a wrong folder shows at once. Raises CleansetError for a folder that is missing or has
    no photographs, for a link back to a folder above, and for a link that leads nowhere.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "a link that leads nowhere" if folder.is_symlink() else "missing"
        raise CleansetError(f"{folder}: {found}; expected a folder of photographs for random_background")
    paths = sorted(_paths(folder, ()))
    if not paths:
        raise CleansetError(f"{folder}: no photographs; expected at least one JPEG or PNG for random_background")
    return paths


def _paths(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    """The photographs in a folder; `above`: the folders that it lies in, without links."""
    here = folder.resolve()
    if here in above:
        raise CleansetError(f"{folder}: a link back to a folder that it lies in; expected photographs: remove it")
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise CleansetError(f"{folder}: cannot be listed ({reason(error)}); expected a folder of photographs") from None
    for path in entries:
        if path.is_dir():
            yield from _paths(path, (*above, here))
        elif path.suffix.lower() in PHOTOGRAPH_SUFFIXES:
            if not path.exists():
                raise CleansetError(f"{path}: a link that leads nowhere; expected a photograph: remove it")
            yield path


Pixels = NDArray[np.uint8]


class StoredFile(NamedTuple):
    """A file that is there when the study begins, and its SHA-256."""

    path: Path
    sha256: str

    def read(self) -> bytes:
        """Its bytes. Raises CleansetError if they have changed."""
        data = read_regular_file(self.path)
        if sha256(data) != self.sha256:
            raise CleansetError(f"{self.path}: changed while it was used; expected the same bytes: run again")
        return data


class SceneMask(NamedTuple):
    """The mask of an image: its file and format, and the class and crop of the image."""

    file: StoredFile
    format: str
    wnid: str
    crop: Box | None


@dataclass(frozen=True, slots=True)
class SceneImage:
    """The scenarios; `masks` and `generated` by the image's path, `photographs` in the order that they are drawn in."""

    masks: Mapping[Path, SceneMask]
    photographs: tuple[StoredFile, ...] = ()
    generated: Mapping[Path, StoredFile] | None = None
    definition: ScenarioDefinition = "as_written"
    matte: str = "black"
    placing: Placing = PLACING

    def __call__(self, file: StudyFile, change: str, step: int, seed: int) -> Pixels:
        """The base image in a scenario, which has no steps. Raises CleansetError as `scenario_image` does."""
        generated = (self.generated or {}).get(file.path)
        return scenario_image(
            base_pixels(file),
            regions_of_mask(self.masks[file.path]),
            change,
            seed,
            definition=self.definition,
            matte=self.matte,
            photographs=_photographs(self.photographs) if change == RANDOM else (),
            placing=self.placing,
            generated=decode_photograph(generated) if generated and change == GENERATED else None,
        )


@lru_cache(maxsize=1)
def regions_of_mask(mask: SceneMask) -> Regions:
    """The regions of a base image. Raises CleansetError as `read_base_regions` does."""
    return read_base_regions(mask.file.read(), mask.format, mask.wnid, mask.crop, str(mask.file.path))


@lru_cache(maxsize=1)
def _photographs(files: tuple[StoredFile, ...]) -> tuple[Pixels, ...]:
    return tuple(decode_photograph(file) for file in files)


def decode_photograph(file: StoredFile) -> Pixels:
    """The pixels of a photograph, uint8 of shape (height, width, 3). Raises CleansetError for no JPEG or PNG."""
    try:
        return np.asarray(decode(file.read()).convert("RGB"))
    except ValueError as error:
        raise CleansetError(f"{file.path}: cannot be read ({error}); expected a whole JPEG or PNG: remove it") from None


def photograph_files(
    folder: Path, read: Callable[[str], Image.Image], images: Mapping[str, str], indexed: Mapping[str, str]
) -> tuple[StoredFile, ...]:
    """The photographs in a folder and the folders in it, sorted by path.

    `images` are the image ids of the study by file, which `read` decodes, `indexed` those of the edition by the SHA-256
    of their pixels. Raises CleansetError as `photograph_paths`, for one that cannot be read or is smaller than a base
    image, and for one with the pixels of one of these images.
    """
    found = tuple(map(_stored, photograph_paths(folder)))
    known = {**indexed, **{pixels_sha256(read(file)): image_id for file, image_id in images.items()}}
    check_photographs({str(each.path): decode_photograph(each) for each in found}, BASE_SIZE, BASE_SIZE, known)
    return found


def generated_files(folder: Path, image_ids: Iterable[str]) -> dict[str, StoredFile]:
    """The generated images, PNG of 224 x 224 pixels, by image id.

    Raises CleansetError for one that is missing or of another size.
    """
    found = {}
    for image_id in image_ids:
        path = folder / f"{image_id}.png"
        if not path.is_file():
            raise CleansetError(
                f"{path}: missing; expected an image with a generated background for each image with a mask: "
                "run cleanset robustness generate, or take generated_background out of scenarios.names"
            )
        found[image_id] = _stored(path)
        height, width = decode_photograph(found[image_id]).shape[:2]
        if (width, height) != (BASE_SIZE, BASE_SIZE):
            raise CleansetError(f"{path}: {width} x {height} pixels; expected {BASE_SIZE} x {BASE_SIZE}")
    return found


def _stored(path: Path) -> StoredFile:
    return StoredFile(path, sha256(read_regular_file(path)))


def scene_images(sources: Sources, wanted: Scenarios) -> SceneImage:
    """The scenarios of the images that have a mask; photographs are compared with all images, also of the index."""
    images, study = has_scenarios(sources.images, sources.masks), sources.study
    changes = wanted.expanded()
    photographs: tuple[StoredFile, ...] = ()
    if RANDOM in changes:
        ids = {file: each.image_id for file, each in sources.files.items()}
        # the index only refuses a photograph: nothing that is written depends on it
        photographs = photograph_files(study.backgrounds, SetImages(sources.files), ids, sources.indexed_images())
    generated: dict[Path, StoredFile] = {}
    if GENERATED in changes:
        files = sources.files_in(images).values()
        by_id = generated_files(study.generated, [each.image_id for each in files])
        generated = {each.path: by_id[each.image_id] for each in files}
    placing = Placing((wanted.object_scales[0], wanted.object_scales[1]), wanted.object_weight, wanted.object_moved)
    masks = masks_of(sources, images)
    return SceneImage(masks, photographs, generated, wanted.definition, wanted.matte, placing)


def masks_of(sources: Sources, images: pd.DataFrame) -> dict[Path, SceneMask]:
    """The mask of each image, by the image's path; `images` are rows of `has_scenarios`."""
    names, found = class_keys(), {}
    columns = (images[name] for name in ("file", "mask", "mask_sha256", "mask_format", "class_index", "crop"))
    for file, mask, digest, mask_format, class_index, crop in zip(*columns, strict=True):
        stored = StoredFile(sources.study.masks / mask, digest)
        found[sources.files[file].path] = SceneMask(stored, mask_format, names[class_index], box_of(crop))
    return found


def settings_of(wanted: Scenarios, scenes: SceneImage) -> dict[str, Any]:
    """Everything that the changed pixels depend on, for the record: the params and a digest of all files."""
    used = [each.file for each in scenes.masks.values()] + list(scenes.photographs)
    used += list((scenes.generated or {}).values())
    # names without folders: the record must not depend on the machine
    digests = "\n".join(f"{each.path.name} {each.sha256}" for each in used)
    params = wanted.model_dump(exclude={"published", "names"})
    return {**params, "files_sha256": sha256(digests.encode())}
