"""Simulated editions of any size: their params, index and images; sizes and digests are drawn with a fixed seed."""

import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from cleanset.classes import imagenet
from cleanset.dataset.archives import locate, to_table
from cleanset.dataset.ilsvrc import CLASSES, image_id
from cleanset.edition.paths import Edition
from cleanset.images.codec import inspect
from cleanset.plumbing.files import sha256
from cleanset.tables import INDEX, LOCATIONS, write_table

TAR = "images.tar"
ROLES = ("standard", "norm_robust", "corruption_robust")
WIDTH = 500
HEIGHT = 375
BOX = (0, 0, WIDTH, HEIGHT - 40)
"""The box of every crop, in pixels."""

_SEED = 20_12


def write_params(folder: Path, **changes: Mapping[str, object]) -> None:
    """Write the params.yaml of the ImageNet edition, with some keys of some sections changed."""
    source = Path(__file__).parents[1] / "imagenet" / "params.yaml"
    params = yaml.safe_load(source.read_text(encoding="utf-8"))
    for section, keys in changes.items():
        params[section] |= keys
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def index_of(labels: Sequence[Sequence[int]]) -> pd.DataFrame:
    """An index with an image for each of `labels`; sizes and digests are invented."""
    rng = np.random.default_rng(_SEED)
    ids = [image_id(number) for number in range(1, len(labels) + 1)]
    return pd.DataFrame(
        {
            "image_id": ids,
            "size": rng.integers(20_000, 250_000, len(ids)),
            "sha256": [hashlib.sha256(name.encode()).hexdigest() for name in ids],
            "width": WIDTH,
            "height": HEIGHT,
            "mode": "RGB",
            "pixels_sha256": [hashlib.sha256(name.encode()[::-1]).hexdigest() for name in ids],
            "ilsvrc_class": [each[0] if each else number % CLASSES for number, each in enumerate(labels)],
            "real_classes": pd.Series([list(each) for each in labels], dtype=object),
            "single": [len(each) == 1 for each in labels],
        }
    )


def write_images(folder: Path, index: pd.DataFrame, images: Sequence[bytes]) -> None:
    """Write a tar with an image for each row of the index, the images again and again, the index with their facts."""
    archive = folder / TAR
    edition = Edition(folder)
    with tarfile.open(archive, "w") as tar:
        for name, data in zip(index["image_id"], cycle(images), strict=False):
            member = tarfile.TarInfo(f"{name}.JPEG")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    write_table(edition.index, with_facts(index, images), INDEX, imagenet())
    write_table(edition.locations, to_table(locate(archive), archive), LOCATIONS, imagenet())


def with_facts(index: pd.DataFrame, images: Sequence[bytes]) -> pd.DataFrame:
    """The index with size, digests, width, height and mode of the images, which are repeated in it."""
    facts = pd.DataFrame([inspect(data) for data in images])
    facts = facts.assign(size=list(map(len, images)), sha256=list(map(sha256, images)))
    repeated = facts.iloc[np.arange(len(index)) % len(images)].reset_index(drop=True)
    return index.assign(**{str(name): repeated[name] for name in repeated})
