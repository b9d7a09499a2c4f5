"""Further models of other classes or another size: logits for all 1,000, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import timm
import torch
import yaml
from pydantic import ValidationError
from safetensors.torch import save_file

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.models import open_model, preprocessing_of_spec
from cleanset.evaluation.specs import TrainedModel, spec_of_entry
from cleanset.evaluation.trained import load_trained
from cleanset.plumbing.files import sha256
from cleanset.scoring.devices import choose_devices
from cleanset.scoring.engine import Settings
from cleanset.statistics.bootstrap import Bootstrap, Resamples
from cleanset.studies.robustness.answer_arrays import Chosen
from cleanset.studies.robustness.families import read_study_params
from cleanset.studies.robustness.images import STUDY_IMAGES, images_for
from cleanset.studies.robustness.results import StudiedImages
from cleanset.studies.robustness.sampled import sampled_means
from tests.studies.robustness.one_measure import OneMeasure

pytestmark = pytest.mark.slow
WNIDS = ["n02165456", "n01443537", "n07753592"]
INDICES = [301, 1, 954]
NAME = "test_efficientnet"
CPU = Settings(devices=choose_devices("cpu"), precision="float64", batch_size=4, workers=1)


def entry(folder: Path, outputs: int = 3, **keys: Any) -> TrainedModel:
    torch.manual_seed(0)
    path = folder / "weights.safetensors"
    save_file(timm.create_model(NAME, num_classes=outputs).state_dict(), path)
    content = {"source": "timm", "name": NAME, "weights": path.name, "sha256": sha256(path.read_bytes())}
    return TrainedModel.model_validate(content | {"classes": WNIDS, "size": 48} | keys, context=imagenet())


def pixels() -> torch.Tensor:
    return torch.rand(2, 3, 48, 48, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_logits_of_all_classes(tmp_path: Path) -> None:
    found = load_trained(entry(tmp_path), tmp_path, imagenet())
    network = found.network.double()
    logits = network(pixels())
    own = network.network(pixels())  # type: ignore[operator]
    assert logits.shape == (2, 1000)
    assert torch.equal(logits[:, INDICES], own)
    assert (logits.softmax(dim=1).sum(dim=1) - logits.softmax(dim=1)[:, INDICES].sum(dim=1)).abs().max() < 1e-12
    assert (found.preprocessing.size, found.preprocessing.name) == (48, "timm-bilinear-54-48")


def test_gradients_reach_the_pixels(tmp_path: Path) -> None:
    network, images = load_trained(entry(tmp_path), tmp_path, imagenet()).network.double(), pixels().requires_grad_()
    loss = torch.nn.functional.cross_entropy(network(images), torch.tensor(INDICES[:2]))
    loss.backward()  # type: ignore[no-untyped-call]
    assert images.grad is not None
    assert float(images.grad.abs().max()) > 0


def test_it_is_loaded_as_further_model(tmp_path: Path) -> None:
    wanted = entry(tmp_path)
    spec = spec_of_entry("trained", wanted, tmp_path)
    found = open_model(spec, CPU, imagenet())
    assert found.loaded.weights_sha256 == wanted.sha256
    assert preprocessing_of_spec(spec, CPU, imagenet()) == found.loaded.preprocessing


def test_weights_of_other_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"does not fit the model: .*shape mismatch \['classifier.bias', "):
        load_trained(entry(tmp_path, outputs=4), tmp_path, imagenet())


def test_other_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=f"expected {'0' * 64} as in params.yaml"):
        load_trained(entry(tmp_path, sha256="0" * 64), tmp_path, imagenet())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"classes": ["n02165456", "n1"]}, "classes.1\n  Value error, expected one of the 1,000 wnids"),
        ({"classes": ["n02165456", "n02165456"]}, "'n02165456' twice; expected each once"),
        ({"weights": None, "sha256": None}, "classes and size go with weights of a network of timm or torchvision"),
    ],
)
def test_entries_that_are_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        entry(tmp_path, **keys)


def test_images_of_other_classes_are_not_seen() -> None:
    rows = [(f"{index}.png", "ILSVRC2012_val_00000001", index, None, "0" * 64, ["a"]) for index in (1, 5, 301, 5)]
    images = pd.DataFrame(rows, columns=STUDY_IMAGES.names)
    assert images_for(images, "union", "b", {1, 301})["class_index"].tolist() == [1, 301]
    with pytest.raises(CleansetError, match=r"further_models\.b\.classes: none of the study's 4 images is"):
        images_for(images, "union", "b", {7})


def test_models_are_compared_on_the_images_of_both() -> None:
    classes = np.array([1, 1, 1, 5, 5, 301, 301, 301])
    of_classes = np.isin(classes, (1, 301))
    studied = StudiedImages(
        class_indices=classes,
        sets=[["a"]] * 8,
        roles=["a", "b"],
        bootstrap=Bootstrap(resamples=20),
        selections=("union",),
        owners=["a"],
        of_classes={"b": of_classes},
        classes=imagenet(),
    )
    answers = {"a": np.arange(8) < 4, "b": np.arange(8) < 1}

    def measured(role: str, chosen: Chosen, resamples: Resamples) -> Any:
        values = answers[role][chosen][:, np.newaxis]
        yield sampled_means(values, ["x"], resamples, role)["x"].named("accuracy")

    study = OneMeasure(studied, {}, measured)
    lines = {line.model: line for line in study.lines()}
    assert (lines["a"].images, lines["a"].value) == (8, 0.5)
    assert (lines["b"].images, lines["b"].value) == (6, 1 / 6)
    (difference,) = study.differences()
    assert difference.value == pytest.approx(3 / 6 - 1 / 6)


def test_trained_on_of_an_entry_is_that_of_the_measures(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    text = "further_models: {b: {source: timm, name: resnet50.a1_in1k, trained_on: [fog, noise]}}\n"
    path.write_text(text + "measures: {corruptions: {trained_on: {a: [snow], b: [fog, frost]}}}\n")
    params = read_study_params(path, ["a"], imagenet())
    assert params.measures.corruptions.trained_on == {"a": ["snow"], "b": ["fog", "frost", "noise"]}  # type: ignore[attr-defined]
    path.write_text(text.replace("fog", "mist"))
    with pytest.raises(CleansetError, match=r"further_models.b.trained_on: unknown corruption 'mist'"):
        read_study_params(path, ["a"], imagenet())


def test_a_reference_has_all_classes(tmp_path: Path) -> None:
    path, model = tmp_path / "params.yaml", entry(tmp_path)
    content = {
        "further_models": {"b": model.model_dump(exclude_none=True)},
        "measures": {"corruptions": {"reference": "b"}},
    }
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(CleansetError, match=r"measures\.corruptions\.reference: b has some classes only"):
        read_study_params(path, ["a"], imagenet())
