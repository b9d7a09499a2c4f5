"""The entry of a trained network, and that it can be measured."""

import json
from pathlib import Path

import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.specs import TrainedModel
from cleanset.evaluation.trained import load_trained
from cleanset.studies.robustness.further_models import as_objects, as_table, further_members
from cleanset.studies.training import data, train
from cleanset.studies.training.finished import as_yaml, model_entry
from cleanset.studies.training.study import RunFiles, TrainingStudy
from tests.checkouts import Checkout
from tests.studies.training.coloured_study import COLOURS, coloured_study

pytestmark = pytest.mark.slow


@pytest.fixture
def study(small: Checkout, tmp_path: Path) -> TrainingStudy:
    noisy = {"recipe": "noise", "trained_on": ["noise", "speckle_noise"], "epochs": 1, "test": ["original"]}
    found = coloured_study(small.folder, tmp_path, one=noisy)
    data.run(found)
    train.run(found, "one")
    return found


def test_an_entry_is_loaded_and_shown(study: TrainingStudy) -> None:
    files = study.fold("one", "fold_01")
    text = as_yaml("noisy", model_entry(study, files))
    entry = yaml.safe_load(text)["noisy"]
    assert entry["weights"] == "studies/training/data/runs/one/fold_01/weights.safetensors"
    assert entry["classes"] == sorted(COLOURS)
    assert (entry["size"], entry["trained_on"]) == (32, ["noise", "speckle_noise"])
    loaded = load_trained(TrainedModel.model_validate(entry, context=imagenet()), study.edition.folder, imagenet())
    assert loaded.preprocessing.size == 32
    study.robustness.params_yaml.write_text(f"further_models:\n{text}")
    (member,) = further_members(study.edition)
    assert (member.role, member.classes, member.state) == ("noisy", 3, "there")
    (shown,) = as_objects([member])
    assert shown["trained_on"] == ("noise", "speckle_noise")
    assert [str(cell) for cell in as_table([member]).columns[1].cells][1:4] == [
        "noisy (further model of studies/robustness)", "timm test_efficientnet", "3",
    ]  # fmt: skip


def test_a_copy_of_the_weights(study: TrainingStudy) -> None:
    files, copy = study.fold("one", "fold_01"), study.edition.folder / "copy.safetensors"
    copy.write_bytes(files.weights.read_bytes())
    assert model_entry(study, files, copy)["weights"] == "copy.safetensors"
    copy.write_bytes(b"other")
    with pytest.raises(CleansetError, match=r"copy.safetensors: missing, or not the weights of .*record.json"):
        model_entry(study, files, copy)


def test_what_is_not_trained(tmp_path: Path) -> None:
    study = TrainingStudy(tmp_path / "studies" / "training")
    with pytest.raises(CleansetError, match=r"record.json: missing; train the run, or run dvc checkout"):
        model_entry(study, RunFiles(tmp_path))
    settings = {"task": "segmentation", "network": {}, "size": 32, "resizing": "cropped", "trained_on": []}
    of_network = json.dumps({"run": "one", "settings": settings, "classes": [], "weights_sha256": ""})
    del settings["resizing"]
    without_resizing = json.dumps({"run": "one", "settings": settings, "classes": [], "weights_sha256": ""})
    for text, problem in {
        "[]": "not the record of a training",
        '{"settings": {}, "classes": [], "weights_sha256": ""}': "not the record of a training",
        without_resizing: "not the record of a training; expected settings, classes, weights: train the run",
        of_network: "settings.network: name: Field required; expected a run's record: train the run",
    }.items():
        (tmp_path / "record.json").write_text(text)
        with pytest.raises(CleansetError, match=f"record.json: {problem}"):
            model_entry(study, RunFiles(tmp_path))
