"""The ten images, ready to be scored."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stages.inputs import AT_DEVKIT, AT_TAR, NETWORK
from tests.ten_images import Made

if TYPE_CHECKING:
    from torch import Tensor


@pytest.fixture(scope="session")
def tensors() -> dict[str, "Tensor"]:
    """Random weights of NETWORK; not to be changed."""
    import timm
    import torch

    torch.manual_seed(0)
    return dict(timm.create_model(NETWORK, pretrained=False).state_dict())


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ten images, preprocessed; not to be changed."""
    made = Made(tmp_path_factory.mktemp("indexed")).archives()
    made.succeeds("preprocess")
    return made.folder


@pytest.fixture
def scorable(made: Made, indexed: Path) -> Made:
    """A copy of `indexed`, which lacks only a model."""
    shutil.copytree(indexed, made.folder, dirs_exist_ok=True)
    made.dataset = {
        "images": AT_TAR,
        "devkit": AT_DEVKIT,
        "reassessed": "data/raw/reassessed.json",
        "expect_images": 10,
    }
    return made
