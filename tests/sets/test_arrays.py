"""`cleanset arrays`: what it writes, and that a model fed from it predicts what the stage `score` stored."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import yaml
from numpy.typing import NDArray
from safetensors.torch import load_file

import cleanset
import draw
from cleanset.classes import imagenet
from cleanset.edition.params import Model, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.images.preprocessing import KERAS256, RES256CROP224
from cleanset.scoring.models import preprocessing_of
from cleanset.sets.arrays import inputs_of
from cleanset.tables import INDEX, SCORES, read_table
from plan import plans
from tests.sets.conftest import make_edition
from tests.ten_images import Made

pytestmark = pytest.mark.slow

IMAGES = 36
ROLES = ("standard", "corruption_robust")


@pytest.fixture(scope="module")
def edition(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The first images of the sample in a folder per class, measured."""
    folder = tmp_path_factory.mktemp("arrays") / "edition"
    raw = folder / "data" / "raw"
    chosen = sorted(plans(), key=lambda plan: plan.number)[:IMAGES]
    for plan in chosen:
        path = raw / "images" / plan.wnid / f"{draw.image_id(plan.number)}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.draw(plan).jpeg)
    labels = json.dumps([draw.real_labels(plan, imagenet().indices) for plan in chosen])
    (raw / "reassessed.json").write_text(labels)
    (folder / "raw.md5").write_text(f"{hashlib.md5(labels.encode()).hexdigest()}  data/raw/reassessed.json\n")
    params = yaml.safe_load((repository / "params.yaml").read_text())
    params["dataset"] = {"images": "data/raw/images", "reassessed": "data/raw/reassessed.json"}
    for model in params["models"].values():
        model["weights"] = str(repository / model["weights"])
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    Made(folder).succeeds("preprocess")
    return Edition(folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The edition of the ten images with its finished set; its model is a resnet18 of timm."""
    return make_edition(tmp_path_factory.mktemp("finished"))


def written(edition: Edition, *arguments: str, out: str) -> Path:
    Made(edition.folder).succeeds("arrays", *arguments, out)
    return edition.folder / out


@pytest.fixture(scope="module")
def keras(edition: Edition) -> Path:
    return written(edition, "--preprocessing", "keras256", out="keras")


def test_the_files(edition: Edition, keras: Path) -> None:
    assert sorted(path.name for path in keras.iterdir()) == [
        "arrays.json", "ids.npy", "images.npy", "labels.npy", "real_labels.npy",
    ]  # fmt: skip
    assert (keras / "arrays.json").read_text() == (
        '{"preprocessing": "keras256", "images": 36, "set": null, "mean": null, "std": null}\n'
    )
    arrays = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in keras.glob("*.npy")}
    assert {name: (array.shape, array.dtype.name) for name, array in arrays.items()} == {
        "images": ((36, 224, 224, 3), "uint8"),
        "labels": ((36,), "int64"),
        "real_labels": ((36, 1000), "bool"),
        "ids": ((36,), "str736"),
    }
    index = read_table(edition.index, INDEX, imagenet())
    assert arrays["ids"].tolist() == [f"ILSVRC2012_val_{number:08d}" for number in range(1, 37)]
    assert arrays["labels"].tolist() == index["ilsvrc_class"].tolist()
    assert [np.flatnonzero(row).tolist() for row in arrays["real_labels"]] == [
        labels.tolist() for labels in index["real_classes"]
    ]
    assert {len(labels) for labels in index["real_classes"]} >= {1, 2}


def test_the_images_are_the_preprocessed_ones_in_order(edition: Edition, keras: Path) -> None:
    images = np.load(keras / "images.npy", mmap_mode="r")
    paths = sorted(edition.path("data/raw/images").rglob("*.JPEG"), key=lambda path: path.name)
    for path, pixels in zip(paths, images, strict=True):
        assert np.array_equal(pixels, KERAS256(decode(path.read_bytes())).transpose(1, 2, 0))


def test_the_same_bytes_again(edition: Edition, keras: Path) -> None:
    again = written(edition, "--preprocessing", "keras256", out="again")
    for path in keras.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_res256crop224(edition: Edition) -> None:
    images = np.load(written(edition, "--preprocessing", "Res256Crop224", out="res256") / "images.npy")
    path = next(edition.path("data/raw/images").rglob("*_00000001.JPEG"))
    assert np.array_equal(images[0], RES256CROP224(decode(path.read_bytes())).transpose(1, 2, 0))


def probabilities(model: Model, images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The predictions of timm's own model for the arrays' images, one after the other, in float64."""
    network = timm.create_model(model.name)
    network.load_state_dict(load_file(str(model.weights)))
    network.eval().double()
    mean, std = (torch.tensor(network.pretrained_cfg[name], dtype=torch.float64) for name in ("mean", "std"))
    with torch.inference_mode():
        return np.stack(
            [
                network(((torch.tensor(pixels).double() / 255 - mean) / std).permute(2, 0, 1)[None])
                .softmax(dim=1)[0]
                .numpy()
                for pixels in images
            ]
        )


@pytest.mark.long
@pytest.mark.parametrize("role", ["standard", pytest.param("corruption_robust", marks=pytest.mark.long)])
def test_a_model_fed_from_the_arrays_gives_the_scores_of_the_stage(edition: Edition, role: str) -> None:
    Made(edition.folder).succeeds("score", "--model", role)
    stored = read_table(edition.scores(role), SCORES, imagenet())
    folder = written(edition, "--preprocessing", role, out=f"of_{role}")
    ids, images = np.load(folder / "ids.npy"), np.load(folder / "images.npy", mmap_mode="r")
    assert ids.tolist() == stored["image_id"].tolist()
    about = json.loads((folder / "arrays.json").read_text())
    config = timm.get_pretrained_cfg(read_params(edition.folder).model(role).name)
    assert (about["mean"], about["std"]) == (list(config.mean), list(config.std))
    predicted = probabilities(read_params(edition.folder).model(role), images)
    order = np.argsort(-predicted, axis=1, kind="stable")[:, :5]
    assert np.array_equal(order, np.stack(stored["top5_class"].to_list()))
    found = np.take_along_axis(predicted, order, axis=1).astype(np.float32)
    assert np.array_equal(found, np.stack(stored["top5_probability"].to_list()))


def test_accuracy_from_the_arrays_alone(edition: Edition, keras: Path) -> None:
    """As a user outside this project computes it."""
    labels, real = np.load(keras / "labels.npy"), np.load(keras / "real_labels.npy")
    rated = real.any(axis=1)
    assert 100 * real[np.arange(len(labels)), labels][rated].mean() > 50
    index = read_table(edition.index, INDEX, imagenet())
    assert rated.sum() == (index["real_classes"].str.len() > 0).sum()


def test_preprocessing_of_a_model_needs_no_weights() -> None:
    of_timm = preprocessing_of(Model(source="timm", name="resnet50.a1_in1k"))
    assert (of_timm.name, of_timm.size) == ("timm-bicubic-235-224", 224)
    robust = Model(source="robustbench", name="Salman2020Do_R50", threat_model="Linf")
    assert preprocessing_of(robust) is RES256CROP224
    with pytest.raises(CleansetError, match=r"'resnet9000': .*; expected a model name of timm"):
        preprocessing_of(Model(source="timm", name="resnet9000"))


def test_errors_are_one_line_and_leave_nothing(edition: Edition, keras: Path, tmp_path: Path) -> None:
    before = sorted(path.name for path in edition.folder.iterdir())
    for arguments, message in (
        (("--preprocessing", "keras256", "keras"), "keras: exists already; expected a new or empty folder"),
        (("--preprocessing", "keras256", "params.yaml"), "params.yaml: exists already; expected"),
        (
            ("--preprocessing", "keras", "new"),
            "arrays: no preprocessing 'keras'; expected keras256, Res256Crop224, or ",
        ),
        (("--model", "vit", "new"), "params.yaml: no model 'vit'; expected one of standard"),
        (
            ("new",),
            "arrays: no --preprocessing; expected keras256 or Res256Crop224, or the role of a model (or",
        ),
        (
            ("--model", "standard", "new"),
            "data/export/standard: not there; run dvc pull export@standard, or dvc repro",
        ),
    ):
        code, stderr = Made(edition.folder).run("arrays", *arguments)
        assert code == 1, arguments
        assert stderr.startswith(f"error: {message}"), stderr
        assert stderr.count("\n") == 1
    assert sorted(path.name for path in edition.folder.iterdir()) == before


def test_other_bytes_than_the_indexed_ones(edition: Edition, tmp_path: Path) -> None:
    copy = tmp_path / "edition"
    shutil.copytree(edition.folder, copy, ignore=shutil.ignore_patterns("*.npy"))
    path = next((copy / "data" / "raw" / "images").rglob("*_00000030.JPEG"))
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    code, stderr = Made(copy).run("arrays", "--preprocessing", "keras256", "new")
    assert code == 1
    assert stderr.startswith("error: data/raw/images: ILSVRC2012_val_00000030 has SHA-256 ")
    assert stderr.count("\n") == 1
    assert [path.name for path in copy.iterdir() if path.name.startswith("new")] == []


def peak_mib(images: int, out: Path) -> float:
    """Peak memory of writing a number of images, 147 KiB each, in a process of its own."""
    program = f"""
import resource
from pathlib import Path
import numpy as np, pandas as pd
from cleanset.sets.arrays import NetworkInputs, write_arrays
from cleanset.images.preprocessing import RES256CROP224
from tests.ten_images import drawn_image, jpeg
data = jpeg(drawn_image(240, 230))
names = [f"ILSVRC2012_val_{{number:08d}}" for number in range({images})]
labels = pd.Series([np.array([1], dtype=np.int16)] * len(names), dtype=object)
index = pd.DataFrame({{"image_id": names, "label": 1, "real_classes": labels}})
write_arrays(Path({str(out)!r}), index, lambda name: data, NetworkInputs(RES256CROP224), role=None, classes=1000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{program}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert np.load(out / "images.npy", mmap_mode="r").shape == (images, 224, 224, 3)
    shutil.rmtree(out)
    return float(done.stdout)


def test_what_a_robust_model_takes() -> None:
    """The network normalises; in timm's models it is done before."""
    robust = inputs_of(Model(source="robustbench", name="Salman2020Do_R50", threat_model="Linf"))
    assert (robust.preprocessing, robust.mean, robust.std) == (RES256CROP224, (0, 0, 0), (1, 1, 1))
    of_timm = inputs_of(Model(source="timm", name="resnet50.a1_in1k"))
    assert (of_timm.mean, of_timm.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.mark.parametrize(
    ("arguments", "preprocessing", "mean"),
    [
        ((), "timm-bicubic-235-224", [0.485, 0.456, 0.406]),  # of its own model, a resnet18
        (("--preprocessing", "Res256Crop224"), "Res256Crop224", None),
    ],
)
def test_a_finished_set(
    finished: Edition, tmp_path: Path, arguments: tuple[str, ...], preprocessing: str, mean: list[float] | None
) -> None:
    """As delivered: crops are cropped, and each image has the label of its class."""
    out = tmp_path / "out"
    Made(finished.folder).succeeds("arrays", "--model", "standard", *arguments, str(out))
    assert json.loads((out / "arrays.json").read_text()) == {
        "preprocessing": preprocessing, "images": 6, "set": "standard", "mean": mean,
        "std": None if mean is None else [0.229, 0.224, 0.225],
    }  # fmt: skip
    images = cleanset.load("standard", finished.folder)
    assert np.load(out / "ids.npy").tolist() == [record["image_id"] for _, _, record in images]
    assert np.load(out / "labels.npy").tolist() == images.targets
    labels = np.load(out / "real_labels.npy")
    assert [np.flatnonzero(row).tolist() for row in labels] == [[0], [0], [278], [278, 281], [278, 999], [281]]
    if mean is None:
        arrays = np.load(out / "images.npy")
        for pixels, (image, _, _) in zip(arrays, images, strict=True):
            assert np.array_equal(pixels, RES256CROP224(image).transpose(1, 2, 0))


@pytest.mark.long
def test_memory_does_not_grow_with_the_images(tmp_path: Path) -> None:
    few, many = peak_mib(20, tmp_path / "few"), peak_mib(400, tmp_path / "many")
    assert many < few + 25, f"{few:.0f} MiB for 20, {many:.0f} MiB for 400, which are 53 MiB more on disk"
