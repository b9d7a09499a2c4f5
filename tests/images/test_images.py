import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import pyautoattack
import pytest
import timm
import torch
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.codec import cropped, decode, inspect, orientation, pixels_sha256, png, size_in_header
from cleanset.images.preprocessing import RES256CROP224, ROBUSTBENCH, ResizeAndCrop, timm_preprocessing
from tests.ten_images import drawn_image, jpeg, with_size

pytestmark = pytest.mark.slow

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


def ours(name: str) -> ResizeAndCrop:
    if name in ROBUSTBENCH:
        return ROBUSTBENCH[name]
    config = timm.data.resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
    return timm_preprocessing(
        config["input_size"][-1], config["crop_pct"], config["interpolation"], config["crop_mode"]
    )


def theirs(name: str) -> Callable[[Image.Image], torch.Tensor]:
    """The library's own transform, up to pixels in [0, 1] or normalised."""
    if name in ROBUSTBENCH:
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
    """The uint8 behind an image in [0, 1]; exact, since uint8 / 255 * 255 rounds back."""
    result: NDArray[np.uint8] = (tensor * 255).round().to(torch.uint8).numpy()
    return result


NAMES = (*ROBUSTBENCH, *TIMM)


@pytest.mark.parametrize("name", TIMM)
def test_sizes_of_timm_models(name: str) -> None:
    preprocessing = ours(name)
    assert (preprocessing.resize, preprocessing.size, preprocessing.interpolation) == TIMM[name]
    resize, size, interpolation = TIMM[name]
    assert preprocessing.name == f"timm-{interpolation}-{resize}-{size}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ODD_SIZES)
def test_drawn_images_of_odd_sizes(name: str, size: tuple[int, int]) -> None:
    image = decode(jpeg(drawn_image(*size)))
    result = ours(name)(image)
    assert result.dtype == np.uint8
    assert np.array_equal(result, pixels(theirs(name)(image)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["L", "CMYK", "exif"])
def test_other_modes(name: str, mode: str) -> None:
    if mode == "exif":
        turned = Image.Exif()
        turned[0x0112] = 6
        data = jpeg(drawn_image(90, 60), exif=turned)
    else:
        data = jpeg(drawn_image(90, 60, mode))
    image = decode(data)
    assert image.size == (90, 60)
    assert np.array_equal(ours(name)(image), pixels(theirs(name)(Image.open(io.BytesIO(data)).convert("RGB"))))


@pytest.mark.parametrize("name", NAMES)
def test_real_photographs(name: str, real: Path) -> None:
    preprocessing, transform = ours(name), theirs(name)

    def same(path: Path) -> bool:
        expected = pixels(transform(Image.open(path).convert("RGB")))
        return np.array_equal(preprocessing(decode(path.read_bytes())), expected)

    paths = sorted((real / "photos").iterdir())[::4]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(same, paths))
    assert len(found) == 38
    assert [path.name for path, equal in zip(paths, found, strict=True) if not equal] == []


def test_a_one_coloured_image_stays_so() -> None:
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
    data = jpeg(drawn_image(20, 20, mode))
    part = cropped(data, (5, 5, 10, 12))
    assert (part.mode, part.size) == ("RGB", (5, 7))
    assert np.array_equal(np.asarray(part), np.asarray(decode(data).convert("RGB"))[5:12, 5:10])


def test_png_keeps_pixels_and_nothing_else() -> None:
    described = Image.Exif()
    described[0x010E] = "a description"
    plain, tagged = (
        jpeg(drawn_image(40, 30)),
        jpeg(drawn_image(40, 30), exif=described, dpi=(300, 300), comment=b"stamp"),
    )
    whole = (0, 0, 40, 30)
    assert png(cropped(plain, whole)) == png(cropped(plain, whole)) == png(cropped(tagged, whole))
    again = Image.open(io.BytesIO(png(cropped(tagged, whole))))
    assert np.array_equal(np.asarray(again), np.asarray(decode(plain)))
    assert again.info == {}


def with_exif(kind: str, exif: Image.Exif | bytes) -> bytes:
    out = io.BytesIO()
    drawn_image(40, 30).save(out, kind, exif=exif)
    return out.getvalue()


def profile_of(colours: bytes = b"RGB ", size: int = 200_000) -> bytes:
    """The header of an ICC profile, and anything after it, which takes several segments of a JPEG."""
    rest = bytes(number % 251 for number in range(size - 128))
    return size.to_bytes(4, "big") + bytes(12) + colours + bytes(16) + b"acsp" + bytes(88) + rest


