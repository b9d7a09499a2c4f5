"""Real photographs as their authors' programs change them for training: means that the programs gave.

Each value was compared, on the same photographs with the same draws (docs/beside_authors.md).
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image

from cleanset.studies.training.classification import TrainingBatches
from cleanset.studies.training.pixels import TrainingPixels
from cleanset.studies.training.recipes import Augmix, Standard
from cleanset.studies.training.run_params import Network, Run

pytestmark = pytest.mark.slow
SIZE = 224
# by photograph: of google-research/augmix's `aug` at severity 3, with numpy's generator seeded by its number
MIXTURES = [
    78.5292, 130.1027, 72.2247, 123.435, 85.2064, 131.5227, 87.4468, 125.4428, 118.8384, 107.3813,
    126.0, 96.3921, 106.4729, 92.0464, 66.8763, 130.1617, 124.8007, 144.1184, 60.0777, 91.9802,
]  # fmt: skip
# of each channel: of MadryLab's TRAIN_TRANSFORMS_IMAGENET, one photograph after the other from torch's seed 5
JITTERED = [
    [97.715, 88.8328, 52.1481], [183.7259, 157.0119, 158.4291], [84.8141, 86.2934, 74.3419],
    [114.066, 119.3292, 131.5824], [97.94, 98.7661, 87.4009], [146.2335, 92.6097, 84.1778],
    [186.2749, 104.7036, 43.8962], [125.1484, 123.1571, 120.9338], [115.5879, 151.8787, 77.3668],
    [123.879, 117.3109, 104.5135], [163.3751, 109.9923, 90.552], [123.9093, 112.9094, 105.8308],
    [94.4976, 95.9886, 83.3221], [95.4771, 63.9918, 26.9644], [92.9855, 82.4315, 68.1617],
    [147.9999, 141.025, 118.7255], [120.0791, 96.8716, 83.3528], [123.5787, 126.3058, 133.4342],
    [64.6629, 63.1363, 28.1289], [121.8582, 123.8204, 81.3995],
]  # fmt: skip


class LegacyDraws:
    """The draws of numpy's older generator, which the script uses, under the names of the newer one."""

    def __init__(self, seed: int) -> None:
        self.state = np.random.RandomState(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, {"integers": "randint"}.get(name, name))


@pytest.fixture(scope="module")
def photographs(real: Path) -> list[Image.Image]:
    """Twenty photographs, resized to 224 x 224 pixels."""
    paths = sorted((real / "photos").glob("*.JPEG"))[:20]
    return [Image.open(path).convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR) for path in paths]


def test_mixtures_are_those_of_augmix(photographs: list[Image.Image]) -> None:
    recipe = Augmix()
    found = []
    for number, image in enumerate(photographs):
        pixels = torch.from_numpy(np.array(image).transpose(2, 0, 1).copy())
        draws = cast(np.random.Generator, LegacyDraws(number))
        found.append(float(recipe.mixture(pixels, draws).double().mean()))
    assert found == pytest.approx(MIXTURES, abs=1e-4)


def test_crops_jitter_and_light_are_those_of_madrylab(photographs: list[Image.Image]) -> None:
    trained_on = ["brightness", "contrast", "saturate"]
    run = Run(network=Network(name="any"), recipe="madry", trained_on=trained_on)
    pixels = cast(TrainingPixels, SimpleNamespace(size=SIZE, image=photographs.__getitem__))
    torch.manual_seed(5)
    found = TrainingBatches(pixels=pixels, recipe=Standard(), run=run)._augmented(range(len(photographs)))
    assert found.double().mean(dim=(2, 3)).flatten().tolist() == pytest.approx(np.ravel(JITTERED).tolist(), abs=1e-4)
