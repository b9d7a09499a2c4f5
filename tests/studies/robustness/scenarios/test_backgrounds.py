"""Photographs that objects are placed on, and finished images with generated backgrounds: what is refused."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES, Study
from cleanset.studies.robustness.scenarios.changes import scene_images
from cleanset.studies.robustness.scenarios.params import Scenarios
from cleanset.studies.robustness.scenarios.photographs import generated_files, photograph_files, photograph_paths
from cleanset.tables import INDEX, write_table
from tests.studies.robustness.drawn import drawn
from tests.studies.robustness.sources import stored_sources

IMAGE = Image.fromarray(drawn(224, 240))


def save(folder: Path, name: str, height: int, width: int) -> None:
    Image.fromarray(drawn(height, width)).save(folder / name)


def photographs(folder: Path, indexed: Mapping[str, str] | None = None) -> list[str]:
    found = photograph_files(folder, lambda file: IMAGE, {"a.png": "a"}, indexed or {})
    return [each.path.name for each in found]


def test_photographs_sorted_by_name(tmp_path: Path) -> None:
    for name in ("b.jpg", "a.PNG", "c.jpeg"):
        save(tmp_path, name, 230, 300)
    (tmp_path / "README.md").write_text("not one")
    (tmp_path / "._b.jpg").write_text("left by a system")
    assert photographs(tmp_path) == ["a.PNG", "b.jpg", "c.jpeg"]


def test_no_photographs(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="no photographs; expected at least one JPEG or PNG"):
        photographs(tmp_path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", r"backgrounds: missing; expected a folder of photographs"),
        ("file", r"backgrounds: a file; expected a folder of photographs"),
        ("itself", r"backgrounds: a link that leads nowhere; expected a folder of photographs"),
        ("above", r"some/loop: more than 20 folders deep; expected no link to a folder above it"),
        ("nowhere", r"backgrounds/a\.jpg: broken symlink to .*none\.jpg; restore its target, or remove the link"),
    ],
)
def test_what_is_no_folder_of_photographs_is_refused_at_once(tmp_path: Path, kind: str, message: str) -> None:
    """Before anything is decoded."""
    folder = tmp_path / "backgrounds"
    if kind == "file":
        folder.write_text("photographs")
    elif kind == "itself":
        folder.symlink_to(folder)
    elif kind != "missing":
        (folder / "some").mkdir(parents=True)
        (folder / "some" / "b.jpg").write_text("not decoded")
        target, link = (folder, "some/loop") if kind == "above" else (tmp_path / "none.jpg", "a.jpg")
        (folder / link).symlink_to(target)
    with pytest.raises(CleansetError, match=f"{message}"):
        photograph_paths(folder)


def test_links_lead_to_photographs(tmp_path: Path) -> None:
    """To one, or to a folder of them, which is read once for each link."""
    (tmp_path / "elsewhere").mkdir()
    save(tmp_path / "elsewhere", "a.png", 230, 300)
    folder = tmp_path / "backgrounds"
    folder.mkdir()
    for name in ("one", "other.jpg"):
        (folder / name).symlink_to(tmp_path / "elsewhere")
    (folder / "b.jpeg").symlink_to(tmp_path / "elsewhere" / "a.png")
    assert [str(path.relative_to(folder)) for path in photograph_paths(folder)] == [
        "b.jpeg", "one/a.png", "other.jpg/a.png",
    ]  # fmt: skip


def test_one_is_too_small(tmp_path: Path) -> None:
    save(tmp_path, "a.png", 223, 300)
    with pytest.raises(CleansetError, match=r"a\.png: background of 300 x 223 pixels; expected at least 224 x 224"):
        photographs(tmp_path)


def test_one_is_an_image_of_the_study(tmp_path: Path) -> None:
    IMAGE.save(tmp_path / "copy.png")
    with pytest.raises(CleansetError, match=r"copy\.png: background is image a of the edition"):
        photographs(tmp_path)


def test_one_is_an_image_of_the_index(tmp_path: Path) -> None:
    """By its pixels, as any lossless file stores them; a cropped one is another."""
    pixels = drawn(230, 300)
    indexed = {hashlib.sha256(pixels.tobytes()).hexdigest(): "ILSVRC2012_val_00000007"}
    Image.fromarray(pixels[1:]).save(tmp_path / "part.png")
    assert photographs(tmp_path, indexed) == ["part.png"]
    Image.fromarray(pixels).save(tmp_path / "whole.png")
    assert photographs(tmp_path) == ["part.png", "whole.png"]
    with pytest.raises(CleansetError, match=r"whole\.png: background is image ILSVRC2012_val_00000007 of the edition"):
        photographs(tmp_path, indexed)


def test_the_index_need_not_be_there(tmp_path: Path) -> None:
    """Photographs of a study are compared with all images of its edition's index, and else with those of its sets."""
    edition = Edition(tmp_path / "edition")
    study = Study(edition.folder / "studies" / "robustness")
    study.backgrounds.mkdir(parents=True)
    save(study.backgrounds, "a.png", 230, 300)
    write_table(study.images, pd.DataFrame(columns=STUDY_IMAGES.names), STUDY_IMAGES, imagenet())
    write_table(study.masks_table, pd.DataFrame(columns=MASKS.names), MASKS, imagenet())
    wanted = Scenarios.model_validate({"names": ["random_background"]})
    sources = stored_sources(study)
    assert len(scene_images(sources, wanted).photographs) == 1
    digests = ["0" * 64, hashlib.sha256(drawn(230, 300).tobytes()).hexdigest()]
    index = pd.DataFrame(
        {
            "image_id": ["ILSVRC2012_val_00000001", "ILSVRC2012_val_00000002"],
            "size": 20_000,
            "sha256": ["1" * 64, "2" * 64],
            "width": 300,
            "height": 230,
            "mode": "RGB",
            "pixels_sha256": digests,
            "ilsvrc_class": [3, 5],
            "real_classes": [[3], [5]],
            "single": True,
        }
    )
    edition.index.parent.mkdir()
    write_table(edition.index, index, INDEX, imagenet())
    assert len(scene_images(replace(sources, edition=None), wanted).photographs) == 1
    with pytest.raises(CleansetError, match=r"a\.png: background is image ILSVRC2012_val_00000002 of the edition"):
        scene_images(sources, wanted)


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
