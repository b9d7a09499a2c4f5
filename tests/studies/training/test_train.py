"""Stage train: the files of a run, the same weights twice, after a kill, with workers, and in two processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Resized
from cleanset.plumbing.files import sha256
from cleanset.studies.training import data, fold_training, train
from cleanset.studies.training.classification import Classification
from cleanset.studies.training.finished import model_entry
from cleanset.studies.training.fold_data import ProcessShare, read_fold
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.networks import trained_network
from cleanset.studies.training.recipes import Standard
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.tables import write_table
from tests.browser_tab import SOURCE
from tests.checkouts import Checkout
from tests.forked_commands import forking
from tests.studies.training.coloured_study import coloured_study, write_params

pytestmark = pytest.mark.slow
FOLD = "fold_01"


@pytest.fixture(scope="module")
def drawn(small: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's edition, with the tables of its images; not to be changed."""
    found = coloured_study(small.folder, tmp_path_factory.mktemp("drawn"))
    data.run(found)
    return found.edition.folder.resolve()


@pytest.fixture
def study(drawn: Path, tmp_path: Path) -> TrainingStudy:
    shutil.copytree(drawn, tmp_path / "edition", symlinks=True)
    return TrainingStudy(tmp_path / "edition" / "studies" / "training")


def weights(study: TrainingStudy, run: str = "one", fold: str = FOLD) -> bytes:
    train.run(study, run)
    return study.fold(run, fold).weights.read_bytes()


@pytest.mark.long
def test_the_files_of_a_run(study: TrainingStudy) -> None:
    first = weights(study)
    files = study.fold("one", FOLD)
    assert sorted(path.name for path in study.run("one").iterdir()) == [FOLD]
    assert sorted(path.name for path in files.folder.iterdir()) == [
        "history.csv", "record.json", "test.csv", "weights.safetensors",
    ]  # fmt: skip
    assert not study.partial("one").exists()
    history = pd.read_csv(files.history)
    assert history.columns.tolist() == [
        "epoch", "step", "train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "rate",
    ]  # fmt: skip
    # 21 images to train on, in batches of 8
    assert history["step"].tolist() == [2, 4, 6]
    record = json.loads(files.record.read_text())
    assert record["weights_sha256"] == sha256(first)
    assert record["data_sha256"] == sha256(study.images.read_bytes())
    assert record["settings"]["network"]["name"] == "test_efficientnet"
    assert (record["training_images"], record["device"]) == (21, "cpu")
    tests = pd.read_csv(files.test)
    assert tests.columns.tolist() == ["scenario", "class_index", "images", "correct", "loss"]
    assert tests.groupby("scenario")["images"].sum().to_dict() == {"original": 6, "image_grey": 6}
    costs = json.loads(study.cost("one", FOLD).read_text())
    assert costs["images"] == 48
    assert costs["peak_memory_bytes"] > 10**7
    again = {path.name: path.read_bytes() for path in files.folder.iterdir()}
    train.run(study, "one")
    assert again == {path.name: path.read_bytes() for path in files.folder.iterdir()}


TRAINED_ON = {"noise": ["noise", "speckle_noise"], "madry": ["brightness", "contrast", "saturate"]}


@pytest.mark.parametrize("recipe", ["adversarial", "madry", "augmix", "augmix_mixing", "noise"])
def test_every_recipe_runs(study: TrainingStudy, recipe: str) -> None:
    named = {"trained_on": TRAINED_ON.get(recipe, [])}
    write_params(study, one={"recipe": recipe, "epochs": 1, "folds": 0, "test": None, **named})
    assert weights(study, fold="all")
    assert pd.read_csv(study.fold("one", "all").test).empty
    assert "validation_loss" not in pd.read_csv(study.fold("one", "all").history)


