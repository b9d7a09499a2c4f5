"""Scoring beside a device that takes the time of an H200 and no core: what starting, decoding and writing add.

Images decode in no time. Nothing heavy is imported here, since each worker process imports its main module.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from measuring import print_machine, print_table, scratch

WORKERS = (1, 4, 16)
PRECISIONS = ("float32", "float64")
BATCH_SIZE, SIDE, LIMIT = 256, 224, 1.05


@dataclass(frozen=True)
class Ready:
    """Images that are read and decoded already."""

    def __call__(self, image_id: str) -> Image.Image:
        return IMAGE


@dataclass(frozen=True)
class ReadyPixels:
    """A preprocessing that has been done already."""

    name = "ready"
    size = SIDE

    def __call__(self, image: Image.Image) -> NDArray[np.uint8]:
        return PIXELS


IMAGE = Image.new("RGB", (1, 1))
PIXELS = np.full((3, SIDE, SIDE), 127, np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    arguments = parser.parse_args()
    print_machine("torch")
    with scratch() as folder:
        for precision in arguments.precisions:
            columns = []
            for workers in arguments.workers:
                columns.append(measure(folder / f"{precision} {workers}", precision, workers, arguments.images))
                print(f"{precision}, {workers} processes: {columns[-1]['all']:.1f} s", file=sys.stderr)
            rows = [(name, *(shown(column[name]) for column in columns)) for name in columns[0]]
            names = [f"{workers} processes" if workers > 1 else "1 process" for workers in arguments.workers]
            rows.append(("limit", *(f"{LIMIT}" for _ in names)))
            title = f"{arguments.images:,} images, {precision}, batches of {BATCH_SIZE}, seconds"
            print_table(title, ("what", *names), rows)


def shown(value: float | None) -> str:
    """A number of seconds, or a ratio, as a cell."""
    return "" if value is None else f"{value:.2f}"


def measure(folder: Path, precision: Any, workers: int, images: int) -> dict[str, float | None]:
    """Seconds by what they were spent on, in the run of a model and its sample in float64."""
    import simulation
    from cleanset.classes import imagenet
    from cleanset.scoring.engine import ScoringRun, Settings
    from cleanset.scoring.logits import top5
    from cleanset.scoring.models import LoadedModel
    from cleanset.scoring.scorer import DTYPES
    from cleanset.scoring.validity import MadeFrom
    from timed_device import CLASSES, SECONDS, TimedDevice, TimedNetwork

    index = simulation.index_of([[number % CLASSES] for number in range(images)])
    names, device = index["image_id"].tolist(), TimedDevice()
    decoding = decode_alone(names, workers)
    ready: Any = ReadyPixels()
    model = LoadedModel(TimedNetwork(device), ready, "0" * 64, classes=len(imagenet()))
    begin = perf_counter()
    settings = Settings([device], precision, BATCH_SIZE, workers)
    with ScoringRun(
        name="stand-in", model=model, read=Ready(), settings=settings, index=index, classes=imagenet()
    ) as run:
        shards: Any = run.shards(folder, MadeFrom({}))
        writing, keep = [0.0], shards.keep

        def timed_keep(number: int, table: Any) -> None:
            start = perf_counter()
            keep(number, table)
            writing[0] += perf_counter() - start

        shards.keep = timed_keep
        run.scores(shards)
        end = perf_counter()
        idle, first = device.idle, device.first - begin
        device.first = 0.0
        run.against_float64(shards.table())
        sample = device.first - end if device.first else None
    logits = np.random.default_rng(1).normal(size=(BATCH_SIZE, CLASSES))
    start = perf_counter()
    top5(logits)
    ranking = (perf_counter() - start) * images / BATCH_SIZE
    forwards = images * SECONDS[DTYPES[precision]]
    return {
        "first batch": first,
        "device without work": idle,
        "copies": device.copying,
        "ranking, alone": ranking,
        "writing": writing[0],
        "forward passes": forwards,
        "decoding alone": decoding,
        "all": end - begin,
        "first batch of the sample in float64": sample,
        "all by first batch + slower of both": (end - begin) / (first + max(forwards, decoding)),
    }


def decode_alone(names: list[str], workers: int) -> float:
    """Seconds for all images, by processes that have started."""
    from cleanset.scoring.decoding import SharedBatches
    from cleanset.scoring.scorer import grouped

    with SharedBatches(Ready(), ReadyPixels(), BATCH_SIZE, workers) as shared:
        for _ in shared.batches(grouped(names[:BATCH_SIZE], BATCH_SIZE)):
            pass
        start = perf_counter()
        for _ in shared.batches(grouped(names, BATCH_SIZE)):
            pass
        return perf_counter() - start


if __name__ == "__main__":
    main()
