"""`cleanset models --which timm`: which of timm's ResNet-50s a published list is of."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import save_file

from cleanset.edition.params import Model, Score
from cleanset.edition.paths import Edition
from cleanset.files import sha256
from cleanset.images.codec import inspect
from cleanset.measure.compare.checkpoints import TriedCheckpoint, agreement_order, checkpoint_names
from cleanset.measure.compare.lists import ConfidenceComparison
from cleanset.scoring.engine import score_few, settings_for
from cleanset.scoring.models import load_model
from cleanset.tables import INDEX, write_table
from tests.measure.compare.command import cleanset
from tests.scoring.networks import random_resnet50
from tests.ten_images import Made, drawn_image, id_of, jpeg, official

pytestmark = pytest.mark.slow

NAME = "resnet50.tv_in1k"
IMAGES = {id_of(number): jpeg(drawn_image(70 + number, 60, seed=number)) for number in range(1, 5)}


def write_network(folder: Path, name: str, seed: int, factor: float = 1.0) -> None:
    network = random_resnet50(seed)
    with torch.no_grad():
        network.fc.weight *= factor
        network.fc.bias *= factor
    folder.mkdir(exist_ok=True)
    save_file(dict(network.state_dict()), folder / f"{name}.safetensors")


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Four images, each labelled as a ResNet-50 nobody trained classifies it, and its published list.

    Its weights are in weights/ as timm's tv_in1k, beside one with doubled logits, and one with other weights.
    """
    folder = tmp_path_factory.mktemp("edition")
    for name, seed, factor in (
        (NAME, 1, 1.0),
        ("resnet50.fb_ssl_yfcc100m_ft_in1k", 1, 2.0),
        ("resnet50.a1_in1k", 2, 1.0),
    ):
        write_network(folder / "weights", name, seed, factor)
    weights = folder / "weights" / f"{NAME}.safetensors"
    model = Model(source="timm", name=NAME, weights=str(weights), sha256=sha256(weights.read_bytes()))
    settings = settings_for(Score(device="cpu"))
    scores = score_few(load_model(model, folder), IMAGES.__getitem__, settings, list(IMAGES))
    answers = zip(scores["top5_class"], scores["top5_probability"], strict=True)
    first = [(int(classes[0]), -np.float32(probabilities[0])) for classes, probabilities in answers]
    write_edition(folder, {name: top1 for name, (top1, _) in zip(IMAGES, first, strict=True)})
    lines, rank, before = ["model,class_index,rank,image_id,confidence"], 0, -1
    for (top1, key), name in sorted(zip(first, IMAGES, strict=True)):
        rank, before = (rank + 1 if top1 == before else 1), top1
        lines.append(f"standard,{top1},{rank},{name},{-key}")
    (folder / "published").mkdir()
    (folder / "published" / "top5.csv").write_text("\n".join([*lines, ""]))
    return Edition(folder)


def write_edition(folder: Path, labels: dict[str, int]) -> None:
    (folder / "images.tar").write_bytes(official(IMAGES))
    rows = [
        {
            "image_id": image_id, "size": len(data), "sha256": sha256(data), "width": 70, "height": 60, "mode": "RGB",
            "pixels_sha256": inspect(data).pixels_sha256, "ilsvrc_class": 0, "real_classes": [labels[image_id]],
            "single": True,
        }
        for image_id, data in IMAGES.items()
    ]  # fmt: skip
    write_table(Edition(folder).index, pd.DataFrame(rows), INDEX)
    content = {
        "root": ".",
        "dataset": {"images": "images.tar"},
        "models": {"standard": {"source": "timm", "name": "resnet50.a1_in1k"}},
        "score": {"device": "cpu"},
    }
    (folder / "params.yaml").write_text(yaml.safe_dump(content))


