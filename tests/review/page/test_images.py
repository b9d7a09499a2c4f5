"""The page shows the stored pixels, and a box drawn there is a box in stored pixels."""

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Request, Route

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.images.codec import as_browsers_show
from cleanset.tables import INDEX, read_table
from cleanset.web.images import CARD_PIXELS, MAX_PNG_PIXELS, SMALL_CARD_PIXELS, Photos, encode_for_page
from tests.browser_tab import PATIENCE, Server

from .conftest import Open, Serve
from .reviewing import Reviewing, reviews

TURNED = ("n02708093", "ILSVRC2012_val_00000005")
"""Stored as 360 x 480, with the EXIF orientation 8: viewers show it as 480 x 360."""

CMYK = ("n02782093", "ILSVRC2012_val_00000311")
GREY = ("n02814860", "ILSVRC2012_val_00000148")

CANVAS = """
async selector => { const image = document.querySelector(selector);
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
  const context = canvas.getContext('2d'); context.drawImage(image, 0, 0);
  const rgba = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const rgb = rgba.filter((_, place) => place % 4 < 3);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', rgb));
  return [canvas.height, canvas.width, [...digest].map(each => each.toString(16).padStart(2, '0')).join('')] }
"""


def stored(edition: Path, image_id: str) -> NDArray[np.uint8]:
    """The RGB pixels, as Pillow reads them."""
    at = Edition(edition)
    data = verified_images(
        at, read_params(edition).dataset.images, read_table(at.index, INDEX, imagenet()), imagenet()
    ).read(image_id)
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def told(pixels: NDArray[np.uint8]) -> list[int | str]:
    """Height, width, and SHA-256 of the RGB values."""
    return [*pixels.shape[:2], hashlib.sha256(pixels.tobytes()).hexdigest()]


def in_browser(at: Reviewing, selector: str) -> list[int | str]:
    """The same of an image as the browser draws it."""
    drawn: list[int | str] = at.page.evaluate(CANVAS, selector)
    return drawn


@pytest.fixture
def at(start: Serve, visit: Open) -> Reviewing:
    return visit(start())


@pytest.mark.long
def test_the_browser_shows_the_stored_pixels(edition: Path, unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    for wnid, image_id in (TURNED, CMYK, GREY):
        at.open(wnid, image_id)
        assert in_browser(at, f"img[data-image='{image_id}']") == told(stored(edition, image_id))


@pytest.mark.long
def test_a_crop_of_a_turned_image_drawn_with_the_mouse(edition: Path, at: Reviewing) -> None:
    wnid, image_id = TURNED
    at.open(wnid, image_id)
    at.press("x")
    at.draw([30, 40, 330, 400])
    box = at.box()
    assert np.abs(np.array(box) - [30, 40, 330, 400]).max() <= 1  # as near as the screen's pixels allow
    width, height = box[2] - box[0], box[3] - box[1]
    share = f"{int(100 * width * height / (360 * 480) + 0.5)} % kept"  # halves up, as browsers round
    assert at.page.inner_text("#crop-size") == f"{width} × {height} of 360 × 480 pixels; {share}"
    # the corner of what is kept is that corner of the stored pixels
    at.page.wait_for_function(
        "size => { const kept = document.querySelector(\"img[data-preview^='crop/']\");"
        " return kept.complete && kept.naturalWidth === size[0] && kept.naturalHeight === size[1] }",
        arg=[box[2] - box[0], box[3] - box[1]],
    )  # fmt: skip
    left, top, right, bottom = box
    kept = np.ascontiguousarray(stored(edition, image_id)[top:bottom, left:right])
    assert in_browser(at, "img[data-preview^='crop/']") == told(kept)
    at.press("w", "v", "Enter")
    expected = {"verdict": "crop", "reason": "watermark", "crop": box, "object_fully_visible": True, "seen": "single"}
    assert reviews(edition) == {wnid: {image_id: expected}}
    at.open(wnid, image_id)
    at.press("x")  # opened again, it begins with the box that is saved
    at.page.wait_for_selector("[data-look=crop][data-ready]", state="attached")
    assert at.box() == box
    at.adjust([0, 0, 360, 432])
    at.press("v", "Enter")
    assert reviews(edition)[wnid][image_id]["crop"] == [0, 0, 360, 432]


def test_the_preview_is_what_the_model_gets(edition: Path, unchanged: Server, visit: Open) -> None:
    """From the parameters in data/scores, the same pixels as timm's transform on the cropped image."""
    at = visit(unchanged)
    import timm

    _, image_id = TURNED
    box = (10, 20, 350, 300)
    address = f"{at.page.url.split('?')[0]}seen/standard/{image_id}?box={','.join(map(str, box))}"
    seen = Image.open(io.BytesIO(at.page.request.get(address).body()))
    config = timm.data.resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg("test_efficientnet").to_dict())
    pixels = timm.data.create_transform(**config, normalize=False)(Image.fromarray(stored(edition, image_id)).crop(box))
    assert (np.asarray(seen) == pixels.permute(1, 2, 0).numpy()).all()


