"""Training on images that are not ImageNet's, with a custom network: from the images to an evaluation."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file

from cleanset.classes import class_table
from cleanset.errors import CleansetError
from cleanset.studies.training import data, train
from cleanset.studies.training.finished import model_entry
from cleanset.studies.training.fold_data import read_fold
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.networks import build_network, trained_network
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.tables import read_table
from tests.documents import block, blocks
from tests.forked_commands import forking

pytestmark = pytest.mark.slow
SOURCE = Path(__file__).parents[3] / "src"
COLOURS = {"red fox": (220, 90, 30), "toad": (60, 200, 60), "Äsche": (40, 60, 220)}
OTHERS = re.compile(rb"(?i)imagenet|wnid|ilsvrc|n01440764")
EVALUATE = (
    "cd mine\ncleanset evaluate images --model studies/training/data/runs/custom/fold_01/weights.safetensors "
    "--architecture mynet:small"
)
CUSTOM: dict[str, Any] = {"network": "mynet:small", "size": 32, "epochs": 2, "batch": 8, "rate": 0.01}


def run(folder: Path, commands: str) -> str:
    """What commands print, which must not tell of ImageNet."""
    environment = os.environ | forking(SOURCE) | {"DVC_SITE_CACHE_DIR": str(folder / "site"), "COLUMNS": "120"}
    done = subprocess.run(
        ["bash", "-e"], input=commands, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert not OTHERS.search((done.stdout + done.stderr).encode())
    return done.stdout


def square(path: Path, colour: tuple[int, int, int], seed: list[int]) -> None:
    """Draw a coloured square on noise."""
    pixels = np.random.default_rng(seed).integers(60, 160, (40, 48, 3), np.uint8)
    pixels[8:32, 12:36] = colour
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def edit(path: Path, *changes: tuple[str, str]) -> None:
    for old, new in changes:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def reproduced(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An edition of 3 classes with 8 images in 4 groups each, and its study, once DVC has run; not to be changed."""
    folder = tmp_path_factory.mktemp("own")
    lines = ["file,class,group"]
    for number, (key, colour) in enumerate(COLOURS.items()):
        for serial in range(8):
            square(folder / "images" / f"{number}{serial}.png", colour, [number, serial])
            lines.append(f"{number}{serial}.png,{key},0{number}{serial // 2}")
    (folder / "labels.csv").write_text("\n".join([*lines, ""]))
    run(folder, "cleanset edition mine --images images --labels labels.csv")
    mine, study = folder / "mine", folder / "mine" / "studies" / "training"
    edit(mine / "params.yaml", ("unreviewed: pending", "unreviewed: clean"), ("_class: 3", "_class: 1"))
    (module,) = blocks(repository, "python", "docs/training.md")
    (study / "mynet.py").write_text(module)
    (keys,) = (each for each in blocks(repository, "yaml", "docs/training.md") if "mynet:small" in each)
    (study / "params.yaml").write_text((study / "params.yaml").read_text() + keys.removeprefix("runs:\n"))
    edit(
        study / "dvc.yaml",
        ("      - data/folds.csv\n      - ..", "      - data/folds.csv\n      - mynet.py\n      - .."),
    )
    assert "6 of 24 images are held out" in run(folder, block(repository, "cd mine\ndvc repro"))
    return mine


@pytest.fixture
def study(reproduced: Path, tmp_path: Path) -> TrainingStudy:
    """A copy of the study of the same edition, with its classes in use."""
    mine = tmp_path / "mine"
    for name in ("params.yaml", "data", "labels.csv", "images.sha256"):
        (mine / name).parent.mkdir(exist_ok=True)
        (mine / name).symlink_to(reproduced / name)
    shutil.copytree(reproduced.parent / "images", tmp_path / "images")
    found = TrainingStudy(mine / "studies" / "training")
    shutil.copytree(reproduced / "studies" / "training", found.folder, ignore=shutil.ignore_patterns("runs", "report"))
    return found


