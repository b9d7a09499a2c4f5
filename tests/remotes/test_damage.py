"""Whatever happens to a remote or on the way, a set is whole or is not there; then another pull mends it."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.checkouts import Checkout, files
from tests.documents import block, shell
from tests.remotes.conftest import Cloning, lead
from tests.remotes.exports import manifest_holds
from tests.remotes.servers import Remote, breaking
from tests.small_disks import small_disk_at

PULL = ("dvc", "pull", "export@standard")
SET = Path("data", "export", "standard")
IMAGE = "n02165456/ILSVRC2012_val_00000149.JPEG"
NOT_DELIVERED = "Checkout failed for following targets:\ndata/export/standard\n"


@dataclass(frozen=True)
class Objects:
    """The objects of a set on a remote."""

    folder: Path
    listing: Path
    image: Path

    @property
    def sum_of_image(self) -> str:
        return self.image.parent.name + self.image.name


@pytest.fixture
def objects(built: Checkout, pushed: Path) -> Iterator[Objects]:
    """Where the list of the set's files and one of its images are; they are restored."""
    folder = pushed / "dvc" / "files" / "md5"
    lock = yaml.safe_load((built.folder / "dvc.lock").read_text())
    (md5,) = (out["md5"] for out in lock["stages"]["export@standard"]["outs"])
    listing = folder / md5[:2] / md5[2:]
    (md5,) = (entry["md5"] for entry in json.loads(listing.read_text()) if entry["relpath"] == IMAGE)
    found = Objects(folder, listing, folder / md5[:2] / md5[2:])
    kept = {path: path.read_bytes() for path in (found.listing, found.image)}
    for path in kept:
        path.chmod(0o644)
    yield found
    for path, data in kept.items():
        path.write_bytes(data)


def whole(checkout: Checkout, built: Checkout) -> bool:
    """Whether the set is there, as its manifest and the first clone have it."""
    folder = checkout.folder / SET
    return manifest_holds(folder) and files(folder) == files(built.folder / SET)


@pytest.mark.exhaustive
def test_damaged_objects(web: Remote, objects: Objects, clone: Cloning, built: Checkout) -> None:
    """With one flipped bit, or an image cut short or missing, the set is reported and never delivered."""
    good = objects.image.read_bytes()
    checkout = clone(web)
    for damaged in (good[:-1] + bytes([good[-1] ^ 1]), good[:-1], None):
        if damaged is None:
            objects.image.unlink()
        else:
            objects.image.write_bytes(damaged)
        done = checkout.run(*PULL, check=False)
        assert done.returncode == 1
        assert (NOT_DELIVERED if damaged else f"failed to transfer '{objects.sum_of_image}'") in done.stderr
        assert not (checkout.folder / SET).exists()
    objects.image.write_bytes(good)
    checkout.run(*PULL)
    assert whole(checkout, built)


@pytest.mark.exhaustive
def test_a_damaged_list_of_files_and_a_killed_pull(
    web: Remote, objects: Objects, clone: Cloning, built: Checkout
) -> None:
    """DVC delivers a wrong set then, as docs/publish.md says; its status tells, and another pull mends it.

    The next command reports what a killed pull left, and removes it with --force.
    """
    good = objects.listing.read_bytes()
    objects.listing.write_bytes(good.replace(b"n02165456/", b"n02165457/"))
    checkout = clone(web)
    checkout.run(*PULL)
    assert not manifest_holds(checkout.folder / SET)
    assert "not in cache:       data/export/standard" in checkout.run("dvc", "status", "export@standard").stdout
    objects.listing.write_bytes(good)
    checkout.run(*PULL)
    assert whole(checkout, built)
    left = checkout.folder / SET / "n01443537" / ".half-a-image.tmp"
    left.write_bytes(b"half")
    shutil.rmtree(checkout.folder / SET / "n02165456")
    shutil.rmtree(checkout.folder / ".dvc" / "tmp")
    done = checkout.run(*PULL, check=False)
    assert done.returncode == 1
    assert f"Use `--force` to force.\n{left}" in done.stderr
    checkout.run(*PULL, "--force")
    assert whole(checkout, built)


@pytest.mark.exhaustive
def test_a_connection_that_breaks(web: Remote, clone: Cloning, built: Checkout) -> None:
    """Every connection ends after 30,000 bytes."""
    address = urlsplit(web.url)
    assert address.port is not None
    with breaking(address.port, 30_000) as port:
        checkout = clone(Remote(f"https://localhost:{port}/dvc", web.variables))
        done = checkout.run(*PULL, check=False)
    assert done.returncode == 1
    assert "Response payload is not completed" in done.stderr
    assert not (checkout.folder / SET).exists()
    lead(checkout, web.url)
    checkout.run(*PULL)
    assert whole(checkout, built)


@pytest.fixture
def small_disks(web: Remote, clone: Cloning) -> Iterator[tuple[Checkout, list[Path]]]:
    """A clone whose cache and data are on disks of 300 KB."""
    checkout = clone(web)
    with (
        small_disk_at(checkout.folder / ".dvc" / "cache", kilobytes=300) as cache,
        small_disk_at(checkout.folder / "data", kilobytes=300) as data,
    ):
        yield checkout, [cache, data]


@pytest.mark.long
def test_a_full_disk(small_disks: tuple[Checkout, list[Path]], built: Checkout) -> None:
    """First for the cache, then for the set."""
    checkout, disks = small_disks
    for disk, message in zip(disks, ("No space left on device", NOT_DELIVERED), strict=True):
        done = checkout.run(*PULL, check=False)
        assert done.returncode == 1
        assert message in done.stderr
        assert not (checkout.folder / SET).exists()
        subprocess.run(("mount", "-o", "remount,size=30m", str(disk)), check=True)
    checkout.run(*PULL)
    assert whole(checkout, built)


@pytest.mark.long
def test_mending_a_remote(
    repository: Path, web: Remote, objects: Objects, clone: Cloning, built: Checkout, pushed: Path
) -> None:
    """The lines of docs/publish.md remove what is damaged; the next push brings it and what is missing."""
    good, listing = objects.image.read_bytes(), objects.listing.read_bytes()
    other = objects.folder / "00"
    missing = next(path for path in (other if other.is_dir() else objects.folder).rglob("*") if path.is_file())
    lost = missing.read_bytes()
    missing.unlink()
    objects.image.write_bytes(good[:-1])
    objects.listing.write_bytes(listing + b" ")
    checkout = clone(web)
    lead(checkout, str(pushed / "dvc"), cache=built.folder / ".dvc" / "cache")
    done = shell(checkout, block(repository, 'cd "$SERVED/files/md5"'), SERVED=str(pushed / "dvc"))
    assert sorted(re.findall("removed '(.*)'", done.stdout)) == sorted(
        f"./{path.relative_to(objects.folder)}" for path in (objects.image, objects.listing)
    )
    checkout.run("dvc", "push")
    found = [path.read_bytes() for path in (missing, objects.image, objects.listing)]
    assert found == [lost, good, listing]
    for path in (objects.image, objects.listing):
        path.chmod(0o644)
