"""Editions of many own images: seconds and memory from the folder to a reviewed set, by the number of images.

`python bench/growth.py [COUNT …]`: drawn images of 64 x 64 pixels in 1,000 classes, by default 10,000, 100,000 and
1,000,000, which take 4 GB of the disk and two hours.
"""

import argparse
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from cleanset.edition.paths import Edition
from cleanset.plumbing.progress import found_in_threads
from measuring import (
    BIN,
    Run,
    cleanset,
    in_child,
    print_machine,
    print_table,
    run,
    scratch,
    share,
    together,
)

COUNTS = (10_000, 100_000, 1_000_000)
CLASSES = 1_000
REVIEWER = "ann"
MIB = 8_192
"""Limit of the memory of every step."""

WHOLE = "dvc repro, all images reviewed"
ONE_VERDICT = "dvc repro, one verdict changed"
ITS_STAGES = "its stages once more, without DVC"
STAGES = (
    ("crops",),
    ("review_apply", "--model", "images"),
    ("export", "--model", "images"),
    ("count",),
    ("report",),
)
"""The stages that a changed verdict runs."""

SECONDS = 10
"""Limit of `dvc repro` after one changed verdict, of up to SECONDS_IMAGES images."""

SECONDS_IMAGES = 64_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="*", help="how many images", default=COUNTS)
    counts = parser.parse_args().counts
    print_machine()
    rows = []
    after_verdict = []
    for count in counts:
        with scratch() as folder:
            in_child(draw, folder / "images", count)
            found = {}
            for name, measured in steps(folder / "images", folder / "edition"):
                found[name] = measured
                rows.append(row(count, name, measured))
                # a million images take hours
                print(*rows[-1], sep=" | ", flush=True)
            after_verdict.append(row_of_verdict(count, found[WHOLE], found[ONE_VERDICT], found[ITS_STAGES]))
    names = list(dict.fromkeys(name for name, *_ in rows))
    print_table(
        f"Limit: {MIB:,} MiB; seconds of an image that do not grow",
        ("step", "images", "seconds", "processor seconds", "ms an image", "MiB"),
        sorted(rows, key=lambda each: names.index(each[0])),
    )
    print_table(
        f"One verdict changed; limit: {SECONDS} seconds for up to {SECONDS_IMAGES:,} images; processor seconds of the "
        "whole run, after the verdict, and there of DVC itself",
        ("images", "whole", "after", "ratio", "of DVC", "seconds", "limit", "of the limit"),
        after_verdict,
    )


def draw(folder: Path, count: int) -> None:
    """Write JPEGs of different colours, as many in each class."""
    for number in range(CLASSES):
        (folder / f"class {number:04}").mkdir(parents=True)
    found_in_threads(partial(draw_one, folder), range(count), "draw")


def draw_one(folder: Path, number: int) -> None:
    """One image: random colours of 8 x 8 places, enlarged."""
    generator = np.random.default_rng(number)
    small = Image.fromarray(generator.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    path = folder / f"class {number % CLASSES:04}" / f"{number:07}.jpg"
    small.resize((64, 64), Image.Resampling.BICUBIC).save(path, quality=80)


def steps(images: Path, edition: Path) -> Iterator[tuple[str, Run]]:
    """The commands from a folder of images to a set without reviews, and those that find nothing to do."""
    yield "edition", run(BIN / "cleanset", "edition", edition, "--images", images, cwd=images.parent)
    repro = partial(run, BIN / "dvc", "repro", "--quiet", cwd=edition)
    yield "dvc repro preprocess", repro("preprocess")
    yield "dvc repro review_apply@images", repro("review_apply@images")
    yield "the same, nothing to do", repro("review_apply@images")
    yield "status, which reads each image", cleanset("status", edition=edition)
    yield "status, nothing changed", cleanset("status", edition=edition)
    yield "review status", cleanset("review", "status", edition=edition)
    in_child(review, edition)
    yield WHOLE, repro()
    in_child(change_one_verdict, edition)
    yield ONE_VERDICT, repro()
    yield ITS_STAGES, together([cleanset(*stage, edition=edition) for stage in STAGES])
    yield "review status, all reviewed", cleanset("review", "status", edition=edition)
    shutil.rmtree(edition)


def review(folder: Path) -> None:
    """Write the verdict clean of one reviewer on every image, and let the set have all of them."""
    import pandas as pd  # which would count as memory of what is measured

    edition = Edition(folder)
    keys = edition.read_classes().keys
    index = pd.read_parquet(edition.index, columns=["image_id", "sha256", "original_class"])
    (edition.reviews / REVIEWER).mkdir()
    for class_index, images in index.groupby("original_class"):
        key = keys[int(str(class_index))]
        entries = (f"  {row.image_id}:\n    verdict: clean\n    sha256: {row.sha256}\n" for row in images.itertuples())
        (edition.reviews / REVIEWER / f"{key}.yaml").write_text(f"{key}:\n{''.join(entries)}")
    text = edition.params_yaml.read_text().replace("images_per_class: 3 ", "images_per_class: all ", 1)
    edition.params_yaml.write_text(text)


def change_one_verdict(folder: Path) -> None:
    """Let the reviewer reject one of the images."""
    path = min((Edition(folder).reviews / REVIEWER).iterdir())
    path.write_text(path.read_text().replace("verdict: clean", "verdict: reject\n    reason: blur", 1))


def row(count: int, name: str, each: Run) -> tuple[str, ...]:
    """A row of the table."""
    by_image = 1000 * each.processor_seconds / count
    figures = (f"{each.seconds:.1f}", f"{each.processor_seconds:.1f}", f"{by_image:.3f}", f"{each.peak_mib:,.0f}")
    return (name, f"{count:,}", *figures)


def row_of_verdict(count: int, whole: Run, after: Run, stages: Run) -> tuple[str, ...]:
    """A row of the table of one changed verdict."""
    limit = (str(SECONDS), share(after.seconds, SECONDS)) if count <= SECONDS_IMAGES else ("", "")
    return (
        f"{count:,}",
        f"{whole.processor_seconds:.1f}",
        f"{after.processor_seconds:.1f}",
        f"{after.processor_seconds / whole.processor_seconds:.2f}",
        f"{after.processor_seconds - stages.processor_seconds:.1f}",
        f"{after.seconds:.1f}",
        *limit,
    )


if __name__ == "__main__":
    main()
