"""The manifest of a finished set."""

import csv
import io
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.sets.manifest import ManifestForm, manifest_csv
from cleanset.sets.manifest_checks import read_manifest
from tests.sets.entries import CROPPED, WHOLE, changed, checked

HEADER = (
    "model,wnid,class_index,class_name,rank,image_id,tier,confidence,source_confidence,ilsvrc_class,real_classes,reviewers,"
    "left,top,right,bottom,file,source_sha256,source_check,file_sha256,pixels_sha256,encoder\n"
)


def test_two_entries() -> None:
    assert manifest_csv([WHOLE, CROPPED], imagenet()) == (
        HEADER
        + "standard,n01440764,0,tench,1,ILSVRC2012_val_00000293,top5,0.5,0.5,0,0,1,,,,,"
        + f"n01440764/ILSVRC2012_val_00000293.JPEG,{'a' * 64},archive_md5,{'a' * 64},{'b' * 64},\n"
        + "standard,n01440764,0,tench,2,ILSVRC2012_val_00002138,relaxed,0.75,0.25,391,0 391,2,0,1,480,330,"
        + f"n01440764/ILSVRC2012_val_00002138.png,{'c' * 64},archive_md5,{'d' * 64},{'e' * 64},"
        + "Pillow 13.0.0 with zlib-ng 2.3.3\n"
    )


def test_an_empty_set_has_a_header() -> None:
    assert manifest_csv([], imagenet(), ManifestForm(format=1)) == HEADER
    assert read_manifest(HEADER, "m", imagenet()) == []


def test_sorted_by_class_and_rank() -> None:
    entries = [changed(WHOLE, class_index=index, rank=rank) for index, rank in [(10, 1), (9, 2), (9, 10), (9, 1)]]
    lines = list(csv.DictReader(io.StringIO(manifest_csv(entries, imagenet()))))
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
    entry = changed(CROPPED, confidence=float(np.float32(confidence)), source_confidence=float(np.float32(confidence)))
    assert entry.row(["confidence", "source_confidence"]) == [text, text]


@given(st.floats(0, 1, width=32))
def test_every_confidence_can_be_read_back(confidence: float) -> None:
    entry = checked(CROPPED, rank=1, confidence=confidence)
    (again,) = read_manifest(manifest_csv([entry], imagenet()), "m", imagenet())
    assert np.float32(again.confidence) == np.float32(confidence)


def test_a_confidence_that_is_not_known() -> None:
    entry = checked(CROPPED, rank=1, confidence=None)
    assert entry.row(["confidence"]) == [""]
    assert read_manifest(manifest_csv([entry], imagenet()), "m", imagenet()) == [entry]


