import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyautoattack
import pytest
import timm
import torch
from numpy.typing import NDArray
from PIL import Image

from cleanset.images import (
    RES256CROP224,
    Preprocessing,
    cropped,
    decode,
    inspect,
    pixels_sha256,
    png,
    timm_preprocessing,
)
from inputs.made import image, jpeg, with_size

TIMM = {
    # model: resize, size, interpolation, as timm's tables and its formula floor(size / crop_pct) give them
    "tf_efficientnet_lite0": (256, 224, "bicubic"),
    "resnet50.a1_in1k": (235, 224, "bicubic"),
    "test_byobnet": (182, 160, "bicubic"),
}
ODD_SIZES = [
    (1, 1), (1, 40), (40, 1), (64, 64), (37, 100), (100, 37), (300, 299), (224, 224), (256, 256), (255, 257),
    (500, 375), (375, 500), (223, 225), (1000, 20), (3, 2),
]  # fmt: skip


def ours(name: str) -> Preprocessing:
    if name == "Res256Crop224":
        return RES256CROP224
    config = timm.data.resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
    return timm_preprocessing(
        config["input_size"][-1], config["crop_pct"], config["interpolation"], config["crop_mode"]
    )


def theirs(name: str) -> Callable[[Image.Image], torch.Tensor]:
    """The library's own transform, up to pixels in [0, 1] or normalised."""
    if name == "Res256Crop224":
        sys.modules.setdefault("autoattack", pyautoattack)
        sys.modules.setdefault("autoattack.state", pyautoattack.state)
        from robustbench.data import PREPROCESSINGS

        transform: Callable[[Image.Image], torch.Tensor] = PREPROCESSINGS[name]
        return transform
    config = timm.data.resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
    config |= {"mean": (0, 0, 0), "std": (1, 1, 1)}
    made: Callable[[Image.Image], torch.Tensor] = timm.data.create_transform(**config, is_training=False)
    return made


def pixels(tensor: torch.Tensor) -> NDArray[np.uint8]:
    """The uint8 behind a picture in [0, 1]; exact, since uint8 / 255 * 255 rounds back."""
    result: NDArray[np.uint8] = (tensor * 255).round().to(torch.uint8).numpy()
    return result


NAMES = ("Res256Crop224", *TIMM)


@pytest.mark.parametrize("name", TIMM)
def test_sizes_of_timm_models(name: str) -> None:
    preprocessing = ours(name)
    assert (preprocessing.resize, preprocessing.size, preprocessing.interpolation) == TIMM[name]
    resize, size, interpolation = TIMM[name]
    assert preprocessing.name == f"timm-{interpolation}-{resize}-{size}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ODD_SIZES)
def test_drawn_pictures_of_odd_sizes(name: str, size: tuple[int, int]) -> None:
    picture = decode(jpeg(image(*size)))
    result = ours(name)(picture)
    assert result.dtype == np.uint8
    assert np.array_equal(result, pixels(theirs(name)(picture)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["L", "CMYK", "exif"])
def test_other_modes(name: str, mode: str) -> None:
    if mode == "exif":
        turned = Image.Exif()
        turned[0x0112] = 6
        data = jpeg(image(90, 60), exif=turned)
    else:
        data = jpeg(image(90, 60, mode))
    picture = decode(data)
    assert picture.size == (90, 60)
    assert np.array_equal(ours(name)(picture), pixels(theirs(name)(Image.open(io.BytesIO(data)).convert("RGB"))))


@pytest.mark.parametrize("name", NAMES)
def test_real_photographs(name: str, real: Path) -> None:
    preprocessing, transform = ours(name), theirs(name)

    def same(path: Path) -> bool:
        expected = pixels(transform(Image.open(path).convert("RGB")))
        return np.array_equal(preprocessing(decode(path.read_bytes())), expected)

    paths = sorted((real / "photos").iterdir())
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(same, paths))
    assert len(found) == 150
    assert [path.name for path, equal in zip(paths, found, strict=True) if not equal] == []


def test_a_one_coloured_picture_stays_so() -> None:
    result = RES256CROP224(Image.new("RGB", (300, 280), (10, 20, 30)))
    assert result.shape == (3, 224, 224)
    assert [channel.min() for channel in result] == [10, 20, 30]
    assert [channel.max() for channel in result] == [10, 20, 30]