def write_params(study: TrainingStudy, of_data: dict[str, Any] | None = None, **runs: dict[str, Any]) -> None:
    content = yaml.safe_load(study.params_yaml.read_text())
    content["data"] |= of_data or {}
    content["runs"] = {name: CUSTOM | keys for name, keys in (runs or {"one": {}}).items()}
    study.params_yaml.write_text(yaml.safe_dump(content))


def test_what_dvc_repro_leaves(reproduced: Path) -> None:
    study = reproduced / "studies" / "training"
    paths = {name: study / "data" / "runs" / name / "fold_01" / "record.json" for name in ("plain", "custom")}
    records = {name: json.loads(path.read_text()) for name, path in paths.items()}
    for record in records.values():
        assert (record["classes"], record["split_by"]) == (sorted(COLOURS), "group")
        assert (record["training_images"], record["validation_images"]) == (6, 6)
    assert len(records["custom"]["module_sha256"]) == 64
    page = (study / "report" / "index.html").read_text()
    assert "are never split between training and test: plain, custom." in page
    assert not re.search(r"studies/robustness|/robustness/report|/attacks/report", page)
    folds = pd.read_csv(study / "data" / "folds.csv", dtype={"group": str})
    assert len(folds) == 18
    assert folds.groupby("group")[["split", "fold"]].nunique().eq(1).all(axis=None)
    delivered = pd.read_csv(reproduced / "data" / "export" / "images" / "manifest.csv", dtype=str)
    assert len(delivered) == 3
    assert not set(folds["group"]) & set(delivered["group"])


def test_nothing_tells_of_imagenet(reproduced: Path) -> None:
    study = reproduced / "studies" / "training"
    written = [path for path in study.rglob("*") if path.is_file() and "tmp" not in path.relative_to(study).parts]
    assert {"images.parquet", "record.json", "index.html", "dvc.yaml", "dvc.lock"} <= {path.name for path in written}
    assert [path for path in written if OTHERS.search(path.read_bytes())] == []


def test_the_trained_network_is_evaluated_on_the_set(reproduced: Path, repository: Path) -> None:
    command = block(repository, EVALUATE)
    # the code of a folder runs only on request
    unnamed = command.replace(" --architecture mynet:small\n", " 2>&1 || true\n")
    refused = run(reproduced.parent, unnamed)
    assert "belongs to the network mynet:small, whose code in " in refused
    printed = run(reproduced.parent, command)
    assert printed.startswith("images: 3 images, 3 classes\n")
    assert re.search(r"custom/fold_01/weights.safetensors +[0-9.]+ %", printed)


def test_a_trained_network_has_its_weights_at_their_classes(study: TrainingStudy) -> None:
    """Also one of some classes, in the order in which its run names them: the others have no probability."""
    keys = {"network": "timm:test_efficientnet", "classes": ["Äsche", "red fox"]}
    write_params(study, one=keys)
    train.run(study, "one")
    files = study.fold("one", "fold_01")
    network, preprocessing = trained_network(files.weights, study.read_classes())
    assert preprocessing == "timm-bilinear-36-32"
    pixels = torch.rand(4, 3, 32, 32)
    probabilities = network.eval()(pixels).softmax(dim=1)
    assert study.read_classes().keys == ("red fox", "toad", "Äsche")
    assert probabilities[:, 1].tolist() == [0] * 4
    network_of_two = Run.model_validate(CUSTOM | keys, context=study.read_classes()).network
    alone = build_network(network_of_two, classes=2, size=32, edition=study.folder, seed=1).eval()
    alone[1].load_state_dict(load_file(files.weights))  # type: ignore[index]
    assert torch.equal(alone(pixels).softmax(dim=1), probabilities[:, [0, 2]])
    others = class_table([("red fox", "red fox"), ("toad", "toad")], "here")
    with pytest.raises(CleansetError, match="trained on class 'Äsche'; expected a class of"):
        trained_network(files.weights, others)


