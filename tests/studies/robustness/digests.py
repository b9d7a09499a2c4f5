"""The table of digests: SHA-256 of every change of the drawn image, tests/studies/robustness/digests.tsv.

A difference means that the bytes of changed images changed, by this code or by a library. Where that is wanted:
`python -m tests.studies.robustness.digests`, and say so in the changelog.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.corruptions.params import C_BAR_AMOUNTS, IMAGENET_C, SEVERITIES
from cleanset.studies.robustness.perturbations.params import ALL_PERTURBATIONS
from cleanset.studies.robustness.scenarios.masks import regions_of
from cleanset.studies.robustness.scenarios.params import SCENARIOS, ScenarioDefinition, Scenarios
from cleanset.studies.robustness.scenarios.scenes import scenario_image
from cleanset.studies.robustness.watermarks.changes import watermarked
from cleanset.studies.robustness.watermarks.params import WATERMARK
from tests.studies.robustness.drawn import drawn, drawn_object, perturbed_frames

PATH = Path(__file__).with_name("digests.tsv")
SEED = image_seed(7, "ILSVRC2012_val_00000001")

Row = tuple[str, str, int, str]
"""Kind, name, severity or frame, digest."""


def digest(image: NDArray[np.uint8]) -> str:
    """SHA-256 of the pixels."""
    return sha256(image.tobytes()).hexdigest()


def corruption_rows() -> Iterator[Row]:
    for name in (*IMAGENET_C, *C_BAR_AMOUNTS):
        for severity, image in zip(SEVERITIES, corrupted_images(drawn(), name, SEVERITIES, SEED), strict=True):
            yield "corruption", name, severity, digest(image)


def perturbation_rows() -> Iterator[Row]:
    for name in ALL_PERTURBATIONS:
        for frame, image in enumerate(perturbed_frames(drawn(256, 300), name, SEED)):
            yield "perturbation", name, frame, digest(image)


def scenario_rows() -> Iterator[Row]:
    for definition in get_args(ScenarioDefinition):
        for name in SCENARIOS:
            image = scenario_image(
                drawn(), regions_of(drawn_object()), name, SEED,
                wanted=Scenarios.model_validate({"definition": definition}),
                photographs=[drawn(250, 300)], generated=drawn()[::-1].copy(),
            )  # fmt: skip
            yield f"scenario {definition}", name, 0, digest(image)


def watermark_rows() -> Iterator[Row]:
    yield "watermark", WATERMARK, 0, digest(watermarked(drawn()))


def rows() -> Iterator[Row]:
    """All rows, in the order of the table."""
    yield from corruption_rows()
    yield from perturbation_rows()
    yield from scenario_rows()
    yield from watermark_rows()


def stored() -> list[Row]:
    """The rows of the table."""
    lines = [line.split("\t") for line in PATH.read_text().splitlines()[1:]]
    return [(kind, name, int(step), found) for kind, name, step, found in lines]


def main() -> None:
    """Write the table."""
    lines = ["\t".join(map(str, row)) for row in rows()]
    PATH.write_text("\n".join(["kind\tname\tstep\tsha256", *lines]) + "\n")


if __name__ == "__main__":
    main()
