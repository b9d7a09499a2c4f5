"""Editions to run the stage on."""

from pathlib import Path
from typing import Any

import pandas as pd
import timm
import torch
import yaml
from safetensors.torch import save_file
from torch import nn

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.images.codec import inspect
from cleanset.plumbing.files import sha256
from cleanset.tables import INDEX, write_table
from tests.ten_images import drawn_image, id_of, jpeg, official


def make_edition(folder: Path, count: int, **score: Any) -> Edition:
    """An edition of `count` drawn images of three classes, indexed, with one small model of timm."""
    drawn = [jpeg(drawn_image(70 + number, 60, seed=number)) for number in range(40)]
    images = {id_of(number): drawn[number * 7 % 40] for number in range(1, count + 1)}
    (folder / "data").mkdir()
    (folder / "images.tar").write_bytes(official(images))
    rows = [
        {
            "image_id": image_id, "size": len(data), "sha256": sha256(data), "width": 70, "height": 60, "mode": "RGB",
            "pixels_sha256": inspect(data).pixels_sha256, "ilsvrc_class": number % 3, "real_classes": [number % 3],
            "single": True,
        }
        for number, (image_id, data) in enumerate(images.items())
    ]  # fmt: skip
    write_table(Edition(folder).index, pd.DataFrame(rows), INDEX, imagenet())
    write_weights(folder, seed=1)
    write_params(folder, **score)
    return Edition(folder)


def write_weights(folder: Path, seed: int) -> None:
    torch.manual_seed(seed)
    network = timm.create_model("test_byobnet", pretrained=False)
    nn.init.normal_(network.get_classifier().weight)
    save_file(dict(network.state_dict()), folder / "w.safetensors")


def write_params(folder: Path, **score: Any) -> None:
    weights = {"weights": "w.safetensors", "sha256": sha256((folder / "w.safetensors").read_bytes())}
    content = {
        "root": ".",
        "dataset": {"images": "images.tar"},
        "models": {"standard": {"source": "timm", "name": "test_byobnet"} | weights},
        "score": {"device": "cpu"} | score,
    }
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
