"""A disk that is too small: one line that names the output, and nothing left."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from tests.evaluation.compare.command import cleanset, says
from tests.small_disks import small_disk_at
from tests.ten_images import TAR, Made

ROOM = "expected room for it: free some space, or name a folder on another disk"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 24 kB."""
    with small_disk_at(tmp_path / "disk", kilobytes=24) as disk:
        yield disk


@pytest.fixture
def small_files(edition: Edition, tmp_path: Path) -> Path:
    """A copy of the edition, to be run with a limit on the size of files."""
    return Path(shutil.copytree(edition.folder, tmp_path / "edition"))


def commands(edition: Edition) -> dict[str, tuple[str, ...]]:
    """What writes a folder, without the folder."""
    folder, export = edition.folder, edition.export("standard")
    return {
        "arrays": ("arrays", "--edition", str(folder), "--preprocessing", "Res256Crop224"),
        "rebuild": ("rebuild", "--manifest", str(export), "--images", str(folder / "data" / "raw" / TAR), "--out"),
        "pack": ("pack", str(export), "--out"),
        "publish": ("publish", str(export)),
        "with images": ("publish", str(export), "--with-images"),
    }


@pytest.mark.parametrize("command", ["arrays", "rebuild", "pack", "publish", "with images"])
def test_no_space_left(edition: Edition, small_disk: Path, command: str) -> None:
    (small_disk / "filling").write_bytes(bytes(12 * 1024))
    done = cleanset(*commands(edition)[command], "out", cwd=small_disk)
    assert says(done) == (1, "", f"error: {small_disk / 'out'}: No space left on device; {ROOM}\n")
    assert [path.name for path in small_disk.iterdir()] == ["filling"]


@pytest.mark.parametrize("most_bytes", [400, 3_000])
@pytest.mark.parametrize("command", ["arrays", "rebuild", "pack", "publish"])
def test_files_that_may_not_grow(edition: Edition, small_files: Path, command: str, most_bytes: int) -> None:
    """Whichever of its files is the first that is too large."""
    code, stderr = Made(small_files).run(*commands(edition)[command], "out", most_bytes=most_bytes)
    assert (code, stderr) == (1, f"error: {small_files.resolve() / 'out'}: File too large\n")
    assert not list(small_files.glob("*out*"))


PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np, pandas as pd
from cleanset.sets.arrays import NetworkInputs, write_arrays
from cleanset.plumbing.files import new_folder
from cleanset.images.preprocessing import RES256CROP224
names = [f"ILSVRC2012_val_{number:08d}" for number in range(20_000)]
labels = pd.Series([np.array([1], dtype=np.int16)] * len(names), dtype=object)
index = pd.DataFrame({"image_id": names, "label": 1, "real_classes": labels})
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
try:
    with new_folder(Path("out")) as folder:
        write_arrays(folder, index, lambda name: b"", NetworkInputs(RES256CROP224), role=None, classes=1000)
except OSError as error:
    print(error.strerror, error.filename)
"""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", [100_000, 1_000_000])
def test_long_arrays_of_labels_and_ids(tmp_path: Path, most_bytes: int) -> None:
    """NumPy's own way to write them forgets why it could not."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(most_bytes)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"File too large {tmp_path / 'out'}\n"
    assert list(tmp_path.iterdir()) == []
