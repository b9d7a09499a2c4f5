"""Prove the GPU path: the same stored scores as on the CPU, all precisions, and the rates beside what bounds them.

Run it as `make check-gpu`, or, where nothing is installed, from the project's folder:

    PYTHONPATH=src python bench/check_gpu.py

Beyond torch 2.11 and torchvision 0.26 it needs these wheels: timm 1.0.9, safetensors, huggingface-hub<2, numpy,
pandas, pyarrow, pillow, pydantic, pyyaml, rich, scipy, typer; and robustbench 1.1.1 (--no-deps: only its version
is read). The waiting for corrupted images is measured too if the extra robustness is installed.
It needs the folder of real photographs and weights: CLEANSET_REAL, else ../shared/real.

It prints Markdown for RESULTS.md and ends with exit code 1 if a stored score differs. Parts that would begin after
--budget seconds are left out. Without a GPU: `--device cpu --images 200`, which compares two batch sizes instead.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import score
from measuring import PROJECT, REAL, print_machine, print_table, scratch

PRECISIONS = ("float64", "float32", "tf32", "bfloat16")
LITES = ("tf_efficientnet_lite0", "tf_efficientnet_lite1", "tf_efficientnet_lite2")
SAMPLE_MODELS = {
    "standard": "test_efficientnet",
    "norm_robust": "test_byobnet",
    "corruption_robust": "test_vit",
}
LIBRARIES = ("torch", "torchvision", "timm")
MIN_OF_FORWARD, MIN_OF_SLOWER, MIN_OF_TIMM = 0.95, 0.9, 2.5
"""Limits: float64 by forward alone; float32 by the slower of forward and decoding; either by the plain timm loop."""
CHANGED_IMAGES = 80
"""Divisor of the number of images for the waiting: each of them is changed 76 times."""
START_IMAGES = 4
"""Images with which the start of the stage is measured."""
ALL = 10**6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20_000, help="for the rates")
    parser.add_argument("--photographs", type=int, default=ALL, help="to compare, of the real ones")
    parser.add_argument("--drawings", type=int, default=ALL, help="to compare, of the sample")
    parser.add_argument("--model", default="resnet50", help="a timm model, for the rates; random weights")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--budget", type=float, default=400, help="seconds after which no further part begins")
    parser.set_defaults(memory=False, precision="float64")
    arguments = parser.parse_args()
    if problem := missing(arguments.device):
        sys.exit(f"error: {problem}")
    with scratch() as folder:
        problems = check(arguments, folder)
    if problems:
        sys.exit(f"error: {'; '.join(problems)}")


def missing(device: str) -> str | None:
    """Return the requirements that this machine lacks, in one line; None if it has all."""
    import torch

    if not device.startswith("cuda"):
        return None
    if not torch.cuda.is_available():
        return "check-gpu needs a CUDA device and a torch that finds it; without one: --device cpu --images 200"
    if not (REAL / "weights").is_dir():
        return f"check-gpu needs the real photographs and weights: none in {REAL}; set CLEANSET_REAL"
    return None


def check(arguments: argparse.Namespace, folder: Path) -> list[str]:
    """Measure and print everything; the problems: models whose stored scores differ, and parts that failed."""
    begin, failed = perf_counter(), list[str]()

    def measured(text: str, part: Callable[[], Any]) -> Any:
        """The result of a part, or None if the budget is used up."""
        used = perf_counter() - begin
        if used > arguments.budget:
            print(f"{text}: left out, {used:.0f} s are used up", file=sys.stderr)
            return None
        try:
            result = part()
        except SystemExit as error:  # its process has failed; the others may still tell something
            failed.append(text)
            print(error, file=sys.stderr)
            return None
        print(f"{text}: {perf_counter() - begin - used:.1f} s", file=sys.stderr)
        return result

    print_machine(*LIBRARIES)
    print(f"Device: {device_name(arguments.device)}.")
    part = partial(score.in_process, "same", folder, arguments, way)
    compared = measured("stored scores on both devices", part) or []
    print_table("Stored scores in float64, on both devices", COMPARED, compared)
    rates(arguments, folder, measured)
    if find_spec("imagecorruptions") is None:
        print("waiting for corrupted images: left out, the extra robustness is not installed", file=sys.stderr)
    elif waited := measured("waiting for corrupted images", partial(score.in_process, "wait", folder, arguments, way)):
        print_table(*waited)
    print(f"\nAll of it took {perf_counter() - begin:.0f} s.")
    problems = [f"{name}: stored scores differ" for name, images, same, *_ in compared if same != images]
    return problems + [f"{text}: failed" for text in failed] + ["stored scores: not compared"] * (not compared)


def device_name(device: str) -> str:
    """The model of the device."""
    import torch

    return torch.cuda.get_device_name(torch.device(device)) if device.startswith("cuda") else "the processor"


# The same scores

COMPARED = ("model", "images", "identical", "largest difference", "seconds on the CPU", "on the device")
Measured = Callable[[str, Callable[[], Any]], Any]


def way(arguments: argparse.Namespace) -> Any:
    """Measure one way in this process."""
    if arguments.way == "same":
        return same(arguments)
    if arguments.way == "wait":
        return waiting_shares(arguments)
    from cleanset.scoring.scorer import Scorer, arithmetic, grouped

    params, settings, image_ids = score.run_of(arguments)
    model, read = score.model_and_images(arguments.folder, params)
    batches = LoaderBatches(read, model.preprocessing, settings.batch_size, settings.workers)
    groups = list(grouped(image_ids, settings.batch_size))
    list(batches.batches(groups[:1]))  # starts the processes and loads what they import
    found: list[float] = []
    if arguments.way == "loader":
        with score.timed(found):
            for _ in batches.batches(groups):
                pass
        return found
    scorer = Scorer(model, settings.devices[0], settings.precision)
    with arithmetic(settings.precision):
        list(scorer(batches.batches(groups[:1]), settings.workers))
        with score.timed(found):
            list(scorer(batches.batches(groups), settings.workers))
    return found


def same(arguments: argparse.Namespace) -> list[tuple[str, ...]]:
    """Rows of the table COMPARED: trained models on photographs, and the sample's models on the sample."""
    real = {name: REAL / "weights" / f"{name}.safetensors" for name in LITES}
    photographs = sorted((REAL / "photos").glob("*.JPEG"))[: arguments.photographs]
    drawings = drawn(arguments.folder / "drawn", arguments.drawings)
    sample = PROJECT / "sample" / "weights"
    rows = [same_scores(arguments, name, path, photographs) for name, path in real.items() if path.is_file()]
    rows += [
        same_scores(arguments, name, sample / f"{role}.safetensors", drawings) for role, name in SAMPLE_MODELS.items()
    ]
    return rows


