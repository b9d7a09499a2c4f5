"""Wrong images are one line that says file, field, what was found, what was expected and what to do."""

import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stages.inputs import AT_DEVKIT, AT_TAR, FOURTH, a_member, with_image, with_member
from tests.ten_images import Made, drawn_image, id_of, jpeg, official, tar, ten_images, with_size, write

pytestmark = pytest.mark.slow

IMAGES = ten_images()
WHOLE, TAR, ELEVENTH = IMAGES[FOURTH], official(IMAGES), f"{id_of(11)}.JPEG"
SECOND = TAR.index(f"{id_of(2)}.JPEG".encode())
"""The place of the header of the second image."""
SMALL = jpeg(drawn_image(16, 16))
OFFICIAL = "take the official archive"
NO_NAME = (
    "not the name of a validation image; expected ILSVRC2012_val_00000001.JPEG or alike: give the tar or the folder of "
    "the validation images alone"
)
NO_IMAGE = (
    "holds no image; expected ILSVRC2012_val_00000001.JPEG and so on, in it or in folders of classes: give the folder "
    "that has them, such as val in it"
)
REGULAR = "expected a regular file: name another, or copy the content into one"
THERE = "expected an existing file or folder: restore it, or choose another"
LARGE = "expected at most 67,108,864: take the official file"


def png() -> bytes:
    out = io.BytesIO()
    drawn_image(20, 20).save(out, format="PNG")
    return out.getvalue()


def with_many_scans() -> bytes:
    data = jpeg(drawn_image(16, 16), progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + 200 * data[last:-2] + data[-2:]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        *((WHOLE[:-cut], "truncated") for cut in (20, 100, 400)),
        (WHOLE[:20], ""),
        (b"", "empty"),
        (png(), "not a JPEG"),
        (b"<html>404</html>", "not a JPEG"),
        (with_size(SMALL, 65_000, 65_000), "4225000000 pixels) exceeds limit of"),
        (with_size(SMALL, 12_000, 12_000), "12000 x 12000 pixels, more than 100,000,000"),
        (jpeg(drawn_image(1, 65_000)), "1 x 65000 pixels, one side more than 200 times the other"),
        (with_many_scans(), "scans, more than 64"),
    ],
)
def test_an_image_that_cannot_be_read(made: Made, data: bytes, found: str) -> None:
    with_image(made, data).fails(f"{AT_TAR}: 1 cannot be read: {FOURTH} (*{found}*); expected whole JPEGs: fetch them")


def test_a_damaged_exif_header(made: Made) -> None:
    with_image(made, WHOLE[:2] + b"\xff\xe1\0\x10Exif\0\0nonsense" + WHOLE[2:]).succeeds("preprocess")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((each, NO_NAME) for each in ("holiday.JPEG", "ILSVRC2012_val_4.JPEG", f"{FOURTH}.gif", "ILSVRC2012_val.txt")),
        ("a\nb.JPEG", NO_NAME),
        (f"again/{FOURTH}.JPEG", f"{FOURTH} occurs twice; remove one of the two"),
        *((f"{folder}/{FOURTH}.JPEG", f"a path outside the archive; {OFFICIAL}") for folder in ("..", "a/../..", "/e")),
    ],
)
def test_a_wrong_name_in_a_tar(made: Made, name: str, message: str) -> None:
    with_member(made, a_member(name), b"x").fails(f"{AT_TAR}, member {name!r}: {message}")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_a_member_that_is_not_a_plain_file(made: Made, kind: bytes) -> None:
    found = "a sparse file" if kind == tarfile.GNUTYPE_SPARSE else "a link or device"
    with_member(made, a_member(ELEVENTH, kind, "/etc/passwd")).fails(
        f"{AT_TAR}, member '{ELEVENTH}': {found}; expected plain files only: {OFFICIAL}"
    )


SPARSE = f"*: a sparse file; expected plain files only: {OFFICIAL}"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"GNU.sparse.map": "0,1"}, SPARSE),
        ({"GNU.sparse.map": ""}, "*: not an uncompressed tar (invalid literal *); expected *"),
        ({"GNU.sparse.size": "3"}, SPARSE),
        ({"GNU.sparse.name": "x"}, SPARSE),
        ({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, "*: not an uncompressed tar (*); expected *"),
        ({"size": "-1024"}, f"*: -1,024 bytes; {LARGE}"),
        ({"path": "../x"}, f"*, member '../x': a path outside the archive; {OFFICIAL}"),
    ],
)
def test_odd_pax_headers(made: Made, headers: dict[str, str], message: str) -> None:
    member = a_member(ELEVENTH)
    member.pax_headers = headers
    with_member(made, member, b"no number\n" + bytes(600)).fails(message)


