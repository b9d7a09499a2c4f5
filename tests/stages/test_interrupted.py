"""A full disk and a killed process leave the last outputs or none, and the next run is as any other."""

import fcntl
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from tests.small_disks import small_disk_at
from tests.stages.inputs import EXPORT, NETWORK, select, with_model
from tests.ten_images import Made, id_of, ten_images, write

pytestmark = pytest.mark.slow


class TestFullDisk:
    def test_index_larger_than_files_may_be(self, made: Made) -> None:
        made.archives().fails("data/index.parquet: File too large", "preprocess", most_bytes=1000)

    def test_image_larger_than_files_may_be(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        select(scorable)
        scorable.fails("data/export/standard: File too large", *EXPORT, most_bytes=500)

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        with small_disk_at(tmp_path / "data", kilobytes=40) as disk:
            yield disk

    def test_preprocess(self, small_disk: Path) -> None:
        made = Made(small_disk.parent, raw="raw").archives()
        (small_disk / "filling").write_bytes(bytes(36 * 1024))
        made.fails("data/index.parquet: No space left on device; expected room for it: *")

    def test_export(self, small_disk: Path) -> None:
        made = Made(small_disk.parent, raw="raw").archives()
        made.succeeds("preprocess")
        with_model(made, name=NETWORK)
        select(made)
        made.fails("data/export/standard: No space left on device; expected room for it: *", *EXPORT)


class TestKilled:
    """A lease on an image holds a stage where it opens that image, until it is killed."""

    def folder_edition(self, made: Made) -> Path:
        made.archives()
        for name, data in ten_images().items():
            write(made.file("val") / f"{name}.JPEG", data)
        made.params(images="data/raw/val")
        with_model(made, name=NETWORK)
        return made.file("val")

    def kill_at(self, made: Made, image: Path, stage: tuple[str, ...]) -> None:
        """Kill a stage where it opens an image."""
        with image.open("r+b") as held:
            fcntl.fcntl(held, fcntl.F_SETSIG, signal.SIGURG)  # ignored, unlike the SIGIO that the kernel would send
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            process = made.start(*stage)
            for _ in range(1000):
                if fcntl.fcntl(held, fcntl.F_GETLEASE) != fcntl.F_WRLCK:  # another process waits for the lease
                    break
                time.sleep(0.01)
            assert fcntl.fcntl(held, fcntl.F_GETLEASE) != fcntl.F_WRLCK
            process.kill()
            process.join()
        assert process.exitcode == -9

    def test_preprocess(self, made: Made) -> None:
        images = self.folder_edition(made)
        made.succeeds("preprocess")
        tables = made.outputs()
        assert set(tables) == {"data/index.parquet", "data/locations.parquet"}
        for name in tables:
            (made.folder / name).unlink()
        self.kill_at(made, images / f"{id_of(10)}.JPEG", ("preprocess",))
        assert made.outputs() == {}
        made.succeeds("preprocess")
        assert made.outputs() == tables

    @pytest.mark.long
    def test_export(self, made: Made) -> None:
        images = self.folder_edition(made)
        made.succeeds("preprocess")
        select(made)
        made.succeeds(*EXPORT)
        whole = made.outputs()
        shutil.rmtree(made.folder / "data/export")

        self.kill_at(made, images / f"{id_of(9)}.JPEG", EXPORT)
        assert not (made.folder / "data/export/standard").exists()
        (workspace,) = (made.folder / "data/export").iterdir()
        assert (workspace / f"new/n01440764/{id_of(1)}.JPEG").exists()
        theirs = made.folder / "data/export/standard.partial/mine"  # not of this program: nobody else may remove it
        write(theirs, b"mine")
        theirs.with_name("lock").touch()

        made.succeeds("preprocess")  # any stage removes what a killed one has left
        assert not workspace.exists()
        made.succeeds(*EXPORT)
        assert theirs.read_bytes() == b"mine"
        shutil.rmtree(theirs.parent)
        assert made.outputs() == whole
        assert {path for path in whole if "export" in path} == {
            f"data/export/standard/n01440764/{id_of(1)}.JPEG",
            f"data/export/standard/n02119789/{id_of(4)}.png",
            f"data/export/standard/{imagenet().keys[7]}/{id_of(9)}.JPEG",
            *(f"data/export/standard/{name}" for name in ("README.md", "checksums.sha256", "croissant.json")),
            *(f"data/export/standard/{name}.csv" for name in ("manifest", "metadata", "rejected")),
        }

    @pytest.mark.long
    def test_a_failed_export_leaves_the_last_one(self, made: Made) -> None:
        images = self.folder_edition(made)
        made.succeeds("preprocess")
        select(made)
        made.succeeds(*EXPORT)
        (images / f"{id_of(9)}.JPEG").unlink()
        (exported,) = (made.folder / "data/export/standard").glob(f"*/{id_of(9)}.JPEG")
        exported.write_bytes(b"changed")
        made.fails(f"data/raw/val: {id_of(9)} is missing; *", *EXPORT)
