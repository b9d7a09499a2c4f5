"""Stage `images`: the images of all finished sets, and the masks of their objects; and backgrounds that are generated.

The command `robustness generate` paints backgrounds around the object with a diffusers pipeline from a local folder. It
needs the extra `generate`. The images are made once and kept as files: a pipeline's result may differ between machines.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from PIL import Image

from cleanset.dataset.folder import GROUP, groups_texts
from cleanset.errors import CleansetError, install_command, reason
from cleanset.images.preprocessing import BASE_SIZE, Pixels
from cleanset.plumbing.files import read_bytes, read_text, replacing, sha256, write_text
from cleanset.plumbing.json_files import parse_record
from cleanset.plumbing.progress import tracked
from cleanset.sets.folder import read_entries, read_image
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.families import OpenedStudy
from cleanset.studies.robustness.images import (
    MASKS,
    STUDY_IMAGES,
    Sources,
    Study,
    base_pixels,
    files_of,
    join_sets,
)
from cleanset.studies.robustness.scenarios.changes import masks_of, regions_of_mask
from cleanset.studies.robustness.scenarios.mask_files import has_scenarios, masks_found
from cleanset.studies.robustness.scenarios.masks import Regions
from cleanset.studies.robustness.scenarios.params import GENERATED
from cleanset.studies.robustness.scenarios.scenes import KIND, object_put_back
from cleanset.tables import read_table, write_table


def run(study: Study) -> None:
    """Read the manifests and images of the edition's exported sets, and the masks.

    Writes data/images.parquet and data/masks.parquet.
    """
    opened = OpenedStudy.read(study)
    edition = study.edition
    sets = {role: read_entries(edition.export(role)) for role in opened.roles}
    for role, entries in sets.items():
        for entry in entries:
            # read for its check against the manifest; the pixels are not needed here
            read_image(edition.export(role), entry)
    images = join_sets(sets)
    files = files_of(edition, images)
    masks = masks_found(images, files, study.masks, opened.params, classes=opened.classes)
    groups = dict(zip(images["image_id"], images[GROUP], strict=True))
    texts = groups_texts({image_id: group for image_id, group in groups.items() if group})
    write_table(study.images, images, STUDY_IMAGES, opened.classes, texts=texts)
    write_table(study.masks_table, masks, MASKS, opened.classes)


def wnids_of(study: Study) -> dict[str, str]:
    """The class of each of the study's images, by image id; empty before the stage has run."""
    if not study.images.is_file():
        return {}
    classes = study.edition.read_classes()
    images = read_table(study.images, STUDY_IMAGES, classes)
    pairs = zip(images["image_id"], images["class_index"], strict=True)
    return {image_id: classes.keys[class_index] for image_id, class_index in pairs}


def generate_missing(
    study: Study, pipeline_folder: Path, prompts_folder: Path, device: str, *, steps: int = 50, guidance: float = 7.5
) -> int:
    """Write an image for each one whose mask suits a generated background; existing files are kept.

    `steps` and `guidance` are the pipeline's. The number of images that were made. Raises CleansetError for a
    pipeline, prompt or mask that cannot be used.
    """
    opened = OpenedStudy.read(study)
    params = opened.params
    everything = read_table(study.images, STUDY_IMAGES, opened.classes)
    of_all = files_of(study.edition, everything)
    masks = masks_found(everything, of_all, study.masks, params, classes=opened.classes, is_placed=True)
    images = has_scenarios(everything, masks)
    if images.empty:
        raise CleansetError(
            f"{study.masks}: no image has a mask that suits a generated background; see cleanset docs scenarios"
        )
    keys = opened.classes.keys
    prompts = read_prompts(prompts_folder, [keys[class_index] for class_index in images["class_index"]])
    options = PaintOptions(params.seed, steps, guidance)
    pipeline = load_pipeline(pipeline_folder, device)
    # not those of the stage images, whose masks need not suit a generated background
    sources = Sources(images=everything, masks=masks, files=of_all, classes=opened.classes, study=study)
    files = sources.files_in(images)
    scene_masks = masks_of(sources, images)
    paint = {
        file.image_id: lambda file=file: paint_background(
            pipeline,
            base_pixels(file),
            regions_of_mask(scene_masks[file.path]),
            prompt=prompts[scene_masks[file.path].wnid],
            image_seed=image_seed(params.seed, file.image_id),
            options=options,
        )
        for file in files.values()
    }
    made_of = {
        file.image_id: [file.sha256, scene_masks[file.path].file.sha256, scene_masks[file.path].wnid]
        for file in files.values()
    }
    made = save_missing(study.generated, paint, generation_record(pipeline_folder, prompts, options), made_of)
    return len(list(tracked(made, len(paint), "generate")))


MADE_WITH = "made_with.json"
"""File in the folder of the images with pipeline, versions and options."""

Pipeline = Callable[..., Any]
"""A diffusers pipeline for in-painting: `image`, `mask_image` (white is painted) and `prompt` to `images`."""


