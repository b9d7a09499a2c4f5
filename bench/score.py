"""Scoring full-size photographs from a tar: against the pure forward rate, decoding, and a plain timm loop.

Every way runs in a process of its own, the ways alternate.
"""

import argparse
import io
import os
import statistics
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import cycle, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

from measuring import REAL, print_machine, print_table, run, scratch, share

NAMES = {
    "forward": "(a) forward, images ready",
    "threads": "decoding, threads",
    "processes": "decoding, processes",
    "stage": "(b) cleanset score",
    "start": "of it: its start, with 4 images",
    "timm": "(c) plain timm loop",
}
DRAWN = 150
"""Number of drawn images if there is no photograph."""
READY_IMAGES = 32
"""Images that are decoded beforehand for the pure forward rate, unless a batch is larger."""
TIMM_BATCH = 64
"""Batch size of the plain loop without a GPU; with one it is score.batch_size."""
LIMIT_OF_BOTH = 0.9
ROLE = "standard"
CLEANSET = (sys.executable, "-c", "from cleanset.cli import main; main()")
"""The command, which need not be installed as one."""
START = "forkserver"
"""Start method of the processes of `in_process`."""
LIBRARIES = ["numpy", "pandas", "PIL.Image", "pyarrow.parquet", "pydantic", "safetensors.torch", "timm", "torch"]
"""Libraries that are imported once for all ways."""
TAR = "images.tar"
WEIGHTS = "weights.safetensors"
Times = tuple[float, float]
"""Seconds, and seconds of the processor."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tf_efficientnet_lite0", help="a timm model; random weights, if need be")
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with scratch() as folder:
        speed(arguments, folder)


def speed(arguments: argparse.Namespace, folder: Path) -> None:
    """Measure and print the table of rates."""
    count = arguments.images
    whole = folder / "whole"
    start = folder / "start"
    source = in_process("build", whole, arguments)
    in_process("build", start, argparse.Namespace(**(vars(arguments) | {"images": 4})))
    found: dict[str, list[Times]] = {name: [] for name in NAMES}
    for number in range(arguments.rounds):
        for name in NAMES if number % 2 == 0 else reversed(NAMES):
            if name in ("stage", "start"):
                found[name].append(stage(whole if name == "stage" else start))
            else:
                found[name].append(tuple(in_process(name, whole, arguments)))
            print(f"{name}: {found[name][-1][0]:.1f} s, {found[name][-1][1]:.1f} s of the processor", file=sys.stderr)
    middle = {name: [statistics.median(column) for column in zip(*times, strict=True)] for name, times in found.items()}
    print_machine()
    rows: list[tuple[str, ...]] = [
        (
            text,
            f"{middle[name][0]:.1f}",
            f"{middle[name][1]:.1f}" if middle[name][1] else "",
            f"{count / middle[name][0]:,.1f}",
        )
        for name, text in NAMES.items()
        if name != "start"
    ]
    rows.insert(4, (NAMES["start"], *(f"{value:.1f}" for value in middle["start"]), ""))
    steady = [whole - start for whole, start in zip(middle["stage"], middle["start"], strict=True)]
    both = [forward + decoding for forward, decoding in zip(middle["forward"], middle["threads"], strict=True)]
    rows += [
        ("(b) without its start", *(f"{value:.1f}" for value in steady), f"{count / steady[0]:,.1f}"),
        ("(b) of (a) and decoding", *(share(limit, value) for limit, value in zip(both, steady, strict=True)), ""),
        ("limit, at least", f"{LIMIT_OF_BOTH}", f"{LIMIT_OF_BOTH}", ""),
        ("(b) of (a) alone", *(share(a, b) for a, b in zip(middle["forward"], steady, strict=True)), ""),
        (
            "(b) with its start by (c), at least 1",
            *(share(c, b) for c, b in zip(middle["timm"], middle["stage"], strict=True)),
            "",
        ),
    ]
    title = (
        f"{arguments.model}, {arguments.precision}, {count:,} images ({source}), median of {arguments.rounds} rounds"
    )
    print_table(title, ("what", "seconds", "processor seconds", "images/s"), rows)


def stage(edition: Path) -> Times:
    """The times of `cleanset score` in a process of its own."""
    done = run(*CLEANSET, "score", "--model", ROLE, cwd=edition)
    return done.seconds, done.processor_seconds


def in_process(name: str, folder: Path, arguments: argparse.Namespace, way: Callable[..., Any] | None = None) -> Any:
    """The result of a way of this file, or of `way`, in a process of its own, with libraries that are imported once."""
    context: Any = get_context(START)
    context.set_forkserver_preload(LIBRARIES)
    ours, theirs = context.Pipe(duplex=False)
    options = argparse.Namespace(**(vars(arguments) | {"way": name, "folder": folder}))
    process = context.Process(target=_send, args=(theirs, way or globals()["way"], options))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        process.join()
        sys.exit(f"{name}: exit code {process.exitcode}")
    finally:
        process.join()


def _send(pipe: "Connection[Any, Any]", way: Callable[[argparse.Namespace], Any], options: argparse.Namespace) -> None:
    """Run a way next to its edition, and send what it returns."""
    os.chdir(options.folder.parent)
    pipe.send(way(options))


def way(arguments: argparse.Namespace) -> Any:
    """Build the edition, or measure one way on the first of its images, in this process."""
    if arguments.way == "build":
        return build(arguments)
    params, settings, image_ids = run_of(arguments)
    if arguments.way == "timm":
        return timm_loop(arguments.folder, params, settings, image_ids)
    model, read = model_and_images(arguments.folder, params)
    if arguments.way == "forward":
        return forward(model, read, settings, image_ids)
    return decoding(model, read, settings, image_ids, processes=arguments.way == "processes")


def run_of(arguments: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    """The params of a built edition, the settings of its scoring, and the ids of the images to be scored."""
    from cleanset.classes import imagenet
    from cleanset.edition.params import read_params
    from cleanset.edition.paths import Edition
    from cleanset.scoring.engine import settings_for
    from cleanset.tables import INDEX, read_table

    params = read_params(arguments.folder)
    image_ids = read_table(Edition(arguments.folder).index, INDEX, imagenet())["image_id"].tolist()
    return params, settings_for(params.score), image_ids[: arguments.images]


def model_and_images(folder: Path, params: Any) -> tuple[Any, Any]:
    """The model of a built edition, loaded, and the function that reads its images."""
    from cleanset.classes import imagenet
    from cleanset.edition.paths import Edition, verified_images
    from cleanset.scoring.models import load_model
    from cleanset.tables import INDEX, read_table

    edition = Edition(folder)
    images = verified_images(edition, TAR, read_table(edition.index, INDEX, imagenet()), imagenet())
    return load_model(params.model(ROLE), folder), images.read


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Put the seconds, and those of the processor with its ended children, into a list."""
    before = os.times()
    begin = perf_counter()
    yield
    into.append(perf_counter() - begin)
    into.append(sum(os.times()[:4]) - sum(before[:4]))


