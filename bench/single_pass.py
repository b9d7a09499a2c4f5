"""Processor time of showing the corrupted images to three models, against one model and the forward passes of two more.

The images are made once for all of them, and their digests are taken. Each run is a process of its own, and the
processor time of its workers counts, too, since their start.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
import torch
from PIL import Image

from cleanset.classes import imagenet
from cleanset.machine import available_cores, keep_freed_memory
from cleanset.scoring.decoding import PixelBatch
from cleanset.scoring.devices import CPU_BATCH_SIZE, device_of
from cleanset.scoring.engine import Settings
from cleanset.scoring.scorer import Scorer, arithmetic
from cleanset.scoring.shards import Shards
from cleanset.studies.robustness.answering import ModelInPass, OnePass, squares
from cleanset.studies.robustness.answers import BATCH_SIZE, NAMED_ANSWERS, NAMED_DIGESTS, ReadAnswers, TakenDigests
from cleanset.studies.robustness.corruptions.changes import corrupted_image
from cleanset.studies.robustness.images import ChangedImages, ChangeName
from measuring import PYTHON, print_machine, print_table, run, scratch, share
from waiting import CHANGES, model_of, stored

MODELS, SIDE = ("test_efficientnet", "test_byobnet", "test_vit"), 160
"""The architectures of the sample's models, and the side of their input."""
PHOTOGRAPHS = 24
MAX_RATIO = 1.15
CPU = device_of(torch.device("cpu"))


@dataclass(frozen=True)
class TimedImages:
    """Changed images; each process that makes some keeps its processor time in a file."""

    changed: ChangedImages
    folder: Path

    def __call__(self, name: ChangeName) -> Image.Image:
        """The changed image of that name."""
        image = self.changed(name)
        (self.folder / str(os.getpid())).write_text(str(process_time()))
        return image


def main() -> None:
    if sys.argv[1:]:
        print(forward() if sys.argv[1] == "forward" else shown(MODELS[: int(sys.argv[1])]))
        return
    with scratch() as folder:
        one, three, passes = (
            float(run(PYTHON, __file__, what, cwd=folder).output.splitlines()[-1]) for what in ("1", "3", "forward")
        )
    print_machine("torch", "timm", "imagecorruptions-imaug", "numba")
    print_table(
        f"{PHOTOGRAPHS} images x {len(CHANGES)} changes, {', '.join(MODELS)}",
        ("what", "processor seconds"),
        [
            ("images, digests and one model", f"{one:.1f}"),
            ("images, digests and three models", f"{three:.1f}"),
            ("forward passes of the two further models", f"{passes:.1f}"),
            ("three models by one and the forward passes", share(three, one + passes)),
            ("limit", f"{MAX_RATIO}"),
        ],
    )
    sys.exit(three > MAX_RATIO * (one + passes))


def shown(names: tuple[str, ...]) -> float:
    """The processor seconds of one pass of the models, since the start of the process."""
    with scratch() as folder:
        for name in ("images", "times"):
            (folder / name).mkdir()
        _, files = stored(folder / "images", PHOTOGRAPHS)
        images = sorted(ChangeName(file, *change) for file in files for change in CHANGES)
        made = TimedImages(ChangedImages(files, corrupted_image, 85, 0), folder / "times")
        taken = TakenDigests(
            Shards(folder / "digests", "bench", images, BATCH_SIZE, classes=imagenet(), table=NAMED_DIGESTS)
        )
        models = {
            name: ModelInPass(
                model_of(name, squares(SIDE)),
                Shards(folder / name, "bench", images, CPU_BATCH_SIZE, classes=imagenet(), table=NAMED_ANSWERS),
                ReadAnswers(range(1000), dict.fromkeys(files, 0)),
            )
            for name in names
        }
        settings = Settings([CPU], "float64", CPU_BATCH_SIZE, available_cores())
        if problems := OnePass(models, made, settings, digests=taken).answer():
            sys.exit(str(problems))
        return process_time() + sum(float(path.read_text()) for path in (folder / "times").iterdir())


def forward() -> float:
    """The processor seconds of the forward passes of the further models, of as many images that are ready."""
    pixels = np.random.default_rng(0).integers(0, 256, (CPU_BATCH_SIZE, 3, SIDE, SIDE), np.uint8)
    batches = [PixelBatch([ChangeName("", "", place) for place in range(CPU_BATCH_SIZE)], pixels)] * (
        PHOTOGRAPHS * len(CHANGES) // CPU_BATCH_SIZE
    )
    keep_freed_memory()
    found = 0.0
    with arithmetic("float64"):
        for name in MODELS[1:]:
            scorer = Scorer(model_of(name, squares(SIDE)), CPU, "float64", read_off=ReadAnswers(range(1000), {"": 0}))
            list(scorer(batches[:2], available_cores()))
            begin = process_time()
            list(scorer(batches, available_cores()))
            found += process_time() - begin
    return found


if __name__ == "__main__":
    main()
