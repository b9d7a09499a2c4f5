"""`cleanset pack`: shards that the library webdataset reads, always the same bytes."""

import hashlib
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import webdataset

from cleanset.errors import CleansetError
from cleanset.sets.archive import pack
from tests.evaluation.compare.command import cleanset, says
from tests.sets.conftest import FILES
from tests.sets.test_verify import rows

pytestmark = pytest.mark.slow

IDS = [f"ILSVRC2012_val_{number:08d}" for number in (1, 4, 6, 8, 9, 10)]


def test_webdataset_reads_all_of_it(export_folder: Path, tmp_path: Path) -> None:
    done = cleanset("pack", str(export_folder), "--out", "shards", "--shard-size", "4", cwd=tmp_path)
    assert says(done) == (0, "shards: 6 images in shards: 2\n", "")
    shards = [str(path) for path in sorted((tmp_path / "shards").iterdir())]
    assert [Path(shard).name for shard in shards] == ["standard-000000.tar", "standard-000001.tar"]
    read = (
        webdataset.WebDataset(shards, shardshuffle=False).decode("rgb8").to_tuple("__key__", "jpg;png", "cls", "json")
    )
    found = list(read)
    expected = {row["image_id"]: row for row in rows(export_folder)}
    assert [key for key, *_ in found] == IDS
    for key, pixels, label, record in found:
        row = expected[key]
        assert hashlib.sha256(np.asarray(pixels).tobytes()).hexdigest() == row["pixels_sha256"]
        assert label == int(row["class_index"])
        assert [record[name] for name in ("wnid", "class_name", "file", "tier")] == [
            row[name] for name in ("wnid", "class_name", "file", "tier")
        ]
        assert record["confidence"] == float(row["confidence"])
        assert record["crop"] == (
            [int(row[edge]) for edge in ("left", "top", "right", "bottom")] if row["left"] else None
        )


def test_members(export_folder: Path, tmp_path: Path) -> None:
    pack(export_folder, tmp_path / "shards", 1000)
    with tarfile.open(tmp_path / "shards" / "standard-000000.tar") as tar:
        members = tar.getmembers()
        first = [tar.extractfile(member).read() for member in members[:3]]  # type: ignore[union-attr]
    kinds = ["jpg", "jpg", "jpg", "png", "jpg", "png"]
    assert [member.name for member in members] == [
        f"{name}.{suffix}" for name, kind in zip(IDS, kinds, strict=True) for suffix in (kind, "cls", "json")
    ]
    about = {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode, m.type) for m in members}
    assert about == {(315_576_000, 0, 0, "", "", 0o644, tarfile.REGTYPE)}
    assert first[0] == (export_folder / FILES[0]).read_bytes()
    assert first[1] == b"0"
    assert json.loads(first[2])["crop"] is None


def test_the_same_bytes_again(copy: Path, export_folder: Path, tmp_path: Path) -> None:
    """Whenever the files were written, whoever may read them."""
    pack(export_folder, tmp_path / "one", 4)
    for file in FILES:
        os.utime(copy / file, (1, 1))
        (copy / file).chmod(0o600)
    pack(copy, tmp_path / "two", 4)
    with pytest.raises(CleansetError, match="exists already; expected a new or empty folder"):
        pack(copy, tmp_path / "two", 4)
    assert [path.read_bytes() for path in sorted((tmp_path / "one").iterdir())] == [
        path.read_bytes() for path in sorted((tmp_path / "two").iterdir())
    ]


def test_only_what_the_manifest_says_is_packed(copy: Path, tmp_path: Path) -> None:
    (copy / FILES[2]).write_bytes(b"other")
    with pytest.raises(
        CleansetError, match=rf"{FILES[2]}: SHA-256 [0-9a-f]+, expected [0-9a-f]+ as in the manifest; see"
    ):
        pack(copy, tmp_path / "shards", 4)
    (copy / FILES[2]).unlink()
    with pytest.raises(CleansetError, match=rf"{FILES[2]}: missing; see cleanset verify {copy}"):
        pack(copy, tmp_path / "shards", 4)
    assert not (tmp_path / "shards").exists()


def test_a_manifest_of_a_header_alone_is_refused(copy: Path, tmp_path: Path) -> None:
    text = (copy / "manifest.csv").read_text()
    (copy / "manifest.csv").write_text(text.split("\n")[0] + "\n")
    (copy / "checksums.sha256").unlink()
    with pytest.raises(CleansetError, match=r"manifest\.csv: no images; expected at least one; see cleanset verify"):
        pack(copy, tmp_path / "shards", 1000)
    assert not (tmp_path / "shards").exists()
