"""The table of attacked images, and its rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cleanset.files import sha256
from cleanset.tables import CLASS, FILE, FLAG, IMAGE_ID, MAX_INT64, SHA256, Column, Table, nullable

# these import torch, which reading results does not need
if TYPE_CHECKING:
    from cleanset.studies.attacks.base import Result, Subject
    from cleanset.studies.attacks.judged import Verdict

_MAX_UINT32 = 2**32 - 1


def _between(least: float, most: float) -> Any:
    def is_valid(values: pa.Array) -> NDArray[np.bool_]:
        numbers = values.to_numpy(zero_copy_only=False)
        return np.asarray((numbers >= least) & (numbers <= most))

    return is_valid


def _finite_lists(values: pa.Array) -> NDArray[np.bool_]:
    lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    parents = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
    broken = ~np.isfinite(pc.list_flatten(values).to_numpy(zero_copy_only=False))
    valid = np.asarray(lengths >= 2)
    valid[parents[broken]] = False
    return valid


def _any(values: pa.Array) -> NDArray[np.bool_]:
    return np.ones(len(values), np.bool_)


SEED = Column(pa.int64(), "a seed from 0 to 2**32 - 1", _between(0, _MAX_UINT32))
QUERIES = Column(pa.int64(), "a number of queries", _between(0, MAX_INT64))
LOGITS = Column(pa.list_(pa.float32()), "two or more finite logits", _finite_lists)
PLACES = Column(pa.int32(), "a number of places", _between(0, 2**31 - 1))
DISTANCE = Column(pa.float64(), "a distance from 0", _between(0, 1e9))
LEARNED = Column(pa.float32(), "a distance from 0", _between(0, 1e9))
SIMILARITY = Column(pa.float32(), "a similarity from -1 to 1", _between(-1, 1))
TEXTS = Column(pa.list_(pa.string()), "a list of texts", _any)
PNG = Column(pa.binary(), "a PNG", _any)

_COLUMNS: dict[str, Any] = {
    "class_index": CLASS,  # of the image, also where the model has two groups of classes
    "source_sha256": SHA256,  # of the file in the finished set
    "png_sha256": SHA256,
    "seed": nullable(SEED),  # of what was drawn; null: nothing
    "queries": QUERIES,
    "logits_before": LOGITS,  # in float64, stored as float32; a logit for each class, or for each group in their order
    "logits_after": LOGITS,
    "was_correct": FLAG,  # the top-1 class is the image's, or the top-1 group that of its class
    "is_error": FLAG,
    "l0": PLACES,
    "l2": DISTANCE,  # of pixels in 0..1, as linf
    "linf": DISTANCE,
    "ssim": SIMILARITY,
    "lpips": nullable(LEARNED),  # null: not measured
    "from_center": nullable(DISTANCE),  # in the attack's norm, from what its ball is around; null: no ball
    "notices": TEXTS,  # of the attack's library
}
ATTACKED = Table(key=("file",), file=FILE, image_id=IMAGE_ID, png=FILE, **_COLUMNS)
"""`png`: where it lies beside the table."""
NAMED_ATTACKED = Table(key=("file",), file=FILE, image_id=FILE, png=FILE, **_COLUMNS)
"""Rows of ATTACKED for images outside an edition, whose names may be of any form."""
SHARD = Table(image_id=FILE, content=PNG, **_COLUMNS)
"""Finished groups, by file."""


class Source(NamedTuple):
    """A file of the study: its SHA-256, and the class of the image, which the model may know as a group only."""

    sha256: str
    class_index: int


def png_name(file: str) -> str:
    """The name of the PNG for a file of the study: a whole image and its crop may differ in the suffix only."""
    return f"images/{file}.png"


def rows(
    group: "Sequence[Subject]",
    sources: Sequence[Source],
    results: "Sequence[Result]",
    verdicts: "Sequence[Verdict]",
) -> pd.DataFrame:
    """The rows of SHARD for a group of images."""
    found = [
        {
            "image_id": subject.name,
            "content": verdict.png,
            "class_index": source.class_index,
            "source_sha256": source.sha256,
            "png_sha256": sha256(verdict.png),
            "seed": result.seed,
            "queries": result.queries,
            # float32 halves the table; verdicts were taken in float64
            "logits_before": verdict.before.astype(np.float32).tolist(),
            "logits_after": verdict.after.astype(np.float32).tolist(),
            "was_correct": verdict.was_correct,
            "is_error": verdict.is_error,
            "l0": verdict.distances.l0,
            "l2": verdict.distances.l2,
            "linf": verdict.distances.linf,
            "ssim": np.float32(verdict.distances.ssim),
            "lpips": None if verdict.distances.lpips is None else np.float32(verdict.distances.lpips),
            "from_center": verdict.from_center,
            "notices": list(result.notices),
        }
        for subject, source, result, verdict in zip(group, sources, results, verdicts, strict=True)
    ]
    return pd.DataFrame(found, columns=SHARD.names)


def attacked_rows(shards: pd.DataFrame, image_ids: dict[str, str]) -> pd.DataFrame:
    """The rows of ATTACKED from those of SHARD; `image_ids` by file."""
    files = shards["image_id"].tolist()
    names = {"file": files, "image_id": [image_ids[file] for file in files], "png": [png_name(file) for file in files]}
    return shards.drop(columns=["image_id", "content"]).assign(**names)[ATTACKED.names]
