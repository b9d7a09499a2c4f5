"""Draws the sample edition's raw files: 480 images as ILSVRC2012 publishes its 50,000.

Every byte follows from the seed in `plan.py`: the same files on every machine.
"""

import io
import json
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from PIL import Image
from rich.console import Console
from rich.progress import track

import archives
from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import class_of_ilsvrc_id
from drawing.canvas import Box
from drawing.classes import SAMPLE_CLASSES
from drawing.flaws import LOST, PLANTERS, STAMP_SHARE
from drawing.scenes import Scene, draw_masked, draw_scene
from plan import SEED, Plan, plans

HERE = Path(__file__).parent
ROOT = HERE.parent
RAW = ROOT / "data/raw"
SHAPES = [(4, 3), (4, 3), (3, 2), (1, 1), (8, 5), (3, 4), (3, 4), (2, 3)]
ORIENTATION = 0x0112
TURNS = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}


@dataclass(frozen=True)
class Drawn:
    """A finished image: its JPEG file, the crop that removes its flaw, if there is one, and its object's mask."""

    jpeg: bytes
    crop: Box | None
    mask: Image.Image | None = None


def image_id(number: int) -> str:
    """The image's name in ILSVRC2012, without the ending."""
    return f"ILSVRC2012_val_{number:08d}"


def draw(plan: Plan, *, masked: bool = False) -> Drawn:
    """Draw one image, plant its flaw, and store it as one of many cameras might.

    `masked`: with its object's mask; an image of several objects, or with a flaw that no crop removes, has none.
    """
    rng = Random(f"{SEED} picture {plan.wnid} {plan.serial}")
    shape = rng.choice(SHAPES)
    scene = _scene(
        plan,
        rng.randrange(280, 521) * 8 // 10 if plan.flaw == "pair" else rng.randrange(280, 521),
        shape,
    )
    mask: Image.Image | None = None
    if masked and len(plan.shown) == 1 and plan.flaw not in LOST:
        image, covered, mask = draw_masked(scene, rng)
    else:
        image, covered = draw_scene(scene, rng)
    crop: Box | None = None
    if plan.flaw:
        _, plant = PLANTERS[plan.flaw]
        image, crop = plant(image, rng, lambda: draw_scene(scene, rng)[0])
    _check(plan, covered, crop)
    if mask and crop:
        grown = Image.new("L", image.size)
        grown.paste(mask, crop[:2])
        mask = grown
    return _store(image, crop, rng, mask)


def _scene(plan: Plan, long: int, shape: tuple[int, int]) -> Scene:
    wide, high = (3, 4) if plan.flaw == "pair" else shape
    width = long * wide // max(wide, high)
    height = long * high // max(wide, high)
    clear = STAMP_SHARE + 2 if plan.flaw == "stamp" else 0
    return Scene(width, height, plan.shown, plan.difficulty, clear)


def _check(plan: Plan, covered: Box, crop: Box | None) -> None:
    """A crop must leave the object whole."""
    if plan.flaw == "stamp" and crop and covered[3] > crop[3]:
        raise ValueError(
            f"{image_id(plan.number)}: the stamp begins at row {crop[3]}, "
            f"the object ends at row {covered[3]}: leave more of the scene clear"
        )


def _store(image: Image.Image, crop: Box | None, rng: Random, mask: Image.Image | None) -> Drawn:
    """The image as JPEG: one in thirty grey, one in sixty CMYK, one in twenty stored turned."""
    kind = rng.randrange(60)
    turn = rng.randrange(60)
    quality = rng.randrange(76, 96)
    exif = Image.Exif()
    if turn < 3:
        orientation = [3, 6, 8][turn]
        crop = _turned(crop, image.size, orientation) if crop else None
        image = image.transpose(TURNS[orientation])
        mask = mask.transpose(TURNS[orientation]) if mask else None
        exif[ORIENTATION] = orientation
    if kind < 2:
        image = image.convert("L")
    elif kind == 2:
        image = image.convert("CMYK")
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=rng.choice([0, 2]), optimize=False, exif=exif)
    return Drawn(buffer.getvalue(), crop, mask)


def _turned(box: Box, size: tuple[int, int], orientation: int) -> Box:
    """A box of the upright image of this size, in the pixels of the stored, turned one."""
    (left, top, right, bottom) = box
    (width, height) = size
    if orientation == 3:
        return width - right, height - bottom, width - left, height - top
    if orientation == 6:
        return top, width - right, bottom, width - left
    return height - bottom, left, height - top, right


def real_labels(plan: Plan, index: dict[str, int]) -> list[int]:
    """The class indices that raters would give the image."""
    if plan.labels == "none":
        return []
    lookalike = SAMPLE_CLASSES[plan.wnid].lookalike
    doubted = [lookalike] if plan.labels == "doubtful" and lookalike else []
    return sorted(index[wnid] for wnid in (*plan.shown, *doubted))


def truth(planned: list[Plan], drawn: list[Drawn]) -> bytes:
    """The truth for tests: objects, flaw and crop of each image, one line each."""
    lines = []
    for plan, result in zip(planned, drawn, strict=True):
        entry = {
            "shown": list(plan.shown),
            "flaw": _reason(plan),
            "crop": list(result.crop) if result.crop else None,
        }
        lines.append(f"  {json.dumps(image_id(plan.number))}: {json.dumps(entry)}")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _reason(plan: Plan) -> str | None:
    """The reason for which a reviewer would reject or crop the image."""
    if plan.flaw:
        return PLANTERS[plan.flaw][0]
    return "several_objects" if len(plan.shown) > 1 else None


def progress(results: Iterable[Drawn], total: int) -> Iterable[Drawn]:
    """Yield the results as they come, with a bar on a terminal's standard error."""
    console = Console(stderr=True)
    return track(results, "drawing", total, console=console, disable=not console.is_terminal)


def main() -> None:
    """Draw everything and write the archives, their sums and the truth."""
    planned = plans()
    index = {wnid: position for position, wnid in enumerate(archives.imagenet_wnids())}
    with ProcessPoolExecutor() as pool:
        results = pool.map(draw, planned, chunksize=8)
        drawn = list(progress(results, len(planned)))
    members = ((f"{image_id(p.number)}.JPEG", d.jpeg) for p, d in zip(planned, drawn, strict=True))
    number_of = {imagenet().keys[index]: number for number, index in class_of_ilsvrc_id().items()}
    kit = archives.devkit([plan.wnid for plan in planned], number_of)
    files = {
        RAW / "ILSVRC2012_img_val.tar": archives.tar(members),
        RAW / "ILSVRC2012_devkit_t12.tar.gz": kit,
        RAW / "reassessed.json": archives.reassessed(real_labels(plan, index) for plan in planned),
    }
    for path, content in files.items():
        archives.write_whole(path, content)
    archives.write_whole(ROOT / "raw.md5", archives.md5_lines(files, ROOT))
    archives.write_whole(HERE / "truth.json", truth(planned, drawn))


if __name__ == "__main__":
    main()
