"""The corruptions of ImageNet-C-bar by facebookresearch/augmentation-corruption beside those of cleanset.

The authors' program runs as it is, in a process of its own with a numpy before 2, whose mixed precisions it was
written for; a further row says what numpy 2 makes of it. Both draw from the same seeds.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from authors.odd import odd_images
from authors.rows import Row, compared
from cleanset.images.codec import decode
from cleanset.images.preprocessing import base_image
from cleanset.statistics.seeds import change_seed
from cleanset.studies.robustness.corruptions.changes import KIND, corrupted_images
from cleanset.studies.robustness.corruptions.params import C_BAR_AMOUNTS, SEVERITIES

PROGRAM = Path("augmentation-corruption/imagenet_c_bar")
NUMPY = "numpy-1.26.4"
SLOW = ("caustic_refraction", "sparkles", "plasma_noise", "perlin_noise", "inverse_sparkles", "brownish_noise")
"""Corruptions that the program takes up to eight seconds an image for: each image at one severity, in turn."""
MIXED = "caustic_refraction"
"""The corruption whose values depend on the version of numpy."""


@dataclass(frozen=True, slots=True)
class Job:
    """An image to be made: the number of the one it is made of, and the severity."""

    number: int
    severity: int


def rows(programs: Path, photographs: list[Path]) -> Iterator[Row]:
    """Two rows for each corruption, of photographs and of odd images; two more of one with today's numpy."""
    groups = {
        f"{len(photographs)} photographs": [base_image(decode(path.read_bytes())) for path in photographs],
        "8 odd images": [base_image(image) for image in odd_images().values()],
    }
    for name in C_BAR_AMOUNTS:
        for on, images in groups.items():
            jobs = [
                Job(number, severity)
                for number in range(len(images))
                for severity in SEVERITIES
                if name not in SLOW or severity == number % len(SEVERITIES) + 1
            ]
            ours = np.stack([our_image(images[job.number], name, job) for job in jobs])
            on = f"{on}, {'one severity each' if name in SLOW else '5 severities'}"
            yield compared(name, "corrupt.py", on, ours, their_images(programs, images, name, jobs, NUMPY))
            if name == MIXED:
                theirs = their_images(programs, images, name, jobs, None)
                yield compared(name, "corrupt.py with today's numpy", on, ours, theirs)


def seed_of(name: str, job: Job) -> int:
    return change_seed(job.number, KIND, name, job.severity)


def our_image(image: NDArray[np.uint8], name: str, job: Job) -> NDArray[np.uint8]:
    (found,) = corrupted_images(image, name, [job.severity], job.number)
    return found


def their_images(
    programs: Path, images: list[NDArray[np.uint8]], name: str, jobs: list[Job], numpy: str | None
) -> NDArray[np.uint8]:
    """The authors' images; `numpy`: the folder of the version to be imported, None for the installed one."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "in.npz"
        target = Path(folder) / "out.npy"
        np.savez(
            source,
            images=np.stack(images),
            numbers=np.array([job.number for job in jobs]),
            amounts=np.array([C_BAR_AMOUNTS[name][job.severity - 1] for job in jobs]),
            seeds=np.array([seed_of(name, job) for job in jobs]),
        )
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        if numpy is not None:
            if not (programs / numpy / "numpy").is_dir():
                raise FileNotFoundError(f"{programs / numpy}: missing; expected an unpacked wheel of numpy")
            environment["PYTHONPATH"] = str((programs / numpy).resolve())
        script = Path(__file__).with_name("c_bar_then.py")
        command = [sys.executable, str(script), str((programs / PROGRAM).resolve()), name, str(source), str(target)]
        subprocess.run(command, env=environment, check=True)
        found: NDArray[np.uint8] = np.load(target)
    return found
