"""The tables that stages hand on: Parquet, keyed and sorted by `image_id`, schema checked on reading.

Where a picture may occur several times, each with a crop box, the box belongs to the key.
"""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cleanset.errors import CleansetError
from cleanset.files import replacing


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name in _NULLABLE) for name, kind in columns.items()])


_NULLABLE = {"crop"}
_KEY = ("image_id", "left", "top", "right", "bottom")
"""A table's key is made of those of these columns that it has."""
_CLASS = pa.int16()

INDEX = _schema(
    image_id=pa.string(),
    size=pa.int64(),  # bytes
    sha256=pa.string(),  # of the bytes
    width=pa.int32(),
    height=pa.int32(),
    mode=pa.string(),
    pixels_sha256=pa.string(),
    ilsvrc_class=_CLASS,  # class index of the original label
    real_classes=pa.list_(_CLASS),  # class indices of the reassessed labels
    single=pa.bool_(),  # exactly one reassessed label
)
LOCATIONS = _schema(
    image_id=pa.string(),
    file=pa.string(),  # relative to dataset.images; "." is dataset.images itself
    offset=pa.int64(),  # bytes
    size=pa.int64(),
)
SCORES = _schema(
    image_id=pa.string(),
    top5_class=pa.list_(_CLASS, 5),
    top5_probability=pa.list_(pa.float32(), 5),
)
CROP_SCORES = _schema(
    image_id=pa.string(),
    left=pa.int32(),  # the box, in pixels of the whole picture; right and bottom excluded
    top=pa.int32(),
    right=pa.int32(),
    bottom=pa.int32(),
    top5_class=pa.list_(_CLASS, 5),
    top5_probability=pa.list_(pa.float32(), 5),
)
SHARED = _schema(image_id=pa.string(), class_index=_CLASS)
CANDIDATES = _schema(
    image_id=pa.string(),
    class_index=_CLASS,
    tier=pa.string(),
    rank=pa.int32(),  # 1 is the first to be looked at in its class
    confidence=pa.float32(),
)
MARGINS = _schema(
    image_id=pa.string(),  # the last one in of tier top5
    class_index=_CLASS,
    confidence=pa.float32(),
    next_image_id=pa.string(),  # the first one out: the best shared picture that is not in the tier
    next_confidence=pa.float32(),
    margin=pa.float64(),  # between the two confidences
)
SELECTION = _schema(
    image_id=pa.string(),
    class_index=_CLASS,
    place=pa.int32(),  # 1, 2, 3 in the finished class
    tier=pa.string(),
    rank=pa.int32(),
    confidence=pa.float32(),
    crop=pa.list_(pa.int32(), 4),  # left, top, right, bottom; null: the whole picture
)
REJECTED = _schema(
    image_id=pa.string(),
    class_index=_CLASS,
    tier=pa.string(),
    rank=pa.int32(),
    confidence=pa.float32(),
    reason=pa.string(),
    open=pa.bool_(),  # a verdict is missing that could still bring it in
)


def write_table(path: Path, frame: pd.DataFrame, schema: pa.Schema) -> None:
    """Write `frame` sorted by its key: the same rows give the same bytes.

    Raises ValueError if a key occurs twice.
    """
    key = [name for name in _KEY if name in schema.names]
    frame = frame.sort_values(key)
    twice = frame.loc[frame.duplicated(key), key]
    if len(twice):
        raise ValueError(f"{path}: {' '.join(map(str, twice.iloc[0]))} occurs twice")
    columns = [pa.array(frame[field.name].tolist(), type=field.type, from_pandas=True) for field in schema]
    table = pa.Table.from_arrays(columns, schema=schema)
    with replacing(path) as partial, partial.open("wb") as file:
        pq.write_table(table, file, compression="zstd", compression_level=9)


def read_table(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a table. Raises CleansetError if it is missing or of another schema."""
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; run dvc repro, or dvc pull to fetch it") from None
    except pa.ArrowInvalid as error:
        raise CleansetError(f"{path}: not a Parquet file ({error}); run dvc repro") from None
    if not table.schema.equals(schema):
        found = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        expected = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise CleansetError(f"{path}: columns {found}; expected {expected}: run dvc repro")
    frame: pd.DataFrame = table.to_pandas()
    return frame
