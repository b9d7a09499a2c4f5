"""Tables that were changed behind DVC's back are refused: one line names table, column and row."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.tables import (
    CANDIDATES,
    CROP_SCORES,
    CROPS,
    FILE,
    INDEX,
    LOCATIONS,
    MARGINS,
    MAX_ROWS,
    REJECTED,
    SCORES,
    SELECTION,
    SHARED,
    Column,
    Table,
    parquet_content,
    read_table,
    write_table,
)
from tests.properties import examples
from tests.time_limits import at_most

ID, NEXT = "ILSVRC2012_val_00000004", "ILSVRC2012_val_00000005"
NAMES = ["a", "a!", "b", "é", "\uffff", "\U0001f600"]
SHA = "0123456789abcdef" * 4
TOP5: dict[str, Any] = {
    "top5_class": [7, 0, 999, 3, 4], "top5_probability": [1.0, 0.0, 0.0, 0.0, 0.0], "log_odds": 40.0,
}  # fmt: skip
CANDIDATE: dict[str, Any] = {
    "image_id": ID, "class_index": 7, "tier": "reserve", "rank": 1, "confidence": 0.5, "log_odds": 0.0,
}  # fmt: skip
GOOD: dict[str, tuple[Table, dict[str, Any]]] = {
    "index": (
        INDEX,
        {
            "image_id": ID, "size": 9, "sha256": SHA, "width": 4, "height": 1, "mode": "L", "pixels_sha256": SHA,
            "ilsvrc_class": 999, "real_classes": [5, 0], "single": False,
        },
    ),
    "locations": (LOCATIONS, {"image_id": ID, "file": ".", "offset": 0, "size": 9}),
    "scores": (SCORES, {"image_id": ID} | TOP5),
    "crops": (CROPS, {"image_id": ID, "crop": [0, 1, 2, 3]}),
    "crop_scores": (CROP_SCORES, {"image_id": ID, "crop": [0, 1, 2, 3]} | TOP5),
    "shared": (SHARED, {"image_id": ID, "class_index": 0}),
    "candidates": (CANDIDATES, CANDIDATE),
    "margins": (
        MARGINS,
        {
            "image_id": ID, "class_index": 0, "confidence": 0.5, "log_odds": 0.0,
            "next_image_id": NEXT, "next_confidence": 0.25, "next_log_odds": -1.0986123,
            "margin": 0.25, "log_odds_margin": 1.0986123,
        },
    ),
    "selection": (SELECTION, CANDIDATE | {"place": 3, "crop": None, "box_unknown": False}),
    "rejected": (REJECTED, CANDIDATE | {"reason": "watermark", "open": False}),
}  # fmt: skip


def put(path: Path, table: Table, *rows: dict[str, Any]) -> Path:
    """Write rows unchanged, in their order, with the nullable columns of `table`."""
    fields = [pa.field(field.name, field.type, field.nullable) for field in table.schema]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in fields]
    pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), path)
    return path


@pytest.mark.parametrize("name", GOOD)
def test_good_rows(name: str, tmp_path: Path) -> None:
    table, row = GOOD[name]
    path = put(tmp_path / "t", table, row, row | {"image_id": NEXT})
    assert read_table(path, table, imagenet())["image_id"].tolist() == [ID, NEXT]
    assert read_table(put(path, table), table, imagenet()).empty
    write_table(tmp_path / "again", read_table(put(path, table, row), table, imagenet()), table, imagenet())
    assert pq.read_table(tmp_path / "again").to_pylist() == pq.read_table(path).to_pylist()


def flip_bits(path: Path, table: Table) -> tuple[int, int]:
    """How many bits of a file, each flipped alone, change what is read, and how many are refused."""
    data, expected = path.read_bytes(), read_table(path, table, imagenet()).to_json()
    changed = refused = 0
    for bit in range(0, 8 * len(data), 61):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            changed += read_table(path, table, imagenet()).to_json() != expected
        except CleansetError:
            refused += 1
    path.write_bytes(data)
    return changed, refused


@pytest.fixture
def little_memory() -> Iterator[None]:
    """2 GiB more than now: where a count in the footer is damaged, Arrow asks for as much as it says."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**31, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("table", [SCORES, LOCATIONS, SELECTION])
def test_no_flipped_bit_is_read_as_another_value(table: Table, tmp_path: Path) -> None:
    row = next(row for each, row in GOOD.values() if each is table)
    ids = [f"ILSVRC2012_val_{number:08d}" for number in range(1, 200)]
    write_table(tmp_path / "t", pd.DataFrame([row | {"image_id": each} for each in ids]), table, imagenet())
    changed, refused = flip_bits(tmp_path / "t", table)
    assert changed == 0
    assert refused > 0


def test_a_table_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t")
    with at_most(5), pytest.raises(CleansetError, match="/t: a named pipe; expected a regular file"):
        read_table(tmp_path / "t", SCORES, imagenet())


