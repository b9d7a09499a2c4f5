"""Masks that a finished run's network makes for the images of a robustness study, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from cleanset.classes import class_table, imagenet
from cleanset.errors import CleansetError
from cleanset.image_ids import ImageNames
from cleanset.images.preprocessing import Pixels
from cleanset.plumbing.files import sha256
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES
from cleanset.studies.robustness.scenarios.mask_files import MaskSource, find_masks, mask_table
from cleanset.studies.robustness.scenarios.mask_formats import png_mask
from cleanset.studies.robustness.scenarios.masks import Mask
from cleanset.studies.training.fold_training import write_weights
from cleanset.studies.training.run_params import Network
from cleanset.studies.training.segmentation import finished_network as module
from cleanset.studies.training.segmentation.finished_network import (
    MASKS_MADE_WITH,
    ORIGIN,
    UnmaskedImage,
    finished_network,
    in_original,
    make_masks,
    unmasked_images,
    write_model_masks,
)
from cleanset.studies.training.segmentation.task import build_network
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.tables import write_table
from tests.studies.training.segmentation.drawn import CLASSES, WNIDS, draw

pytestmark = pytest.mark.slow

NETWORK = {"source": "smp", "name": "deeplabv3plus", "encoder": "test_efficientnet", "pretrained": False}
SETTINGS = {"task": "segmentation", "network": NETWORK, "epochs": 1, "size": 32, "seed": 5}
RECORDED = {**SETTINGS, "resizing": "cropped", "trained_on": []}
PARAMS = {"data": {"images": "images"}, "runs": {"small": SETTINGS}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TrainingStudy:
    """A study with a finished run, next to a robustness study of two images without masks and one with."""
    edition = tmp_path_factory.mktemp("edition")
    study = TrainingStudy(edition / "studies" / "training")
    files = study.fold("small", "fold_01")
    files.folder.mkdir(parents=True)
    network = build_network(Network.model_validate(NETWORK), len(CLASSES), edition, 3)
    # else an untrained network may find no object at all
    head = network.get_parameter("inner.segmentation_head.0.weight")
    torch.nn.init.normal_(head, std=1, generator=torch.Generator().manual_seed(1))
    write_weights(files.weights, dict(network.state_dict()), "inner")
    record = {
        "run": "small",
        "settings": RECORDED,
        "classes": WNIDS,
        "weights_sha256": sha256(files.weights.read_bytes()),
    }
    files.record.write_text(json.dumps(record))
    study.params_yaml.write_text(json.dumps(PARAMS))
    rows, masks = [], []
    for number, (class_index, left_out) in enumerate([(CLASSES[0], "no_mask"), (CLASSES[1], "no_mask"), (5, None)], 1):
        file, image_id = f"n{class_index}/{number}.png", f"ILSVRC2012_val_{number:08d}"
        path = study.edition.export("standard") / file
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw("disc", number)[0]).save(path)
        rows.append((file, image_id, class_index, None, sha256(path.read_bytes()), ["standard"]))
        mask = (None,) * 4 if left_out else ("drawn/1.png", "0" * 64, "png", "person")
        masks.append((file, *mask, left_out))
    write_table(study.robustness.images, pd.DataFrame(rows, columns=STUDY_IMAGES.names), STUDY_IMAGES, imagenet())
    write_table(study.robustness.masks_table, pd.DataFrame(masks, columns=MASKS.names), MASKS, imagenet())
    return study


def test_only_images_without_a_mask_get_one(finished: TrainingStudy) -> None:
    assert [each.image_id[-1] for each in unmasked_images(finished, imagenet())[0]] == ["1", "2"]


def test_masks_are_those_of_the_networks_weights(finished: TrainingStudy) -> None:
    first, *_ = make_masks(finished, "small", None, "predicted")
    folder = finished.robustness.masks / "predicted"
    assert first == f"{len(list(folder.glob('*.png')))} masks" != "0 masks"
    assert json.loads((folder / MASKS_MADE_WITH).read_text())["fold"] == "fold_01"
    network = build_network(Network.model_validate(NETWORK), len(CLASSES), finished.folder, 9).eval()
    network.inner.load_state_dict(load_file(finished.fold("small", "fold_01").weights))
    for path in folder.glob("*.png"):
        number = int(path.stem[-1])
        image = torch.from_numpy(draw("disc", number)[0].transpose(2, 0, 1).copy())[None] / 255
        with torch.no_grad():
            logits = network(image)[0]
        expected = (logits[number] > logits[0]).numpy()
        assert (png_mask(path.read_bytes(), "mask") == expected).all()


def test_an_object_is_what_is_more_probable_than_the_background(
    finished: TrainingStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the network makes of the other class."""
    right = torch.zeros(3)

    def logits(_: object, image: Pixels) -> torch.Tensor:
        found = torch.zeros(1, 3, *image.shape[:2])
        found[..., 4:] = right.view(3, 1, 1)
        return found

    monkeypatch.setattr(module, "image_logits", logits)
    with pytest.raises(CleansetError, match="no mask to write: 2 images without one, in which it finds no object"):
        make_masks(finished, "small", None, "empty")
    right[1:] = torch.tensor([1, 2])
    make_masks(finished, "small", None, "right")
    masks = [png_mask(path.read_bytes(), "mask") for path in (finished.robustness.masks / "right").glob("*.png")]
    assert [(bool(mask[:, 4:].all()), bool(mask[:, :4].any())) for mask in masks] == [(True, False)] * 2