@dataclass(frozen=True, slots=True)
class PaintOptions:
    """The options of a pipeline: `seed` is the study's, steps and guidance are defined by diffusers."""

    seed: int
    steps: int = 50
    guidance: float = 7.5


def read_prompts(folder: Path, wnids: Sequence[str]) -> dict[str, str]:
    """The prompt of each class, from `<wnid>.txt`. Raises CleansetError for one that is missing or empty."""
    prompts = {}
    for wnid in sorted(set(wnids)):
        path = folder / f"{wnid}.txt"
        expected = "expected the prompt of a background for this class"
        prompts[wnid] = read_text(path, expected).strip()
        if not prompts[wnid]:
            raise CleansetError(f"{path}: empty; {expected}")
    return prompts


def load_pipeline(folder: Path, device: str) -> Pipeline:
    """The pipeline in a local folder, in float32. Raises CleansetError if it or diffusers is missing."""
    if not (folder / "model_index.json").is_file():
        raise CleansetError(
            f"{folder}: no model_index.json; expected the folder of a diffusers pipeline for in-painting"
        )
    try:
        from diffusers import AutoPipelineForInpainting
    except ImportError as error:
        raise CleansetError(f"diffusers cannot be imported ({error}); {install_command('generate')}") from None
    try:
        pipeline = AutoPipelineForInpainting.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise CleansetError(
            f"{folder}: cannot be loaded ({reason(error)}); expected a diffusers pipeline for in-painting"
        ) from None
    pipeline.set_progress_bar_config(disable=True)
    moved: Pipeline = pipeline.to(device)
    return moved


def paint_background(
    pipeline: Pipeline, image: Pixels, regions: Regions, prompt: str, image_seed: int, options: PaintOptions
) -> Pixels:
    """The base image with a generated background, the object unchanged on top: uint8 of shape (224, 224, 3).

    `image_seed`: the image's seed (`seeds.image_seed`).
    """
    import torch

    # on the CPU: every kind of device draws other numbers from one seed
    generator = torch.Generator("cpu").manual_seed(change_seed(image_seed, KIND, GENERATED, 0))
    result = pipeline(
        prompt=prompt,
        image=Image.fromarray(image),
        mask_image=Image.fromarray(np.where(regions.background, 255, 0).astype(np.uint8)),
        height=BASE_SIZE,
        width=BASE_SIZE,
        num_inference_steps=options.steps,
        guidance_scale=options.guidance,
        generator=generator,
    )
    found = result.images[0].convert("RGB").resize((BASE_SIZE, BASE_SIZE), Image.Resampling.BILINEAR)
    return object_put_back(image, regions, np.asarray(found))


def save_missing(
    folder: Path,
    images: Mapping[str, Callable[[], Pixels]],
    made_with: Mapping[str, object],
    sources: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[str]:
    """Write the images that are not there, by image id, as PNG, and yield the id of each.

    `sources`: the digests of original and mask of each, and its class; an image of other ones is made again. Raises
    CleansetError if existing images were made with something else.
    """
    path = folder / MADE_WITH
    before = _sources_before(path, made_with) if path.is_file() else {}
    for image_id, found in sources.items():
        # before the record names the new sources, so that a kill in between loses nothing
        if image_id in before and before[image_id] != [*found]:
            (folder / f"{image_id}.png").unlink(missing_ok=True)
    whole = {**made_with, "images": {**before, **sources}}
    write_text(path, json.dumps(whole, indent=2, sort_keys=True) + "\n")
    for image_id, paint in images.items():
        target = folder / f"{image_id}.png"
        if not target.is_file():
            pixels = paint()
            with replacing(target) as partial:
                Image.fromarray(pixels).save(partial, "PNG")
            yield image_id


def _sources_before(path: Path, made_with: Mapping[str, object]) -> dict[str, list[str]]:
    """The sources of the images in a record. Raises CleansetError if it is about something else."""
    record = parse_record(read_bytes(path), str(path), "what generated images were made with")
    sources = record.pop("images", None) if isinstance(record, dict) else None
    # through JSON, where tuples become lists
    if not isinstance(sources, dict) or record != json.loads(json.dumps(made_with)):
        raise CleansetError(
            f"{path}: the images next to it were made with another pipeline, prompt, seed, option or version; expected "
            "the same: remove the folder's images and this file"
        )
    return sources


def generation_record(pipeline: Path, prompts: Mapping[str, str], options: PaintOptions) -> dict[str, Any]:
    """Everything that the images depend on except originals and masks; no path and no device."""
    files = sorted(path for path in pipeline.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {
        "pipeline": {path.relative_to(pipeline).as_posix(): sha256(path.read_bytes()) for path in files},
        "prompts": dict(prompts),
        "options": asdict(options),
        "versions": {name: version(name) for name in ("diffusers", "torch", "transformers")},
    }