def with_profile(kind: str, profile: bytes, mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    drawn_image(40, 30, mode).save(out, kind, icc_profile=profile)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_crop_has_the_colours_of_its_image(kind: str) -> None:
    """The profile goes along, byte for byte, and once more into a crop of the crop; the pixels are as without it."""
    profile = profile_of()
    box = (0, 0, 20, 30)
    once = png(cropped(with_profile(kind, profile), box))
    assert Image.open(io.BytesIO(once)).info == {"icc_profile": profile}
    assert png(cropped(once, box)) == once
    plain = cropped(with_profile(kind, b""), box)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(once))), np.asarray(plain))
    assert plain.info == {}


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize(
    ("profile", "mode"),
    [
        (profile_of(b"GRAY"), "L"),
        (profile_of()[:-1], "RGB"),
        (profile_of().replace(b"acsp", b"acsq"), "RGB"),
        (b"profile", "RGB"),
    ],
)
def test_a_profile_that_is_not_of_the_crop_is_left_out(kind: str, profile: bytes, mode: str) -> None:
    assert cropped(with_profile(kind, profile, mode), (0, 0, 20, 30)).info == {}


def test_a_profile_with_a_missing_or_surplus_part() -> None:
    """Too large for Pillow to open it in a PNG; and a JPEG without the last of several segments."""
    data = with_profile("JPEG", profile_of())
    last = data.rindex(b"ICC_PROFILE\0")
    length = int.from_bytes(data[last - 2 : last], "big")
    cut = data[: last - 4] + data[last - 2 + length :]
    large = with_profile("JPEG", profile_of(size=2**20 + 1))
    for each in (cut, large):
        assert cropped(each, (0, 0, 20, 30)).info == {}
    most = profile_of(size=2**20)
    once = png(cropped(with_profile("JPEG", most), (0, 0, 20, 30)))
    assert Image.open(io.BytesIO(once)).info["icc_profile"] == most


@pytest.mark.parametrize("orientation", [3, 6, 8])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_crop_is_turned_by_viewers_as_its_image_is(kind: str, orientation: int) -> None:
    """The pixels stay as stored; the orientation, and nothing else, goes along."""
    turned = Image.Exif()
    turned[0x0112], turned[0x010E] = orientation, "a description"
    part = cropped(with_exif(kind, turned), (0, 0, 20, 30))
    again = Image.open(io.BytesIO(png(part)))
    assert dict(again.getexif()) == {0x0112: orientation}
    assert np.array_equal(np.asarray(again), np.asarray(part))
    assert pixels_sha256(again) == pixels_sha256(part)


def test_pixels_sha256_of_a_tiny_image() -> None:
    """sha256sum of the six bytes 010203 fffe00."""
    image = Image.fromarray(np.array([[[1, 2, 3], [255, 254, 0]]], dtype=np.uint8))
    assert pixels_sha256(image) == "b94823f689af8d24121dea2430f9841b766eff08b321e2d2cec6f5a9549adf9b"
    assert pixels_sha256(image.crop((1, 0, 2, 1))) != pixels_sha256(image.crop((0, 0, 1, 1)))