def with_huge_member() -> bytes:
    info = a_member(ELEVENTH)
    info.size = 2**40
    return official({id_of(1): b"x"})[:1024] + info.tobuf()


def packed(compression: str) -> bytes:
    return tar({f"{name}.JPEG": data for name, data in IMAGES.items()}, f"w:{compression}")


COMPLETE = "complete the set or correct params.yaml"
NOT_A_TAR = "not an uncompressed tar ({}); expected ILSVRC2012_img_val.tar: decompress it or fetch it again"
NO_END = f"no end mark after {SECOND:,} bytes: truncated or damaged; fetch it again"


@pytest.mark.parametrize(
    ("images", "expected", "message"),
    [
        (
            official({name: data for name, data in IMAGES.items() if name != FOURTH}), 10,
            f"9 images, expected 10 (dataset.expect_images); the first that is missing is {FOURTH}: {COMPLETE}",
        ),
        (TAR, 9, f"10 images, expected 9 (dataset.expect_images): {COMPLETE}"),
        (tar({}), 10, NO_IMAGE),
        (b"", 10, "not an uncompressed tar (*empty*); expected *"),
        (TAR[:5000], 10, NOT_A_TAR.format("unexpected end of data")),
        *((packed(compression), 10, NOT_A_TAR.format("*")) for compression in ("gz", "bz2", "xz")),
        # Python's tarfile takes all three for the end of the archive
        (TAR[:SECOND], None, NO_END),
        (TAR[: SECOND + 100], None, NO_END),
        (TAR[:SECOND] + b"\xff" * 20 + TAR[SECOND + 20 :], None, NO_END),
    ],
)  # fmt: skip
def test_a_wrong_archive(made: Made, images: bytes, expected: int | None, message: str) -> None:
    made.archives(images=images)
    made.params(expect_images=expected)
    made.fails(f"{AT_TAR}: {message}")


def test_a_huge_member(made: Made) -> None:
    made.archives(images=with_huge_member()).fails(f"{AT_TAR}, member '{ELEVENTH}': 1,099,511,627,776 bytes; {LARGE}")


def test_a_number_beyond_the_labels(made: Made) -> None:
    images = {id_of(11) if name == FOURTH else name: data for name, data in IMAGES.items()}
    made.archives(images=official(images)).fails(
        f"{AT_DEVKIT}, ILSVRC2012_validation_ground_truth.txt: no label for ILSVRC2012_val_00000011; it lists "
        "10 images: remove that image, or take the labels that belong to it (dataset.devkit)"
    )


AT = "data/raw/val"


def with_folder(made: Made, files: dict[str, bytes], **dataset: Any) -> Made:
    made.archives()
    for name, data in files.items():
        write(made.file("val") / name, data)
    made.params(images=AT, **dataset)
    return made


@pytest.mark.parametrize(
    ("files", "dataset", "message"),
    [
        (
            {f"n01440764/{FOURTH}.JPEG": WHOLE}, {"expect_images": 1},
            f"/n01440764/{FOURTH}.JPEG: {FOURTH} is under n01440764, but {AT_DEVKIT}, "
            "ILSVRC2012_validation_ground_truth.txt has n02119789; move it",
        ),
        (
            {f"n02119789/{FOURTH}_n01440764.JPEG": b"x"}, {},
            f"/n02119789/{FOURTH}_n01440764.JPEG: n01440764 in the name, n02119789 as the folder; expected the same: "
            "move or rename it",
        ),
        (
            {f"{FOURTH}_n99999999.JPEG": b"x"}, {},
            f"/{FOURTH}_n99999999.JPEG: n99999999 is not one of the 1,000 wnids; take the name of the official image",
        ),
        ({"foxes/4.JPEG": b"x"}, {}, f": {NO_IMAGE}"),
        (
            {f"{name}/n02119789/{FOURTH}.JPEG": b"x" for name in ("val", "more")}, {},
            ": validation images in *val/more, *val/val; expected one: give it",
        ),
        (
            {f"n01440764/{FOURTH}.JPEG": b"x", f"n02119789/{FOURTH}.JPEG": b"x"}, {},
            f"/n02119789/{FOURTH}.JPEG: {FOURTH} occurs twice; remove one of the two",
        ),
        ({"fox.JPEG": b"x"}, {}, f"/fox.JPEG: {NO_NAME}"),
        ({"meta.bin": b"x", "ILSVRC2012_img_val.tar": b"x"}, {}, f": {NO_IMAGE}"),
        ({".DS_Store": b"x"}, {}, f": {NO_IMAGE}"),
        ({}, {}, ": missing; put it there or correct params.yaml"),
        (
            {f"{FOURTH}.JPEG": b"x"}, {"expect_images": 1, "devkit": None},
            f": {FOURTH} has no label; expected dataset.devkit, a folder per wnid, or names that end in a wnid",
        ),
    ],
)  # fmt: skip
def test_a_wrong_folder(made: Made, files: dict[str, bytes], dataset: dict[str, Any], message: str) -> None:
    with_folder(made, files, **dataset).fails(f"{AT}{message}")


