"""`corrupt`, `perturb`, `watermark`, `change_background` and `changes`: the image changes of the studies, on arrays.

The pixels are those of the studies: every function calls the one that makes a study's images.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cleanset.api.image_arrays import changed_like
from cleanset.errors import InputError, needs_extra
from cleanset.images.preprocessing import BASE_SIZE, Pixels
from cleanset.plumbing.validation import check_known, shown
from cleanset.statistics.seeds import image_seed

if TYPE_CHECKING:
    import pandas as pd

Seed = int | Sequence[int] | None
EXTRA = "robustness"


def corrupt(
    images: Any,
    name: str,
    severity: int = 3,
    *,
    seed: Seed = 0,
    image_id: str | Sequence[str] | None = None,
) -> Any:
    """An image, or each image of a batch, with a corruption of ImageNet-C or ImageNet-C-bar.

    `images`: a PIL image or a list of them, a NumPy array, uint8 of shape (height, width, 3) or (n, height, width, 3),
    red first, or a torch tensor of shape (3, height, width) or (n, 3, height, width), uint8, or floating point from 0
    to 1, which is rounded to 8 bits. Sides are at least 32 pixels. The result is of the same kind, dtype, range and
    shape; the input stays unchanged. `name`: one of `cleanset.changes()` in the family corruptions, or
    `MODULE:FUNCTION`, a function of image, severity and generator. `severity`: 1 to 5.

    `seed`: a number, from which the draws for each image of a batch follow with its place; or a number for each image;
    or None for draws that differ in each call, as augmentation needs them (they follow torch's generator if torch is
    imported). `image_id`: the id of each image; with it the pixels are those that a study with this `seed` makes of the
    base image, before it is stored as JPEG.

    The pixels are those of the authors' programs (D. Hendrycks and T. Dietterich's make_imagenet_c.py, E. Mintun and
    others' augmentation-corruption); fog and spatter differ from them by at most 1 in single values. Raises
    CleansetError for an unknown name, another severity and other images.

        >>> image = np.zeros((224, 224, 3), np.uint8)
        >>> cleanset.corrupt(image, "brightness", severity=3).max()
        76

    """
    from cleanset.studies.robustness.corruptions.params import SEVERITIES

    _check_number("severity", severity, SEVERITIES)
    with needs_extra(EXTRA):
        from cleanset.studies.robustness.corruptions.changes import MIN_SIDE, corrupted_images

    def change(pixels: Pixels, number: int) -> Pixels:
        if min(pixels.shape[:2]) < MIN_SIDE:
            height, width = pixels.shape[:2]
            raise InputError(f"an image of {width} x {height} pixels; expected sides of at least {MIN_SIDE}")
        (found,) = corrupted_images(pixels, name, [severity], _seed(seed, image_id, number))
        return found

    return changed_like(images, change)


def perturb(
    images: Any,
    name: str,
    frame: int,
    *,
    level: int = 1,
    size: int | None = None,
    seed: Seed = 0,
    image_id: str | Sequence[str] | None = None,
) -> Any:
    """A frame of a perturbation of ImageNet-P of an image, or of each image of a batch.

    `images`, `seed` and `image_id` as in `corrupt`. `name`: one of `cleanset.changes()` in the family perturbations.
    `frame`: 0 to 30, of translate to 40. `level`: the difficulty of noise, 1 to 3; 1 for all others. The frame shows
    the central `size` x `size` pixels, by default as many as the shorter side has; the rest comes from outside
    it, and is black beyond the image.

    The pixels are those of the authors' make_imagenet_p.py before their videos were compressed. Raises CleansetError
    for an unknown name, and for a frame, level or size that does not exist.

        >>> image = np.full((224, 224, 3), 255, np.uint8)
        >>> cleanset.perturb(image, "translate", frame=0)[0, -1].tolist()
        [0, 0, 0]

    """
    from cleanset.studies.robustness.perturbations.params import (
        ALL_PERTURBATIONS,
        NOISE_DIFFICULTIES,
        NOISE_PERTURBATIONS,
        frame_count,
    )

    check_known("perturbation", name, ALL_PERTURBATIONS)
    _check_number("frame", frame, range(frame_count(name)))
    _check_number("level", level, NOISE_DIFFICULTIES if name in NOISE_PERTURBATIONS else (1,))
    with needs_extra(EXTRA):
        from cleanset.studies.robustness.perturbations.changes import frames_of

    def change(pixels: Pixels, number: int) -> Pixels:
        shorter = min(pixels.shape[:2])
        side = shorter if size is None else size
        if not 1 <= side <= shorter:
            raise InputError(f"size {side}; expected 1 to {shorter}, the shorter side of the image")
        return frames_of(pixels, name, _seed(seed, image_id, number), level=level, size=side)(frame)

    return changed_like(images, change)


def watermark(images: Any, *, font: str | Path | None = None) -> Any:
    """An image of 224 x 224 pixels, or each image of a batch, with the watermark of ImageNet-W.

    `images` as in `corrupt`, 224 x 224 pixels. `font`: a font file; with the authors' one, SourceHanSerifSC-ExtraLight
    of their package imagenet-w, the pixels are those of their program (Z. Li and others); without one the characters
    are drawn by strokes of this project. Nothing is drawn by lot. Raises CleansetError for other sizes and fonts.

        >>> image = np.zeros((224, 224, 3), np.uint8)
        >>> cleanset.watermark(image).max() <= 128
        True

    """
    from cleanset.plumbing.files import sha256_of

    with needs_extra(EXTRA):
        from cleanset.studies.robustness.watermarks.changes import FontFile, watermarked

    of_font = None
    if font is not None:
        if not Path(font).is_file():
            raise InputError(f"{font}: missing; expected a font file")
        of_font = FontFile(Path(font), sha256_of(Path(font)))

    def change(pixels: Pixels, _: int) -> Pixels:
        if pixels.shape != (BASE_SIZE, BASE_SIZE, 3):
            height, width = pixels.shape[:2]
            raise InputError(f"an image of {width} x {height} pixels; expected {BASE_SIZE} x {BASE_SIZE}")
        return watermarked(pixels, of_font)

    return changed_like(images, change)


def change_background(
    images: Any,
    masks: Any,
    name: str,
    *,
    photographs: Sequence[Any] = (),
    generated: Any = None,
    definition: Literal["as_written", "as_coded"] = "as_written",
    matte: str = "black",
    seed: Seed = 0,
    image_id: str | Sequence[str] | None = None,
) -> Any:
    """An image, or each image of a batch, in a scenario of XIMAGENET-12: its background or its object is changed.

    `images`, `seed` and `image_id` as in `corrupt`. `masks`: for an image a mask of its object, bool or numbers above 0
    of shape (height, width) as an array, tensor or PIL image; for a batch a sequence of them. `name`: one of
    `cleanset.changes()` in the family scenarios. random_background needs `photographs`, images in any of these forms,
    as large as the image or larger; generated_background needs `generated`, an image, or for a batch a sequence of
    them. `definition`: as the paper's text has it (as_written), or its published code (as_coded), whose pixels it has
    then. `matte`: black, white, grey or mean, behind transparent_image. Raises CleansetError for an unknown name,
    missing inputs and other shapes.

        >>> image = np.full((64, 64, 3), 200, np.uint8)
        >>> mask = np.zeros((64, 64), bool)
        >>> mask[16:48, 16:48] = True
        >>> changed = cleanset.change_background(image, mask, "segmented_image")
        >>> changed[0, 0].tolist(), changed[32, 32].tolist()
        ([0, 0, 0], [200, 200, 200])

    """
    from cleanset.studies.robustness.scenarios.params import MATTES, SCENARIOS, Scenarios

    check_known("scenario", name, SCENARIOS)
    check_known("matte", matte, MATTES)
    check_known("definition", definition, ("as_written", "as_coded"))
    with needs_extra(EXTRA):
        from cleanset.studies.robustness.scenarios.masks import regions_of
        from cleanset.studies.robustness.scenarios.scenes import scenario_image
    wanted = Scenarios.model_validate({"definition": definition, "matte": matte})
    behind = [_pixels(each) for each in photographs]
    is_batch = isinstance(images, list | tuple) or getattr(images, "ndim", 3) == 4

    def change(pixels: Pixels, number: int) -> Pixels:
        mask = _mask(_of_batch("masks", masks, number, is_batch=is_batch))
        own = None if generated is None else _pixels(_of_batch("generated", generated, number, is_batch=is_batch))
        for what, found in (("a mask", mask), ("a generated image", own)):
            if found is not None and found.shape[:2] != pixels.shape[:2]:
                raise InputError(f"{what} of shape {found.shape}; expected that of its image, {pixels.shape[:2]}")
        return scenario_image(
            pixels,
            regions_of(mask),
            name,
            _seed(seed, image_id, number),
            wanted=wanted,
            photographs=behind,
            generated=own,
        )

    return changed_like(images, change)


def changes() -> "pd.DataFrame":
    """All image changes: a row for each, with family, name, group, steps, benchmark, and the function that makes it.

    `steps`: the severities of corruptions, the frames of perturbations; empty for changes without steps. Corruptions of
    ImageNet-3DCC, which are read from a folder, have no function.

        >>> found = cleanset.changes()
        >>> found["family"].value_counts(sort=False).to_dict()
        {'corruptions': 41, 'perturbations': 14, 'scenarios': 12, 'watermarks': 1}

    """
    import pandas as pd

    from cleanset.studies.robustness.corruptions.params import CORRUPTION_ENTRIES, MADE_CORRUPTIONS, SEVERITIES
    from cleanset.studies.robustness.perturbations.params import ALL_PERTURBATIONS, PERTURBATION_GROUPS, frame_count
    from cleanset.studies.robustness.scenarios.params import SCENARIO_GROUPS
    from cleanset.studies.robustness.watermarks.params import WATERMARK

    rows = [
        {
            "family": "corruptions",
            "name": name,
            "group": entry.group or "",
            "steps": f"{SEVERITIES[0]} to {SEVERITIES[-1]}",
            "benchmark": entry.benchmark or "",
            "function": "corrupt" if name in MADE_CORRUPTIONS else "",
            "effect": entry.effect,
        }
        for name, entry in CORRUPTION_ENTRIES.items()
    ]
    group_of = _group_of(PERTURBATION_GROUPS)
    rows += [
        {
            "family": "perturbations",
            "name": name,
            "group": group_of.get(name, "validation"),
            "steps": f"0 to {frame_count(name) - 1}",
            "benchmark": "ImageNet-P",
            "function": "perturb",
            "effect": "",
        }
        for name in ALL_PERTURBATIONS
    ]
    further = [
        ("scenarios", name, group, "XIMAGENET-12", "change_background")
        for name, group in _group_of(SCENARIO_GROUPS).items()
    ]
    for family, name, group, benchmark, function in [
        *further,
        ("watermarks", WATERMARK, "", "ImageNet-W", "watermark"),
    ]:
        rows.append(
            {
                "family": family,
                "name": name,
                "group": group,
                "steps": "",
                "benchmark": benchmark,
                "function": function,
                "effect": "",
            }
        )
    return pd.DataFrame(rows)


def _group_of(groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: group for group, names in groups.items() for name in names}


def _check_number(what: str, found: object, known: Sequence[int] | range) -> None:
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or found not in known:
        raise InputError(f"{what} {shown(found)}; expected a whole number, {known[0]} to {known[-1]}")


def _seed(seed: Seed, image_id: str | Sequence[str] | None, number: int) -> int:
    """The seed of an image's draws, from those of a call and its number in the batch."""
    if seed is None:
        return _drawn_seed()
    if not isinstance(seed, int | np.integer):
        seeds = list(seed)
        if number >= len(seeds):
            raise InputError(f"{len(seeds)} seeds for more images; expected one for each")
        return int(seeds[number])
    if image_id is None:
        return int(seed) if number == 0 else image_seed(int(seed), str(number))
    ids = [image_id] if isinstance(image_id, str) else list(image_id)
    if number >= len(ids):
        raise InputError(f"{len(ids)} image ids for more images; expected one for each")
    return image_seed(int(seed), ids[number])


def _drawn_seed() -> int:
    """A seed that differs in each call: from torch's generator if that is imported, as each worker has its own."""
    if (torch := sys.modules.get("torch")) is not None:
        return int(torch.randint(2**31, ()).item())
    return int.from_bytes(os.urandom(4))


def _of_batch(what: str, found: Any, number: int, *, is_batch: bool) -> Any:
    if not is_batch:
        return found
    try:
        return found[number]
    except (IndexError, KeyError, TypeError):
        raise InputError(f"{what}: none for image {number} of the batch; expected one for each image") from None


def _pixels(image: Any) -> Pixels:
    """An image of any kind as uint8 of shape (height, width, 3)."""
    seen: list[Pixels] = []

    def keep(pixels: Pixels, _: int) -> Pixels:
        seen.append(pixels)
        return pixels

    changed_like(image, keep)
    return seen[0]


def _mask(mask: Any) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    found = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise InputError(f"a mask of {found.dtype} and shape {found.shape}; expected one of shape (height, width)")
    return found > 0
