"""The kinds of hostile input: how a damaged one is made, and what reads it.

A reader ends, raises CleansetError, or an OSError that names its reason; anything else is a defect. A further
kind is a further entry of KINDS.
"""

import gzip
import io
import json
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from cleanset.classes import imagenet
from cleanset.dataset.archives import locate, read_md5_list
from cleanset.dataset.labels import read_original_labels, read_reassessed
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.edition.pipeline import check_params_named
from cleanset.errors import CleansetError
from cleanset.evaluation.predictions import read_predictions
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet
from cleanset.images.codec import cropped, inspect
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.scoring.record import read_record
from cleanset.studies.training.state import STATE_FILE, StateFolder, TrainingState
from cleanset.tables import read_table
from tests.hostile.manifests import make_manifest, read_any_manifest
from tests.hostile.mutators import TOKENS, damaged, edited, pick, with_damaged_header, with_pax_header
from tests.ten_images import (
    KIT,
    REASSESSED,
    SCORED,
    TRUTH,
    TRUTH_LINES,
    devkit_files,
    drawn_image,
    jpeg,
    official,
    tar,
    ten_images,
)
from tests.test_tables import GOOD, ID, NEXT

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Kind:
    """`make` gives the bytes of one case; `read` reads the file in which they are, in a folder of its own."""

    make: Callable[[random.Random], bytes]
    read: Callable[[Path], object]


# params.yaml and dvc.yaml


def read_edition(path: Path) -> None:
    """The params and what the pipeline names; DVC reads the same from an accepted file."""
    edition = Edition(path.parent)
    edition.dvc_yaml.write_text(_text("dvc.yaml"))
    edition.params_yaml.write_bytes(path.read_bytes())
    read_params(edition.folder)
    check_params_named(edition)
    _same_as_dvc(edition.params_yaml)


def read_pipeline(path: Path) -> None:
    edition = Edition(path.parent)
    edition.dvc_yaml.write_bytes(path.read_bytes())
    edition.params_yaml.write_text(_text("params.yaml"))
    check_params_named(edition)
    _same_as_dvc(edition.dvc_yaml)


def _same_as_dvc(path: Path) -> None:
    found = read_yaml(path, "")
    with suppress(YAMLError):  # what DVC refuses, it reports before a stage is run
        theirs = YAML(typ="safe").load(path.read_text("utf-8"))
        assert repr(found) == repr(theirs), "DVC reads other values"


@cache
def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


# Lists


def make_kaggle_list(rng: random.Random) -> bytes:
    rows = "".join(f"ILSVRC2012_val_{number:08d},{imagenet().keys[number]} 1 2 30 40\n" for number in range(1, 6))
    return edited(rng, f"ImageId,PredictionString\n{rows}")


# Archives and images


def make_image_tar(rng: random.Random) -> bytes:
    members = [(f"{name}.JPEG", data[:700]) for name, data in ten_images().items()]
    return pick(
        rng,
        [
            lambda: with_pax_header(rng, members[:4]),
            lambda: with_damaged_header(rng, _official()),
            lambda: with_damaged_header(rng, with_damaged_header(rng, _official())),
            lambda: damaged(rng, _official()),
        ],
    )


@cache
def _official() -> bytes:
    return official({name: data[:700] for name, data in ten_images().items()})


def read_image_tar(path: Path) -> None:
    for location in locate(path).values():
        location.read()


def make_devkit(rng: random.Random) -> bytes:
    return pick(
        rng,
        [
            lambda: tar(_kit() | {f"{KIT}/{TRUTH}": edited(rng, TRUTH_LINES)}, "w"),
            lambda: damaged(rng, _packed_kit(rng.choice(["w:gz", "w:xz", "w:bz2", "w"]))),
            lambda: with_pax_header(rng, list(_kit().items())),
            lambda: gzip.compress(with_damaged_header(rng, _packed_kit("w")), 1),
        ],
    )


@cache
def _kit() -> dict[str, bytes]:
    return devkit_files()


@cache
def _packed_kit(mode: str) -> bytes:
    return tar(_kit(), mode)


def make_jpeg(rng: random.Random) -> bytes:
    data = bytearray(_jpegs()[rng.randrange(len(_jpegs()))])
    if rng.random() < 0.5:  # within the headers
        for _ in range(rng.choice([1, 2, 5])):
            data[rng.randrange(min(len(data), 300))] = rng.randrange(256)
        return bytes(data)
    return damaged(rng, bytes(data))


@cache
def _jpegs() -> list[bytes]:
    metadata = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    images = [*ten_images().values(), jpeg(drawn_image(64, 48), progressive=True)]
    return [*images, jpeg(drawn_image(50, 30), exif=metadata, dpi=(300, 300), comment=b"c", icc_profile=b"x" * 50)]


def read_image(path: Path) -> None:
    """As preprocess and export do; the reason that a ValueError gives becomes a part of their line."""
    data = path.read_bytes()
    try:
        inspect(data)
        cropped(data, (0, 0, 1, 1))
    except ValueError as error:
        raise CleansetError(f"{path}: ILSVRC2012_val_00000001 cannot be read ({error}); expected a JPEG") from None


# Tables