def test_training_on_a_scenario_in_folds(study: TrainingStudy) -> None:
    write_params(study, one={"scenario": "segmented_image", "folds": 2, "epochs": 1, "test": None})
    train.run(study, "one")
    tests = {fold: pd.read_csv(study.fold("one", fold).test) for fold in ("fold_01", "fold_02")}
    assert set(tests["fold_01"]["scenario"]) == {"segmented_image"}
    assert [table["images"].sum() for table in tests.values()] == [10, 10]


@pytest.mark.long
@pytest.mark.parametrize(
    "augmentation", [pytest.param("shift_and_mirror", marks=pytest.mark.long), "random_resized_crop"]
)
def test_workers_change_no_weights(study: TrainingStudy, augmentation: str) -> None:
    """Random crops are decoded again in every epoch, by the workers."""
    write_params(study, one={"augmentation": augmentation, "epochs": 2})
    alone = weights(study)
    write_params(study, {"workers": 2}, one={"augmentation": augmentation, "epochs": 2})
    assert weights(study) == alone


ATTACKED: dict[str, Any] = {
    "recipe": "adversarial",
    "adversarial": {"eps": "4/255", "steps": 1, "warm_up_epochs": 2},
    "epochs": 4,
    "test": ["original"],
}


def test_a_warm_up_epoch_has_the_images_unchanged(study: TrainingStudy) -> None:
    write_params(study, one=ATTACKED)
    task = Classification(read_fold(StudyInputs.read(study), "one", FOLD, torch.device("cpu")))
    batch, network = next(iter(task.batches(1))), task.network.eval()
    standard = Standard().learn(network, batch.views.float() / 255, batch.labels, torch.Generator()).loss
    assert torch.equal(task.loss(network, batch, 2).loss, standard)
    assert task.loss(network, batch, 3).loss > standard


def test_an_epoch_that_never_saw_an_attack_is_not_kept(study: TrainingStudy) -> None:
    """The loss under attack is measured after the first attack, and decides."""
    write_params(study, one=ATTACKED)
    train.run(study, "one")
    files = study.fold("one", FOLD)
    history, record = pd.read_csv(files.history), json.loads(files.record.read_text())
    under_attack = history["validation_robust_loss"]
    assert under_attack.isna().tolist() == [True, True, False, False]
    assert record["epoch"] == min((3, 4), key=lambda epoch: under_attack.tolist()[epoch - 1])
    assert record["kept"] == "the smallest loss under attack on images set aside, of the epochs after 2 of warm-up"
    assert (under_attack >= history["validation_loss"])[2:].all()
    assert (history["validation_robust_accuracy"] <= history["validation_accuracy"])[2:].all()


@pytest.mark.parametrize(("validation", "counts"), [("set_aside", (21, 3, 6)), ("as_written", (24, 6, 6))])
def test_what_is_validated_on(study: TrainingStudy, validation: str, counts: tuple[int, ...]) -> None:
    """Two of ten images of each class are tested on; one of the others is set aside, or none as XIMAGENET-12 does."""
    write_params(study, one={"validation": validation})
    data = read_fold(StudyInputs.read(study), "one", FOLD, torch.device("cpu"))
    training, validated, tested = (set(each["file"]) for each in (data.training, data.validation, data.left_out))
    assert (len(training), len(validated), len(tested)) == counts
    assert not training & (validated | tested)
    assert (validated == tested) is (validation == "as_written")
    assert (data.settings()["training_images"], data.settings()["validation_images"]) == counts[:2]


