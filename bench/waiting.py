"""The share of a run in which a model waits for corrupted images, which processes make while it computes.

The way from files to answers is that of `cleanset robustness corruptions`: all 15 corruptions at five severities and
the unchanged image, each stored as a JPEG of quality 85. Without a GPU, the processes and the model share the cores.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import timm
import torch
from safetensors.torch import load_file

from cleanset.classes import imagenet
from cleanset.edition.params import Precision
from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import BASE_SIZE, ResizeAndCrop
from cleanset.plumbing.files import sha256
from cleanset.plumbing.machine import available_cores
from cleanset.scoring.decoding import PixelBatch, SharedBatches, worker_processes
from cleanset.scoring.devices import CPU_BATCH_SIZE, device_of
from cleanset.scoring.engine import Settings
from cleanset.scoring.models import LoadedModel, Normalise
from cleanset.scoring.scorer import Scorer, arithmetic, grouped
from cleanset.scoring.shards import Shards
from cleanset.studies.robustness.answers import NAMED_ANSWERS, ReadAnswers
from cleanset.studies.robustness.corruptions.changes import corrupted_image
from cleanset.studies.robustness.corruptions.params import CORRUPTIONS, SEVERITIES
from cleanset.studies.robustness.families import CHANGING
from cleanset.studies.robustness.images import ChangedImages, ChangeName
from cleanset.studies.robustness.one_pass import ModelInPass, OnePass
from cleanset.studies.robustness.sections import UNCHANGED
from measuring import REAL, print_machine, print_table, scratch, share
from score import photographs_or_drawings

MAX_WAITING_SHARE = 0.05
MAX_OF_MODEL_ALONE = 1.15
"""Limit of the run's time as a multiple of the model's alone, on a GPU, where the cores do nothing else."""
MODELS = {"cpu": "tf_efficientnet_lite0", "cuda": "resnet50"}
IMAGES = {"cpu": 40, "cuda": 500}
BATCH_SIZES = {"cpu": CPU_BATCH_SIZE, "cuda": 256}
BATCHES_ALONE = 50
"""Batches that the rate of the model alone is measured on."""
PRECISION: Precision = "float64"
CHANGES = [(UNCHANGED, 0), *((name, severity) for name in CORRUPTIONS for severity in SEVERITIES)]
PRELOADED = ["cleanset.studies.robustness.answering", *CHANGING]
"""Modules for the server of worker processes: each of these runs this main module again, with its imports."""
PREPROCESSING = ResizeAndCrop(f"Res{BASE_SIZE}", BASE_SIZE, BASE_SIZE, "bilinear")
"""Returns a changed image unchanged."""


class Waited(NamedTuple):
    """Changed images per second, made alone, classified alone, and both at once; the shares of the time of the latter
    in which no batch was ready: in all, since the start of the processes, and after the first quarter of the images,
    when every process has imported its libraries and compiled what it runs."""

    made: float
    classified: float
    both: float
    of_all: float
    later: float


def main() -> None:
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=IMAGES[kind], help=f"of each, {len(CHANGES)} changed ones")
    parser.add_argument("--model", default=MODELS[kind], help="a timm model; random weights, if need be")
    arguments = parser.parse_args()
    with scratch() as folder:
        device = torch.device(kind)
        found = table(folder / "images", arguments.model, arguments.images, device, BATCH_SIZES[kind])
    print_machine("torch", "timm", "imagecorruptions-imaug", "numba", "opencv-python-headless")
    print_table(*found)


def table(
    folder: Path, name: str, count: int, device: torch.device, batch_size: int
) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
    """Measure; the title, header and rows of the table. The images are written into the new `folder`."""
    folder.mkdir()
    worker_processes(PRELOADED)
    source, files = stored(folder, count)
    model = model_of(name)
    found = waited(model, files, device, batch_size)
    title = f"{name} on {device.type}, {len(files)} images x {len(CHANGES)} changes ({source})"
    return title, ("what", PRECISION, "limit"), rows_of(found, device.type)


def rows_of(found: Waited, kind: str) -> list[tuple[str, ...]]:
    """The rows of the table: what was found, and the limit."""
    max_of_model = f"{MAX_OF_MODEL_ALONE}" if kind == "cuda" else ""
    return [
        ("changed images made alone, a second", f"{found.made:,.0f}", ""),
        ("model alone, images a second", f"{found.classified:,.1f}", ""),
        ("both at once, images a second", f"{found.both:,.1f}", ""),
        ("time by that of the model alone", share(found.classified, found.both), max_of_model),
        ("share spent waiting, start included", f"{found.of_all:.4f}", f"{MAX_WAITING_SHARE}"),
        ("of the limit", share(found.of_all, MAX_WAITING_SHARE), ""),
        ("share spent waiting after the first quarter", f"{found.later:.4f}", ""),
    ]


def stored(folder: Path, count: int) -> tuple[str, dict[str, ImageFile]]:
    """Description of the images, and `count` files of a study; images are repeated under other names if too few."""
    source, photographs = photographs_or_drawings()
    for number, data in enumerate(photographs[:count]):
        (folder / f"{number}.JPEG").write_bytes(data)
    digests = [sha256(data) for data in photographs[:count]]
    places = (number % len(digests) for number in range(count))
    files = {
        f"{number:05d}.JPEG": ImageFile(folder / f"{place}.JPEG", digests[place], f"ILSVRC2012_val_{number + 1:08d}")
        for number, place in enumerate(places)
    }
    return source, files


def model_of(name: str, preprocessing: ResizeAndCrop = PREPROCESSING) -> LoadedModel:
    """A timm model with its weights of CLEANSET_REAL, else of ../shared/real, else with random ones."""
    torch.manual_seed(0)
    network = timm.create_model(name).eval()
    weights = REAL / "weights" / f"{name}.safetensors"
    if weights.is_file():
        network.load_state_dict(load_file(weights))
    normalise = Normalise(network.pretrained_cfg["mean"], network.pretrained_cfg["std"])
    return LoadedModel(torch.nn.Sequential(normalise, network).eval(), preprocessing, "", classes=len(imagenet()))


def waited(model: LoadedModel, files: Mapping[str, ImageFile], device: torch.device, batch_size: int) -> Waited:
    """Make the changed images, classify as many, and do both at once, on all cores."""
    names = sorted(ChangeName(file, *change) for file in files for change in CHANGES)
    images = ChangedImages(files, corrupted_image, 85, 0)
    groups = partial(grouped, names, batch_size)
    cores = available_cores()
    torch.zeros(1, device=device)  # the device's own start does not count as waiting for images
    with arithmetic(PRECISION):
        made, ready = made_alone(images, batch_size, cores, list(groups()))
        classified = classified_alone(Scorer(model, device_of(device), PRECISION), ready, cores)
        with scratch() as folder:
            shards = Shards(folder, "waiting", names, batch_size, classes=imagenet(), table=NAMED_ANSWERS)
            in_pass = {
                "model": ModelInPass(
                    model=model, shards=shards, read_off=ReadAnswers(range(1000), dict.fromkeys(files, 0))
                )
            }
            settings = Settings([device_of(device)], PRECISION, batch_size, cores)
            times: list[tuple[float, float]] = []
            begin = perf_counter()

            def note(_: int, waiting: float | None) -> None:
                times.append((perf_counter() - begin, waiting or 0.0))

            OnePass(models=in_pass, images=images, settings=settings, on_progress=note).answer()
    (first, first_share) = times[len(times) // 4]
    (last, last_share) = times[-1]
    later = max(0.0, last * last_share - first * first_share) / max(last - first, 1e-9)
    return Waited(made, classified, len(names) / last, last_share, later)


def made_alone(
    images: ChangedImages, batch_size: int, cores: int, groups: Sequence[Sequence[ChangeName]]
) -> tuple[float, list[PixelBatch]]:
    """Changed images per second without a model, once the processes have begun; and the first batches."""
    with SharedBatches(images, PREPROCESSING, batch_size, cores) as shared:
        ready = [PixelBatch(batch.image_ids, batch.pixels.copy()) for batch in shared.batches(groups[:cores])]
        begin = perf_counter()
        count = sum(len(batch.image_ids) for batch in shared.batches(groups))
        return count / (perf_counter() - begin), ready


def classified_alone(scorer: Scorer, ready: Sequence[PixelBatch], cores: int) -> float:
    """Images per second of the model alone, from batches that are ready."""
    list(scorer(ready, cores))
    begin = perf_counter()
    done = sum(len(scored.image_ids) for scored in scorer(islice(cycle(ready), BATCHES_ALONE), cores))
    return done / (perf_counter() - begin)


if __name__ == "__main__":
    main()