@pytest.mark.parametrize(
    ("crop_mode", "interpolation"), [("squash", "bicubic"), ("border", "bicubic"), ("center", "random")]
)
def test_what_no_model_here_uses_is_refused(crop_mode: str, interpolation: str) -> None:
    with pytest.raises(ValueError, match="expected center with bilinear or bicubic"):
        timm_preprocessing(224, 0.875, interpolation, crop_mode)


def gradient(width: int, height: int) -> Image.Image:
    """Each pixel holds its own coordinates."""
    array = np.zeros((height, width, 3), dtype=np.uint8)
    array[..., 0] = np.arange(width)
    array[..., 1] = np.arange(height)[:, None]
    return Image.fromarray(array)


def test_crop_boxes_are_exact() -> None:
    data = jpeg(gradient(64, 48), subsampling=0)
    part = np.asarray(cropped(data, (8, 16, 24, 40)))
    assert part.shape == (24, 16, 3)
    assert np.array_equal(part, np.asarray(decode(data))[16:40, 8:24])
    assert np.abs(part[..., 0].astype(int) - np.arange(8, 24)).max() <= 6  # JPEG is not exact
    assert np.abs(part[..., 1].astype(int) - np.arange(16, 40)[:, None]).max() <= 6


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_a_crop_is_rgb(mode: str) -> None:
    data = jpeg(image(20, 20, mode))
    part = cropped(data, (5, 5, 10, 12))
    assert (part.mode, part.size) == ("RGB", (5, 7))
    assert np.array_equal(np.asarray(part), np.asarray(decode(data).convert("RGB"))[5:12, 5:10])


def test_png_keeps_pixels_and_nothing_else() -> None:
    described = Image.Exif()
    described[0x010E] = "a description"
    plain, tagged = jpeg(image(40, 30)), jpeg(image(40, 30), exif=described, dpi=(300, 300), comment=b"stamp")
    whole = (0, 0, 40, 30)
    assert png(cropped(plain, whole)) == png(cropped(plain, whole)) == png(cropped(tagged, whole))
    again = Image.open(io.BytesIO(png(cropped(tagged, whole))))
    assert np.array_equal(np.asarray(again), np.asarray(decode(plain)))
    assert again.info == {}


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_a_crop_is_turned_by_viewers_as_its_picture_is(orientation: int) -> None:
    """The pixels stay as they are stored; the orientation, and nothing else, goes along."""
    turned = Image.Exif()
    turned[0x0112], turned[0x010E] = orientation, "a description"
    part = cropped(jpeg(image(40, 30), exif=turned), (0, 0, 20, 30))
    again = Image.open(io.BytesIO(png(part)))
    assert dict(again.getexif()) == {0x0112: orientation}
    assert np.array_equal(np.asarray(again), np.asarray(part))
    assert pixels_sha256(again) == pixels_sha256(part)


def test_pixels_sha256_of_a_tiny_picture() -> None:
    """sha256sum of the six bytes 010203 fffe00."""
    picture = Image.fromarray(np.array([[[1, 2, 3], [255, 254, 0]]], dtype=np.uint8))
    assert pixels_sha256(picture) == "b94823f689af8d24121dea2430f9841b766eff08b321e2d2cec6f5a9549adf9b"
    assert pixels_sha256(picture.crop((1, 0, 2, 1))) != pixels_sha256(picture.crop((0, 0, 1, 1)))


def test_facts() -> None:
    data = jpeg(image(33, 47, "L"))
    facts = inspect(data)
    assert (facts.width, facts.height, facts.mode) == (33, 47, "L")
    assert facts.pixels_sha256 == pixels_sha256(decode(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"GIF89a", "not a JPEG"),
        (jpeg(image(50, 50))[:-50], "truncated"),
        (with_size(jpeg(image(16, 16)), 65_000, 65_000), "exceeds limit"),
        (with_size(jpeg(image(16, 16)), 12_000, 12_000), "12000 x 12000 pixels, more than 100,000,000"),
        (with_size(jpeg(image(16, 16)), 0, 16), "not a JPEG"),
    ],
)
def test_what_cannot_be_read(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        inspect(data)


def test_real_photographs_have_the_sizes_that_their_headers_say(real: Path) -> None:
    paths = sorted((real / "photos").iterdir())
    assert len(paths) == 150
    for path in paths[:20]:
        facts = inspect(path.read_bytes())
        with Image.open(path) as picture:
            assert (facts.width, facts.height, facts.mode) == (*picture.size, picture.mode)