Odd = Callable[[Path], object]


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name(".pipe"))
    path.symlink_to(".pipe")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**30)


@pytest.mark.parametrize("name", [f"{FOURTH}.JPEG", f"n02119789/{FOURTH}.JPEG"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, f"a named pipe; {REGULAR}"),
        (link_to_a_pipe, f"a named pipe; {REGULAR}"),
        (lambda path: path.symlink_to("/dev/zero"), f"a device; {REGULAR}"),
        (lambda path: path.symlink_to("nowhere"), f"No such file or directory; {THERE}"),
        (huge, f"1,073,741,824 bytes; {LARGE}"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_an_image_at_all(made: Made, name: str, make: Odd, message: str) -> None:
    """Opening a pipe would wait for a writer, for ever."""
    path = with_folder(made, {}).file("val") / name
    path.parent.mkdir(parents=True)
    make(path)
    made.fails(f"{AT}/{name}: {message}")


AT_KAGGLE = f"{AT}/LOC_val_solution.csv"
HEADER = "ImageId,PredictionString\n"
EVERY_IMAGE = "expected one line for each image, starting with image 1"


def kaggle(made: Made, csv: str, digest: str | None = None, images: str = AT) -> None:
    files = {f"ILSVRC/Data/CLS-LOC/val/{FOURTH}.JPEG": b"x", "LOC_val_solution.csv": csv.encode()}
    with_folder(made, files, expect_images=1, devkit=None)
    made.params(images=images)
    if digest:
        with (made.folder / "raw.md5").open("a") as file:
            file.write(f"{digest}  {AT_KAGGLE}\n")


TAKE = ": take Kaggle's list of labels"


@pytest.mark.parametrize(
    ("csv", "message"),
    [
        (
            f"{HEADER}{FOURTH},fox 1 2 3 4\n",
            f", line 2: '{FOURTH},fox 1 2 3 4'; expected ImageId ILSVRC2012_val_00000001 and a PredictionString that "
            "begins with a wnid",
        ),
        (
            f"{HEADER}{id_of(1)},n01440764 1 2 3 4\n{id_of(1)},n02119789 1 2 3 4\n",
            f", line 3: ImageId {id_of(1)!r} a second time, after line 2; expected it once{TAKE}",
        ),
        (
            f"{HEADER}{id_of(1)},n01440764 1 2 3 4\n1.JPEG,n02119789 1 2 3 4\n",
            f", line 3: {id_of(1)} a second time; expected each image once",
        ),
        (f"{HEADER}{FOURTH}\n", f", line 2: 1 cells; expected {HEADER[:-1]}{TAKE}"),
        (
            f'{HEADER}"{FOURTH},n02119789 1 2 3 4\n',
            f", line 2: not CSV (unexpected end of data); expected a table{TAKE}",
        ),
        (f"{FOURTH},n02119789\n", f", line 1: '{FOURTH},n02119789'; expected the header {HEADER[:-1]}{TAKE}"),
        (f"{HEADER}{FOURTH},n02119789 1 2 3 4\n", f": 1 images; {EVERY_IMAGE}"),
        (HEADER, f": 0 images; {EVERY_IMAGE}"),
    ],
)
def test_a_wrong_list_of_kaggle(made: Made, csv: str, message: str) -> None:
    kaggle(made, csv, hashlib.md5(csv.encode()).hexdigest())
    made.fails(f"{AT_KAGGLE}{message}")


@pytest.mark.parametrize(
    ("digest", "images", "message"),
    [
        (None, AT, f"raw.md5: no line for {AT_KAGGLE}; add the output of md5sum {AT_KAGGLE}"),
        (
            "0" * 32, f"{AT}/ILSVRC/Data/CLS-LOC/val",
            f"{AT_KAGGLE}: MD5 {hashlib.md5(b'').hexdigest()}, expected {'0' * 32} as in raw.md5: *",
        ),
    ],
)  # fmt: skip
def test_the_checksum_of_a_list_of_kaggle(made: Made, digest: str | None, images: str, message: str) -> None:
    kaggle(made, "", digest, images)
    made.fails(message)
