"""The manifest of a finished set."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.sets.manifest import Entry, manifest_csv

WHOLE = Entry(
    model="standard",
    wnid="n01440764",
    class_index=0,
    rank=1,
    image_id="ILSVRC2012_val_00000293",
    tier="top5",
    confidence=0.5,
    crop=None,
    file="n01440764/ILSVRC2012_val_00000293.JPEG",
    source_sha256="a" * 64,
    file_sha256="a" * 64,
    pixels_sha256="b" * 64,
)
CROPPED = Entry(
    model="standard",
    wnid="n01440764",
    class_index=0,
    rank=2,
    image_id="ILSVRC2012_val_00002138",
    tier="reserve",
    confidence=0.25,
    crop=(0, 1, 480, 330),
    file="n01440764/ILSVRC2012_val_00002138.png",
    source_sha256="c" * 64,
    file_sha256="d" * 64,
    pixels_sha256="e" * 64,
    encoder="Pillow 13.0.0 with zlib-ng 2.3.3",
)
HEADER = (
    "model,wnid,class_index,rank,image_id,tier,confidence,left,top,right,bottom,file,"
    "source_sha256,file_sha256,pixels_sha256,encoder\n"
)


def test_two_entries() -> None:
    assert manifest_csv([WHOLE, CROPPED]) == (
        HEADER
        + "standard,n01440764,0,1,ILSVRC2012_val_00000293,top5,0.5,,,,,n01440764/ILSVRC2012_val_00000293.JPEG,"
        + f"{'a' * 64},{'a' * 64},{'b' * 64},\n"
        + "standard,n01440764,0,2,ILSVRC2012_val_00002138,reserve,0.25,0,1,480,330,"
        + f"n01440764/ILSVRC2012_val_00002138.png,{'c' * 64},{'d' * 64},{'e' * 64},Pillow 13.0.0 with zlib-ng 2.3.3\n"
    )


def test_an_empty_set_has_a_header() -> None:
    assert manifest_csv([]) == HEADER


def test_sorted_by_class_and_rank() -> None:
    entries = [replace(WHOLE, class_index=index, rank=rank) for index, rank in [(10, 1), (9, 2), (9, 10), (9, 1)]]
    lines = list(csv.DictReader(io.StringIO(manifest_csv(entries))))
    assert [(line["class_index"], line["rank"]) for line in lines] == [("9", "1"), ("9", "2"), ("9", "10"), ("10", "1")]


@pytest.mark.parametrize(
    ("confidence", "text"),
    [
        (0.1, "0.100000001"),  # the float32 nearest to 0.1
        (1.0, "1"),
        (0.99999994, "0.99999994"),  # the last float32 before 1
        (1e-05, "9.99999975e-06"),
    ],
)
def test_confidence_as_a_float32(confidence: float, text: str) -> None:
    entry = replace(WHOLE, confidence=float(np.float32(confidence)))
    assert entry.row()[6] == text


@given(st.floats(0, 1, width=32))
def test_every_confidence_can_be_read_back(confidence: float) -> None:
    assert np.float32(str(replace(WHOLE, confidence=confidence).row()[6])) == np.float32(confidence)