@pytest.mark.long
def test_a_box_or_image_that_is_none(unchanged: Server, visit: Open) -> None:
    at = visit(unchanged)
    base = at.page.url.split("?")[0]
    _, image_id = TURNED
    for path in (
        "image/card/ILSVRC2012_val_00099999", "image/card/..%2f..%2fparams.yaml", "image/other/" + image_id,
        "image/card/%2fetc%2fpasswd", "seen/nobody/" + image_id, "static/../server.py", "static/..%2fserver.py",
        "params.yaml", "docs", "openapi.json",
    ):  # fmt: skip
        assert at.page.request.get(base + path).status == 404, path
    for box in ("0,0,400,480", "5,5,5,9", "-1,0,9,9", "a,b,c,d", "1,2,3"):
        assert at.page.request.get(f"{base}crop/{image_id}?box={box}").status == 400, box


def test_large_images_are_made_smaller_for_the_page_only() -> None:
    rng = np.random.default_rng(0)
    large = Image.fromarray(rng.integers(0, 256, (1500, 2000, 3), dtype=np.uint8))
    out = io.BytesIO()
    large.save(out, format="JPEG")
    photos = Photos(lambda image_id: out.getvalue())
    assert Image.open(io.BytesIO(photos.encoded("a", 1200))).size == (1200, 900)
    whole = Image.open(io.BytesIO(photos.encoded("a")))
    assert (whole.size, whole.format) == ((2000, 1500), "JPEG")  # a PNG of it would be slow
    assert MAX_PNG_PIXELS < 2000 * 1500


MAX_CLASS_BYTES = 1_400_000
"""Eight seconds at 1.4 Mbit/s."""


@pytest.fixture(scope="module")
def photograph() -> Image.Image:
    """A photograph of 1800 x 1200 pixels, as far as its bytes go: detail of all sizes."""
    rng = np.random.default_rng(1)
    pixels = np.full((1200, 1800, 3), 128.0)
    for side, share in ((4, 0.25), (16, 0.25), (64, 0.25), (300, 0.15), (900, 0.12)):
        noise = Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8))
        pixels += (np.asarray(noise.resize((1800, 1200), Image.Resampling.BICUBIC), float) - 128) * share
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def as_jpeg(image: Image.Image, quality: int) -> bytes:
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=quality)
    return out.getvalue()


@pytest.mark.parametrize(("longest", "count"), [(CARD_PIXELS, 3), (SMALL_CARD_PIXELS, 8)])
def test_a_class_of_photographs_is_sent_in_few_bytes(photograph: Image.Image, longest: int, count: int) -> None:
    """As a JPEG close to its pixels, and never in more bytes than are stored; the close-up has the stored bytes."""
    stored = as_jpeg(photograph, quality=88)
    card = encode_for_page(stored, longest, as_stored=True)
    assert count * len(card) <= MAX_CLASS_BYTES
    shown = Image.open(io.BytesIO(card))
    assert (shown.format, max(shown.size)) == ("JPEG", longest)
    reduced = Image.open(io.BytesIO(stored))
    reduced.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    error = np.asarray(shown, float) - np.asarray(reduced, float)
    assert np.sqrt((error**2).mean()) < 5  # levels of 255
    few = as_jpeg(photograph, quality=20)
    assert len(encode_for_page(few, longest, as_stored=True)) <= len(few)
    full = Image.open(io.BytesIO(encode_for_page(stored, None, as_stored=True)))
    assert full.tobytes() == Image.open(io.BytesIO(stored)).tobytes()
    assert len(encode_for_page(stored, None, as_stored=True)) <= len(stored)


