"""Generated backgrounds: in-painting around the object by a diffusers pipeline from a local folder.

Needs the extra `generate`. The images are made once and kept as files: a pipeline's result may differ between machines.

The command `cleanset robustness generate`: images with generated backgrounds, for the stage scenarios.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.errors import CleansetError, install_command, reason
from cleanset.files import read_bytes, replacing, sha256, write_text
from cleanset.images.preprocessing import BASE_SIZE
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.scenarios.changes import KIND, object_put_back
from cleanset.studies.robustness.scenarios.masks import Regions
from cleanset.studies.robustness.scenarios.params import GENERATED

Pixels = NDArray[np.uint8]
MADE_WITH = "made_with.json"
"""File in the folder of the images with pipeline, versions and options."""

Pipeline = Callable[..., Any]
"""A diffusers pipeline for in-painting: `image`, `mask_image` (white is painted) and `prompt` to `images`."""


@dataclass(frozen=True, slots=True)
class PaintOptions:
    """The options of a pipeline: `seed` is the study's, steps and guidance are those of diffusers."""

    seed: int
    steps: int = 50
    guidance: float = 7.5
    device: str = "cpu"


def read_prompts(folder: Path, wnids: Sequence[str]) -> dict[str, str]:
    """The prompt of each class, from `<wnid>.txt`. Raises CleansetError for one that is missing or empty."""
    prompts = {}
    for wnid in sorted(set(wnids)):
        path = folder / f"{wnid}.txt"
        try:
            prompts[wnid] = read_bytes(path).decode("utf-8").strip()
        except FileNotFoundError:
            raise CleansetError(f"{path}: missing; expected the prompt of a background for this class") from None
        except (OSError, UnicodeDecodeError) as error:
            raise CleansetError(f"{path}: cannot be read ({reason(error)}); expected a prompt in UTF-8") from None
        if not prompts[wnid]:
            raise CleansetError(f"{path}: empty; expected the prompt of a background for this class")
    return prompts


def load_pipeline(folder: Path, device: str) -> Pipeline:
    """The pipeline in a local folder, in float32. Raises CleansetError if there is none, or no diffusers."""
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

    `image_seed`: of the image (`seeds.image_seed`).
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
    folder: Path, images: Mapping[str, Callable[[], Pixels]], made_with: Mapping[str, Any]
) -> Iterator[str]:
    """Write the images that are not there, by image id, as PNG, and yield the id of each.

    Raises CleansetError if those that are there were made with something else.
    """
    record = json.dumps(made_with, indent=2, sort_keys=True) + "\n"
    path = folder / MADE_WITH
    if path.is_file() and path.read_text(encoding="utf-8") != record:
        raise CleansetError(
            f"{path}: the images beside it were made with another pipeline, prompt, seed, option or version; expected "
            "the same: remove the folder's images and this file"
        )
    write_text(path, record)
    for image_id, paint in images.items():
        target = folder / f"{image_id}.png"
        if not target.is_file():
            pixels = paint()
            with replacing(target) as partial:
                Image.fromarray(pixels).save(partial, "PNG")
            yield image_id


def generation_record(pipeline: Path, prompts: Mapping[str, str], options: PaintOptions) -> dict[str, Any]:
    """Everything that the images depend on except originals and masks; no path and no device."""
    files = sorted(path for path in pipeline.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {
        "pipeline": {path.relative_to(pipeline).as_posix(): sha256(path.read_bytes()) for path in files},
        "prompts": dict(prompts),
        "options": {name: value for name, value in asdict(options).items() if name != "device"},
        "versions": {name: version(name) for name in ("diffusers", "torch", "transformers")},
    }
