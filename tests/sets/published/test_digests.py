"""The table of digests: its bytes, and tables that are refused."""

import hashlib
import tarfile
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.sets.published import source_images as digests
from cleanset.sets.published.source_images import read_digests
from tests.evaluation.compare.command import cleanset, says
from tests.sets.published.drawn_archive import draw_archive, drawn_jpeg

A, B = "ILSVRC2012_val_00000007", "ILSVRC2012_val_00012345"
OFFICIAL = "29b22e2961454d5413ddabcf34fc5622"


def table(archive: Path) -> str:
    """The table of the two images, by hand."""
    data = archive.read_bytes()
    rows = [f"archive,{len(data)},md5:{hashlib.md5(data).hexdigest()}"]
    for image_id, jpeg in ((A, drawn_jpeg(7)), (B, drawn_jpeg(12345))):
        rows.append(f"{image_id},{len(jpeg)},{hashlib.sha256(jpeg).hexdigest()}")
    return "".join(f"{row}\n" for row in ("image_id,size,sha256", *rows))


def test_what_the_command_writes(tmp_path: Path) -> None:
    archive = draw_archive(tmp_path / "val.tar", [B, A])
    done = cleanset("digests", "--images", "val.tar", "--out", "digests.csv", cwd=tmp_path)
    text = (tmp_path / "digests.csv").read_text()
    assert text == table(archive)
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    assert says(done) == (
        0,
        f"digests.csv: 2 of 50,000 images, SHA-256 of the table {hashlib.sha256(text.encode()).hexdigest()}\n"
        f"made from an archive with MD5 {md5}: not ImageNet's official archive, whose MD5 is {OFFICIAL}\n",
        "",
    )
    found = read_digests(tmp_path / "digests.csv")
    assert found.archive_md5 == md5
    assert list(found.images) == [A, B]
    found.check(A, drawn_jpeg(7), "val")
    with pytest.raises(CleansetError, match=rf"val: {A} has \d+ bytes and SHA-256 .*; expected \d+ bytes and"):
        found.check(A, drawn_jpeg(8), "val")
    with pytest.raises(CleansetError, match="val: ILSVRC2012_val_00000001 is not in the table of digests; expected"):
        found.check("ILSVRC2012_val_00000001", b"", "val")
    done = cleanset("digests", "--images", "val.tar", "--out", "digests.csv", cwd=tmp_path)
    message = "error: digests.csv: exists already; expected a new file: name another, or remove it\n"
    assert says(done) == (1, "", message)


def test_images_that_have_no_table(tmp_path: Path) -> None:
    draw_archive(tmp_path / "val.tar", [A])
    with pytest.raises(CleansetError, match="a folder, which no MD5 fixes; expected ILSVRC2012"):
        digests.run(tmp_path, tmp_path / "digests.csv")
    with pytest.raises(CleansetError, match=r"none\.tar: missing; expected ImageNet's validation images"):
        digests.run(tmp_path / "none.tar", tmp_path / "digests.csv")
    with tarfile.open(tmp_path / "png.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("ILSVRC2012_val_00000001.png"))
    with pytest.raises(CleansetError, match="not the name of a validation image"):
        digests.run(tmp_path / "png.tar", tmp_path / "digests.csv")
    assert not list(tmp_path.glob("*digests*"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("image_id,size", "id,size", "line 1: 'id,size,sha256'; expected the header image_id,size,sha256"),
        ("archive,", "tar,", "line 2: 'tar,.*; expected archive, its size and md5:..."),
        ("md5:", "", "line 2: .*; expected archive, its size"),
        (A, B, f"line 4: '{B},.*; expected sorted image ids, each with its size and SHA-256"),
        (A, "../../etc/passwd", "line 3: .*; expected sorted image ids"),
        (A, "ILSVRC2012_val_00000000", "line 3: .*; expected sorted image ids"),
        (f"{A},", f"{A},0", "line 3: .*; expected sorted image ids"),
        (f"{A},", f"{A},,", "line 3: 4 cells"),
    ],
)
def test_tables_that_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = table(draw_archive(tmp_path / "val.tar", [A, B]))
    path = tmp_path / "digests.csv"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(CleansetError, match=f"digests.csv, {message}"):
        read_digests(path)
    path.write_text("".join(text.splitlines(keepends=True)[:2]))
    with pytest.raises(CleansetError, match=r"digests\.csv: no images; expected a table that cleanset digests"):
        read_digests(path)