# each change of a line, and what is found and expected
INVALID: list[tuple[int, dict[str, str], str]] = [
    (2, {"class_name": "goldfish"}, "class_name goldfish; expected tench of n01440764"),
    (2, {"class_name": "Tench"}, "class_name Tench; expected tench of n01440764"),
    (2, {"model": "Standard"}, "model Standard; expected small letters, digits and _"),
    (2, {"model": "/tmp/outside"}, "model /tmp/outside; expected small letters, digits and _"),
    (2, {"wnid": ""}, "wnid ; expected one of the 1,000 of ILSVRC2012"),
    (2, {"wnid": "n00000001"}, "wnid n00000001; expected one of the 1,000 of ILSVRC2012"),
    (2, {"class_index": "999"}, "class_index 999; expected 0 of n01440764"),
    (2, {"class_index": "1000"}, "class_index 1000; expected 0 to 999"),
    (2, {"class_index": "-1"}, "class_index -1; expected 0 to 999"),
    (2, {"class_index": "0.5"}, "class_index 0.5; expected 0 to 999"),
    (2, {"rank": "0"}, "rank 0; expected at least 1"),
    (2, {"rank": "first"}, "rank first; expected at least 1"),
    (2, {"rank": "9" * 5000}, f"rank {'9' * 35}…{'9' * 40} (5,005 characters); expected at least 1"),
    (2, {"rank": "2"}, "rank 2 in n01440764; expected rank 1"),
    (3, {"rank": "1"}, "rank 1 in n01440764; expected rank 2"),
    (
        2,
        {"image_id": "ILSVRC2012_val_00000000"},
        "image_id ILSVRC2012_val_00000000; expected an image id such as",
    ),
    (
        2,
        {"image_id": "ILSVRC2012_val_00050001"},
        "image_id ILSVRC2012_val_00050001; expected an image id such as",
    ),
    (2, {"image_id": "ILSVRC2012_val_0000029٣"}, "image_id ILSVRC2012_val_0000029٣; expected an image id such"),
    (2, {"tier": "best"}, "tier best; expected top5, reserve or relaxed"),
    (2, {"tier": "relaxed"}, "tier relaxed with labels: 1; expected relaxed with several, else another"),
    (3, {"tier": "top5"}, "tier top5 with labels: 2; expected relaxed with several, else another"),
    (2, {"confidence": "1.5"}, "confidence 1.5; expected 0 to 1"),
    (2, {"confidence": "nan"}, "confidence nan; expected 0 to 1"),
    (2, {"confidence": "-inf"}, "confidence -inf; expected 0 to 1"),
    (2, {"confidence": "1e5"}, "confidence 1e5; expected 0 to 1"),
    (3, {"confidence": "-0"}, "other line ends, quotes or digits; expected the file unchanged"),
    (2, {"confidence": "0.25"}, "confidence 0.25 of a whole image; expected 0.5"),
    (2, {"confidence": ""}, "confidence empty of a whole image; expected 0.5"),
    (2, {"source_confidence": ""}, "confidence 0.5 of a whole image; expected empty"),
    (3, {"source_confidence": ""}, "confidence 0.75 without source_confidence; expected both, source_confidence or"),
    (3, {"source_confidence": "2"}, "source_confidence 2; expected 0 to 1"),
    (2, {"source_check": ""}, "source_check ; expected archive_md5, image_sha256 or empty"),
    (2, {"source_check": "md5"}, "source_check md5; expected archive_md5, image_sha256 or empty"),
    (3, {"ilsvrc_class": "1000"}, "ilsvrc_class 1000; expected 0 to 999"),
    (3, {"real_classes": "391"}, "real_classes 391; expected the class 0 among them"),
    (3, {"real_classes": "391 0"}, "real_classes 391 0; expected class indices, each once, sorted"),
    (3, {"real_classes": "0 0"}, "real_classes 0 0; expected class indices, each once, sorted"),
    (3, {"real_classes": ""}, "real_classes ; expected class indices, each once, sorted"),
    (3, {"reviewers": "-1"}, "reviewers -1; expected at least 0"),
    (3, {"left": "480"}, "crop box 480 1 480 330; expected left < right and top < bottom"),
    (3, {"left": "-1"}, "crop -1 1 480 330; expected four edges from 0 to 65,535, or empty for a whole image"),
    (3, {"right": "65536"}, "crop 0 1 65536 330; expected four edges from 0 to 65,535"),
    (3, {"right": ""}, "crop 0 1  330; expected four edges from 0 to 65,535"),
    *(
        (2, {"file": file}, f"file {file}; expected n01440764/ILSVRC2012_val_00000293.JPEG")
        for file in (
            "../x.JPEG",
            "/etc/passwd",
            "../n01440764/ILSVRC2012_val_00000293.JPEG",
            "n01440764/ILSVRC2012_val_00000294.JPEG",
        )
    ),
    (2, {"file": "n01440764/ILSVRC2012_val_00000293.png"}, "file n01440764/ILSVRC2012_val_00000293.png; expected n"),
    (2, {"pixels_sha256": "F" * 64}, f"pixels_sha256 {'F' * 64}; expected 64 hexadecimal digits"),
    (2, {"source_sha256": "f" * 64}, "file aaaaaaaaaaaa... of a whole image; expected its source ffffffffffff..."),
    (
        2,
        {"encoder": "Pillow 13.0.0 with zlib 1.3"},
        "encoder Pillow 13.0.0 with zlib 1.3 of a whole image; expected an empty encoder",
    ),
    (3, {"encoder": ""}, "no encoder of a cropped image; expected Pillow <version> with zlib <version>"),
    (3, {"encoder": "Pillow 13; rm -rf /"}, "encoder Pillow 13; rm -rf /; expected Pillow <version> with zlib or zlib"),
    (3, {"encoder": "Pillow 1 with zlib 1\n"}, "encoder Pillow 1 with zlib 1\\n; expected Pillow <version> with zlib"),
    (3, {"image_id": "\u202e\n\x85"}, "image_id \\u202e\\n\\x85; expected an image id such as ILSVRC2012_val_00000001"),
    (3, {"model": "mine"}, "model mine; expected standard as in line 2"),
    (3, {"reviewers": "+2"}, "other line ends, quotes or digits; expected the file unchanged"),
    (3, {"confidence": "0.750"}, "other line ends, quotes or digits; expected the file unchanged"),
]