@pytest.mark.parametrize("recipe", ["standard", "adversarial", "augmix", "augmix_mixing", "noise"])
def test_every_recipe_trains_a_custom_network(study: TrainingStudy, recipe: str) -> None:
    named = {"trained_on": ["noise", "speckle_noise"]} if recipe == "noise" else {}
    write_params(study, one={"recipe": recipe, **named})
    train.run(study, "one")
    assert pd.read_csv(study.fold("one", "fold_01").test)["images"].tolist() == [2, 2, 2]
    with pytest.raises(CleansetError, match=r"^one: mynet:small is a module's; expected a normalised network of timm"):
        model_entry(study, study.fold("one", "fold_01"))


def test_a_clone_without_the_edition_knows_the_classes(study: TrainingStudy) -> None:
    (study.edition.folder / "data").unlink()
    assert study.read_classes().keys == tuple(sorted(COLOURS))


def refused(study: TrainingStudy, message: str) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        data.run(study)
    assert not OTHERS.search(str(raised.value).encode())


def test_images_of_the_edition_are_refused_unless_the_sets_alone_are_held_out(study: TrainingStudy) -> None:
    write_params(study, {"held_out": "edition"})
    refused(
        study,
        r"^24 images: 00.png: its bytes are those of 00.png, .* and 21 more of the edition, which may not be trained",
    )


def test_images_that_have_changed_since_they_were_pinned(study: TrainingStudy) -> None:
    folder = study.edition.path("../images")
    square(folder / "00.png", (0, 0, 0), [7])
    square(folder / "02.png", (0, 0, 0), [8])
    refused(study, r"images: 2 changed: 00.png, 02.png; expected the images of images.sha256: restore them")


def test_other_images_of_a_group_of_the_edition_are_refused(study: TrainingStudy, tmp_path: Path) -> None:
    """What is tested on must not have been seen: another image of the same patient has been."""
    lines = ["file,class,group"]
    for number, (key, colour) in enumerate(COLOURS.items()):
        for serial in range(6):
            square(tmp_path / "new" / f"{number}{serial}.png", colour, [9, number, serial])
            lines.append(f"{number}{serial}.png,{key},new{number}{serial // 2}")
    labels = tmp_path / "new.csv"
    labels.write_text("\n".join([*lines, ""]))
    write_params(study, {"held_out": "edition", "images": "../../../new", "labels": "../../../new.csv"})
    data.run(study)
    assert len(read_table(study.images, TRAINING_IMAGES, study.read_classes())) == 18
    edit(labels, ("new12", "010"))
    refused(
        study,
        r"^2 images: 14.png: its group is that of 1[01].png, 15.png: .* of the edition, which may not be trained on",
    )
    edit(labels, ("toad", "newt"))
    refused(study, r"new.csv: class 'newt', which the edition does not have; expected one of its classes")


def soft(path: Path, seed: int, quality: int = 95) -> None:
    """Draw soft patches, which recompressing changes little."""
    coarse = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(coarse).resize((96, 72), Image.Resampling.BICUBIC).save(path, quality=quality)