def test_a_run_as_the_published_script(study: TrainingStudy) -> None:
    """Whole images without a filter, splitfolders' split, every image an epoch, the last network, pixels in 0..1."""
    write_params(study, one={"protocol": "as_coded", "batch": 8, "epochs": 2, "size": 32, "test": ["image_grey"]})
    read = read_fold(StudyInputs.read(study), "one", FOLD, torch.device("cpu"))
    assert {Path(file).stem for file in read.left_out["file"]} == {"08", "09"}
    pixels = read.pixels(read.left_out, "image_grey")
    image = np.asarray(Image.open(pixels.folder / pixels.files[0]))
    assert pixels(0).shape == (3, 32, 32)
    assert pixels(0)[:, 0, 0].tolist() == [cv2.cvtColor(image[1:2, 1:2], cv2.COLOR_RGB2GRAY).item()] * 3
    train.run(study, "one")
    files = study.fold("one", FOLD)
    record = json.loads(files.record.read_text())
    assert (record["epoch"], record["kept"], record["training_images"]) == (2, "the last epoch", 24)
    assert pd.read_csv(files.history)["step"].tolist() == [3, 6]
    network, preprocessing = trained_network(files.weights, imagenet())
    assert preprocessing == Resized(32, is_nearest=True)
    assert isinstance(network.get_submodule("network.0"), torch.nn.Identity)
    with pytest.raises(
        CleansetError, match="one: test_efficientnet sees pixels without normalisation; expected a norm"
    ):
        model_entry(study, files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "folds.csv: missing; run dvc repro"),
        ("", "folds.csv: no CSV table (No columns to parse from file); run dvc repro"),
        ("file,class_index,split\n", "folds.csv: no column 'fold'; found file, class_index, split: run dvc repro"),
        ("file,split,fold\na.png,train,x\n", "folds.csv: no CSV table (invalid literal for int() with base 10: 'x'"),
        (
            "file,split,fold\na.png,train,1\n",
            "folds.csv: made from other images than images.parquet; expected the same: run",
        ),
    ],
)
def test_damaged_folds(study: TrainingStudy, text: str | None, message: str) -> None:
    write_params(study, one={})
    study.folds.unlink() if text is None else study.folds.write_text(text)
    with pytest.raises(CleansetError) as error:
        read_fold(StudyInputs.read(study), "one", FOLD, torch.device("cpu"))
    assert str(error.value).startswith(f"{study.folds.parent}/{message}")


def test_steps_that_end_within_the_warm_up(study: TrainingStudy) -> None:
    write_params(study, one=ATTACKED | {"epochs": None, "steps": 2})
    with pytest.raises(CleansetError, match=r"^one, fold_01: adversarial.warm_up_epochs 2 of 1 epochs; expected fewer"):
        train.run(study, "one")


def killed_after_an_epoch(study: TrainingStudy) -> None:
    """Train in a process that is killed as soon as there is a state."""
    state = study.partial("one") / FOLD / "state.pt"
    child = os.fork()
    if child == 0:
        train.run(study, "one")
        os._exit(0)
    deadline = time.monotonic() + 60
    while not state.is_file() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert state.is_file()


WITH_DROPOUT = """
from torch import nn

def network():
    layers = nn.Conv2d(3, 16, 3, stride=2), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Dropout(), nn.Linear(256, 3)
    return nn.Sequential(*layers), "timm-bilinear-36-32"
"""


@pytest.mark.long
@pytest.mark.parametrize("network", ["timm:test_efficientnet", "with_dropout:network"])
def test_a_killed_training_ends_with_the_same_weights(study: TrainingStudy, network: str) -> None:
    """Dropout draws from torch's global generator, within an epoch."""
    (study.folder / "with_dropout.py").write_text(WITH_DROPOUT)
    write_params(study, one={"network": network, "epochs": 12})
    whole = weights(study)
    killed_after_an_epoch(study)
    assert weights(study) == whole


def test_a_resumed_run_with_other_settings_is_refused(study: TrainingStudy) -> None:
    write_params(study, one={"epochs": 12})
    killed_after_an_epoch(study)
    write_params(study, one={"epochs": 12, "rate": 0.01})
    with pytest.raises(CleansetError, match=r"begun with rate 0.003, now 0.01; expected the same settings"):
        train.run(study, "one")
    assert not study.run("one").exists()


OF_TWO_FILES = {
    "two_files.py": "from two_files_sizes import SIZE\n"
    + WITH_DROPOUT.replace("AdaptiveAvgPool2d(4)", "AdaptiveAvgPool2d(SIZE)"),
    "two_files_sizes.py": "SIZE = 4\n",
}


