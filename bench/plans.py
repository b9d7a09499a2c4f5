"""How right and how cheap `cleanset plan … --measure` is, for inputs unlike the sample's.

Each command is planned, then run, on one core: there, processor seconds approximate the time on an idle machine.
Planned time is the sum of all rows.
"""

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from cleanset.classes import imagenet
from measuring import Run, print_machine, print_table, run, scratch
from score import photographs_or_drawings

CLASSES = 4
CLEANSET = (sys.executable, "-P", "-m", "cleanset")
NETWORK = """
import timm, torch

class Normalised(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, pixels):
        return self.network((pixels - 0.5) / 0.5)

def network():
    torch.manual_seed(0)
    return Normalised(timm.create_model("test_efficientnet")), "timm-bicubic-182-160"
"""
CHANGES = "corruptions: {names: [gaussian_noise, fog, zoom_blur], severities: [1, 3]}\n"


@dataclass(frozen=True, slots=True)
class Input:
    """A command on some images."""

    command: str
    images: int
    size: tuple[int, int] | None
    """Width and height; None: as photographed."""


INPUTS = [
    Input("hints", 60, (32, 32)), Input("hints", 60, (4000, 3000)), Input("hints", 100, None),
    Input("hints", 4_000, (40, 40)), Input("evaluate", 100, None), Input("evaluate", 2_000, (64, 64)),
    Input("evaluate", 60, (1600, 1200)), Input("robustness evaluate", 24, None),
    Input("robustness evaluate", 60, (32, 32)), Input("attacks evaluate", 60, None),
]  # fmt: skip
MEASURED = 10
"""Number of INPUTS that are measured."""
OPTIONS = {
    "hints": ["--no-text"],
    "evaluate": ["--model", "nets:network"],
    "robustness evaluate": ["--model", "nets:network", "--params", "changes.yaml", "--out", "out"],
    "attacks evaluate": ["--model", "nets:network", "--attacks", "square,none", "--no-warnings", "--out", "out"],
}


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    source, photographs = photographs_or_drawings()
    rows = [row(each, photographs) for each in INPUTS[:MEASURED]]
    print_machine("torch", "timm")
    header = ("command, images", "planned s", "took s", "ratio", "plan took s", "read MB", "of the files")
    print_table(f"plans with --measure, one core ({source})", header, rows)


def row(asked: Input, photographs: Sequence[bytes]) -> tuple[str, ...]:
    """Plan and run a command."""
    with scratch() as folder:
        draw(folder / "images", asked, photographs)
        (folder / "nets.py").write_text(NETWORK)
        (folder / "changes.yaml").write_text(CHANGES)
        words = [*asked.command.split(), "images", *OPTIONS[asked.command]]
        planning, content = planned(folder, words)
        taken = run(*CLEANSET, *words, cwd=folder).processor_seconds
        size = sum(path.stat().st_size for path in (folder / "images").rglob("*.*"))
    seconds = sum(each["seconds"] or 0 for each in content["works"])
    shown = "as photographed" if asked.size is None else f"{asked.size[0]} x {asked.size[1]}"
    return (
        f"{asked.command}, {asked.images:,} of {shown}",
        f"{seconds:.1f}",
        f"{taken:.1f}",
        f"{seconds / taken:.2f}",
        f"{planning.processor_seconds:.1f}",
        f"{content['bytes_read'] / len(content['works']) / 1e6:.1f}",
        f"{size / 1e6:.1f}",
    )


def planned(folder: Path, words: Sequence[str]) -> tuple[Run, dict[str, Any]]:
    """What planning takes, and the plan; a shell writes it into a file."""
    script = f"{' '.join(CLEANSET)} plan {' '.join(words)} --measure --json > plan.json"
    found = run("sh", "-c", script, cwd=folder)
    return found, json.loads((folder / "plan.json").read_text())


def draw(folder: Path, asked: Input, photographs: Sequence[bytes]) -> None:
    """Write photographs, and other parts of them once there are no more, into folders of classes."""
    for number, image in zip(range(asked.images), parts(photographs), strict=False):
        path = folder / imagenet().keys[number % CLASSES] / f"{number:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        (image if asked.size is None else image.resize(asked.size)).save(path, quality=90)


def parts(photographs: Sequence[bytes]) -> Iterator[Image.Image]:
    """Whole photographs, then ever smaller parts of them, each of other pixels."""
    share = 0
    while True:
        for data in photographs:
            image = Image.open(io.BytesIO(data)).convert("RGB")
            left, top = (side * share // 40 for side in image.size)
            yield image.crop((left, top, *image.size))
        share += 1


if __name__ == "__main__":
    main()
