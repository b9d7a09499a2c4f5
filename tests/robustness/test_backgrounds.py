"""Photographs that objects are placed on, and finished images with generated backgrounds: what is refused."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.robustness.backgrounds import generated_files, photograph_files
from tests.robustness.drawn import drawn

IMAGE = Image.fromarray(drawn(224, 240))


def save(folder: Path, name: str, height: int, width: int) -> None:
    Image.fromarray(drawn(height, width)).save(folder / name)


def photographs(folder: Path) -> list[str]:
    return [each.path.name for each in photograph_files(folder, lambda file: IMAGE, {"a.png": "a"})]


def test_photographs_sorted_by_name(tmp_path: Path) -> None:
    for name in ("b.jpg", "a.PNG", "c.jpeg"):
        save(tmp_path, name, 230, 300)
    (tmp_path / "README.md").write_text("not one")
    assert photographs(tmp_path) == ["a.PNG", "b.jpg", "c.jpeg"]


def test_no_photographs(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="no photographs; expected at least one JPEG or PNG"):
        photographs(tmp_path)


def test_one_is_too_small(tmp_path: Path) -> None:
    save(tmp_path, "a.png", 223, 300)
    with pytest.raises(CleansetError, match=r"a\.png: background of 300 x 223 pixels; expected at least 224 x 224"):
        photographs(tmp_path)


def test_one_is_an_image_of_the_study(tmp_path: Path) -> None:
    IMAGE.save(tmp_path / "copy.png")
    with pytest.raises(CleansetError, match=r"copy\.png: background is image a of the edition"):
        photographs(tmp_path)


def test_one_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(CleansetError, match=r"a\.png: cannot be read .* remove it"):
        photographs(tmp_path)


def test_generated_images(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((224, 224, 3), np.uint8)).save(tmp_path / "a.png")
    assert list(generated_files(tmp_path, ["a"])) == ["a"]
    with pytest.raises(CleansetError, match=r"b\.png: missing; expected an image with a generated background"):
        generated_files(tmp_path, ["a", "b"])
    save(tmp_path, "b.png", 200, 224)
    with pytest.raises(CleansetError, match=r"b\.png: 224 x 200 pixels; expected 224 x 224"):
        generated_files(tmp_path, ["b"])
