"""What was changed, removed or replaced after stage preprocess is one line of the stage that needs it."""

import hashlib
import shutil

import pytest
import torch

from tests.stages.inputs import AT_TAR, EXPORT, FOURTH, NETWORK, SCORE, select, with_model, with_weights
from tests.ten_images import TAR, Made, drawn_image, id_of, jpeg, official, ten_images

pytestmark = pytest.mark.slow


class TestChangedSincePreprocess:
    @pytest.fixture
    def changed(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> tuple[Made, str]:
        with_weights(scorable, tensors)
        select(scorable)
        other = jpeg(drawn_image(30, 30))
        scorable.file(TAR).write_bytes(official(ten_images() | {FOURTH: other}))
        found, expected = (hashlib.sha256(data).hexdigest() for data in (other, ten_images()[FOURTH]))
        return scorable, (
            f"{AT_TAR}: {FOURTH} has SHA-256 {found}, expected {expected} as in the index: fetch the images again, "
            "or run dvc repro --force preprocess if the new ones are meant"
        )

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_image(self, changed: tuple[Made, str], stage: tuple[str, ...]) -> None:
        made, message = changed
        made.fails(message, *stage)

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_missing_image(self, scorable: Made, tensors: dict[str, torch.Tensor], stage: tuple[str, ...]) -> None:
        with_weights(scorable, tensors)
        select(scorable)
        images = ten_images()
        del images[FOURTH]
        scorable.file(TAR).write_bytes(official(images))
        scorable.fails(f"{AT_TAR}: {FOURTH} is missing; the index has it: put it there", *stage)

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_missing_archive(self, scorable: Made, tensors: dict[str, torch.Tensor], stage: tuple[str, ...]) -> None:
        with_weights(scorable, tensors)
        select(scorable)
        scorable.file(TAR).unlink()
        scorable.fails(f"{AT_TAR}: missing; expected the validation images, a tar or a folder", *stage)

    def test_selection_of_another_index(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        select(scorable, (1, 4, 12))
        scorable.fails(
            f"data/selection/standard.parquet: {id_of(12)} is not in data/index.parquet: run dvc repro", *EXPORT
        )

    def test_missing_index(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        (scorable.folder / "data/index.parquet").unlink()
        scorable.fails("data/index.parquet: missing; run dvc repro, or dvc pull to fetch it", *SCORE)

    def test_table_that_is_none(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        (scorable.folder / "data/index.parquet").write_text("x")
        scorable.fails(
            "data/index.parquet: not a Parquet file (*); run dvc checkout to restore it, or dvc repro", *SCORE
        )

    def test_table_of_another_kind(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        edition = select(scorable)
        shutil.copy(edition.selection("standard"), edition.index)
        scorable.fails(
            "data/index.parquet: columns 'image_id, class_index, place, *'; expected image_id, size, *: run dvc *",
            *SCORE,
        )

    def test_strict_export_of_a_short_class(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        scorable.others["export"] = {"strict": True}
        scorable.params(classes=["n02119789", "n02123045"])
        select(scorable)
        scorable.fails(
            "standard: short classes: 2, the first is n02119789 with 1 of 3 images: review more, "
            "or set export.strict: false (then data/short_classes.csv lists them all)",
            *EXPORT,
        )
