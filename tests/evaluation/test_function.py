"""`cleanset.evaluate` with callables, and what a callable may not do."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import cleanset
from cleanset.errors import CleansetError
from cleanset.evaluation.prediction_measures import Accuracy
from tests.evaluation.conftest import draw
from tests.evaluation.test_evaluate import SURE

pytestmark = pytest.mark.slow


def to_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image.resize((4, 4)), np.float32) / 255).permute(2, 0, 1)


def by_colour(pixels: Tensor) -> Tensor:
    """Class 0 for red, class 1 for green."""
    return nn.functional.pad(10 * pixels.mean(dim=(2, 3))[:, :2], (0, 998))


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.9)

    def forward(self, pixels: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(by_colour(pixels))
        return dropped


def test_a_notebook_rounds_as_the_command_does(tmp_path: Path) -> None:
    """87 of 160 are 54.375 %, slightly less in binary fractions: 54.38, as in the printed table."""
    for number in range(160):
        draw(tmp_path / "n01440764" / f"{number}.png", (255, 0, 0) if number < 87 else (0, 255, 0))
    found = cleanset.evaluate(by_colour, tmp_path, to_tensor)
    assert "<td>54.38%</td>" in found._repr_html_()
    assert "54.38 %" in str(found)


def test_the_columns_that_programs_read(folder: Path) -> None:
    types = cleanset.evaluate(by_colour, folder, to_tensor).predictions.dtypes
    assert list(types.index) == [
        "file", "class_index", "tier", "sha256", "prediction", "confidence", "correct", "top5_class",
        "top5_probability", "log_odds",
    ]  # fmt: skip
    named = ("class_index", "prediction", "confidence", "correct", "log_odds")
    assert [str(types[name]) for name in named] == ["int16", "int16", "float64", "bool", "float64"]


@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_a_function(folder: Path, batch_size: int) -> None:
    found = cleanset.evaluate(by_colour, folder, to_tensor, batch_size=batch_size)
    assert found.model.measures.overall == Accuracy(3, 2)
    assert found.model.measures.classes == {0: Accuracy(1, 1), 1: Accuracy(2, 1)}
    assert found.predictions["confidence"].tolist() == pytest.approx([SURE, 0.001, SURE], rel=1e-6)
    assert (found.is_deterministic, found.accuracy, found.top5_accuracy) == (True, 2 / 3, 1.0)
    assert repr(found) == f"Results(by_colour: 0.6667 (0.2077 to 0.9385) on {folder.name})"
    assert "1  by_colour" in str(found)
    assert found._repr_html_() == (
        f"<p>{folder.name}</p><table><tr><th>model</th><th>images</th><th>accuracy</th><th>95 % interval</th>"
        "<th>top-5</th><th>ECE</th></tr><tr><td>by_colour</td><td>3</td><td>66.67%</td><td>20.77% to 93.85%</td>"
        "<td>100.00% (43.85–100.00)</td>"
        f"<td>{found.calibration_error:.2f}</td></tr></table>"
    )
    assert found.as_dict()["models"][0]["classes"]["n01443537"]["accuracy"] == 0.5


def test_a_network_is_set_to_evaluation_and_left_unchanged(folder: Path) -> None:
    network = Dropping().train()
    found = cleanset.evaluate(network, folder, to_tensor)
    assert (found.model.name, found.is_deterministic, found.accuracy) == ("Dropping", True, 2 / 3)
    assert network.training
    assert network.dropout.training


def test_a_random_function_is_reported(folder: Path) -> None:
    found = cleanset.evaluate(lambda pixels: by_colour(pixels) + torch.rand(len(pixels), 1000), folder, to_tensor)
    assert found.is_deterministic is False
    assert "<lambda> is not deterministic" in str(found)


def test_the_transform_of_a_loaded_set_is_taken(edition: Any) -> None:
    images = cleanset.load("standard", edition.folder, transform=to_tensor)
    found = cleanset.evaluate(by_colour, images)
    labels = dict(zip(found.images.order, images.targets, strict=True))
    assert dict(zip(found.predictions["file"], found.predictions["class_index"], strict=True)) == labels


def test_two_results_are_compared_image_by_image(folder: Path, tmp_path: Path) -> None:
    first = cleanset.evaluate(by_colour, folder, to_tensor, name="first")
    second = cleanset.evaluate(np.array([0, 1, 0]), folder, name="second")
    pair = second.compare(first)
    assert (pair.model, pair.other, pair.counts.difference, pair.p) == ("second", "first", 0.0, 1.0)
    assert (pair.only_model, pair.only_other) == (("n01443537/blue.PNG",), ("n01443537/green.png",))
    first.write_page(tmp_path / "page", second)
    assert "n01443537/blue.PNG" in (tmp_path / "page" / "index.html").read_text()
    with pytest.raises(CleansetError, match="results of first, first; expected different names"):
        first.write_page(tmp_path / "page", first)
    (folder / "n01440764" / "red.png").unlink()
    with pytest.raises(cleanset.NotComparableError, match="measured on different images; expected results on"):
        first.compare(cleanset.evaluate(np.array([0, 0]), folder))


def raising(_: Any) -> Any:
    raise KeyError("no such\nkey")


def test_a_network_whose_answers_depend_on_the_batch_is_reported(folder: Path) -> None:
    """Batch normalisation with the statistics of the batch, as in a network that was left in training."""

    def normalised(pixels: Tensor) -> Tensor:
        logits = by_colour(pixels)
        return logits - logits.mean(dim=0)

    assert cleanset.evaluate(normalised, folder, to_tensor).is_deterministic is False
    assert cleanset.evaluate(normalised, folder, to_tensor, batch_size=1).is_deterministic is True


@pytest.mark.parametrize("convert", [Tensor.bfloat16, Tensor.half, Tensor.double, Tensor.numpy])
def test_answers_of_any_real_type(convert: Any, folder: Path) -> None:
    found = cleanset.evaluate(lambda pixels: convert(by_colour(pixels)), folder, to_tensor, batch_size=np.int64(2))  # type: ignore[arg-type]
    assert (found.accuracy, found.is_deterministic) == (2 / 3, True)


def test_predictions_as_tensors(folder: Path) -> None:
    probabilities = nn.functional.one_hot(torch.tensor([0, 1, 1]), 1000)
    for dtype in (torch.bfloat16, torch.float32):
        assert cleanset.evaluate(probabilities.to(dtype), folder).accuracy == 1
    assert cleanset.evaluate(np.ma.array([0, 1, 1], mask=False), folder).accuracy == 1


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (np.ma.array([0, 1, 1], mask=[True] * 3), r"int64 \(3,\), some of them masked; expected real numbers"),
        (torch.ones(3, 1000).to_sparse(), r"torch.float32 \(3, 1000\) that cannot be read .*; expected a dense array"),
        (torch.ones(3, 1000, device="meta"), r"torch.float32 \(3, 1000\) that cannot be read"),
        (np.array([None, 1, 1]), r"object \(3,\); expected real numbers"),
        (torch.zeros(3, 1000, dtype=torch.complex64), r"torch.complex64 \(3, 1000\); expected real numbers"),
        (nn.Linear(1, 1).state_dict(), "a value of type OrderedDict; expected a callable on batches"),
    ],
)
def test_predictions_without_numbers(predictions: Any, message: str, folder: Path) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        cleanset.evaluate(predictions, folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("batch_size", [0, 2.0, "2", None, True])
def test_a_batch_size_is_a_whole_number(batch_size: Any, folder: Path) -> None:
    with pytest.raises(CleansetError, match=f"batch_size {batch_size!r}; expected a whole number, at least 1"):
        cleanset.evaluate(by_colour, folder, to_tensor, batch_size=batch_size)


@pytest.mark.parametrize(
    ("model", "transform", "message"),
    [
        (lambda pixels: by_colour(pixels).to(torch.cfloat), to_tensor, r"complex64 \(3, 1000\); expected real numbers"),
        (lambda pixels: by_colour(pixels).to_sparse(), to_tensor, "gives torch.float32 .* that cannot be read"),
        (lambda pixels: by_colour(pixels).to("meta"), to_tensor, "gives torch.float32 .* that cannot be read"),
        (lambda pixels: by_colour(pixels).numpy().astype(object), to_tensor, r"gives object \(3, 1000\); expected rea"),
        (
            lambda pixels: np.ma.array(by_colour(pixels).numpy(), mask=True),
            to_tensor,
            r"gives float32 \(3, 1000\), some of them masked; expected real numbers",
        ),
        (nn.LazyLinear(1000), to_tensor, "LazyLinear: weight has no values yet; expected a network with its weights"),
        (nn.Linear(4, 1000, device="meta"), to_tensor, "Linear: weight has no values yet"),
        (
            lambda pixels: by_colour(pixels)[:, :999],
            to_tensor,
            r"gives float32 \(3, 999\); expected logits, float \(3, 1000\)",
        ),
        (lambda pixels: by_colour(pixels) * float("nan"), to_tensor, "n01440764/red.png: a logit is NaN or infinite"),
        (lambda pixels: by_colour(pixels).softmax(1), to_tensor, "gives probabilities, .*; expected .*: leave out its"),
        (lambda pixels: [1], to_tensor, "the network gives a value of type list; expected logits"),
        (lambda pixels: sys.exit("bye"), to_tensor, r"the network raises SystemExit \(bye\) for a batch of 3 images"),
        (raising, to_tensor, r"raising: the network raises KeyError \('no such.+key'\) for a batch of 3 images"),
        (by_colour, raising, r"the transform raises KeyError \('no such.+key'\) for n01440764/red.png"),
        (by_colour, lambda image: image, "gives values of type Image that make no batch .*; expected tensors"),
        (by_colour, None, "by_colour: no transform; expected one from a PIL image to a tensor"),
        (np.zeros(3, int), to_tensor, "ndarray: predictions with a transform; expected"),
        ("timm:resnet50", to_tensor, "'timm:resnet50': a model by its name with a transform; expected none"),
        (7, to_tensor, "a value of type int; expected a callable on batches"),
        ("gone.csv", None, "gone.csv: missing; expected"),
    ],
)
def test_what_cannot_be_evaluated(model: Any, transform: Any, message: str, folder: Path) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        cleanset.evaluate(model, folder, transform)
    assert "\n" not in str(raised.value)


def test_an_interrupt_is_none_of_its_errors(folder: Path) -> None:
    def interrupted(_: Tensor) -> Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cleanset.evaluate(interrupted, folder, to_tensor)


def test_a_model_by_its_name_is_measured_as_by_the_command(folder: Path, mine: str, tmp_path: Path) -> None:
    found = cleanset.evaluate(f"{mine}:colours", folder, out=tmp_path / "kept")
    assert found.accuracy == 2 / 3
    assert found.predictions["prediction"].tolist() == [0, 0, 1]
    assert json.loads((tmp_path / "kept" / "results.json").read_text())["models"][0]["accuracy"] == 2 / 3
    assert found.to_pandas().set_index("measure").loc["accuracy", "value"] == 2 / 3
    assert r"\begin{table}" in found.latex()
    again = cleanset.evaluate(f"{mine}:colours", folder, name="again", precision="float32")
    assert again.table() == str(again)
    assert again.model.path is None
    with pytest.raises(CleansetError, match="precision='float32': goes with the name of a model"):
        cleanset.evaluate(by_colour, folder, to_tensor, precision="float32")


def whole(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image.resize((4, 4)))).permute(2, 0, 1)


def test_pixels_of_another_range_are_refused(folder: Path) -> None:
    """A network that tells classes at pixels in 0..1 alone, and one at 0 to 255 alone; another class otherwise."""

    def only(low: float, high: float) -> Any:
        def answer(pixels: Tensor) -> Tensor:
            logits = by_colour(pixels.double() / pixels.max()).double()
            is_other = not low < float(pixels.max()) <= high
            return logits + 100 * is_other * torch.eye(1000, dtype=torch.float64)[7]

        return answer

    with pytest.raises(CleansetError, match="uint8 pixels, 0 to 255, and is correct on 0 of 3 images"):
        cleanset.evaluate(only(0, 1), folder, whole, name="net")
    with pytest.raises(CleansetError, match=r"float32 pixels, 0 to 1, .* on 2: end the transform with PILToTensor"):
        cleanset.evaluate(only(1, 255), folder, to_tensor, name="net")
    assert cleanset.evaluate(only(1, 255), folder, whole).accuracy == 2 / 3


def test_outputs_from_0_to_1_are_noted(tmp_path: Path) -> None:
    for number in range(40):
        draw(tmp_path / "n01440764" / f"{number}.png", (255, 6 * number, 0))

    def squashed(pixels: Tensor) -> Tensor:
        return (by_colour(pixels) - 5).sigmoid()

    found = cleanset.evaluate(squashed, tmp_path, to_tensor)
    assert "all outputs are from 0 to 1" in str(found).replace("\n", " ")
    assert "all outputs are from 0 to 1" in found.as_dict()["models"][0]["notes"][0]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("1 / 0", "measuring:mine: raises ZeroDivisionError"),
        ("'much'", "measuring:mine: gives 'much' for by_colour; expected a finite number"),
        ("float('nan')", "measuring:mine: gives nan for by_colour; expected a finite number"),
        ("1, (2,)", r"measuring:mine: gives .* for by_colour; expected a finite number"),
    ],
)
def test_measures_that_give_no_number(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, expected: str
) -> None:
    (tmp_path / "measuring.py").write_text(f"def mine(predictions):\n    return {body}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "measuring", raising=False)
    with pytest.raises(CleansetError, match=expected):
        cleanset.evaluate(by_colour, folder, to_tensor, measures=["measuring:mine"])


def test_measures_that_are_none(folder: Path) -> None:
    with pytest.raises(CleansetError, match="--custom-measure 'worst': expected MODULE:NAME of a function"):
        cleanset.evaluate(by_colour, folder, to_tensor, measures=["worst"])