def test_a_crop_and_none(tmp_path: Path) -> None:
    row = GOOD["selection"][1]
    rows = [row | {"crop": [1, 2, 3, 4]}, row | {"image_id": NEXT}]
    first, second = read_table(put(tmp_path / "t", SELECTION, *rows), SELECTION, imagenet())["crop"]
    assert (list(first), second) == ([1, 2, 3, 4], None)


def test_a_box_and_that_it_is_unknown(tmp_path: Path) -> None:
    row = GOOD["selection"][1] | {"box_unknown": True}
    assert read_table(put(tmp_path / "t", SELECTION, row), SELECTION, imagenet())["box_unknown"].tolist() == [True]
    with pytest.raises(CleansetError, match=r"box_unknown, row 1 .*: True; expected false where crop has a box"):
        read_table(put(tmp_path / "t", SELECTION, row | {"crop": [1, 2, 3, 4]}), SELECTION, imagenet())


BAD: list[tuple[str, str, Any, str]] = [
    ("index", "image_id", "4", "an image id like ILSVRC2012_val_00000001"),
    ("index", "image_id", ID + "\n", "an image id"),
    ("index", "size", -1, "a number of bytes"),
    ("index", "sha256", SHA[1:], "a SHA-256 of 64 hexadecimal digits"),
    ("index", "sha256", SHA.upper(), "a SHA-256"),
    ("index", "width", 0, "a number of pixels from 1"),
    ("index", "height", -5, "a number of pixels from 1"),
    ("index", "mode", "RGBA", "RGB, L or CMYK"),
    ("index", "pixels_sha256", "", "a SHA-256"),
    ("index", "ilsvrc_class", 1000, "a class index from 0 to 999"),
    ("index", "real_classes", [5, 5], "distinct class indices from 0 to 999"),
    ("index", "real_classes", [5, -1], "distinct class indices"),
    ("index", "real_classes", [1000], "distinct class indices"),
    ("index", "real_classes", [5, None], "distinct class indices"),
    ("index", "single", True, "true where there is one of real_classes"),
    ("locations", "file", "", "a path"),
    ("locations", "offset", -1, "a number of bytes"),
    ("scores", "top5_class", [7, 0, 1000, 3, 4], "five distinct class indices from 0 to 999"),
    ("scores", "top5_class", [7, 0, 7, 3, 4], "five distinct class indices"),
    ("scores", "top5_class", [7, 0, None, 3, 4], "five distinct class indices"),
    ("scores", "top5_probability", [float("nan"), 0, 0, 0, 0], "five probabilities from 0 to 1"),
    ("scores", "top5_probability", [1.0, 0, 0, 0, float("inf")], "five probabilities from 0 to 1"),
    ("scores", "top5_probability", [1.0, 0, -0.5, 0, 0], "five probabilities from 0 to 1"),
    ("scores", "top5_probability", [1.0, None, 0, 0, 0], "five probabilities from 0 to 1"),
    ("crops", "crop", [2, 1, 2, 3], "left, top, right, bottom of a box with an area"),
    ("crops", "crop", [-1, 1, 2, 3], "left, top, right, bottom of a box"),
    ("crop_scores", "crop", [0, 3, 2, 3], "left, top, right, bottom of a box"),
    ("shared", "class_index", -1, "a class index from 0 to 999"),
    ("scores", "log_odds", float("inf"), "log-odds, a finite number"),
    ("crop_scores", "log_odds", float("nan"), "log-odds, a finite number"),
    ("margins", "log_odds_margin", float("nan"), "a difference of log-odds, a finite number"),
    ("candidates", "tier", "top6", "one of top5, reserve, relaxed"),
    ("candidates", "rank", 0, "a number from 1"),
    ("candidates", "confidence", float("nan"), "a probability from 0 to 1"),
    ("margins", "next_image_id", "", "an image id"),
    ("margins", "margin", -0.5, "a difference of probabilities from 0 to 1"),
    ("selection", "place", 0, "a number from 1"),
    ("selection", "crop", [0, 0, 0, 0], "left, top, right, bottom of a box"),
    ("rejected", "reason", "Ugly!", "a reason, such as watermark"),
]


@pytest.mark.parametrize(("name", "column", "value", "expected"), BAD)
def test_a_bad_value(name: str, column: str, value: Any, expected: str, tmp_path: Path) -> None:
    table, good = GOOD[name]
    path = put(tmp_path / "t.parquet", table, good, good | {"image_id": NEXT} | {column: value})
    found = "" if column == "image_id" else f" ({NEXT})"
    with pytest.raises(CleansetError) as error:
        read_table(path, table, imagenet())
    message = str(error.value)
    assert message.startswith(f"{path}, column {column}, row 2{found}: ")
    assert f"; expected {expected}" in message
    assert message.endswith(": run dvc checkout to restore it, or dvc repro")
    assert message.isprintable()