def forward(model: Any, read: Any, settings: Any, image_ids: Sequence[str]) -> list[float]:
    """The forward pass alone, of as many images, from a few that are decoded beforehand; they stay on the device."""
    import numpy as np
    import torch

    from cleanset.scoring.decoding import PixelBatch, pixels_of
    from cleanset.scoring.scorer import DTYPES, Scorer, arithmetic, grouped

    device = settings.devices[0]
    size = settings.batch_size
    found: list[float] = []
    ready = np.stack([pixels_of(name, read, model.preprocessing) for name in image_ids[: max(READY_IMAGES, size)]])
    with arithmetic(settings.precision):
        if not device.is_separate:
            scorer = Scorer(model, device, settings.precision)
            batches = [
                PixelBatch(image_ids[:size], ready[at : at + size]) for at in range(0, len(ready) // size * size, size)
            ]
            list(scorer(batches, settings.workers))
            with timed(found):
                list(scorer(islice(cycle(batches), len(image_ids) // size), settings.workers))
        else:
            network = model.network.to(device.torch, DTYPES[settings.precision])
            pixels = torch.from_numpy(ready).to(device.torch)
            lower = torch.autocast(device.torch.type, torch.bfloat16, enabled=settings.precision == "bfloat16")
            with torch.inference_mode(), lower:
                network(pixels.to(DTYPES[settings.precision]) / 255)
                with timed(found):
                    for _ in grouped(image_ids, len(ready)):
                        logits = network(pixels.to(DTYPES[settings.precision]) / 255)
                    logits.cpu()
    return found


def decoding(model: Any, read: Any, settings: Any, image_ids: Sequence[str], processes: bool) -> list[float]:
    """Decoding alone, into batches of preprocessed pixels, by threads or by processes that were started before."""
    from cleanset.scoring.decoding import SharedBatches, in_threads
    from cleanset.scoring.scorer import grouped

    found: list[float] = []
    groups = grouped(image_ids, settings.batch_size)
    if not processes:
        with timed(found):
            for _ in in_threads(groups, read, model.preprocessing, settings.batch_size, settings.workers):
                pass
        return found
    with SharedBatches(read, model.preprocessing, settings.batch_size, settings.workers) as shared:
        list(shared.batches(grouped(image_ids[: settings.workers], settings.batch_size)))
        with timed(found):
            for _ in shared.batches(groups):
                pass
    return [*found[:1], 0.0]  # these processes are not our children


def timm_loop(folder: Path, params: Any, settings: Any, image_ids: Sequence[str]) -> list[float]:
    """A plain loop as in timm's validation: its transform, a DataLoader with all cores, forward, the top-5 classes."""
    import timm
    import torch
    from PIL import Image
    from safetensors.torch import load_file
    from torch.utils.data import DataLoader, Dataset

    from cleanset.dataset.archives import locate
    from cleanset.scoring.scorer import DTYPES, arithmetic

    device = settings.devices[0].torch
    dtype = DTYPES[settings.precision]
    network = timm.create_model(params.model(ROLE).name)
    network.load_state_dict(load_file(folder / params.model(ROLE).weights))
    network = network.eval().to(device, dtype)
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network), is_training=False)
    locations = locate(folder / TAR)

    class Images(Dataset[Any]):
        def __len__(self) -> int:
            return len(image_ids)

        def __getitem__(self, number: int) -> Any:
            return transform(Image.open(io.BytesIO(locations[image_ids[number]].read())).convert("RGB"))

    size = TIMM_BATCH if device.type == "cpu" else settings.batch_size
    pinned = device.type == "cuda"
    loader = DataLoader(Images(), size, num_workers=settings.workers, pin_memory=pinned, multiprocessing_context="fork")
    lower = torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bfloat16")
    found: list[float] = []
    with timed(found), arithmetic(settings.precision), torch.inference_mode(), lower:
        for images in loader:
            network(images.to(device, dtype)).softmax(dim=1).topk(5)[0].cpu()
    return found


def build(arguments: argparse.Namespace) -> str:
    """An edition with that many images in a tar, and one model; returns what the images are."""
    import timm
    from safetensors.torch import save_file

    folder = arguments.folder
    folder.mkdir()
    source, images = photographs_or_drawings()
    write_images(folder, images, arguments.images)
    trained = REAL / "weights" / f"{arguments.model}.safetensors"
    weights = folder / WEIGHTS
    if trained.is_file():
        weights.write_bytes(trained.read_bytes())
    else:
        save_file(dict(timm.create_model(arguments.model).state_dict()), weights)
    write_params(folder, arguments)
    return source


def write_params(folder: Path, arguments: argparse.Namespace) -> None:
    """Write params.yaml of an edition whose weights are there."""
    import yaml

    from cleanset.plumbing.files import sha256

    weights = folder / WEIGHTS
    model = {"source": "timm", "name": arguments.model, "weights": WEIGHTS, "sha256": sha256(weights.read_bytes())}
    score = {"device": arguments.device, "precision": arguments.precision, "batch_size": arguments.batch_size}
    params = {"root": ".", "dataset": {"images": TAR}, "models": {ROLE: model}, "score": score}
    (folder / "params.yaml").write_text(yaml.safe_dump(params))


def write_images(folder: Path, images: Sequence[bytes], count: int) -> None:
    """Write a tar with that many images, the given ones again and again, and their index and locations."""
    import pandas as pd

    from cleanset.classes import imagenet
    from cleanset.dataset.archives import locate, to_table
    from cleanset.dataset.ilsvrc import CLASSES
    from cleanset.edition.paths import Edition
    from cleanset.image_ids import image_id
    from cleanset.images.codec import inspect
    from cleanset.plumbing.files import sha256
    from cleanset.tables import INDEX, LOCATIONS, write_table

    archive = folder / TAR
    edition = Edition(folder)
    ids = [image_id(number) for number in range(1, count + 1)]
    with tarfile.open(archive, "w") as tar:
        for name, data in zip(ids, cycle(images), strict=False):
            member = tarfile.TarInfo(f"{name}.JPEG")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    facts = [asdict(inspect(data)) | {"size": len(data), "sha256": sha256(data)} for data in images]
    classes = [number % CLASSES for number in range(count)]
    index = pd.DataFrame(list(islice(cycle(facts), count))).assign(
        image_id=ids,
        ilsvrc_class=classes,
        real_classes=pd.Series([[each] for each in classes], dtype=object),
        single=True,
    )
    write_table(edition.index, index[INDEX.names], INDEX, imagenet())
    write_table(edition.locations, to_table(locate(archive), archive), LOCATIONS, imagenet())


def photographs_or_drawings() -> tuple[str, list[bytes]]:
    """The real photographs next to the project or in CLEANSET_REAL; drawn ones if there are none."""
    import numpy as np

    photographs = [path.read_bytes() for path in sorted((REAL / "photos").glob("*.JPEG"))]
    if photographs:
        return f"{len(photographs)} real photographs, repeated", photographs
    rng = np.random.default_rng(0)
    return f"{DRAWN} drawn ones, repeated", [drawing(rng) for _ in range(DRAWN)]


def drawing(rng: Any) -> bytes:
    """A JPEG of the size, in pixels and in bytes, of the usual image of ImageNet."""
    import numpy as np
    from PIL import Image

    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375))
    pixels = np.asarray(coarse) + rng.normal(0, 14, (375, 500, 3))
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=94)
    return out.getvalue()


if __name__ == "__main__":
    main()
