"""Disks that are full or cannot be written: one line that names the folder of the user's, and what to do."""

import subprocess
from pathlib import Path

import pytest

import cleanset
from cleanset.errors import CleansetError
from tests.checkouts import files
from tests.sets.conftest import FILES
from tests.sets.fetching.publisher import Publisher, Web
from tests.sets.fetching.test_fetch import fetch, refused
from tests.small_disks import small_disk_at

pytestmark = [pytest.mark.server, pytest.mark.slow]

TO_DO = "expected a folder for sets, with room, that can be written: free some, or set CLEANSET_CACHE to another folder"


@pytest.fixture
def commit(publisher: Publisher, server: Web, export: Path) -> str:
    return publisher.push(export, server.url)


def read_only(disk: Path) -> None:
    subprocess.run(("mount", "-o", "remount,ro", str(disk)), check=True)


@pytest.mark.parametrize("kilobytes", [4, 12, 16, 20, 28, 40, 64, 80])
def test_a_full_cache(
    publisher: Publisher, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kilobytes: int
) -> None:
    """While git reads the repository, and while the files of the set arrive; what has arrived is kept."""
    with small_disk_at(tmp_path / "disk", kilobytes) as disk:
        monkeypatch.setenv("CLEANSET_CACHE", str(disk / "cache"))
        with pytest.raises(CleansetError) as raised:
            cleanset.load("standard", publisher.url)
        assert str(raised.value) == f"{disk}/cache: No space left on device; {TO_DO}"
        assert not list((disk / "cache").glob("*-*/standard-*"))
        subprocess.run(("mount", "-o", "remount,size=2m", str(disk)), check=True)
        assert len(cleanset.load("standard", publisher.url)) == 6


def test_a_full_cache_by_command(
    publisher: Publisher, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk_at(tmp_path / "disk", 40) as disk:
        monkeypatch.setenv("CLEANSET_CACHE", str(disk))
        assert refused(publisher.url, "standard") == f"{disk}: No space left on device; {TO_DO}"


@pytest.mark.parametrize("kilobytes", [4, 16, 40])
def test_no_room_for_the_copy(publisher: Publisher, commit: str, tmp_path: Path, kilobytes: int) -> None:
    with small_disk_at(tmp_path / "disk", kilobytes) as disk:
        assert refused(publisher.url, "standard", "--out", str(disk / "out")) == (
            f"{disk}/out: No space left on device; expected room for it: free some space, or name a folder on another "
            "disk"
        )
        assert list(disk.iterdir()) == []


@pytest.mark.long
def test_a_cache_that_can_only_be_read(
    publisher: Publisher, commit: str, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves what it has, and says that it takes nothing."""
    with small_disk_at(tmp_path / "disk", 2_000) as disk:
        monkeypatch.setenv("CLEANSET_CACHE", str(disk / "cache"))
        assert fetch(publisher.url, "standard").exit_code == 0
        read_only(disk)
        assert fetch(publisher.url, "standard", "--out", str(tmp_path / "out")).exit_code == 0
        assert files(tmp_path / "out") == files(export)
        assert cleanset.table("standard", publisher.url)["file"].tolist() == FILES
        for arguments in ({"update": True}, {"force": True}, {"rev": "main"}):
            with pytest.raises(CleansetError) as raised:
                cleanset.load("standard", publisher.url, **arguments)
            assert str(raised.value) == f"{disk}/cache: Read-only file system; {TO_DO}"
        monkeypatch.setenv("CLEANSET_CACHE", str(disk / "new" / "cache"))
        assert refused(publisher.url, "standard") == f"{disk}/new/cache: Read-only file system; {TO_DO}"
        monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
        assert refused(publisher.url, "standard", "--out", str(disk / "out")) == (
            f"{disk}/out: Read-only file system; expected a writable folder: choose another one"
        )


def test_a_cache_that_is_a_file(
    publisher: Publisher, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for cache, why in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "cache", "Not a directory")):
        monkeypatch.setenv("CLEANSET_CACHE", str(cache))
        with pytest.raises(CleansetError) as raised:
            cleanset.table("standard", publisher.url)
        assert str(raised.value) == f"{cache}: {why}; {TO_DO}"
