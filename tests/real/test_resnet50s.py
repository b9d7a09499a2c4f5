"""The whole pipeline on real photographs with the three real architectures; random weights in place of downloads.

`make real` takes all 2,000 photographs, in float64.
"""

import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from cleanset.classes import imagenet
from cleanset.images.codec import decode
from cleanset.images.preprocessing import RES256CROP224
from tests.real.editions import EVERY, ROLES, TAR, make_edition, pinned, reproduced, wnids
from tests.scoring.networks import ENSEMBLE, random_resnet50

pytestmark = pytest.mark.exhaustive


def save_random_weights(path: Path, seed: int, pixels: torch.Tensor, classes: list[int]) -> None:
    """A ResNet-50 that predicts only `classes`, each about as often: by chance some predictions are correct.

    It is centred on `pixels`, some normalised images; otherwise its predictions would nearly all be the same.
    """
    network = random_resnet50(seed)
    nn.init.constant_(network.fc.bias, -1000)
    with torch.inference_mode():
        features = network.eval().forward_head(network.forward_features(pixels), pre_logits=True)
        spread = features.std(dim=0).clamp(min=1e-6)
        network.fc.weight[:] = torch.randn(network.fc.weight.shape) / spread / 16
        network.fc.bias[classes] = -(network.fc.weight @ features.mean(dim=0))[classes]
    save_file(dict(network.state_dict()), path)


@pytest.fixture(scope="module")
def edition(real: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """An edition of real photographs, reproduced; few of them, unless in float64."""
    folder = tmp_path_factory.mktemp("resnet50s")
    with tarfile.open(real / TAR) as tar:
        files = [tar.extractfile(member) for member in tar.getmembers()[:1000:50]]
        images = [RES256CROP224(decode(file.read())) for file in files if file is not None]
    pixels = (torch.from_numpy(np.stack(images)) / 255 - 0.45) / 0.225
    models = {}
    for seed, role in enumerate(ROLES):
        path = folder / f"{role}.safetensors"
        save_random_weights(path, seed, pixels, [imagenet().indices[wnid] for wnid in wnids(real)])
        models[role] = ENSEMBLE[role] | pinned(path)
    precision = pytestconfig.getoption("--real-precision")
    make_edition(folder / "edition", real, models, precision, EVERY if precision == "float64" else range(40))
    return reproduced(folder / "edition")


@pytest.mark.parametrize("role", ROLES)
def test_every_image_is_scored(role: str, edition: Path, real: Path) -> None:
    index, scores = (pd.read_parquet(edition / "data" / name) for name in ("index.parquet", f"scores/{role}.parquet"))
    assert scores["image_id"].tolist() == index["image_id"].tolist()
    assert len(scores) in (40, 2000)
    assert len({tuple(five) for five in scores["top5_class"]}) > len(scores) / 10
    assert {five[0] for five in scores["top5_class"]} <= {imagenet().indices[wnid] for wnid in wnids(real)}


def test_what_is_correct_by_chance_is_exported(edition: Path) -> None:
    """A set holds correctly classified images only; the sets of three such models differ."""
    sets = {}
    for role in ROLES:
        manifest = pd.read_csv(edition / "data" / "export" / role / "manifest.csv")
        scores = pd.read_parquet(edition / "data" / "scores" / f"{role}.parquet").set_index("image_id")
        predicted = scores.loc[manifest["image_id"], "top5_class"].str[0]
        assert predicted.tolist() == manifest["class_index"].tolist()
        assert all((edition / "data" / "export" / role / file).is_file() for file in manifest["file"])
        sets[role] = set(manifest["image_id"])
    assert any(sets.values())
    assert len({frozenset(image_ids) for image_ids in sets.values()}) > 1
