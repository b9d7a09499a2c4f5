"""Steps that people wait for, each beside what it is to be compared with, in one run without a GPU.

Reading 128,000 verdicts for the first time and again; thumbnails by two threads and by one; elastic_transform and
imagecorruptions' own. Processor time, which other work on the machine hardly lengthens, except for two threads.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, process_time

import cv2
import imagecorruptions
import numpy as np

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import image_id
from cleanset.images.codec import decode
from cleanset.images.preprocessing import Pixels, base_image
from cleanset.plumbing.files import sha256
from cleanset.plumbing.machine import keep_freed_memory
from cleanset.report.thumbnails import thumbnail
from cleanset.review.store import read_reviews
from cleanset.studies.robustness.corruptions.authors import elastic_transform
from cleanset.studies.robustness.corruptions.params import SEVERITIES
from measuring import print_machine, print_table, scratch, share
from photographs import photographs_or_drawings

REVIEWERS = ("ann", "ben")
IMAGES_OF_CLASS = 64
VERDICTS_SECONDS = 2.0
"""Limit of the time of reading the verdicts again."""
MIN_OF_TWO_THREADS = 1.6
"""Times as many thumbnails by two threads as by one."""
MAX_OF_LIBRARY = 1.2
"""Limit of elastic_transform, as a multiple of the library's."""
ROUNDS = 5
PHOTOGRAPHS = 150
TRANSFORMED = 6


def main() -> None:
    source, photographs = photographs_or_drawings()
    print_machine("opencv-python-headless", "imagecorruptions-imaug")
    with scratch() as folder:
        verdicts = verdict_rows(folder)
    thumbnails = thumbnail_row(photographs[:PHOTOGRAPHS])
    elastic = elastic_rows([base_image(decode(data)) for data in photographs[:TRANSFORMED]])
    header = ("what", "found", "limit", "of the limit")
    print_table(f"Steps ({source})", header, [*verdicts, thumbnails, *elastic])


def shortest(work: Callable[[], object], clock: Callable[[], float] = process_time, rounds: int = ROUNDS) -> float:
    """The shortest time of some rounds of work, in seconds."""
    times = []
    for _ in range(rounds):
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)


def verdict_rows(folder: Path) -> list[tuple[str, ...]]:
    """Rows of reading all verdicts, without a cache and with one."""
    os.environ["CLEANSET_CACHE"] = str(folder / "cache")
    classes = imagenet()
    count = 0
    for reviewer in REVIEWERS:
        (folder / "reviews" / reviewer).mkdir(parents=True)
        for index, key in enumerate(classes.keys):
            images = [image_id(IMAGES_OF_CLASS * index + number + 1) for number in range(IMAGES_OF_CLASS)]
            entries = "".join(
                f"  {name}:\n    verdict: clean\n    sha256: {sha256(name.encode())}\n" for name in images
            )
            (folder / "reviews" / reviewer / f"{key}.yaml").write_text(f"{key}:\n{entries}")
            count += len(images)
    first = shortest(lambda: read_reviews(folder / "reviews", classes), rounds=1)
    again = shortest(lambda: read_reviews(folder / "reviews", classes))
    return [
        (f"{count:,} verdicts, read for the first time, s", f"{first:.2f}", "", ""),
        ("the same, read again, s", f"{again:.2f}", f"{VERDICTS_SECONDS:g}", share(again, VERDICTS_SECONDS)),
    ]


def thumbnail_row(photographs: Sequence[bytes]) -> tuple[str, ...]:
    """The row of thumbnails: the wall-clock time of one thread as a multiple of that of two."""
    keep_freed_memory()

    def by_threads(count: int) -> float:
        with ThreadPoolExecutor(count) as pool:
            return shortest(lambda: list(pool.map(thumbnail, photographs)), perf_counter, rounds=1)

    rounds = [(by_threads(1), by_threads(2)) for _ in range(ROUNDS)]
    found = min(one for one, _ in rounds) / min(two for _, two in rounds)
    return (
        "thumbnails by two threads, times as many as by one",
        f"{found:.2f}",
        f"at least {MIN_OF_TWO_THREADS}",
        share(MIN_OF_TWO_THREADS, found),
    )


def elastic_rows(images: Sequence[Pixels]) -> list[tuple[str, ...]]:
    """A row for each severity of elastic_transform, and one for all of them."""
    cv2.setNumThreads(1)
    own = dict.fromkeys(SEVERITIES, 0.0)
    library = dict(own)
    for image in images:
        for severity in SEVERITIES:
            drawn = np.random.RandomState(0)
            own[severity] += shortest(lambda: elastic_transform(image, severity, drawn))  # noqa: B023
            library[severity] += shortest(
                lambda: imagecorruptions.corrupt(image, severity, "elastic_transform")  # noqa: B023
            )
    rows = [
        (f"elastic_transform / imagecorruptions', severity {each}", f"{own[each] / library[each]:.2f}", "", "")
        for each in SEVERITIES
    ]
    found = sum(own.values()) / sum(library.values())
    return [
        *rows,
        ("the same, all severities", f"{found:.2f}", f"{MAX_OF_LIBRARY}", share(found, MAX_OF_LIBRARY)),
    ]


if __name__ == "__main__":
    main()
