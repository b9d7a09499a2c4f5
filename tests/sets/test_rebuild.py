"""`cleanset rebuild`: the same bytes from the receiver's own archive, all of them or nothing."""

import csv
import hashlib
import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import decoder, encoder
from cleanset.sets import publish, rebuild
from tests.evaluation.compare.command import cleanset, says
from tests.sets.conftest import FILES
from tests.sets.test_verify import rewrite
from tests.ten_images import LABELS, TAR, id_of, ten_images
from tests.ten_images import write as put

ONE, TWO, THREE, FOUR, FIVE, SIX = FILES


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def flat(folder: Path) -> Path:
    for name, data in ten_images().items():
        put(folder / f"{name}.JPEG", data)
    return folder


def by_class(folder: Path) -> Path:
    for (name, data), label in zip(ten_images().items(), LABELS, strict=True):
        put(folder / imagenet().keys[label] / f"{name}.JPEG", data)
    return folder


def of_hugging_face(folder: Path) -> Path:
    for (name, data), label in zip(ten_images().items(), LABELS, strict=True):
        put(folder / f"{name}_{imagenet().keys[label]}.JPEG", data)
    return folder


def of_kaggle(folder: Path) -> Path:
    flat(folder / "ILSVRC" / "Data" / "CLS-LOC" / "val")
    return folder


@pytest.mark.parametrize("layout", [flat, by_class, of_hugging_face, of_kaggle])
def test_from_any_layout(layout: Callable[[Path], Path], export_folder: Path, tmp_path: Path) -> None:
    result = rebuild.run(export_folder / "manifest.csv", layout(tmp_path / "mine"), tmp_path / "out")
    assert result.problems == []
    # all but the rejected candidates and a part of the data card, which need the tables of the stages
    found, expected = contents(tmp_path / "out"), contents(export_folder)
    card, lines = found.pop("README.md"), found.pop("checksums.sha256").splitlines(True)
    assert lines[0] == f"{hashlib.sha256(card).hexdigest()}  README.md\n".encode()
    assert lines[1:] == expected["checksums.sha256"].splitlines(True)[1:-1]
    assert found == {
        name: data for name, data in expected.items() if name not in ("README.md", "rejected.csv", "checksums.sha256")
    }


@pytest.mark.slow
def test_from_the_tar_with_nothing_but_a_manifest(edition: Edition, export_folder: Path, tmp_path: Path) -> None:
    """As a person runs it, far from any edition."""
    shutil.copy(export_folder / "manifest.csv", tmp_path / "set.csv")
    tar = str(edition.folder / "data" / "raw" / TAR)
    done = cleanset("rebuild", "--manifest", "set.csv", "--images", tar, "--out", "out", cwd=tmp_path)
    assert says(done) == (0, "out: 6 images; source, file and pixels of each are those of the manifest\n", "")
    assert says(cleanset("verify", "out", "--decode", cwd=tmp_path)) == (
        0,
        "out: 6 of 6 images are good\nImages that no reviewer is known to have judged: 4.\n",
        "",
    )
    again = cleanset("rebuild", "--manifest", "set.csv", "--images", tar, "--out", "out", cwd=tmp_path)
    assert says(again) == (1, "", "error: out: exists already; expected a new or empty folder\n")


def lines(manifest: Path, images: Path, out: Path) -> list[str]:
    """What is printed when it fails; nothing is written."""
    before = contents(out.parent)
    printed = rebuild.render(rebuild.run(manifest, images, out))
    assert contents(out.parent) == before
    assert not out.exists()
    return printed.splitlines()


def test_images_that_are_missing_or_others(export_folder: Path, tmp_path: Path) -> None:
    images = flat(tmp_path / "mine")
    (images / f"{id_of(1)}.JPEG").unlink()
    shutil.copy(images / f"{id_of(2)}.JPEG", images / f"{id_of(10)}.JPEG")
    wanted, other = (hashlib.sha256(ten_images()[id_of(n)]).hexdigest()[:12] for n in (10, 2))
    first = hashlib.sha256(ten_images()[id_of(1)]).hexdigest()[:12]
    assert lines(export_folder, images, tmp_path / "out") == [
        f"missing      ILSVRC2012_val_00000001: nothing; expected {first}...",
        f"source       ILSVRC2012_val_00000010: {other}...; expected {wanted}...",
        f"{tmp_path}/out: not written, for 2 of 6 images do not match",
    ]