@pytest.mark.exhaustive
def test_the_one_that_the_list_is_of_comes_first(edition: Edition) -> None:
    done = cleanset("models", "--which", "timm", "--weights", "weights", "--json", cwd=edition.folder)
    assert (done.returncode, done.stderr) == (0, "")
    content = json.loads(done.stdout)
    first, second, last = content["tried"]
    path = edition.folder / "weights" / f"{NAME}.safetensors"
    assert first == {
        "name": NAME,
        "preprocessing": "timm-bilinear-256-224",
        "weights_sha256": sha256(path.read_bytes()),
        "images": 4,
        "classified": 4,
        "misclassified": 0,
        "largest_difference": 0.0,
        "mean_difference": 0.0,
    }
    assert (second["name"], last["name"]) == ("resnet50.fb_ssl_yfcc100m_ft_in1k", "resnet50.a1_in1k")
    assert (second["classified"], second["mean_difference"] > 0) == (4, True)
    assert (last["classified"], last["mean_difference"]) == (0, None)
    assert content["model"] == "standard"
    assert NAME not in content["not_at_hand"]
    assert len(content["not_at_hand"]) == len(checkpoint_names()) - 3


def test_the_weights_of_the_edition_as_lines(edition: Edition) -> None:
    downloaded = edition.folder / "data" / "weights" / "timm" / NAME / "model.safetensors"
    downloaded.parent.mkdir(parents=True)
    path = edition.folder / "weights" / f"{NAME}.safetensors"
    downloaded.write_bytes(path.read_bytes())
    done = cleanset("models", "--which", "timm", "standard", cwd=edition.folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "the published list of standard: 4 images\n"
        "\n"
        "                                  classified  difference of confidence\n"
        "model                              as listed          mean     largest  SHA-256\n"
        f"resnet50.tv_in1k                           4             0           0  {sha256(path.read_bytes())[:8]}\n"
        "\n"
        f"not at hand: {len(checkpoint_names()) - 1} others; see --weights and --download\n"
    )
    downloaded.unlink()
    assert max(map(len, done.stdout.splitlines())) <= 80


def tried(name: str, misclassified: int, *differences: float) -> TriedCheckpoint:
    found = ConfidenceComparison(3, ["x"] * misclassified, pd.DataFrame({"difference": differences}))
    return TriedCheckpoint(name, "", "", found)


def test_order_of_agreement() -> None:
    every = [
        tried("a", 3), tried("b", 2, 0.0), tried("c", 0, 0.25, 0.25, 0.25), tried("d", 0, 0.5, 0.0, 0.0),
        tried("e", 0, 0.25, 0.25, 0.0),
    ]  # fmt: skip
    assert [each.name for each in sorted(every, key=agreement_order)] == ["d", "e", "c", "b", "a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--which", "torchvision"), "--which 'torchvision': expected timm\n"),
        (("--which", "timm"), "data/weights/timm/resnet50.TAG/model.safetensors: missing for every tag of timm "),
        (
            ("--which", "timm", "vit", "--weights", "weights"),
            "published/top5.csv: no list of model 'vit'; expected one",
        ),
        (("--which", "timm", "--weights", "nowhere"), "--weights nowhere: no folder; expected one of files such as "),
        (("--which", "timm", "--weights", "other"), "other/mine.safetensors: unknown ResNet-50 of timm "),
        (
            ("--which", "timm", "--pin"),
            "models: --which with --add, --remove or --pin; expected one of them at a time\n",
        ),
        (("standard",), "models: a ROLE or --download without --which; expected --which timm with them\n"),
        (("--download",), "models: a ROLE or --download without --which; expected --which timm with them\n"),
    ],
)
def test_errors_are_one_line(edition: Edition, arguments: tuple[str, ...], message: str) -> None:
    (edition.folder / "other").mkdir(exist_ok=True)
    (edition.folder / "other" / "mine.safetensors").touch()
    code, stderr = Made(edition.folder).run("models", *arguments)
    assert code == 1
    assert stderr.startswith(f"error: {message}"), stderr
    assert stderr.count("\n") == 1


def test_a_list_of_other_images(edition: Edition) -> None:
    path = edition.published_lists
    before = path.read_text()
    path.write_text(before.replace(id_of(3), id_of(9)))
    code, stderr = Made(edition.folder).run("models", "--which", "timm", "--weights", "weights")
    path.write_text(before)
    assert code == 1
    assert f"'{id_of(9)}' is not in the index; expected an image of it: " in stderr
    assert stderr.count("\n") == 1
