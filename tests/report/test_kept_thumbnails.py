"""Thumbnails that are kept: the same bytes as made again, also after the cache or the image has changed."""

from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from PIL import Image

from cleanset.plumbing.files import sha256
from cleanset.plumbing.kept_files import KeptFiles
from cleanset.report import thumbnails
from cleanset.report.thumbnails import before_and_after, kept_thumbnails, thumbnail
from tests.report.test_thumbnails import jpeg, quarters

BOX = (10, 20, 110, 90)


def never(*_: object, **__: object) -> NoReturn:
    pytest.fail("made again")


def test_kept_ones_are_what_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a whole, a cropped and an enlarged image in one folder."""
    kept = KeptFiles(tmp_path / "kept")
    large, small = jpeg(quarters(), orientation=6), jpeg(quarters(40, 32))
    expected = [
        ((large, None, False), (thumbnail(large),)),
        ((large, BOX, False), before_and_after(large, BOX)),
        ((small, None, False), (thumbnail(small),)),
        ((small, None, True), (thumbnail(small, enlarged=True),)),
    ]
    for (data, crop, enlarged), made in expected:
        assert kept_thumbnails(kept, sha256(data), partial(bytes, data), crop, enlarged=enlarged) == made
    assert len(list((tmp_path / "kept").iterdir())) == 5
    monkeypatch.setattr(thumbnails, "thumbnail", never)
    monkeypatch.setattr(thumbnails, "before_and_after", never)
    for (data, crop, enlarged), made in expected:
        assert kept_thumbnails(kept, sha256(data), never, crop, enlarged=enlarged) == made


def test_a_damaged_one_and_that_of_another_image_are_made(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path)
    data = jpeg(quarters())
    (made,) = kept_thumbnails(kept, sha256(data), lambda: data, None, enlarged=False)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert kept_thumbnails(kept, sha256(data), lambda: data, None, enlarged=False) == (made,)
    other = jpeg(Image.new("RGB", (1000, 500)))
    assert kept_thumbnails(kept, sha256(other), lambda: other, None, enlarged=False) != (made,)
