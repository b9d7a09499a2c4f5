"""The params of a training study: protocols, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cleanset.errors import CleansetError
from cleanset.studies.training.params import Run, TrainingParams, read_training_params

NETWORK = {"source": "timm", "name": "test_efficientnet"}


def run(**keys: Any) -> Run:
    return Run.model_validate({"network": NETWORK, "epochs": 2, **keys})


def read(folder: Path, **keys: Any) -> TrainingParams:
    content = {"data": {"images": "images"}, "runs": {"one": {"network": NETWORK, "epochs": 2, **keys}}}
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
    return read_training_params(folder / "params.yaml")


def test_as_written() -> None:
    found = Run.model_validate({"network": NETWORK, "protocol": "as_written"})
    wanted = ("sgd", 0.01, 0.9, 100, 16, 224, "none")
    names = ("optimizer", "rate", "momentum", "epochs", "batch", "size", "augmentation")
    assert tuple(getattr(found, name) for name in names) == wanted
    assert found.early_stopping is not None


def test_as_written_transformers_differ() -> None:
    found = Run.model_validate({"network": {"name": "vit_base_patch16_224"}, "protocol": "as_written"})
    assert (found.optimizer, found.rate, found.epochs, found.batch) == ("adam", 1e-4, 200, 16)


def test_as_coded() -> None:
    found = Run.model_validate({"network": {"source": "torchvision", "name": "resnet50"}, "protocol": "as_coded"})
    assert (found.optimizer, found.rate, found.epochs, found.batch) == ("adam", 1e-3, 200, 128)
    assert (found.folds, found.keep, found.network.pretrained) == (1, "best", False)


def test_a_key_goes_before_the_protocol() -> None:
    found = Run.model_validate({"network": NETWORK, "protocol": "as_coded", "steps": 10, "batch": 8})
    assert (found.steps, found.epochs, found.batch) == (10, None, 8)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"adversarial": {"eps": 0}},
            "runs.one.adversarial.eps: expected greater than 0",
        ),
        ({"adversarial": {"eps": "4/255", "step": "8/255"}}, "step 0.0313725 is larger than eps 0.0156863; expected"),
        ({"recipe": "noise"}, "gaussian noise amounts to the test corruptions gaussian_noise, shot_noise"),
        ({"recipe": "augmix", "augmix": {"all_ops": True}}, "Brightness amounts to the test corruption brightness"),
        ({"scenario": "image_brightness"}, "image_brightness amounts to the test corruption brightness"),
        ({"scenario": "indoors"}, "'indoors'; expected one of original, blur_background.*, generated_background$"),
        ({"steps": 5}, "expected epochs or steps, and not both"),
        ({"epoch": 5}, "unknown key 'epoch'; expected optimizer"),
        ({"folds": 13}, "runs.one.folds: 13; expected at most folds, 12"),
        ({"trained_on": ["fogg"]}, "unknown corruption 'fogg'"),
    ],
)
def test_what_is_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        read(tmp_path, **keys)
    assert "\n" not in str(raised.value)


def test_an_unknown_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="unknown run 'two'; expected one of one"):
        read(tmp_path).run("two")


def test_folds_have_names() -> None:
    assert run(folds=0).fold_names() == ["all"]
    assert run(folds=2).fold_names() == ["fold_01", "fold_02"]


def test_the_length_of_a_step() -> None:
    assert run(adversarial={"eps": 0.1, "steps": 5}).adversarial.length == pytest.approx(0.05)
    assert run(adversarial={"eps": 0.1, "steps": 1}).adversarial.length == pytest.approx(0.1)
    assert run(adversarial={"eps": 0.1, "step": 0.02}).adversarial.length == pytest.approx(0.02)