def test_nothing_but_pixels_is_handed_on() -> None:
    image = Image.new("RGB", (40, 20), "#c04000")
    exif = Image.Exif()
    exif[0x0112] = 6
    out = io.BytesIO()
    image.save(out, format="JPEG", exif=exif, icc_profile=b"not really a profile", comment="secret")
    again = Image.open(io.BytesIO(encode_for_page(out.getvalue(), None)))
    assert (again.size, dict(again.getexif()), again.info) == ((40, 20), {}, {})


def test_a_jpeg_is_sent_as_stored_without_metadata() -> None:
    rng = np.random.default_rng(0)
    pixels = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    for mode, options in (("RGB", {"progressive": True}), ("L", {}), ("RGB", {"subsampling": 2})):
        out = io.BytesIO()
        pixels.convert(mode).save(out, format="JPEG", exif=exif, icc_profile=b"no profile", comment="secret", **options)
        data = out.getvalue()
        handed_on = encode_for_page(data + b"a trailer with a secret", 1200, as_stored=True)
        assert b"secret" not in handed_on
        assert b"profile" not in handed_on
        assert len(handed_on) < len(data)
        again = Image.open(io.BytesIO(handed_on))
        assert (again.format, dict(again.getexif()), again.info.get("icc_profile")) == ("JPEG", {}, None)
        assert again.tobytes() == Image.open(io.BytesIO(data)).tobytes()
        assert encode_for_page(data, None).startswith(b"\x89PNG")  # other pages, which blind people
    out = io.BytesIO()
    pixels.convert("CMYK").save(out, format="JPEG")
    for other in (data[:-2], data.replace(b"\x00\x10JFIF", b"\x00\x11JFIF"), data.replace(b"\xff\xc0", b"\xff\xc9")):
        assert as_browsers_show(other) is None
    assert encode_for_page(out.getvalue(), None, as_stored=True).startswith(b"\x89PNG")
    assert max(Image.open(io.BytesIO(encode_for_page(data, 20, as_stored=True))).size) == 20


@pytest.mark.long
def test_little_goes_over_the_line_and_what_is_looked_at_comes_first(edition: Path, at: Reviewing) -> None:
    """The images of the class before those of the next ones; code compressed, and asked for again only if changed."""
    asked: list[str] = []
    shown = set(at.shown)
    address = at.page.url
    at.page.goto("about:blank")  # the page that was there asks for the next ones, too
    at.page.on("request", lambda request: asked.append(request.url))
    late = min(shown)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    at.page.route(lambda url: "/image/small/" in url and late in url, hold)
    at.page.goto(address, wait_until="domcontentloaded")
    at.page.wait_for_function(
        "count => [...document.querySelectorAll('#view img')].filter((each) => each.naturalWidth).length === count",
        arg=len(shown) - 1,
        timeout=PATIENCE,
    )
    at.page.wait_for_timeout(500)
    images = [url.partition("?")[0].rpartition("/")[2] for url in asked if "/image/small/" in url]
    assert set(images) == shown  # while one of them is missing, nothing else

    def is_of_the_next(request: Request) -> bool:
        return "/image/small/" in request.url and not any(each in request.url for each in shown)

    with at.page.expect_request(is_of_the_next, timeout=PATIENCE):
        held[0].continue_()
    answer = at.page.request.get(at.page.url.partition("?")[0] + "static/page.css")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["cache-control"] == "no-cache"
    again = at.page.request.get(
        at.page.url.partition("?")[0] + "static/page.css", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status == 304
