"""Whatever happens to a remote or on the way, a set is whole or is not there; then another pull mends it."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from checkouts import Checkout
from remotes.conftest import Cloning
from remotes.exports import files, manifest_holds
from remotes.servers import Remote, breaking, sshd

PULL = ("dvc", "pull", "export@standard")
SET = Path("data", "export", "standard")
PICTURE = "n02165456/ILSVRC2012_val_00000149.JPEG"
NOT_DELIVERED = "Checkout failed for following targets:\ndata/export/standard\n"


@dataclass(frozen=True)
class Objects:
    """The objects of a set on a remote."""

    folder: Path
    listing: Path
    picture: Path

    @property
    def sum_of_picture(self) -> str:
        return self.picture.parent.name + self.picture.name


@pytest.fixture
def objects(built: Checkout, pushed: Path) -> Iterator[Objects]:
    """Where the list of the set's files and one of its pictures lie; they are put back as they were."""
    folder = pushed / "dvc" / "files" / "md5"
    lock = yaml.safe_load((built.folder / "dvc.lock").read_text())
    (md5,) = (out["md5"] for out in lock["stages"]["export@standard"]["outs"])
    listing = folder / md5[:2] / md5[2:]
    (md5,) = (entry["md5"] for entry in json.loads(listing.read_text()) if entry["relpath"] == PICTURE)
    found = Objects(folder, listing, folder / md5[:2] / md5[2:])
    kept = {path: path.read_bytes() for path in (found.listing, found.picture)}
    for path in kept:
        path.chmod(0o644)
    yield found
    for path, data in kept.items():
        path.write_bytes(data)


def whole(checkout: Checkout, built: Checkout) -> bool:
    """Whether the set is there, as its manifest and the first clone have it."""
    folder = checkout.folder / SET
    return manifest_holds(folder) and files(folder) == files(built.folder / SET)


@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
def test_a_damaged_object(damage: str, web: Remote, objects: Objects, clone: Cloning, built: Checkout) -> None:
    """The set is named and not delivered, however often it is tried, and mended when the object is."""
    good = objects.picture.read_bytes()
    if damage == "missing":
        objects.picture.unlink()
    else:
        objects.picture.write_bytes(good[:-1] if damage == "truncated" else good[:-1] + bytes([good[-1] ^ 1]))
    checkout = clone(web)
    for _ in range(2):
        done = checkout.run(*PULL, check=False)
        assert done.returncode == 1
        assert (objects.sum_of_picture if damage == "missing" else NOT_DELIVERED) in done.stderr
        assert not (checkout.folder / SET).exists()
    objects.picture.write_bytes(good)
    fetched = checkout.run(*PULL).stdout
    assert ("2 files fetched" if damage == "missing" else "1 file fetched") in fetched
    assert whole(checkout, built)


def test_a_damaged_list_of_files(web: Remote, objects: Objects, clone: Cloning, built: Checkout) -> None:
    """DVC delivers a wrong set then, as the README says; its status tells, and another pull mends it."""
    good = objects.listing.read_bytes()
    objects.listing.write_bytes(good.replace(b"n02165456/", b"n02165457/"))
    checkout = clone(web)
    checkout.run(*PULL)
    assert not manifest_holds(checkout.folder / SET)
    assert "not in cache:       data/export/standard" in checkout.run("dvc", "status", "export@standard").stdout
    objects.listing.write_bytes(good)
    checkout.run(*PULL)
    assert whole(checkout, built)


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
    checkout.run("dvc", "remote", "modify", "--local", "origin", "url", web.url)
    checkout.run(*PULL)
    assert whole(checkout, built)


@pytest.mark.parametrize(("full", "said"), [(".dvc/cache", "No space left on device"), ("data", NOT_DELIVERED)])
def test_a_full_disk(full: str, said: str, web: Remote, clone: Cloning, built: Checkout) -> None:
    checkout = clone(web)
    disk = checkout.folder / full
    disk.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk))
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        done = checkout.run(*PULL, check=False)
        assert done.returncode == 1
        assert said in done.stderr
        assert not (checkout.folder / SET).exists()
        subprocess.run(("mount", "-o", "remount,size=30m", str(disk)), check=True)
        checkout.run(*PULL)
        assert whole(checkout, built)
    finally:
        subprocess.run(("umount", "--lazy", str(disk)), check=True)


def test_what_a_killed_pull_left(web: Remote, clone: Cloning, built: Checkout) -> None:
    """The next pull names what is in its way; with --force it removes it."""
    checkout = clone(web)
    checkout.run(*PULL)
    left = checkout.folder / SET / "n01443537" / ".half-a-picture.tmp"
    left.write_bytes(b"half")
    shutil.rmtree(checkout.folder / SET / "n02165456")
    shutil.rmtree(checkout.folder / ".dvc" / "tmp")
    done = checkout.run(*PULL, check=False)
    assert done.returncode == 1
    assert f"Use `--force` to force.\n{left}" in done.stderr
    checkout.run(*PULL, "--force")
    assert whole(checkout, built)


def test_a_push_mends_the_remote(
    web: Remote, objects: Objects, clone: Cloning, built: Checkout, pushed: Path, tmp_path: Path
) -> None:
    """One takes the damaged object away, the next brings it again."""
    good = objects.picture.read_bytes()
    objects.picture.write_bytes(good[:-1])
    with sshd(pushed / "dvc", tmp_path / "ssh") as remote:
        checkout = clone(remote)
        checkout.run("dvc", "cache", "dir", "--local", str(built.folder / ".dvc" / "cache"))
        checkout.run("dvc", "push", "export@standard")
        assert not objects.picture.exists()
        checkout.run("dvc", "push", "export@standard")
    assert objects.picture.read_bytes() == good
    objects.picture.chmod(0o644)
