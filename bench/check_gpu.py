"""Prove the GPU path: the same stored scores as on the CPU, all precisions, and the rates with what bounds them.

Run it as `make check-gpu`, or, if nothing is installed, from the project's folder:

    PYTHONPATH=src python bench/check_gpu.py

Beyond torch 2.11 and torchvision 0.26 it needs these wheels: timm 1.0.9, safetensors, huggingface-hub<2, numpy,
pandas, pyarrow, pillow, pydantic, pyyaml, rich, scipy, typer; and robustbench 1.1.1 (--no-deps: only its version
is read). The waiting for corrupted images is measured too if the extra robustness is installed.
It needs the folder of real photographs and weights: CLEANSET_REAL, else ../shared/real.

It prints Markdown for RESULTS.md, the most important rows first and each row once measured, and ends with exit
code 1 if a stored score differs or a part fails. Parts that would begin after --budget seconds are left out. Without a
GPU: `--device cpu --images 200`, which compares two batch sizes instead.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
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
MIN_OF_FORWARD = 0.95
"""Limit of the rate in float64, as a share of the rate of the forward pass alone."""

MIN_OF_SLOWER = 0.9
"""Limit in the other precisions, as a share of the slower of forward pass and decoding."""

MIN_OF_TIMM = 2.5
"""Limit in each precision, as a multiple of the plain timm loop."""

COLUMNS = {
    "precision": "",
    "forward alone": ",.0f",
    "score, without its start": ",.0f",
    "score, with its start": ",.0f",
    "plain timm loop": ",.0f",
    f"score by forward (float64: at least {MIN_OF_FORWARD})": ".2f",
    f"score by the slower of forward and decoding (others: at least {MIN_OF_SLOWER})": ".2f",
    f"score by the timm loop (at least {MIN_OF_TIMM})": ".2f",
    "largest difference from float64": ".1g",
}
"""Columns of the table of rates, in images per second and ratios, with the format of each."""
CHANGED_IMAGES = 80
"""Divisor of the number of images for the waiting: each of them is changed 76 times."""
GPUS = (1, 4, 8)
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
    parser.add_argument("--budget", type=float, default=480, help="seconds after which no further part begins")
    parser.set_defaults(precision="float64", source=None, decoded=None)
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
    begin = perf_counter()
    failed: list[str] = []

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
    exact = [each for each in arguments.precisions if each in PRECISIONS[:2]]
    forward = rates(arguments, folder, measured, exact)
    compared = measured("stored scores on both devices", partial(in_process, "same", folder, arguments)) or []
    print_table("Stored scores in float64, on both devices", COMPARED, compared)
    forward |= rates(arguments, folder, measured, [each for each in arguments.precisions if each not in exact])
    decoding(arguments, folder, measured)
    print_cores(arguments, forward)
    if find_spec("imagecorruptions") is None:
        print("waiting for corrupted images: left out, the extra robustness is not installed", file=sys.stderr)
    elif waited := measured("waiting for corrupted images", partial(in_process, "wait", folder, arguments)):
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
    return same(arguments) if arguments.way == "same" else waiting_shares(arguments)


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
    """A row of the table COMPARED: images scored on the CPU and on the device, compared as stored."""
    import torch

    from cleanset.classes import imagenet
    from cleanset.edition.params import Model
    from cleanset.plumbing.files import sha256
    from cleanset.plumbing.machine import available_cores
    from cleanset.scoring.devices import CPU_BATCH_SIZE, device_of
    from cleanset.scoring.distance import compare_scores
    from cleanset.scoring.engine import Settings, score_few
    from cleanset.scoring.models import load_model
    from cleanset.tables import SCORES, write_table

    named = Model(source="timm", name=name, weights=str(weights), sha256=sha256(weights.read_bytes()))
    model = load_model(named, arguments.folder)
    read = partial(read_file, {path.stem: path for path in images})
    names = sorted(path.stem for path in images)
    cpu = torch.device("cpu")
    device = torch.device(arguments.device)
    other_size = CPU_BATCH_SIZE + 3 if device == cpu else arguments.batch_size
    tables = []
    seconds = []
    written = []
    for place, size in ((cpu, CPU_BATCH_SIZE), (device, other_size)):
        begin = perf_counter()
        table = score_few(model, read, Settings([device_of(place)], "float64", size, available_cores()), names)
        seconds.append(f"{perf_counter() - begin:.1f}")
        write_table(arguments.folder / "table", table, SCORES, imagenet())
        tables.append(table)
        written.append((arguments.folder / "table").read_bytes())
    found = compare_scores(*tables)
    assert found.same == (written[0] == written[1])
    identical = found.images - len(found.different)
    return name, f"{len(names)}", f"{identical}", f"{found.largest_difference:.1g}", *seconds


def read_file(paths: Mapping[str, Path], name: str) -> bytes:
    """The bytes of a file, by its name without the ending."""
    return paths[name].read_bytes()


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


def print_cores(arguments: argparse.Namespace, forward: Mapping[str, float | None]) -> None:
    """Print the number of cores, as fast as these, that decode as many images as some GPUs score."""
    from cleanset.plumbing.machine import available_cores

    if not arguments.source or not arguments.decoded:
        return
    of_core = arguments.decoded / available_cores()
    rows = [
        (precision, *(f"{number * found / of_core:,.0f}" for number in GPUS))
        for precision, found in forward.items()
        if found
    ]
    title = f"Cores that keep 1, 4 and 8 devices busy; a core decodes {of_core:,.0f} images/s"
    print_table(title, ("precision", *map(str, GPUS)), rows)


def rates(
    arguments: argparse.Namespace, folder: Path, measured: Measured, precisions: Sequence[str]
) -> dict[str, float | None]:
    """Measure and print a row of rates for each precision, when it is there; the rate of the forward pass alone."""
    whole = folder / "whole"
    start = folder / "start"
    if not whole.is_dir():
        source = measured("building the editions", partial(in_process, "build", whole, arguments))
        if source is None:
            return {}
        in_process("build", start, with_options(arguments, images=START_IMAGES))
        arguments.source = source
        arguments.decoded = decoded_by(arguments, "processes", whole, measured)
    print_table(f"{arguments.model}, {arguments.images:,} images ({arguments.source}), images/s", list(COLUMNS), [])
    forward: dict[str, float | None] = {}
    for precision in precisions:
        found = rates_of(arguments, precision, whole, start, measured)
        forward[precision] = found["forward alone"]
        cells = (f"{value:{COLUMNS[name]}}" if value is not None else "" for name, value in found.items())
        print(f"| {' | '.join(cells)} |", flush=True)
    return forward


def decoding(arguments: argparse.Namespace, folder: Path, measured: Measured) -> None:
    """Measure and print the rates of decoding alone, with those of its alternatives."""
    if arguments.source is None:
        return
    whole = folder / "whole"
    names = {"threads": "threads", "processes": "shared batches"}
    rows = [
        (name, shown(arguments.decoded if kind == "processes" else decoded_by(arguments, kind, whole, measured)))
        for kind, name in names.items()
    ]
    print_table(f"Decoding, {arguments.images:,} images ({arguments.source})", ("what", "images/s"), rows)


def decoded_by(arguments: argparse.Namespace, kind: str, whole: Path, measured: Measured) -> float | None:
    """The images a second that one way of decoding reaches alone; None if it is left out."""
    return rate(arguments.images, measured(f"decoding, {kind}", partial(in_process, kind, whole, arguments)))


def in_process(kind: str, folder: Path, arguments: argparse.Namespace) -> Any:
    """The result of a way of this file or of bench/score.py, in a process of its own."""
    return score.in_process(kind, folder, arguments, way if kind in ("same", "wait") else None)


def with_options(arguments: argparse.Namespace, **changes: object) -> argparse.Namespace:
    """Return the options with some of them replaced."""
    return argparse.Namespace(**(vars(arguments) | changes))


def rates_of(
    arguments: argparse.Namespace, precision: str, whole: Path, start: Path, measured: Measured
) -> dict[str, Any]:
    """The row of a precision, with the names of COLUMNS; None for what was left out."""
    options = with_options(arguments, precision=precision)
    half = with_options(options, images=max(options.images // 2, 1))
    for edition in (whole, start):
        score.write_params(edition, options)
    stage = measured(f"{precision}: cleanset score", partial(score.stage, whole))
    starting = measured(f"{precision}: its start", partial(score.stage, start)) if stage else None
    forward = rate(half.images, measured(f"{precision}: forward", partial(in_process, "forward", whole, half)))
    timm = rate(half.images, measured(f"{precision}: timm loop", partial(in_process, "timm", whole, half)))
    scored = None
    if stage and starting and stage[0] > starting[0]:
        scored = (options.images - START_IMAGES) / (stage[0] - starting[0])
    slower = min(forward, arguments.decoded) if forward and arguments.decoded else None
    values = (
        precision,
        forward,
        scored,
        rate(options.images, stage),
        timm,
        ratio(scored, forward),
        ratio(scored, slower),
        ratio(scored, timm),
        difference_from_float64(whole) if stage else None,
    )
    return dict(zip(COLUMNS, values, strict=True))


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


def shown(value: float | None) -> str:
    """A rate as a cell."""
    return "" if value is None else f"{value:,.0f}"


if __name__ == "__main__":
    main()
