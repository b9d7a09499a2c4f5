"""What float64 makes equal, and what is scores of the other precisions."""

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from cleanset.classes import imagenet
from cleanset.edition.params import Model
from cleanset.images.codec import decode
from cleanset.images.preprocessing import ResizeAndCrop
from cleanset.plumbing.files import sha256
from cleanset.scoring.distance import Distance, distance, easiest, sample, sample_size
from cleanset.scoring.engine import DevicePipeline, Settings, score_few
from cleanset.scoring.logits import top5
from cleanset.scoring.models import LoadedModel, load_model
from cleanset.scoring.validity import code_of
from cleanset.stages import score as stage
from cleanset.tables import SCORES, write_table
from tests.scoring.editions import make_edition
from tests.scoring.networks import CPU, ENSEMBLE, random_resnet50
from tests.selection.by_hand import index_of, scores_of
from tests.ten_images import drawn_image, id_of, jpeg

pytestmark = pytest.mark.slow

IMAGES = {id_of(number): jpeg(drawn_image(130 + number, 120, seed=number)) for number in range(1, 6)}


def resnet50(role: str, folder: Path) -> LoadedModel:
    """One of the three with random weights and statistics, as loaded; its images are 64 x 64, for time."""
    network = random_resnet50(5)
    nn.init.normal_(network.fc.weight, std=0.1)
    path = folder / f"{role}.safetensors"
    save_file(dict(network.state_dict()), path)
    named = Model.model_validate(ENSEMBLE[role] | {"weights": str(path), "sha256": sha256(path.read_bytes())})
    return replace(load_model(named, folder), preprocessing=ResizeAndCrop("small", 74, 64, "bilinear"))


@pytest.mark.long
@pytest.mark.parametrize("role", ["standard", pytest.param("norm_robust", marks=pytest.mark.exhaustive)])
def test_resnet50s_in_float64_are_the_same_bytes(role: str, tmp_path: Path) -> None:
    """With one thread and two, across batches and inside operators; in batches of 1, 3 and 8, padded or not."""
    model = resnet50(role, tmp_path)
    found = set()
    for batch_size, workers in ((1, 1), (3, 2), (8, 1)):
        settings = Settings([CPU], "float64", batch_size, workers)
        write_table(tmp_path / "t", score_few(model, IMAGES.__getitem__, settings, list(IMAGES)), SCORES, imagenet())
        found.add((tmp_path / "t").read_bytes())
    assert len(found) == 1
    with DevicePipeline(IMAGES.__getitem__, model.preprocessing, Settings([CPU], "float64", 5, 1)) as pipeline:
        pipeline.load(model, "float64")
        (exact,) = pipeline.score([list(IMAGES)])
    pixels = torch.from_numpy(np.stack([model.preprocessing(decode(data)) for data in IMAGES.values()]))
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.inference_mode():
            outputs = top5(model.network.double()(pixels.double() / 255).numpy())
    finally:
        torch.set_num_threads(threads)
    assert outputs.keys() == exact.columns.keys()
    assert all(np.array_equal(values, exact.columns[name]) for name, values in outputs.items())
    assert len({tuple(row) for row in outputs["top5_class"].tolist()}) > 1  # the images are distinguished


def test_distance_by_hand() -> None:
    """Class 7 keeps its images in another order, class 8 loses one of its three, class 9 stays."""
    labels = {"a": [7], "b": [7], "c": [8], "d": [8], "e": [8], "f": [8], "g": [9], "h": [9, 7]}
    exact = {
        "a": (7, 0.75), "b": (7, 0.5), "c": (8, 0.875), "d": (8, 0.75), "e": (8, 0.625), "f": (8, 0.5),
        "g": (9, 0.5), "h": (9, 0.25),
    }  # fmt: skip
    other = exact | {"a": (7, 0.5), "b": (7, 0.625), "e": (3, 0.625), "h": (9, 0.3125)}
    assert distance(index_of(labels), scores_of(exact), scores_of(other)) == Distance(
        images=8, top1_agreement=0.875, largest_difference=0.625, classes=3, classes_reordered=2, classes_changed=1
    )
    assert distance(index_of(labels), scores_of(exact), scores_of(exact)) == Distance(8, 1.0, 0.0, 3, 0, 0)


