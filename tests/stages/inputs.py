"""Inputs of the stages that are wrong in one respect: what the tests of several stages make them of."""

import hashlib
import json
import tarfile
from typing import Any

import pandas as pd

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.tables import CROP_SCORES, REJECTED, SELECTION, VOTES, write_table
from tests.ten_images import DEVKIT, REASSESSED, SCORED, TAR, Made, id_of, official, tar, ten_images, write

AT_TAR = f"data/raw/{TAR}"
AT_DEVKIT = f"data/raw/{DEVKIT}"
FOURTH = id_of(4)
NETWORK = "test_byobnet"
SCORE = ("score", "--model", "standard")
EXPORT = ("export", "--model", "standard")


def with_image(made: Made, data: bytes, name: str = FOURTH) -> Made:
    """The edition with other bytes for one image."""
    return made.archives(images=official(ten_images() | {name: data}))


def with_member(made: Made, info: tarfile.TarInfo, data: bytes = b"") -> Made:
    """The edition with one more member in the tar."""
    members = [(tarfile.TarInfo(f"{name}.JPEG"), content) for name, content in ten_images().items()]
    return made.archives(images=tar([*members, (info, data)]))


def a_member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def with_weights(made: Made, content: Any, name: str = "w.pt") -> None:
    """Save weights, as tensors or as the bytes that they are, and name them in params.yaml."""
    import torch
    from safetensors.torch import save_file

    path = made.folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif name.endswith(".safetensors"):
        save_file(content, path)
    else:
        torch.save(content, path)
    with_model(made, name=NETWORK, weights=name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def with_model(made: Made, **model: str) -> None:
    entry = {"source": "timm", "sha256": "0" * 64} | model
    made.others = {"models": {"standard": entry}, "score": {"device": "cpu"}}
    made.params()


def select(made: Made, numbers: tuple[int, ...] = (1, 4, 9)) -> Edition:
    """A selection of images of different classes: the first whole, the second cropped, the third whole, and so on."""
    edition, box = Edition(made.folder), [0, 0, 20, 10]
    labels = {number: classes[0] for number, classes in enumerate(REASSESSED, start=1) if classes}
    rows = [
        {
            "image_id": id_of(number), "class_index": labels.get(number, 0), "place": 1, "tier": "top5", "rank": 1,
            "confidence": 0.5, "crop": box if number == numbers[1] else None, "box_unknown": False,
        }
        for number in numbers
    ]  # fmt: skip
    write_table(edition.selection("standard"), pd.DataFrame(rows), SELECTION, imagenet())
    crop_scores = [(id_of(numbers[1]), box, [labels[numbers[1]], 1, 2, 3, 4], [0.75, 0, 0, 0, 0], 1.125)]
    write_table(
        edition.crop_scores("standard"), pd.DataFrame(crop_scores, columns=CROP_SCORES.names), CROP_SCORES, imagenet()
    )
    write_table(edition.votes("standard"), pd.DataFrame(columns=VOTES.names), VOTES, imagenet())
    write(edition.audit("standard"), b"null\n")
    write_table(edition.rejected("standard"), pd.DataFrame(columns=REJECTED.names), REJECTED, imagenet())
    write(edition.scored_with("standard"), json.dumps(SCORED).encode())
    return edition
