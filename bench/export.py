"""Export of 9,000 full-size images against a plain copy of the same bytes with their hashing."""

import io
import json
import os
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd
from PIL import Image

import simulation
from cleanset.dataset.archives import Location, locate
from cleanset.edition.paths import Edition
from cleanset.files import sha256, write_text
from cleanset.tables import CROP_SCORES, REJECTED, SELECTION, VOTES, write_table
from measuring import REAL, cleanset, in_child, print_machine, print_table, scratch, share

ROUNDS = 3
LIMIT = 1.5
CLASSES, PER_CLASS = 1_000, 3
IMAGES = len(simulation.ROLES) * CLASSES * PER_CLASS

TAR = simulation.TAR
DRAWN = 150


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds until the work was done, until all of it was on the disk, and of the processor."""

    done: float
    on_disk: float
    processor: float


def main() -> None:
    with scratch() as folder:
        whole, start = folder / "whole", folder / "start"
        source = in_child(build, whole, start)
        locations = locate(whole / TAR)
        ways: dict[str, Callable[[], float]] = {
            "copy": lambda: copy_all({**locations}, folder / "copy"),
            "export": lambda: export_all(whole),
            "start": lambda: export_all(start),
            "hash": lambda: hash_all({**locations}),
        }
        found: dict[str, list[Times]] = {name: [] for name in ways}
        for number in range(ROUNDS):
            for name in ways if number % 2 == 0 else reversed(ways):
                found[name].append(timed(ways[name], whole / TAR))
                for made in (folder / "copy", Edition(whole).export("."), Edition(start).export(".")):
                    shutil.rmtree(made, ignore_errors=True)
        megabytes = sum(location.size for location in locations.values()) / 1e6
    print_machine()
    report(f"{IMAGES:,} images ({source}), {megabytes:,.0f} MB, median of {ROUNDS} rounds", found)


def build(whole: Path, start: Path) -> str:
    """An edition with 9,000 images to export, and one with one image per model from the same tar."""
    source, photographs = photographs_or_drawings()
    index = simulation.index_of([[number % CLASSES] for number in range(IMAGES)])
    for folder, images, per_model in ((whole, TAR, IMAGES), (start, f"../{whole.name}/{TAR}", 1)):
        folder.mkdir()
        simulation.write_params(folder, dataset={"images": images})
        for place, role in enumerate(simulation.ROLES):
            selection = selection_of(index, place)
            write_table(Edition(folder).selection(role), selection.head(per_model), SELECTION)
            rejected = selection.tail(-per_model).assign(reason="not_needed", open=False)
            write_table(Edition(folder).rejected(role), rejected, REJECTED)
            for path, schema in (
                (Edition(folder).crop_scores(role), CROP_SCORES),
                (Edition(folder).votes(role), VOTES),
            ):
                write_table(path, pd.DataFrame(columns=schema.names), schema)
            write_text(Edition(folder).scored_with(role), json.dumps(simulation.SCORED))
            write_text(Edition(folder).audit(role), "null\n")
    # an export refuses an image that it has already under another id
    different = [variant(photographs[n % len(photographs)], n // len(photographs)) for n in range(IMAGES)]
    simulation.write_images(whole, index, different)
    for table in (Edition(whole).index, Edition(whole).locations):
        shutil.copy(table, start / "data")
    return source


def selection_of(index: pd.DataFrame, model: int) -> pd.DataFrame:
    """Three images of every class, others for each model, none of them cropped."""
    size = PER_CLASS * CLASSES
    part = index.iloc[model * size : (model + 1) * size]
    place = np.arange(size) // CLASSES + 1
    return pd.DataFrame(
        {
            "image_id": part["image_id"],
            "class_index": part["ilsvrc_class"],
            "place": place,
            "tier": "top5",
            "rank": place,
            "confidence": 0.5,
            "crop": None,
            "box_unknown": False,
        }
    )


def photographs_or_drawings() -> tuple[str, list[bytes]]:
    """The real photographs beside the project or in CLEANSET_REAL; drawn ones where there are none."""
    photographs = [path.read_bytes() for path in sorted((REAL / "photos").glob("*.JPEG"))]
    if photographs:
        return f"{len(photographs)} real photographs, repeated", photographs
    rng = np.random.default_rng(0)
    return f"{DRAWN} drawn ones, repeated", [drawing(rng) for _ in range(DRAWN)]


def variant(data: bytes, number: int) -> bytes:
    """The JPEG with other pixels for each number up to 511: its first quantization table changed, nothing encoded.

    Bit n of the number decides whether the n-th of the lowest frequencies is taken as larger. `cleanset verify` would
    find images that differ in a comment alone to be the same.
    """
    at = 2
    while data[at + 1] != 0xDB:  # the segment of the tables
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    width = 1 + (data[at + 4] >> 4)  # bytes of a value
    changed = bytearray(data)
    for bit in range(number.bit_length()):
        low_byte = at + 5 + width * (bit + 2) - 1
        changed[low_byte] += (number >> bit & 1) * (1 if changed[low_byte] < 255 else -1)
    return bytes(changed)


def drawing(rng: np.random.Generator) -> bytes:
    """A JPEG of the size, in pixels and in bytes, of the usual image of ImageNet."""
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375))
    pixels = np.asarray(coarse) + rng.normal(0, 14, (375, 500, 3))
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=94)
    return out.getvalue()


def timed(work: Callable[[], float], archive: Path) -> Times:
    """Time `work`, which returns its processor seconds, from a disk at rest and an archive that must be read."""
    os.sync()
    if hasattr(os, "posix_fadvise"):
        with archive.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    begin = perf_counter()
    processor = work()
    done = perf_counter() - begin
    os.sync()
    return Times(done, perf_counter() - begin, processor)


def copy_all(locations: dict[str, Location], folder: Path) -> float:
    """Copy every image out of the tar to a file, in folders as the export has them, and hash it."""
    begin = process_time()
    folders = [folder / str(model) / str(index) for model in range(len(simulation.ROLES)) for index in range(CLASSES)]
    for each in folders:
        each.mkdir(parents=True)
    places = (folders[number // (PER_CLASS * CLASSES) * CLASSES + number % CLASSES] for number in range(IMAGES))
    for (name, location), place in zip(locations.items(), places, strict=True):
        data = location.read()
        sha256(data)
        (place / name).write_bytes(data)
    return process_time() - begin


def hash_all(locations: dict[str, Location]) -> float:
    """Read and hash every image, write nothing."""
    begin = process_time()
    for location in locations.values():
        sha256(location.read())
    return process_time() - begin


def export_all(edition: Path) -> float:
    """Export the set of each model, one process after the other, as DVC does."""
    return sum(cleanset("export", "--model", role, edition=edition).processor_seconds for role in simulation.ROLES)


def report(title: str, found: dict[str, list[Times]]) -> None:
    names = {
        "copy": "plain copy with hashing",
        "hash": "of it: reading and hashing",
        "export": "cleanset export, 3 processes",
        "start": "of it: their starts, with 1 image each",
    }
    rows = [(text, *(f"{value:.2f}" for value in medians(found[name]))) for name, text in names.items()]
    ratios = [export / copy for export, copy in zip(medians(found["export"]), medians(found["copy"]), strict=True)]
    rows.append(("export by plain copy", *(f"{ratio:.2f}" for ratio in ratios)))
    rows.append(("limit", "", f"{LIMIT:g}", ""))
    rows.append(("of the limit", "", share(ratios[1], LIMIT), ""))
    print_table(title, ("what", "seconds", "seconds until on disk", "processor seconds"), rows)


def medians(times: Sequence[Times]) -> tuple[float, float, float]:
    done, on_disk, processor = (statistics.median(column) for column in zip(*map(astuple, times), strict=True))
    return done, on_disk, processor


if __name__ == "__main__":
    main()