def same_scores(arguments: argparse.Namespace, name: str, weights: Path, images: Sequence[Path]) -> tuple[str, ...]:
    """A row of the table COMPARED: images scored on the CPU and on the device, compared as they are stored."""
    import torch

    from cleanset.edition.params import Model
    from cleanset.files import sha256
    from cleanset.progress import available_cores
    from cleanset.scoring.engine import Settings, score_few
    from cleanset.scoring.models import load_model
    from cleanset.scoring.record import compare_scores
    from cleanset.scoring.scorer import CPU_BATCH_SIZE
    from cleanset.tables import SCORES, write_table

    named = Model(source="timm", name=name, weights=str(weights), sha256=sha256(weights.read_bytes()))
    model = load_model(named, arguments.folder)
    read = partial(read_file, {path.stem: str(path) for path in images})
    names = sorted(path.stem for path in images)
    cpu, device = torch.device("cpu"), torch.device(arguments.device)
    other_size = CPU_BATCH_SIZE + 3 if device == cpu else arguments.batch_size
    tables, seconds, written = [], [], []
    for place, size in ((cpu, CPU_BATCH_SIZE), (device, other_size)):
        begin = perf_counter()
        table = score_few(model, read, Settings([place], "float64", size, available_cores()), names)
        seconds.append(f"{perf_counter() - begin:.1f}")
        write_table(arguments.folder / "table", table, SCORES)
        tables.append(table)
        written.append((arguments.folder / "table").read_bytes())
    found = compare_scores(*tables)
    assert found.same == (written[0] == written[1])
    identical = found.images - len(found.different)
    return name, f"{len(names)}", f"{identical}", f"{found.largest_difference:.1g}", *seconds