def test_facts() -> None:
    data = jpeg(drawn_image(33, 47, "L"))
    facts = inspect(data)
    assert (facts.width, facts.height, facts.mode) == (33, 47, "L")
    assert facts.pixels_sha256 == pixels_sha256(decode(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"GIF89a", "not a JPEG"),
        (jpeg(drawn_image(50, 50))[:-50], "truncated"),
        (with_size(jpeg(drawn_image(16, 16)), 65_000, 65_000), "exceeds limit"),
        (with_size(jpeg(drawn_image(16, 16)), 12_000, 12_000), "12000 x 12000 pixels, more than 100,000,000"),
        (with_size(jpeg(drawn_image(16, 16)), 0, 16), "not a JPEG"),
    ],
)
def test_what_cannot_be_read(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        inspect(data)


def with_segment(data: bytes, content: bytes, marker: int = 0xE1) -> bytes:
    """A JPEG with one more segment at its beginning."""
    return data[:2] + bytes([0xFF, marker]) + (len(content) + 2).to_bytes(2, "big") + content + data[2:]


PLAIN = jpeg(drawn_image(40, 30))
XMP = b'http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x="adobe:ns:meta/" tiff:Orientation="6"/>'


@pytest.mark.parametrize(
    "content",
    [
        b"Exif\0\0nonsense",
        b"Exif\0\0",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12",
        XMP,
    ],
)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("marker", [0xE1, 0xE2, 0xED, 0xFE])
def test_damaged_metadata_do_not_matter(content: bytes, marker: int, tmp_path: Path) -> None:
    data = with_segment(PLAIN, content, marker)
    assert inspect(data) == inspect(PLAIN)
    whole = (0, 0, 40, 30)
    assert png(cropped(data, whole)) == png(cropped(PLAIN, whole))
    assert dict(decode(data).getexif()) == {}
    (path := tmp_path / "photo.jpg").write_bytes(data)
    assert size_in_header(path) == (40, 30)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("content", [b"nonsense and more", b"II*\0\xff\xff\xff\xff", b"II*\0\x08\0\0\0\1\0\x12\1\3\0"])
def test_damaged_metadata_of_a_png_do_not_matter(content: bytes) -> None:
    data = with_exif("PNG", content)
    plain = with_exif("PNG", b"")
    assert inspect(data, ("JPEG", "PNG")) == inspect(plain, ("JPEG", "PNG"))
    assert png(cropped(data, (0, 0, 20, 30))) == png(cropped(plain, (0, 0, 20, 30)))
    assert 0x0112 not in decode(data).getexif()


def test_metadata_with_a_whole_image_in_them_do_not_matter() -> None:
    """As a camera's EXIF holds a thumbnail, and as a MPO file a second image."""
    thumbnail = jpeg(drawn_image(8, 8), progressive=True)
    data = with_segment(with_segment(PLAIN, b"Exif\0\0" + thumbnail), b"MPF\0" + b"\xff" * 40, 0xE2) + thumbnail
    assert inspect(data) == inspect(PLAIN)


def test_the_header_of_a_jpeg_with_another_behind_it_is_that_of_the_first(tmp_path: Path) -> None:
    """As some telephones write it, in the format MPO."""
    path = tmp_path / "a.jpg"
    drawn_image(40, 30).save(path, "MPO", save_all=True, append_images=[drawn_image(20, 10)])
    facts = inspect(path.read_bytes(), ("JPEG", "PNG"))
    assert size_in_header(path) == (facts.width, facts.height) == (40, 30)


@pytest.mark.parametrize("order", ["little", "big"])
def test_the_orientation_is_that_of_the_exif_header(order: Literal["little", "big"]) -> None:
    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, order)

    entry = number(0x0112, 2) + number(3, 2) + number(1, 4) + number(8, 2) + bytes(2)
    tiff = (b"II" if order == "little" else b"MM") + number(42, 2) + number(8, 4) + number(1, 2) + entry + bytes(4)
    data = with_segment(with_segment(PLAIN, XMP), b"Exif\0\0" + tiff)
    assert dict(decode(data).getexif()) == dict(cropped(data, (0, 0, 9, 9)).getexif()) == {0x0112: 8}
    # any number of FF before a marker is filling
    assert [orientation(data[:2] + bytes([0xFF] * filling) + data[2:]) for filling in range(3)] == [8] * 3


def with_scans(count: int) -> bytes:
    """A progressive JPEG in which the last scan, a refinement without effect on what is there, occurs often."""
    data = jpeg(drawn_image(40, 30), progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * (count - data.count(b"\xff\xda") + 1) + data[-2:]


def test_too_many_scans() -> None:
    assert inspect(with_scans(64)).width == 40
    with pytest.raises(ValueError, match="200 scans, more than 64"):
        inspect(with_scans(200))


def test_extreme_shapes() -> None:
    assert inspect(jpeg(drawn_image(200, 1))).width == 200
    with pytest.raises(ValueError, match="1 x 201 pixels, one side more than 200 times the other"):
        inspect(jpeg(drawn_image(1, 201)))


def test_real_photographs_have_the_sizes_that_their_headers_say(real: Path) -> None:
    paths = sorted((real / "photos").iterdir())
    assert len(paths) == 150
    for path in paths[:20]:
        facts = inspect(path.read_bytes())
        with Image.open(path) as image:
            assert (facts.width, facts.height, facts.mode) == (*image.size, image.mode)


def as_png(image: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format="PNG", **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("RGB", None),
        ("L", None),
        ("P", "a palette"),
        ("1", "black and white"),
        ("RGBA", "transparency"),
        ("I;16", "16 bits"),
    ],
)
def test_own_images_have_8_bits_of_rgb_or_grey(mode: str, found: str | None) -> None:
    data = as_png(Image.new(mode, (9, 7)))
    if found is None:
        facts = inspect(data, ("JPEG", "PNG"))
        assert (facts.width, facts.height, facts.mode) == (9, 7, mode)
        return
    with pytest.raises(ValueError, match=rf"^{found}; expected 8 bits of RGB or grey$"):
        inspect(data, ("JPEG", "PNG"))