@pytest.mark.parametrize("name", GOOD)
def test_an_empty_cell(name: str, tmp_path: Path) -> None:
    """Written as a column that may hold nulls, which the table's own may not."""
    table, good = GOOD[name]
    frame = pd.DataFrame([good | {"image_id": None}])
    columns = [pa.array(frame[field.name].tolist(), field.type) for field in table.schema]
    pq.write_table(pa.Table.from_arrays(columns, names=table.names), tmp_path / "t")
    with pytest.raises(CleansetError, match="column image_id: string; expected string not null: run dvc checkout"):
        read_table(tmp_path / "t", table, imagenet())


@pytest.mark.parametrize(
    ("ids", "message"),
    [([NEXT, ID], f"row 2: {ID} after {NEXT}"), ([ID, ID], f"row 2: {ID} after {ID}")],
)
def test_rows_that_are_not_sorted_by_their_key(ids: list[str], message: str, tmp_path: Path) -> None:
    path = put(tmp_path / "t", SHARED, *({"image_id": each, "class_index": 1} for each in ids))
    with pytest.raises(CleansetError, match=f"{message}; expected rows sorted by image_id, each once: run dvc"):
        read_table(path, SHARED, imagenet())


def test_several_crops_of_an_image_are_sorted_by_box(tmp_path: Path) -> None:
    rows = [{"image_id": ID, "crop": [0, 0, right, 9]} for right in (5, 10)]
    assert len(read_table(put(tmp_path / "t", CROPS, *rows), CROPS, imagenet())) == 2
    for wrong in (rows[::-1], [rows[0], rows[0]]):
        with pytest.raises(CleansetError, match="expected rows sorted by image_id and crop, each once"):
            read_table(put(tmp_path / "t", CROPS, *wrong), CROPS, imagenet())


@examples(100)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-2, 2)), max_size=4))
def test_any_key_is_compared_as_python_compares_it(tmp_path_factory: pytest.TempPathFactory, keys: list[Any]) -> None:
    step = Column(pa.int8(), "a step", lambda values, _: np.full(len(values), True))
    names = Table(key=("name", "step"), name=FILE, step=step)
    path = tmp_path_factory.getbasetemp() / "keys"
    pq.write_table(pa.Table.from_pylist([dict(zip(names.names, key, strict=True)) for key in keys], names.schema), path)
    if all(one < other for one, other in pairwise(keys)):
        assert len(read_table(path, names, imagenet())) == len(keys)
        return
    row = next(row for row, (one, other) in enumerate(pairwise(keys), start=2) if one >= other)
    with pytest.raises(CleansetError, match=f", row {row}: "):
        read_table(path, names, imagenet())


def test_some_columns_are_read_and_all_are_checked(tmp_path: Path) -> None:
    table, good = GOOD["candidates"]
    found = read_table(put(tmp_path / "t", table, good), table, columns=["rank", "image_id"], classes=imagenet())
    assert found.to_dict("records") == [{"rank": 1, "image_id": ID}]
    with pytest.raises(CleansetError, match="column confidence, row 1"):
        read_table(
            put(tmp_path / "t", table, good | {"confidence": 1.5}), table, columns=["image_id"], classes=imagenet()
        )


def test_other_columns_and_types(tmp_path: Path) -> None:
    put(tmp_path / "t", SHARED, GOOD["shared"][1])
    with pytest.raises(CleansetError, match="t: columns 'image_id, class_index'; expected image_id, crop: run dvc"):
        read_table(tmp_path / "t", CROPS, imagenet())
    pq.write_table(pa.table({"image_id": pa.array([ID]), "class_index": pa.array([1], pa.int64())}), tmp_path / "t")
    with pytest.raises(CleansetError, match="column image_id: string; expected string not null"):
        read_table(tmp_path / "t", SHARED, imagenet())


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes(seed: int, tmp_path: Path) -> None:
    table, good = GOOD["index"]
    data = bytearray(put(tmp_path / "t", table, good).read_bytes())
    rng = np.random.default_rng(seed)
    for _ in range(5):
        data[rng.integers(len(data))] = rng.integers(256)
    (tmp_path / "t").write_bytes(data)
    with suppress(CleansetError):
        read_table(tmp_path / "t", table, imagenet())
    (tmp_path / "t").write_bytes(data[:-5])
    with pytest.raises(CleansetError, match=r"t: not a Parquet file \(.*\); run dvc checkout"):
        read_table(tmp_path / "t", table, imagenet())


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=f"^{tmp_path}: a folder; expected a regular file"):
        read_table(tmp_path, SHARED, imagenet())


def test_a_small_file_of_many_rows(tmp_path: Path) -> None:
    """Read, 300 kB of a repeated value would take gigabytes."""
    path = tmp_path / "many.parquet"
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(MAX_ROWS + 1, np.int8)), pa.array(["a" * 60]))
    pq.write_table(pa.table({"image": values}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 500_000
    with pytest.raises(ValueError, match="33,554,433 rows, expected at most 33,554,432"):
        parquet_content(path)