def test_the_png_of_another_encoder(copy: Path, tmp_path: Path) -> None:
    """The manifest of a machine whose zlib wrote the same pixels in other bytes."""
    out = io.BytesIO()
    with Image.open(copy / TWO) as image:
        image.save(out, format="PNG", compress_level=1)
    theirs = hashlib.sha256(out.getvalue()).hexdigest()
    rewrite(copy, 3, file_sha256=theirs, encoder="Pillow 11.3.0 with zlib 1.3.1")
    assert lines(copy, flat(tmp_path / "mine"), tmp_path / "out") == [
        f"reencoded    {TWO}: the same pixels, in the bytes of {encoder()}; "
        "expected those of Pillow 11.3.0 with zlib 1.3.1: pip install pillow==11.3.0",
        f"{tmp_path}/out: not written, for 1 of 6 images do not match",
    ]


def test_other_pixels(copy: Path, tmp_path: Path) -> None:
    """A decoder that gives other pixels, or a false manifest: about a whole image, and with another crop box."""
    with (copy / "manifest.csv").open() as file:
        real = [row["pixels_sha256"] for row in csv.DictReader(file)]
    rewrite(copy, 2, pixels_sha256="f" * 64)
    rewrite(copy, 6, left="1")
    first, second, last = lines(copy, flat(tmp_path / "mine"), tmp_path / "out")
    assert first == (f"pixels       {ONE}: {real[0][:12]}... as {decoder()} decodes it; expected ffffffffffff...")
    assert second.startswith(f"pixels       {FIVE}: ")
    assert second.endswith(f"; expected {real[4][:12]}...")
    assert last == f"{tmp_path}/out: not written, for 2 of 6 images do not match"


def test_a_box_beyond_the_image(copy: Path, tmp_path: Path) -> None:
    rewrite(copy, 6, right="60")
    assert lines(copy, flat(tmp_path / "mine"), tmp_path / "out")[0].startswith(
        "undecodable  ILSVRC2012_val_00000010: crop [0, 0, 60, 10] in an image of 50 x 30 pixels; "
    )


def test_a_manifest_that_a_spreadsheet_has_rewritten(copy: Path, tmp_path: Path) -> None:
    manifest = copy / "manifest.csv"
    manifest.write_bytes(manifest.read_bytes().replace(b"\n", b"\r\n"))
    assert lines(manifest, flat(tmp_path / "mine"), tmp_path / "out") == [
        "manifest     manifest.csv: other line ends, quotes or digits; expected the file unchanged",
        f"{tmp_path}/out: not written, because the manifest has been changed",
    ]


def test_no_images(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"^nowhere: missing; expected the validation images, a tar or a folder"):
        rebuild.run(copy, Path("nowhere"), tmp_path / "out")


def test_a_manifest_of_a_header_alone_is_refused(copy: Path, tmp_path: Path) -> None:
    text = (copy / "manifest.csv").read_text()
    (copy / "manifest.csv").write_text(text.split("\n")[0] + "\n")
    result = rebuild.run(copy, flat(tmp_path / "images"), tmp_path / "out")
    assert [str(problem) for problem in result.problems] == [
        "manifest     manifest.csv: no images; expected at least one"
    ]
    assert rebuild.render(result).endswith("/out: not written, because the manifest has no images")
    assert not (tmp_path / "out").exists()


def test_a_tar_in_place_of_a_manifest(edition: Edition, tmp_path: Path) -> None:
    """Whose names and zeros are text, too."""
    publish.run(edition.export("standard"), tmp_path / "out", with_images=False, key=None)
    tar = tmp_path / "out" / "cleanset-standard-1.2.3.tar"
    with pytest.raises(
        CleansetError, match=r"1.2.3.tar: not a text file \(it has the character 0\); expected the folder"
    ):
        rebuild.run(tar, flat(tmp_path / "mine"), tmp_path / "again")
