"""Predictions among the classes of the images, for a folder of images of few classes such as ImageNet-R."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import run
from cleanset.evaluation.measured_models import accuracy_card
from cleanset.evaluation.user_model import AmongClasses

pytestmark = pytest.mark.slow

SHOWN = (3, 17, 900)


class Constant(nn.Module):
    """The highest logit is of class 5, then those of 900 and 3."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(len(pixels), 1000, dtype=pixels.dtype)
        logits[:, 5], logits[:, 900], logits[:, 3] = 9, 4, 2
        return logits


def constant() -> tuple[nn.Module, str]:
    return Constant(), "timm-bilinear-8-8"


def test_other_classes_have_no_probability() -> None:
    logits = torch.randn(20, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = AmongClasses(nn.Identity(), SHOWN, imagenet())(logits)
    probabilities = torch.softmax(found, dim=1)
    expected = torch.softmax(logits[:, SHOWN], dim=1)
    torch.testing.assert_close(probabilities[:, SHOWN], expected)
    assert probabilities.sum(dim=1).tolist() == pytest.approx([1] * 20)
    others = [index for index in range(1000) if index not in SHOWN]
    assert (probabilities[:, others] == 0).all()
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_folder_of_few_classes(tmp_path: Path, precision: str) -> None:
    """Two images are of class 900, which is predicted there; among all classes none is correct."""
    for number, class_index in enumerate((3, 17, 900, 900)):
        path = tmp_path / "imagenet-r" / imagenet().keys[class_index] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((20, 20, 3), 40 * number, np.uint8)).save(path)
    edition, name = Edition(tmp_path / "none"), f"{__name__}:constant"
    accuracies = {}
    for restricted in (False, True):
        wanted = Arguments(
            str(tmp_path / "imagenet-r"), [name], precision=precision, out=tmp_path / "out", restricted=restricted
        )
        images, (row,) = run(edition, wanted)
        accuracies[restricted] = row.measures.overall.correct
        found = accuracy_card(images, [row])
        assert found.classes.of_predictions == (3 if restricted else 1000)
    assert accuracies == {False: 0, True: 2}
    assert "predictions among the 3 classes of the images alone" in images.notes
    # of three classes, all are among the top five
    assert row.measures.top5 is None
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["models"][0]["top5"] is None
    assert results["set"]["limits"][-1] == "predictions among the 3 classes of the images alone"


def test_predictions_made_elsewhere_cannot_be_restricted(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="--restricted: goes with --model, whose logits are known"):
        run(Edition(tmp_path), Arguments("a", [], predictions=["a.csv"], restricted=True))