@pytest.mark.parametrize(
    ("run", "fold", "folder", "message"),
    [
        ("large", None, "new", "unknown run 'large'; expected one of small"),
        ("small", "fold_02", "new", "unknown fold 'fold_02'; expected one of fold_01"),
        ("small", None, "../new", "folder '../new'; expected the name of a folder"),
    ],
)
def test_unknown_runs_folds_and_folders_are_refused(
    finished: TrainingStudy, run: str, fold: str | None, folder: str, message: str
) -> None:
    with pytest.raises(CleansetError, match=message):
        make_masks(finished, run, fold, folder)


def test_a_run_that_is_not_finished_or_damaged_is_refused(finished: TrainingStudy, tmp_path: Path) -> None:
    copy = TrainingStudy(tmp_path / "studies" / "training")
    shutil.copytree(finished.folder, copy.folder)
    files = copy.fold("small", "fold_01")
    files.weights.write_bytes(files.weights.read_bytes()[:-1])
    with pytest.raises(
        CleansetError,
        match=r"weights.safetensors: missing, or not the weights of .*record.json; expected these: run cleanset",
    ):
        finished_network(StudyInputs.read(copy), "small", "fold_01")
    record = json.loads(files.record.read_text())
    classifying = {**RECORDED, "task": "classification", "network": {"name": "test_efficientnet"}}
    files.record.write_text(json.dumps({**record, "settings": classifying}))
    with pytest.raises(CleansetError, match="small: a run of classification; expected a run of segmentation"):
        finished_network(StudyInputs.read(copy), "small", "fold_01")
    files.record.unlink()
    with pytest.raises(CleansetError, match="run cleanset training train --run small"):
        finished_network(StudyInputs.read(copy), "small", "fold_01")


def test_a_robustness_study_without_its_list_of_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        CleansetError, match=r"masks.parquet: missing; expected the output of cleanset robustness stage images"
    ):
        unmasked_images(TrainingStudy(tmp_path / "studies" / "training"), imagenet())


DRAWN = draw("square", 0)[0]
PIXELS = {"whole": DRAWN, "object": DRAWN[15:30, 20:35], "crop": DRAWN[10:, 5:60]}


def red(file: str, label: int) -> Mask:
    """The red pixels, if label 1 is asked for."""
    found: Mask = (PIXELS[file][..., 0] > 180) & (label == 1)
    return found


def image_id(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


def images() -> list[UnmaskedImage]:
    return [
        UnmaskedImage(image_id(1), CLASSES[0], "whole", None),
        UnmaskedImage(image_id(2), CLASSES[1], "whole", None),
        UnmaskedImage(image_id(3), CLASSES[0], "object", None),
        UnmaskedImage(image_id(4), 999, "whole", None),
        UnmaskedImage(image_id(5), CLASSES[0], "crop", (15, 20, 70, 58)),
    ]


def test_the_robustness_study_reads_the_masks(tmp_path: Path) -> None:
    lines = write_model_masks(tmp_path / "predicted", images(), red, classes=CLASSES, made_with={"run": "fpn"})
    assert lines == [
        "2 masks",
        "1 image without one, of a class that the network was not trained on",
        "1 image without one, in which it finds no object",
        "1 image without one, in which it finds no background",
    ]
    found = find_masks([MaskSource(tmp_path / "predicted", "png", ORIGIN)], ImageNames((), imagenet()))
    assert list(found) == [image_id(1), image_id(5)]
    rows = [("1.jpg", image_id(1), CLASSES[0], None), ("5.jpg", image_id(5), CLASSES[0], (15, 20, 70, 58))]
    masked = pd.DataFrame(rows, columns=["file", "image_id", "class_index", "crop"])
    table = mask_table(masked, found, {"1.jpg": (64, 48), "5.jpg": (55, 38)}.__getitem__, imagenet(), is_placed=False)
    assert table["left_out"].isna().all()
    assert table["origin"].tolist() == ["model", "model"]
    assert '"run": "fpn"' in (tmp_path / "predicted" / MASKS_MADE_WITH).read_text()
    assert write_model_masks(tmp_path / "one", images()[:1], red, classes=CLASSES, made_with={}) == ["1 mask"]


def test_masks_of_your_own_images_lie_in_their_folders(tmp_path: Path) -> None:
    own = [UnmaskedImage("pond/a.jpg", CLASSES[0], "whole", None)]
    write_model_masks(tmp_path / "predicted", own, red, classes=CLASSES, made_with={})
    names = ImageNames(["pond/a.jpg"], class_table([("lake", "lake"), ("pond", "pond")], "here"))
    assert list(find_masks([MaskSource(tmp_path / "predicted", "png", ORIGIN)], names)) == ["pond/a.jpg"]


def test_masks_of_a_crop_lie_in_the_original() -> None:
    whole = in_original(np.array([[True, False]]), (1, 2, 3, 3))
    assert whole.tolist() == [[False] * 3, [False] * 3, [False, True, False]]
    wider = in_original(np.array([[True, False]]), (1, 2, 3, 3), (5, 4))
    assert wider.shape == (4, 5)
    assert np.argwhere(wider).tolist() == [[2, 1]]


def test_a_folder_that_has_masks_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "predicted").mkdir()
    (tmp_path / "predicted" / "mask.png").write_bytes(b"")
    with pytest.raises(CleansetError, match="exists already; expected a new or empty folder"):
        write_model_masks(tmp_path / "predicted", images(), red, classes=CLASSES, made_with={})


def test_a_folder_without_masks_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="no mask to write: every image has a mask; expected images that get one"):
        write_model_masks(tmp_path / "predicted", [], red, classes=CLASSES, made_with={})
    with pytest.raises(CleansetError, match="no mask to write: 1 image without one, in which it finds no object;"):
        write_model_masks(tmp_path / "predicted", images()[1:2], red, classes=CLASSES, made_with={})
    assert not (tmp_path / "predicted").exists()
