"""Runs of segmentation in params.yaml: what the paper's protocol gives, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from cleanset.studies.training.params import Run, SegmentationMeasures
from cleanset.studies.training.segmentation.networks import PUBLISHED, decoder_and_encoder
from tests.documents import all_blocks


def run(**keys: Any) -> Run:
    network = {"source": "smp", "name": "fpn", "encoder": "resnet50"}
    return Run.model_validate({"task": "segmentation", "network": network, **keys})


def test_as_written_is_the_papers_training() -> None:
    found = run(protocol="as_written")
    assert (found.size, found.batch, found.steps, found.epochs) == (256, 4, 40_000, None)
    assert (found.optimizer, found.rate, found.momentum, found.schedule) == ("sgd", 0.01, 0.9, "poly")
    assert (found.augmentation, found.early_stopping, found.folds) == ("none", None, 1)
    assert len(found.tests) == 9
    assert found.tests[0] == "original"
    assert found.tests[-1] == "generated_background"


@pytest.mark.parametrize("name", ["upernet_swin", "upernet_vit-b16_ln_mln", "dpt_vit-b16"])
def test_transformers_are_trained_with_adamw(name: str) -> None:
    found = run(protocol="as_written", network={"source": "smp", "name": name})
    assert (found.optimizer, found.rate) == ("adamw", 6e-5)
    assert run(protocol="as_written", network={"source": "smp", "name": "fpn_r50"}).optimizer == "sgd"


def test_epochs_take_the_place_of_the_iterations() -> None:
    found = run(protocol="as_written", epochs=2)
    assert (found.steps, found.epochs) == (None, 2)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"protocol": "as_coded"},
            "protocol as_coded: the published code does not segment; expected as_written or own",
        ),
        ({"recipe": "adversarial"}, "recipe adversarial; expected standard for segmentation"),
        ({"scenario": "image_r"}, "scenario image_r; expected original for segmentation"),
        ({"augmentation": "random_resized_crop"}, "expected none or shift_and_mirror for segmentation"),
        (
            {"network": {"source": "timm", "name": "resnet50"}},
            "network resnet50 of timm for segmentation; expected one of",
        ),
        ({"task": "classification"}, "network fpn of smp for classification; expected one of smp for segmentation"),
        ({"test": ["original", "image_x"]}, "unknown scenario 'image_x'; expected one of original, "),
    ],
)
def test_what_does_not_segment_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        run(**({"epochs": 1} | keys if "protocol" not in keys else keys))


def test_an_unknown_measure_of_the_regression_is_refused() -> None:
    with pytest.raises(ValidationError, match="'accuracy', 'iou' or 'boundary_iou'"):
        SegmentationMeasures.model_validate({"measure": "dice"})


def test_the_imagenet_editions_grid_has_the_seven_networks(repository: Path) -> None:
    params = yaml.safe_load((repository / "imagenet/studies/training/params.yaml").read_text())
    runs = [Run.model_validate(each) for name, each in params["runs"].items() if name.startswith("ex3_")]
    found = [decoder_and_encoder(each.network.name, each.network.encoder) for each in runs]
    assert sorted(found) == sorted(PUBLISHED.values())
    # the first run is the baseline of the regression
    assert found[0] == PUBLISHED["deeplabv3plus_r50-d8"]
    assert all(each.steps == 40_000 and len(each.tests) == 9 for each in runs)


def test_the_documented_run_is_one(repository: Path) -> None:
    blocks = [each for each in all_blocks(repository) if (each.page, each.language) == ("docs/training.md", "yaml")]
    (found,) = [yaml.safe_load(each.text) for each in blocks if each.text.startswith("ex3_")]
    documented = Run.model_validate(found["ex3_fpn"])
    assert documented.steps == 40_000
    assert decoder_and_encoder(documented.network.name, documented.network.encoder) == ("fpn", "resnet50")