class BegunError(Exception):
    """Raised in place of a training."""


def begun_with(study: TrainingStudy, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Everything that a state of run one has to agree with to be continued."""
    given: list[dict[str, Any]] = []

    def state_folder(folder: Path, settings: dict[str, Any]) -> None:
        given.append(json.loads(json.dumps(settings)))
        raise BegunError

    for name in ("two_files", "two_files_sizes"):
        sys.modules.pop(name, None)
    monkeypatch.setattr(fold_training, "StateFolder", state_folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with pytest.raises(BegunError):
        train.run(study, "one")
    return given[0]


def differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def test_a_state_names_each_file_that_it_follows_from(study: TrainingStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in OF_TWO_FILES.items():
        (study.folder / name).write_text(text)
    write_params(study, one={"network": "two_files:network", "epochs": 12})
    before = begun_with(study, monkeypatch)
    assert begun_with(study, monkeypatch) == before
    # of a file that the module imports, and which only the comment changes
    (study.folder / "two_files_sizes.py").write_text("SIZE = 4  # unchanged\n")
    assert differing(before, begun_with(study, monkeypatch)) == {"module_sha256"}
    (study.folder / "two_files_sizes.py").write_text(OF_TWO_FILES["two_files_sizes.py"])
    # other first weights by the same code
    content = study.folder / "two_files.py"
    content.write_text(
        content.read_text().replace("    return nn", "    nn.init.zeros_(layers[0].weight)\n    return nn")
    )
    assert differing(before, begun_with(study, monkeypatch)) == {"module_sha256", "first_weights_sha256"}
    content.write_text(OF_TWO_FILES["two_files.py"])
    folds = study.folds.read_text()
    study.folds.write_text(folds + "\n")
    assert differing(before, begun_with(study, monkeypatch)) == {"folds_sha256"}
    study.folds.write_text(folds)
    table = study.images.read_bytes()
    frame = pd.read_parquet(study.images)
    write_table(study.images, frame.assign(mask_sha256="0" * 64), TRAINING_IMAGES, imagenet())
    assert "data_sha256" in differing(before, begun_with(study, monkeypatch))
    study.images.write_bytes(table)
    assert begun_with(study, monkeypatch) == before


@pytest.mark.parametrize("fact", ["generated", "photographs"])
def test_a_state_names_the_images_that_scenarios_take(fact: str, study: TrainingStudy) -> None:
    scenario = {"generated": "generated_background", "photographs": "random_background"}[fact]
    write_params(study, one={"scenario": scenario, "test": None})
    inputs = StudyInputs.read(study)
    fold = read_fold(inputs, "one", FOLD, torch.device("cpu"))
    folder = study.folder / inputs.params.data.generated if fact == "generated" else study.robustness.backgrounds
    file = (folder / fold.training["file"].iloc[0]).with_suffix(".png")
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (256, 256), (1, 2, 3)).save(file)
    first = fold.beside()
    assert first[fact]
    Image.new("RGB", (256, 256), (3, 2, 1)).save(file)
    assert differing(first, fold.beside()) == {fact}
    Image.new("RGB", (256, 256), (1, 2, 3)).save(file)
    assert fold.beside() == first


@pytest.mark.long
def test_bfloat16(study: TrainingStudy) -> None:
    exact = weights(study)
    write_params(study, one={"precision": "bfloat16"})
    lower = weights(study)
    assert lower != exact
    assert all(bool(each.isfinite().all()) for each in load_file(study.fold("one", FOLD).weights).values())


IN_TWO: dict[str, Any] = {"network": {"source": "timm", "name": "test_vit"}, "augmentation": "none", "test": None}
"""Settings in which nothing depends on what else is in the batch."""


def torchrun(study: TrainingStudy) -> subprocess.CompletedProcess[str]:
    """Run `cleanset training train` in two processes, as a user does."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    command = [*launcher, "--", "cleanset", "training", "train", "--run", "one"]
    environment = os.environ | forking(SOURCE)
    return subprocess.run(command, cwd=study.folder, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.long
def test_two_processes_share_each_batch(study: TrainingStudy) -> None:
    """The mean of the gradients of two halves is that of the whole batch; gloo joins the processes."""
    write_params(study, one=IN_TWO)
    train.run(study, "one")
    alone = load_file(study.fold("one", FOLD).weights)
    images = json.loads(study.cost("one", FOLD).read_text())["images"]
    write_params(study, one=IN_TWO | {"devices": 2})
    done = torchrun(study)
    assert done.returncode == 0, done.stderr
    both = load_file(study.fold("one", FOLD).weights)
    assert all(torch.allclose(alone[name], both[name], atol=2e-3) for name in alone)
    assert json.loads(study.fold("one", FOLD).record.read_text())["settings"]["devices"] == 2
    assert json.loads(study.cost("one", FOLD).read_text())["images"] == images
    assert not study.partial("one").exists()


def test_more_devices_than_training_images(study: TrainingStudy) -> None:
    write_params(study, one=IN_TWO | {"devices": 64, "batch": 64})
    message = (
        r"^one, fold_01: 21 training images for 64 devices; expected at least one image for each: add images, or set "
        "fewer devices$"
    )
    with pytest.raises(CleansetError, match=message):
        Classification(read_fold(StudyInputs.read(study), "one", FOLD, torch.device("cpu"), share=ProcessShare(0, 64)))


def test_processes_that_do_not_fit_the_run(study: TrainingStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    message = r"^devices: 1, but torchrun has started 2 processes; expected --nproc-per-node=1$"
    with pytest.raises(CleansetError, match=message):
        train.run(study, "one")


@pytest.mark.exhaustive
def test_a_run_on_two_devices_starts_its_processes(study: TrainingStudy, capfd: pytest.CaptureFixture[str]) -> None:
    """Without torchrun, as in a stage of DVC: the same weights; and what stops a process is reported."""
    write_params(study, one=IN_TWO | {"devices": 2})
    assert torchrun(study).returncode == 0
    first = study.fold("one", FOLD).weights.read_bytes()
    assert weights(study) == first
    write_params(study, one={"network": {"name": "resnet5"}, "devices": 2})
    with pytest.raises(CleansetError, match=r"^run one: torchrun failed; expected all 2 processes to finish"):
        train.run(study, "one")
    assert "error: timm:'resnet5': no such network" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"network": {"name": "resnet5"}}, "timm:'resnet5': no such network; expected a name of timm"),
        ({"network": {"source": "torchvision", "name": "resnet5"}}, "torchvision:'resnet5': no such network"),
        (
            {"network": {"source": "torchvision", "name": "alexnet"}},
            r"alexnet: the network raises RuntimeError \(.*\) for images of 32 x 32",
        ),
        ({"classes": ["n01443537", "n04254680"]}, "runs.one.classes: no training images of n04254680"),
    ],
)
def test_networks_and_classes_that_do_not_fit(study: TrainingStudy, keys: dict[str, Any], message: str) -> None:
    write_params(study, one=keys)
    with pytest.raises(CleansetError, match=message) as raised:
        train.run(study, "one")
    assert "\n" not in str(raised.value)


def test_an_image_that_has_changed_since(study: TrainingStudy) -> None:
    path = study.folder / "images" / "n01443537" / "00.jpg"
    path.write_bytes((study.folder / "images" / "n01443537" / "01.jpg").read_bytes())
    with pytest.raises(CleansetError, match=r"00.jpg: SHA-256 .*, expected"):
        train.run(study, "one")


def test_a_gpu_that_is_not_there() -> None:
    number = torch.cuda.device_count()
    with pytest.raises(CleansetError, match=rf"^params.yaml: device cuda:{number}: {number} CUDA devices found; exp"):
        train.device_named(f"cuda:{number}")
