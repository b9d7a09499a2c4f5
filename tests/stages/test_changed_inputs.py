"""What was changed, removed or replaced after stage preprocess is one line of the stage that needs it."""

import hashlib

import pytest
import torch

from tests.stages.inputs import AT_TAR, EXPORT, FOURTH, NETWORK, SCORE, select, with_model, with_weights
from tests.ten_images import TAR, Made, drawn_image, id_of, jpeg, official, ten_images

pytestmark = pytest.mark.slow


OTHER = jpeg(drawn_image(30, 30))
DIGESTS = [hashlib.sha256(data).hexdigest() for data in (OTHER, ten_images()[FOURTH])]


@pytest.mark.parametrize("stage", [SCORE, EXPORT])
@pytest.mark.parametrize(
    ("images", "message"),
    [
        (
            ten_images() | {FOURTH: OTHER},
            f"{FOURTH} has SHA-256 {DIGESTS[0]}, expected {DIGESTS[1]} as in the index: fetch the images again, or run "
            "dvc repro --force preprocess if the new ones are meant",
        ),
        (
            {name: data for name, data in ten_images().items() if name != FOURTH},
            f"{FOURTH} is missing; the index has it: put it there",
        ),
        (None, "missing; expected the validation images, a tar or a folder"),
    ],
    ids=["changed", "without an image", "missing"],
)
def test_images(
    scorable: Made,
    tensors: dict[str, torch.Tensor],
    images: dict[str, bytes] | None,
    message: str,
    stage: tuple[str, ...],
) -> None:
    with_weights(scorable, tensors)
    select(scorable)
    scorable.file(TAR).unlink()
    if images is not None:
        scorable.file(TAR).write_bytes(official(images))
    scorable.fails(f"{AT_TAR}: {message}", *stage)


def test_a_selection_of_another_index(scorable: Made) -> None:
    with_model(scorable, name=NETWORK)
    select(scorable, (1, 4, 12))
    scorable.fails(f"data/selection/standard.parquet: {id_of(12)} is not in data/index.parquet: run dvc repro", *EXPORT)


def test_strict_export_of_a_short_class(scorable: Made) -> None:
    with_model(scorable, name=NETWORK)
    scorable.others["export"] = {"strict": True}
    scorable.params(classes=["n02119789", "n02123045"])
    select(scorable)
    scorable.fails(
        "standard: short classes: 2, the first is n02119789 with 1 of 3 images: review more, "
        "or set export.strict: false (then data/short_classes.csv lists them all)",
        *EXPORT,
    )