def make_table(rng: random.Random) -> bytes:
    """The first byte tells the kind of table."""
    number = rng.randrange(len(GOOD))
    table, good = list(GOOD.values())[number]
    frame = pd.DataFrame([good, good | {"image_id": NEXT}] * rng.choice([1, 1, 1, 2]))
    fields = {field.name: pa.array(frame[field.name].tolist(), field.type) for field in table.schema}
    names = list(fields)
    if rng.random() < 0.7:
        name = rng.choice(names)
        fields[name] = _odd_column(rng, fields[name])
    if rng.random() < 0.1:
        fields.pop(rng.choice(names))
    if rng.random() < 0.1:
        fields["x"] = pa.array(range(len(frame)))
    schema = table.schema if set(fields) == set(names) and rng.random() < 0.8 else None
    content = pa.Table.from_pydict(fields)
    if schema is not None:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            content = content.cast(schema)
    out = io.BytesIO()
    checked = rng.random() < 0.5
    pq.write_table(content, out, compression=rng.choice(["zstd", "none"]), write_page_checksum=checked)
    data = out.getvalue()
    return bytes([number]) + (damaged(rng, data) if rng.random() < 0.5 else data)


def _odd_column(rng: random.Random, column: pa.Array) -> pa.Array:
    """Other values of the type, or another type."""
    if rng.random() < 0.2:
        other: Any = rng.choice(["x", 1.5, None, [1], b"x", True, {"a": 1}])
        return pa.array([other] * len(column))
    rows = column.to_pylist()
    row = rng.randrange(len(rows))
    rows[row] = _odd_value(rng, rows[row], column.type)
    try:
        return pa.array(rows, column.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return column


def _odd_value(rng: random.Random, value: Any, kind: pa.DataType) -> Any:
    if rng.random() < 0.15:
        return None
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        values = list(value or [0, 0, 5, 5])
        values[rng.randrange(len(values))] = _odd_value(rng, None, kind.value_type)
        return values
    if pa.types.is_floating(kind):
        return rng.choice([np.nan, np.inf, -np.inf, -0.1, 1.1, 1e-300, -0.0, 1.0])
    if pa.types.is_integer(kind):
        return rng.choice([-1, 0, 1, 999, 1000, 2**15 - 1, -(2**15), 2**31 - 1, 2**63 - 1])
    if pa.types.is_boolean(kind):
        return not value
    return rng.choice([*(token for token in TOKENS if len(token) < 100), ID, NEXT, "top5", "unreviewed"])


def read_any_table(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[1:])
    read_table(path, list(GOOD.values())[data[0]][0], imagenet())


# Predictions of `cleanset evaluate`


PREDICTED = pd.DataFrame(
    {"image": ["a.png", "b.png", "c.png"], "class_index": [0, 11, 999], "probability": [1, 0.5, 0.001]}
)


def make_predictions_csv(rng: random.Random) -> bytes:
    text = PREDICTED.to_csv(index=False)
    return pick(rng, [lambda: edited(rng, text), lambda: damaged(rng, text.encode())])


def make_predictions(rng: random.Random) -> bytes:
    out = io.BytesIO()
    columns = {name: pa.array(PREDICTED[name]) for name in PREDICTED}
    name = rng.choice(list(columns))
    content = pa.table(columns | ({name: _odd_column(rng, columns[name])} if rng.random() < 0.5 else {}))
    pq.write_table(content, out, write_page_checksum=rng.random() < 0.5)
    return damaged(rng, out.getvalue())


def read_any_predictions(path: Path) -> None:
    items = [EvaluationImage(file, 0, None, "0" * 64) for file in PREDICTED["image"]]
    images = EvaluationSet(
        name="three",
        kind="folder",
        items=items,
        read=lambda file: Image.new("RGB", (1, 1)),
        checked=None,
        classes=imagenet(),
    )
    read_predictions(path, images)


def make_state(rng: random.Random) -> bytes:
    """A file of another kind among them, none of them unchanged."""
    return pick(rng, [lambda: damaged(rng, _state()), lambda: damaged(rng, b""), lambda: b"0" * 64 + _state()[64:]])


STATE: TrainingState = {
    "network": {}, "optimizer": {}, "weights": {}, "epoch": 1, "history": [{"epoch": 1, "train_loss": 0.5}] * 30,
    "images": 100, "seconds": 2.5,
}  # fmt: skip


@cache
def _state() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        StateFolder(Path(folder), {"rate": 0.1}).save(STATE)
        return (Path(folder) / STATE_FILE).read_bytes()


def read_state(path: Path) -> None:
    (path.parent / STATE_FILE).write_bytes(path.read_bytes())
    found = StateFolder(path.parent, {"rate": 0.1}).load()
    assert found == STATE


KINDS = {
    "params.yaml": Kind(
        lambda rng: edited(rng, _text(rng.choice(["params.yaml", "imagenet/params.yaml"]))), read_edition
    ),
    "dvc.yaml": Kind(lambda rng: edited(rng, _text("dvc.yaml")), read_pipeline),
    "raw.md5": Kind(lambda rng: edited(rng, _text("raw.md5")), read_md5_list),
    "reassessed.json": Kind(
        lambda rng: edited(rng, json.dumps(REASSESSED)), lambda path: read_reassessed(path.read_bytes(), path.name)
    ),
    "kaggle.csv": Kind(make_kaggle_list, read_original_labels),
    "scores.json": Kind(lambda rng: edited(rng, json.dumps(SCORED, indent=2)), read_record),
    "images.tar": Kind(make_image_tar, read_image_tar),
    "devkit.tar.gz": Kind(make_devkit, read_original_labels),
    "image.JPEG": Kind(make_jpeg, read_image),
    "table.parquet": Kind(make_table, read_any_table),
    "manifest": Kind(make_manifest, read_any_manifest),
    "predictions.csv": Kind(make_predictions_csv, read_any_predictions),
    "predictions.parquet": Kind(make_predictions, read_any_predictions),
    "trained": Kind(make_state, read_state),
}
"""By the name of the file that a case is written to."""