def test_near_duplicates_stay_on_one_side(
    study: TrainingStudy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Images and their recompressed copies, in folds, split and validation; more than five that are alike need not."""
    new = tmp_path / "new"
    for number, key in enumerate(COLOURS):
        for serial in range(12):
            soft(new / key / f"{serial:02d}.jpg", 100 * number + serial)
    write_params(study, {"held_out": "edition", "images": "../../../new", "labels": None})
    data.run(study)
    assert "near-duplicates" not in capsys.readouterr().out
    before = pd.read_csv(study.folds)
    assert list(before) == ["file", "class_index", "split", "fold"]
    for number, key in enumerate(COLOURS):
        for serial in range(4):
            soft(new / key / f"{serial:02d} copy.jpg", 100 * number + serial, quality=50)
    data.run(study)
    assert "24 near-duplicates are kept on one side of each fold" in capsys.readouterr().out
    folds = pd.read_csv(study.folds)
    folds["of"] = folds["file"].str.replace(" copy", "")
    assert folds["of"].nunique() == 36
    assert folds.groupby("of")[["split", "fold", "group"]].nunique().eq(1).all(axis=None)
    fold = read_fold(StudyInputs.read(study), "one", "fold_01", torch.device("cpu"))
    parts = [set(part["file"].str.replace(" copy", "")) for part in (fold.training, fold.validation, fold.left_out)]
    assert sum(map(len, parts)) == 36
    for copy in range(6):  # seven of 66 are more than five, and more than one in a hundred
        soft(new / "toad" / f"07 copy {copy}.jpg", 107, quality=40 + 9 * copy)
    data.run(study)
    assert (
        "too many images are alike to be kept on one side of a fold: 7: toad/07 copy 0.jpg, " in capsys.readouterr().out
    )
    assert pd.read_csv(study.folds)["group"].duplicated().sum() == 12


@pytest.mark.long
def test_cropped_copies_stay_on_one_side(
    study: TrainingStudy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies without 5 % of each side, or of one, come into an older division; they are on the side of the whole."""
    new = tmp_path / "new"
    for number, key in enumerate(COLOURS):
        for serial in range(12):
            soft(new / key / f"{serial:02d}.png", 100 * number + serial)
    write_params(study, {"held_out": "edition", "images": "../../../new", "labels": None})
    data.run(study)
    assert "near-duplicates" not in capsys.readouterr().out
    for key in COLOURS:
        for serial in range(6):
            whole = Image.open(new / key / f"{serial:02d}.png")
            box = (5, 4, 91, 68) if serial % 2 else (0, 0, 91, 72)
            whole.crop(box).save(new / key / f"{serial:02d} copy.png")
    data.run(study)
    assert "36 near-duplicates are kept on one side of each fold" in capsys.readouterr().out
    folds = pd.read_csv(study.folds)
    folds["of"] = folds["file"].str.replace(" copy", "")
    assert folds["of"].nunique() == 36
    assert folds.groupby("of")[["split", "fold", "group"]].nunique().eq(1).all(axis=None)


def test_a_class_whose_images_are_all_held_out(study: TrainingStudy) -> None:
    labels = study.edition.folder / "labels.csv"
    text = labels.read_text()
    labels.unlink()
    labels.write_text(re.sub(r"toad,.*", "toad,one", text))
    refused(
        study,
        "^toad: every training image is in a finished set, or its group is; expected some to train on: "
        "add images, or lower export.images_per_class of the edition$",
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"size": 64},
            "mynet:small: its preprocessing gives images of 32 x 32, size is 64; expected the same",
        ),
        (
            {"classes": ["toad", "red fox"]},
            r"mynet:small: the network gives float32 \(8, 3\); expected logits, float \(8, 2\)",
        ),
        ({"network": "mynet:none"}, "mynet has no none; expected a callable"),
    ],
)
def test_networks_that_do_not_fit(study: TrainingStudy, keys: dict[str, Any], message: str) -> None:
    write_params(study, one=keys)
    with pytest.raises(CleansetError, match=message):
        train.run(study, "one")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"classes": ["toad", "newt"]},
            "classes.1\n  Value error, expected a class of classes.tsv, such as red fox .*newt",
        ),
        ({"classes": "ximagenet_12"}, "list 'ximagenet_12'; expected a list of your classes: only ImageNet's"),
        ({"network": {"source": "module", "name": "mynet"}}, "module 'mynet'; expected MODULE:CALLABLE"),
    ],
)
def test_keys_that_do_not_fit(study: TrainingStudy, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Run.model_validate(CUSTOM | keys, context=study.read_classes())
