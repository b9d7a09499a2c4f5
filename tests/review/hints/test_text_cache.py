"""Lines of text on disk: found again, whoever wrote them and whatever was left there."""

import multiprocessing
import os
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.review.hints import text_cache
from cleanset.review.hints.background import BackgroundHints, HintCaches
from cleanset.review.hints.text import TextLine
from cleanset.review.hints.text_cache import TextCache, usual_text_cache

LINES = (TextLine("© stock “1”", 0.875, (300, 270, 390, 290), 0.0), TextLine("日本", 1.0, (0, 0, 9, 9), 0.5))
DIGEST = "3f" * 32


def test_lines_are_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    cache = TextCache(folder)
    assert cache.lines(DIGEST) is None
    cache.keep(DIGEST, LINES)
    cache.keep("ab" * 32, ())
    assert TextCache(folder).lines(DIGEST) == LINES
    assert TextCache(folder).lines("ab" * 32) == ()
    assert sorted(path.name for path in folder.iterdir()) == sorted([f"{DIGEST}.json", f"{'ab' * 32}.json"])


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b'[{"text": "a"}]', b"\xff", b"null"])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    cache = TextCache(tmp_path)
    (tmp_path / f"{DIGEST}.json").write_bytes(content)
    assert cache.lines(DIGEST) is None
    cache.keep(DIGEST, LINES)
    assert cache.lines(DIGEST) == LINES


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A file stands where the folder would be: root may write anywhere else."""
    (tmp_path / "cache").write_text("")
    cache = TextCache(tmp_path / "cache" / "hints")
    cache.keep(DIGEST, LINES)
    assert cache.lines(DIGEST) is None
    (tmp_path / f"{DIGEST}.json").mkdir()
    TextCache(tmp_path).keep(DIGEST, LINES)  # a folder in the way is replaced, or left


def test_what_a_killed_server_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / f".{DIGEST}.json.abcd1234.partial"
    left.mkdir()
    (left / "lock").touch()
    TextCache(tmp_path).keep(DIGEST, LINES)
    assert [path.name for path in tmp_path.iterdir()] == [f"{DIGEST}.json"]


def keep_often(folder: Path) -> None:
    cache = TextCache(folder)
    for _ in range(100):
        cache.keep(DIGEST, LINES)


@pytest.mark.long
def test_several_processes_write_one_file(tmp_path: Path) -> None:
    TextCache(tmp_path).keep(DIGEST, LINES)
    processes = [multiprocessing.get_context("fork").Process(target=keep_often, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        assert TextCache(tmp_path).lines(DIGEST) == LINES
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == [f"{DIGEST}.json"]


def test_the_usual_folder_names_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path))
    monkeypatch.setattr(text_cache, "can_read_text", lambda: True)
    versions = {"rapidocr": "3.10.0", "onnxruntime": "1.32.0"}
    monkeypatch.setattr(text_cache, "installed_version", versions.get)
    cache = usual_text_cache()
    assert cache is not None
    cache.keep(DIGEST, LINES)
    assert (tmp_path / "hints" / "text-2-rapidocr-3.10.0-onnxruntime-1.32.0" / f"{DIGEST}.json").is_file()
    monkeypatch.setattr(text_cache, "can_read_text", lambda: False)
    assert usual_text_cache() is None


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a uid that passwd lacks: the text is read each time."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("CLEANSET_CACHE", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_123)
    monkeypatch.setattr(text_cache, "can_read_text", lambda: True)
    monkeypatch.setattr(text_cache, "installed_version", lambda _: "1.0")
    assert usual_text_cache() is None


def test_a_known_image_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are there although no process was started; an image that fails is not kept."""
    from cleanset.files import sha256

    cache = TextCache(tmp_path)
    cache.keep(sha256(b"known"), LINES)
    hints = BackgroundHints(lambda image_id: image_id.encode(), imagenet(), HintCaches(text=cache))
    monkeypatch.setattr(hints, "_in_process", lambda function, data: None)
    hints._read_text("known")
    hints._read_text("unknown")
    assert hints._lines == {"known": LINES, "unknown": ()}
    assert len(list(tmp_path.iterdir())) == 1