def read_file(paths: Mapping[str, str], name: str) -> bytes:
    """The bytes of a file, by its name without the ending."""
    return Path(paths[name]).read_bytes()


def drawn(folder: Path, count: int) -> list[Path]:
    """The sample's images, drawn into a new folder."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    sys.path.append(str(PROJECT / "sample"))
    from draw import draw, image_id
    from plan import plans

    folder.mkdir()
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        for number, image in enumerate(pool.map(draw, plans()[:count], chunksize=4), start=1):
            (folder / f"{image_id(number)}.JPEG").write_bytes(image.jpeg)
    return sorted(folder.iterdir())


def waiting_shares(arguments: argparse.Namespace) -> Any:
    """The table of bench/waiting.py: how long a model waits for corrupted images in float64, and its limits."""
    import torch

    import waiting

    device = torch.device(arguments.device)
    count = max(arguments.images // CHANGED_IMAGES, 1)
    return waiting.table(arguments.folder / "waiting", arguments.model, count, device, arguments.batch_size)


# Rates


def rates(arguments: argparse.Namespace, folder: Path, measured: Measured) -> None:
    """Measure and print the rates of each precision, and of decoding."""
    whole, start = folder / "whole", folder / "start"
    options = arguments
    source = measured("building the editions", partial(score.in_process, "build", whole, options))
    if source is None:
        return
    score.in_process("build", start, with_options(arguments, images=START_IMAGES))
    decoding: dict[str, Sequence[float] | None] = {
        "threads": measured("decoding, threads", partial(score.in_process, "threads", whole, options)),
        "shared batches": measured("decoding, shared batches", partial(score.in_process, "processes", whole, options)),
        "DataLoader": measured("decoding, DataLoader", partial(score.in_process, "loader", whole, options, way)),
    }
    rows = [(f"decoding: {name}", shown(rate(options.images, times))) for name, times in decoding.items()]
    print_table(f"Decoding, {options.images:,} images ({source})", ("what", "images/s"), rows)
    decoded = rate(options.images, decoding["shared batches"])
    columns = [rates_of(arguments, precision, whole, start, decoded, measured) for precision in arguments.precisions]
    names = list(columns[0])
    table = [(name, *(shown(column[name], name) for column in columns)) for name in names]
    table += [
        (name, *(limits.get(precision, "") for precision in arguments.precisions)) for name, limits in LIMITS.items()
    ]
    title = f"{arguments.model}, {arguments.images:,} images ({source}), images/s"
    print_table(title, ("what", *arguments.precisions), table)


LIMITS = {
    "limit: score by forward alone, at least": {"float64": f"{MIN_OF_FORWARD}"},
    "limit: score by the slower of both, at least": {"float32": f"{MIN_OF_SLOWER}"},
    "limit: score by the plain timm loop, at least": {"float64": f"{MIN_OF_TIMM}", "float32": f"{MIN_OF_TIMM}"},
}


def with_options(arguments: argparse.Namespace, **changes: object) -> argparse.Namespace:
    """Return the options with some of them replaced."""
    return argparse.Namespace(**(vars(arguments) | changes))


def rates_of(
    arguments: argparse.Namespace, precision: str, whole: Path, start: Path, decoded: float | None, measured: Measured
) -> dict[str, float | None]:
    """The column of a precision: images per second, then ratios; None for what was left out."""
    options = with_options(arguments, precision=precision)
    half = with_options(options, images=max(options.images // 2, 1))
    for edition in (whole, start):
        score.write_params(edition, options)
    forward = measured(f"{precision}: forward", partial(score.in_process, "forward", whole, half))
    stage = measured(f"{precision}: cleanset score", partial(score.stage, whole))
    starting = measured(f"{precision}: its start", partial(score.stage, start)) if stage else None
    timm = measured(f"{precision}: timm loop", partial(score.in_process, "timm", whole, half))
    loader = measured(
        f"{precision}: scoring by DataLoader", partial(score.in_process, "loader_score", whole, options, way)
    )
    scored = None
    if stage and starting and stage[0] > starting[0]:
        scored = (options.images - START_IMAGES) / (stage[0] - starting[0])
    forward_rate, timm_rate = rate(half.images, forward), rate(half.images, timm)
    slower = min(forward_rate, decoded) if forward_rate and decoded else None
    return {
        "forward alone": forward_rate,
        "cleanset score, without its start": scored,
        "cleanset score, with its start": rate(options.images, stage),
        "scoring, fed by a DataLoader": rate(options.images, loader),
        "plain timm loop": timm_rate,
        "score by forward alone": ratio(scored, forward_rate),
        "score by the slower of forward and decoding": ratio(scored, slower),
        "score by the plain timm loop": ratio(scored, timm_rate),
        "largest difference from float64": difference_from_float64(whole) if stage else None,
    }


def difference_from_float64(edition: Path) -> float | None:
    """Return the largest difference in probability, as recorded by the stage."""
    record = json.loads((edition / "data" / "scores" / f"{score.ROLE}.json").read_text())
    found = record["against_float64"]
    return float(found["largest_difference"]) if found else None


def rate(images: int, times: Sequence[float] | None) -> float | None:
    """Images per second."""
    return images / times[0] if times else None


def ratio(value: float | None, by: float | None) -> float | None:
    """A quotient, if both numbers are there."""
    return value / by if value and by else None


def shown(value: float | None, name: str = "") -> str:
    """A number as a cell."""
    if value is None:
        return ""
    if name.startswith("largest"):
        return f"{value:.1g}"
    return f"{value:.2f}" if name.startswith("score by") else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


class LoaderBatches:
    """The batches of cleanset.scoring.decoding.SharedBatches from torch's DataLoader: each process fills whole batches.

    With a GPU its thread copies them into pinned memory. The processes stay until the object is gone.
    """

    def __init__(self, read: Any, preprocessing: Any, batch_size: int, workers: int) -> None:
        import torch
        from torch.utils.data import DataLoader

        self._groups = Groups()
        dataset: Any = Decoded(read, preprocessing, batch_size)
        self._loader: Any = DataLoader(
            dataset,
            batch_size=None,
            sampler=self._groups,
            num_workers=workers,
            persistent_workers=True,
            pin_memory=torch.cuda.is_available(),
            multiprocessing_context="forkserver",
        )

    def batches(self, groups: Sequence[Sequence[str]]) -> Iterator[Any]:
        """A batch for each group of image ids, in order."""
        from cleanset.scoring.decoding import Batch

        self._groups.groups = groups
        for group, pixels in self._loader:
            yield Batch(group, pixels.numpy())


class Groups:
    """A sampler whose groups of image ids can be exchanged."""

    groups: Sequence[Sequence[str]] = ()

    def __iter__(self) -> Iterator[Sequence[str]]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)


class Decoded:
    """A dataset whose items are batches: image ids, and their pixels with zeros after the last."""

    def __init__(self, read: Any, preprocessing: Any, batch_size: int) -> None:
        self._read, self._preprocessing, self._batch_size = read, preprocessing, batch_size

    def __getitem__(self, group: Sequence[str]) -> tuple[Sequence[str], Any]:
        import numpy as np
        import torch

        from cleanset.scoring.decoding import pixels_of

        size = self._preprocessing.size
        pixels = np.zeros((self._batch_size, 3, size, size), np.uint8)
        for place, image_id in enumerate(group):
            pixels[place] = pixels_of(image_id, self._read, self._preprocessing)
        return group, torch.from_numpy(pixels)


if __name__ == "__main__":
    main()