def with_values(line: int, values: dict[str, str]) -> str:
    """The manifest of both entries with other values in one line."""
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(manifest_csv([WHOLE, CROPPED], imagenet()))))
    rows[line - 2] |= values
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize(("line", "values", "message"), INVALID)
def test_invalid_values(line: int, values: dict[str, str], message: str) -> None:
    with pytest.raises(CleansetError) as raised:
        read_manifest(with_values(line, values), "m", imagenet())
    where = "m" if message.startswith("other line ends") else f"m, line {line}"
    assert str(raised.value).startswith(f"{where}: {message}")
    assert str(raised.value).endswith(": export or fetch the set again")
    assert str(raised.value).isprintable()


EMPTY = {
    "source_confidence": "confidence 0.75 without source_confidence; expected both",
    "left": "crop  1 480 330; expected four edges",
    "top": "crop 0  480 330; expected four edges",
    "right": "crop 0 1  330; expected four edges",
    "bottom": "crop 0 1 480 ; expected four edges",
    "encoder": "no encoder of a cropped image; expected Pillow <version>",
}
"""The problem of an empty value by column; for the others, `column ; expected …`."""


@pytest.mark.parametrize("name", [name for name in HEADER.strip().split(",") if name != "confidence"])
def test_every_column_is_checked(name: str) -> None:
    """An empty value is refused in each, but for the confidence, in which it has a meaning."""
    with pytest.raises(CleansetError) as raised:
        read_manifest(with_values(3, {name: ""}), "m", imagenet())
    assert str(raised.value).startswith(f"m, line 3: {EMPTY.get(name, f'{name} ; expected ')}")


LINES = manifest_csv([WHOLE, CROPPED], imagenet()).splitlines()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "m, line 1, column 1: nothing; expected model: export or fetch the set again, or use the version of"),
        (
            [LINES[0] + ",x"],
            "m, line 1: written by a newer version of cleanset: columns x; this version reads ",
        ),
        ([LINES[0].replace(",source_confidence", "")], "m, line 1, column 9: ilsvrc_class; expected source_confi"),
        (["model,wnid"], "m, line 1, column 3: nothing; expected class_index: "),
        (["\0" * 500], r"m, line 1, column 1: (\\x00)+.*….* \(2,000 characters\); expected model: "),
        (['"' + "x" * 140_000], r"m: not CSV \(field larger than field limit"),
        ([LINES[0], "standard,n01440764"], "m, line 2: values: 2; expected 22"),
        ([LINES[0], LINES[1] + ","], "m, line 2: values: 23; expected 22"),
        ([LINES[0], "", LINES[1]], "m, line 2: values: 0; expected 22"),
        ([*LINES, LINES[1]], "m, line 4: ILSVRC2012_val_00000293 as in line 2; expected each image once"),
        ([LINES[0], LINES[2]], "m, line 2: rank 2 in n01440764; expected rank 1"),
    ],
)
def test_what_is_no_manifest(lines: list[str], message: str) -> None:
    with pytest.raises(CleansetError) as raised:
        read_manifest("".join(f"{line}\n" for line in lines), "m", imagenet())
    assert re.match(message, str(raised.value)), raised.value
    assert len(str(raised.value)) < 500


def test_nothing_invalid_can_be_written() -> None:
    """The same model checks what a set is written from."""
    with pytest.raises(ValidationError):
        checked(WHOLE, class_index=1)


def test_names_of_classes() -> None:
    """As WordNet has them; four share two names."""
    names = imagenet().labels
    assert [names[index] for index in (0, 1, 134, 517, 638, 639, 999)] == [
        "tench", "goldfish", "crane (n02012849)", "crane (n03126707)", "maillot (n03710637)", "maillot (n03710721)",
        "toilet tissue",
    ]  # fmt: skip
    assert len(set(names)) == len(names) == 1000
    assert not any("," in name or '"' in name for name in names)  # no quotes in a manifest
