"""What is kept on disk: found again by every process, and left out where the disk or the home is missing."""

import multiprocessing
import os
import shutil
from pathlib import Path

import pytest
from pydantic import TypeAdapter

import cleanset
from cleanset.plumbing.kept_files import NOTHING_KEPT, KeptFiles, kept_files
from cleanset.report import thumbnails
from cleanset.review import file_format
from cleanset.review.hints import hints

PAIRS = TypeAdapter(list[tuple[str, int]])


def test_a_content_is_found_again_with_its_digest_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "kept"
    kept = KeptFiles(folder)
    assert kept.read("a") is None
    kept.keep("a", b"abc")
    assert KeptFiles(folder).read("a") == b"abc"
    digest = b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("a", digest + b"abc")]


@pytest.mark.parametrize("damage", ["cut", "longer", "changed", "empty", "a folder"])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, damage: str) -> None:
    kept = KeptFiles(tmp_path)
    kept.keep("a", b"abc")
    path = tmp_path / "a"
    data = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        damaged = {"cut": data[:-1], "longer": data + b"d", "changed": data.replace(b"abc", b"abd"), "empty": b""}
        path.write_bytes(damaged[damage])
    assert kept.read("a") is None
    kept.keep("a", b"abc")
    assert kept.read("a") == (None if damage == "a folder" else b"abc")


def test_values(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path)
    assert kept.read_value("a", PAIRS) is None
    kept.keep_value("a", PAIRS, [("日", 1)])
    assert kept.read_value("a", PAIRS) == [("日", 1)]
    for other in (b"", b"[", b"{}", b"null", b'[["a", "b"]]', b"\xff"):
        kept.keep("a", other)
        assert kept.read_value("a", PAIRS) is None


def test_without_a_folder_that_can_be_written(tmp_path: Path) -> None:
    """A file is where the folder would be: root may write anywhere else."""
    (tmp_path / "file").write_text("")
    for kept in (NOTHING_KEPT, KeptFiles(tmp_path / "file"), KeptFiles(tmp_path / "file" / "below")):
        kept.keep("a", b"abc")
        assert kept.read("a") is None


CONTENT = b"abc" * 10_000


def keep_often(folder: Path) -> None:
    for _ in range(100):
        KeptFiles(folder).keep("a", CONTENT)


@pytest.mark.long
def test_several_processes_write_one_file(tmp_path: Path) -> None:
    processes = [multiprocessing.get_context("fork").Process(target=keep_often, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        assert KeptFiles(tmp_path).read("a") in (None, CONTENT)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert KeptFiles(tmp_path).read("a") == CONTENT


@pytest.mark.parametrize("code", [thumbnails.CODE, file_format.CODE, hints.CODE])
def test_other_code_and_other_libraries_have_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    package = tmp_path / "package"
    for name in code:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(cleanset.__file__).parent / name, package / name)
    before = kept_files("subject", code, "1", package)
    assert before.folder is not None
    assert before.folder.parent == tmp_path / "cache" / "subject"
    assert kept_files("subject", code, "1") == before
    for name in code:
        with (package / name).open("a") as file:
            file.write("\n")
        assert kept_files("subject", code, "1", package) != before
        before = kept_files("subject", code, "1", package)
    assert kept_files("subject", code, "2", package) != before


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a uid that passwd lacks."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("CLEANSET_CACHE", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_123)
    assert kept_files("subject", (), "") == NOTHING_KEPT
