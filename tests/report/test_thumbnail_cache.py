"""Thumbnails that are kept: the same bytes as made anew, also after the cache or the image has changed."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

import cleanset
from cleanset.files import sha256
from cleanset.report import thumbnail_cache
from cleanset.report.thumbnail_cache import ThumbnailCache, usual_thumbnail_cache
from cleanset.report.thumbnails import Thumbnail, before_and_after, thumbnail
from tests.report.test_thumbnails import jpeg, quarters

BOX = (10, 20, 110, 90)


def never(*_: object, **__: object) -> Thumbnail:
    pytest.fail("made anew")


def test_kept_ones_are_what_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a whole, a cropped and an enlarged image, of one folder."""
    cache = ThumbnailCache(tmp_path / "kept")
    large, small = jpeg(quarters(), orientation=6), jpeg(quarters(40, 32))
    expected = [
        ((large, None, False), (thumbnail(large),)),
        ((large, BOX, False), before_and_after(large, BOX)),
        ((small, None, False), (thumbnail(small),)),
        ((small, None, True), (thumbnail(small, enlarged=True),)),
    ]
    for (data, crop, enlarged), made in expected:
        assert cache.thumbnails(sha256(data), partial(bytes, data), crop, enlarged=enlarged) == made
    assert len(list((tmp_path / "kept").iterdir())) == 5
    monkeypatch.setattr(thumbnail_cache, "thumbnail", never)
    monkeypatch.setattr(thumbnail_cache, "before_and_after", never)
    for (data, crop, enlarged), made in expected:
        assert cache.thumbnails(sha256(data), partial(bytes, data), crop, enlarged=enlarged) == made


def test_a_damaged_one_is_made_again(tmp_path: Path) -> None:
    cache = ThumbnailCache(tmp_path)
    data = jpeg(quarters())
    (made,) = cache.thumbnails(sha256(data), lambda: data, None, enlarged=False)
    (path,) = tmp_path.iterdir()
    for damaged in (path.read_bytes()[:-1], b"", path.read_bytes()[:100] + b"\0" + path.read_bytes()[101:]):
        path.write_bytes(damaged)
        assert cache.thumbnails(sha256(data), lambda: data, None, enlarged=False) == (made,)
    other = jpeg(Image.new("RGB", (1000, 500)))
    assert cache.thumbnails(sha256(other), lambda: other, None, enlarged=False) != (made,)


def test_without_a_folder_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    data = jpeg(quarters())
    for folder in (None, tmp_path / "file" / "below"):
        assert ThumbnailCache(folder).thumbnails(sha256(data), lambda: data, None, enlarged=False) == (thumbnail(data),)


def test_other_code_has_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path))
    before = usual_thumbnail_cache()
    package = tmp_path / "package"
    for name in thumbnail_cache.CODE:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(cleanset.__file__).parent / name, package / name)
    assert usual_thumbnail_cache(package) == before
    for name in thumbnail_cache.CODE:
        with (package / name).open("a") as file:
            file.write("\n")
        assert usual_thumbnail_cache(package) != before
        before = usual_thumbnail_cache(package)


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("CLEANSET_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", home)
    assert usual_thumbnail_cache() == ThumbnailCache(None)
