"""`evaluate` on real photographs with real weights, against timm's own transforms and a plain loop in float32."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from safetensors.torch import load_file
from torch.utils.data import DataLoader

import cleanset
from cleanset.edition.paths import Edition
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import run

pytestmark = pytest.mark.slow

MODELS = tuple(f"tf_efficientnet_lite{number}" for number in range(3))
PHOTOGRAPHS = 5


@pytest.fixture(scope="module")
def photographs(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per wnid with every 32nd of the photographs."""
    folder = tmp_path_factory.mktemp("photographs")
    for path in sorted((real / "photos").glob("*.JPEG"))[::32]:
        (folder / path.name.partition("_")[0]).mkdir(exist_ok=True)
        shutil.copyfile(path, folder / path.name.partition("_")[0] / path.name)
    return folder


def loaded(real: Path, name: str) -> tuple[torch.nn.Module, Any]:
    """timm's network with its weights, and timm's own transform."""
    network = timm.create_model(name, pretrained=False).eval()
    network.load_state_dict(load_file(real / "weights" / f"{name}.safetensors"))
    config = timm.data.resolve_data_config({}, model=network)
    return network, timm.data.create_transform(**config, is_training=False)


def plain_loop(network: torch.nn.Module, folder: Path, transform: Any) -> Iterator[tuple[int, float]]:
    """Top-1 class and probability of each image, sorted by file."""
    from torchvision.datasets import ImageFolder

    with torch.no_grad():
        for pixels, _ in DataLoader(ImageFolder(str(folder), transform), batch_size=10):
            probabilities, classes = network(pixels).softmax(1).max(1)
            yield from zip(classes.tolist(), probabilities.tolist(), strict=True)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if place else pytest.mark.long)
        for place, name in enumerate(MODELS)
    ],
)
def test_the_predictions_are_those_of_a_plain_loop(name: str, real: Path, photographs: Path, tmp_path: Path) -> None:
    """By the command in float64, by `cleanset.evaluate`, and from a CSV file; the pages are the same, too."""
    network, transform = loaded(real, name)
    expected = list(plain_loop(network, photographs, transform))
    assert len(expected) == PHOTOGRAPHS
    weights = str(real / "weights" / f"{name}.safetensors")
    wanted = Arguments(str(photographs), [weights], name, device="cpu", out=tmp_path, report=tmp_path / "page")
    _, (row,) = run(Edition(tmp_path), wanted)
    table = pd.read_parquet(next(tmp_path.glob("*.parquet")))
    mine = cleanset.evaluate(network, photographs, transform)
    for found in (table, mine.predictions):
        assert found["prediction"].tolist() == [prediction for prediction, _ in expected]
        confidences = [confidence for _, confidence in expected]
        np.testing.assert_allclose(found["confidence"], confidences, atol=2e-4)
    assert mine.is_deterministic
    assert row.measures.overall == mine.model.measures.overall
    five = {
        f"{what}_{rank + 1}": [each[rank] for each in table[f"top5_{what}"]]
        for what in ("class", "probability")
        for rank in range(5)
    }
    pd.DataFrame({"image": table["file"], **five}).to_csv(tmp_path / "p.csv", index=False)
    given = Arguments(str(photographs), [], predictions=[f"{weights}={tmp_path / 'p.csv'}"], report=tmp_path / "given")
    run(Edition(tmp_path), given)
    pages = [(tmp_path / each / "index.html").read_text() for each in ("page", "given")]
    assert pages[1] == pages[0]