def test_distance_looks_only_at_the_sample() -> None:
    exact = scores_of({"b": (7, 0.5)})
    other = scores_of({"c": (1, 0.5), "b": (7, 0.75), "a": (2, 0.5)})
    found = distance(index_of({"a": [7], "b": [7], "c": [7]}), exact, other)
    assert found == Distance(1, 1.0, 0.25, 1, 0, 0)


def test_easiest() -> None:
    """At most five, by falling confidence, ties by id; only correctly classified single-label images."""
    labels = {name: [7] for name in "abcdefgh"} | {"i": [7, 8]}
    scores = dict.fromkeys("abcdefg", (7, 0.5)) | {"c": (7, 0.75), "h": (6, 0.875), "i": (7, 0.875)}
    assert easiest(index_of(labels), scores_of(scores)) == {7: ["c", "a", "b", "d", "e"]}


def test_the_sample_is_of_whole_classes() -> None:
    index = pd.DataFrame({
        "image_id": [f"{class_index:03d}-{number}" for class_index in range(100) for number in range(20)],
        "ilsvrc_class": np.repeat(np.arange(100), 20),
    })  # fmt: skip
    drawn = sample(index, size=90)
    assert drawn == sorted(drawn)
    assert len(drawn) == 100
    classes = sorted({name[:3] for name in drawn})
    assert len(classes) == 5
    assert sample(index.sample(frac=1, random_state=3), size=90) == drawn
    assert len(sample(index, size=10**6)) == 2000


@pytest.mark.parametrize(
    ("images", "size"), [(1, 1), (10, 5), (199, 100), (480, 200), (2_000, 200), (5_000, 500), (50_000, 1_000)]
)
def test_the_sample_is_a_tenth_of_few_images_and_at_most_half(images: int, size: int) -> None:
    assert sample_size(images) == size


def test_float64_has_nothing_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edition = make_edition(tmp_path, 6)
    stage.run(edition, "standard")
    assert json.loads(edition.scored_with("standard").read_text()) == {
        "role": "standard",
        "source": "timm",
        "name": "test_byobnet",
        "weights_sha256": sha256((tmp_path / "w.safetensors").read_bytes()),
        "preprocessing": {"name": "timm-bicubic-182-160", "resize": 182, "size": 160, "interpolation": "bicubic"},
        "precision": "float64",
        "images": 6,
        "against_float64": None,
        "versions": {name: version(name).split("+")[0] for name in ("numpy", "pillow", "robustbench", "timm", "torch")},
        "code": code_of("scoring"),
    }
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("precision", "least", "most"), [("float32", 0, 1e-5), ("tf32", 0, 1e-5), ("bfloat16", 1e-5, 0.2)]
)
def test_another_precision_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], precision: str, least: float, most: float
) -> None:
    """On a processor tf32 is float32."""
    edition = make_edition(tmp_path, 9, precision=precision)
    stage.run(edition, "standard")
    facts = json.loads(edition.scored_with("standard").read_text())
    found = facts["against_float64"]
    assert facts["precision"] == precision
    assert found["images"] == 6  # at least half, whole classes
    assert least <= found["largest_difference"] <= most
    assert 0.5 <= found["top1_agreement"] <= 1
    _, stderr = capsys.readouterr()
    assert stderr.startswith(f"score standard: {precision} against float64: top-1 agreement ")
    assert stderr.count("\n") == 1

    before = edition.scored_with("standard").read_bytes(), edition.scores("standard").read_bytes()
    stage.run(edition, "standard")
    assert (edition.scored_with("standard").read_bytes(), edition.scores("standard").read_bytes()) == before
