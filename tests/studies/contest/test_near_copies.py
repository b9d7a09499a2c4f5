"""Submissions that are no new images, or that people are shown otherwise than models see them."""

import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.contest import images
from cleanset.studies.contest.entering import check
from cleanset.studies.contest.images import KnownImage, KnownImages, Measures, problem_beside_pixels
from tests.studies.contest.made import BIRD, JUDGES
from tests.studies.contest.on_disk import OnDisk, digest, named, png

SIDE = 96


def drawn(seed: int) -> Image.Image:
    """Shapes with some grain, so that there is something to compress and to hash."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 255, (6, 6, 3), np.uint8)).resize((SIDE, SIDE), Image.Resampling.NEAREST)
    grain = rng.integers(-12, 13, (SIDE, SIDE, 3))
    return Image.fromarray((np.asarray(coarse) + grain).clip(0, 255).astype(np.uint8))


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def changed(image: Image.Image, step: int, pixels: int | None = None) -> Image.Image:
    """Another image by so much in each value, or in the first pixels alone."""
    found = np.array(image, np.int16).reshape(-1, 3)
    signs = np.random.default_rng(1).choice([-step, step], found.shape)
    found[:pixels] += signs[:pixels].astype(np.int16)
    return Image.fromarray(found.clip(0, 255).astype(np.uint8).reshape(SIDE, SIDE, 3))


def smooth(seed: int) -> Image.Image:
    """Without edges, so that JPEG changes little."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 255, (4, 4, 3), np.uint8))
    return coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC)


IMAGE = drawn(0)
# by name: the known image, the file, and the evidence
COPIES = {
    "the same": (saved(IMAGE, compress_level=0), "0 of 255"),
    "one pixel": (saved(changed(IMAGE, 90, 1)), "differs by 0.0"),
    "a level": (saved(changed(IMAGE, 1)), "differs by"),
    "jpeg": (saved(smooth(0), "JPEG", quality=95, subsampling=0), "differs by"),
}
NEW = {
    "a JPEG of low quality": saved(IMAGE, "JPEG", quality=20, subsampling=2),
    "a png of it": saved(opened(saved(IMAGE, "JPEG", quality=83, subsampling=1))),
    "an attack": saved(changed(IMAGE, 8)),
    "turned": saved(IMAGE.transpose(Image.Transpose.ROTATE_90)),
    "mirrored": saved(IMAGE.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
}


def known_image(path: Path) -> KnownImage:
    data = path.read_bytes()
    return KnownImage(path.name, Measures().of(path, digest(data), data), path.read_bytes)


@pytest.mark.parametrize("name", COPIES)
def test_copies(name: str, tmp_path: Path) -> None:
    known = smooth(0) if name == "jpeg" else IMAGE
    for file, data in (("known.png", saved(known)), ("other.png", saved(drawn(1))), ("new", COPIES[name][0])):
        (tmp_path / file).write_bytes(data)
    known_images = KnownImages([known_image(tmp_path / each) for each in ("known.png", "other.png")])
    found = known_images.copied(COPIES[name][0], known_image(tmp_path / "new").measured)
    assert found is not None
    assert found.startswith("known.png, ")
    assert COPIES[name][1] in found


@pytest.mark.parametrize("name", NEW)
def test_lookalikes_are_new(name: str, tmp_path: Path) -> None:
    for file, data in (("known.png", saved(IMAGE)), ("other.png", saved(drawn(1))), ("new", NEW[name])):
        (tmp_path / file).write_bytes(data)
    known = KnownImages([known_image(tmp_path / each) for each in ("known.png", "other.png")])
    new = known_image(tmp_path / "new").measured
    assert known.copied(NEW[name], new) is None
    ((bits, found),) = known.lookalikes(new)
    assert found == "known.png"
    assert bits <= 31


def test_an_image_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    (tmp_path / "x.png").write_bytes(saved(IMAGE))
    measured = known_image(tmp_path / "x.png").measured
    with monkeypatch.context() as patch:
        patch.setattr(images, "decode_file", None)
        assert known_image(tmp_path / "x.png").measured == measured
    (kept,) = (tmp_path / "cache" / "contest").glob("*/*")
    kept.write_text(kept.read_text().replace(measured.small, measured.small[2:]))
    assert known_image(tmp_path / "x.png").measured == measured


def of_the_judges(made: OnDisk, data: bytes = saved(IMAGE), at: str = "2026-11-08T12:00:00Z") -> None:
    """A control image of the judges."""
    made.put(data)
    made.add(at, "controls", {"controls": {digest(data): {"contains": {"bird": True, "bicycle": False}}}})


def clean(made: OnDisk) -> None:
    made.clean.write_bytes(saved(IMAGE))


def published(made: OnDisk) -> None:
    """As the image that broke the defence."""
    data = saved(IMAGE)
    made.sha256 = made.put(data)
    answers = [made.answers_of(judge, {made.sha256: BIRD | {"outline": None}}) for judge in JUDGES[:3]]
    made.story = [each for each in made.story if each[1] not in ("answers", "run")]
    made.story += [("2026-11-07T12:00:00Z", "answers", each) for each in answers]
    made.changed("submission", images=[named("x.png", data)])


@pytest.mark.parametrize(
    ("arrange", "where"),
    [
        (of_the_judges, "the judges' [0-9a-f]{64}"),
        (clean, "clean image [^ ]*JPEG"),
        (published, r"line 4 \(submission\), x.png"),
    ],
)
def test_copies_are_refused_and_lookalikes_reported(arrange: Any, where: str, made: OnDisk) -> None:
    arrange(made)
    for name, copy in (("x.png", saved(changed(IMAGE, 90, 1))), ("y.png", saved(changed(IMAGE, 1)))):
        with pytest.raises(CleansetError, match=rf"{name}: a copy of {where}, .*; expected a new image"):
            made.check(made.mail(f"with {name}", {name: copy}))
    _, line = made.enter(made.mail("blue-1", {"x.png": NEW["mirrored"]}))
    assert re.match(r"for the board: line \d+ \(submission\), x.png looks like ", line)
    assert check(made.folder)[2] == line


def test_a_lookalike_of_the_same_week_is_reported(made: OnDisk) -> None:
    """Of another team's image that was entered before: its images may have been seen before they are published."""
    for number, (team, image) in enumerate((("red", IMAGE), ("red", drawn(2)), ("red", changed(drawn(2), 2)))):
        assert len(made.enter(made.mail(f"{team}-{number}", {"x.png": saved(image)}, team))) == 1
    _, line = made.enter(made.mail("blue-1", {"x.png": saved(changed(IMAGE, 2))}))
    assert line.startswith("for the board: line 14 (submission), x.png looks like line 11 (submission), x.png, PDQ dis")


def test_the_line_decides_who_has_copied(made: OnDisk) -> None:
    """Nothing that anybody writes: the first of two is the one that was entered first."""
    made.enter(made.mail("red-1", {"x.png": saved(IMAGE)}, "red"))
    copy = made.mail("blue-1", {"y.png": saved(IMAGE, compress_level=0)})
    lines = made.enter(copy, at="2026-11-09T13:00:00Z")
    assert lines[1] == ("left out: line 12, blue's submission/y.png: the same image as line 11, red's submission/x.png")


def test_what_judges_are_shown_later_makes_no_image_a_copy(made: OnDisk) -> None:
    """Else whoever adds controls would refuse an image that was there before."""
    made.enter(made.mail("blue-1", {"x.png": saved(IMAGE)}))
    data = saved(changed(IMAGE, 90, 1))
    made.text(made.edition / "mail" / "images" / "none", "")
    (made.edition / "mail" / "images" / "control.png").write_bytes(data)
    path = made.yaml("controls.yaml", {"controls": {digest(data): {"contains": {"bird": True, "bicycle": False}}}})
    made.enter(path)
    assert not [each for each in check(made.folder) if "looks like" in each or "copy" in each]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_chunk(kind: bytes, data: bytes) -> bytes:
    """A PNG with another chunk after its header."""
    image = png((7, 99, 9), (30, 30))
    return image[:33] + chunk(kind, data) + image[33:]


def animation_of_one_frame() -> bytes:
    """By its header: further frames may follow."""
    image = with_chunk(b"acTL", struct.pack(">II", 1, 0))
    return image[:53] + chunk(b"fcTL", struct.pack(">5I2H2B", 0, 30, 30, 0, 0, 1, 1, 0, 0)) + image[53:]


JPEG = saved(IMAGE, "JPEG", quality=90)
SRGB = struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (png((9, 9, 9)), None),
        (JPEG, None),
        (animation_of_one_frame(), "an animation"),
        (saved(IMAGE, "JPEG", progressive=True, restart_marker_rows=1), None),
        (saved(IMAGE, "JPEG", comment=b"\xff\xd9 no end"), None),
        (png((9, 9, 9)) + b"x", "1 bytes after the end of the image"),
        (JPEG + png((9, 9, 9), (1, 1)), "bytes after the end of the image"),
        (with_chunk(b"gAMA", struct.pack(">I", 45455)), None),
        (with_chunk(b"gAMA", struct.pack(">I", 100000)), r"a gamma \(gAMA\)"),
        (with_chunk(b"cHRM", SRGB), None),
        (with_chunk(b"cHRM", SRGB[4:] + SRGB[:4]), r"primaries \(cHRM\)"),
        (with_chunk(b"cICP", bytes([9, 16, 0, 1])), r"a color space \(cICP\)"),
        (png((9, 9, 9), icc_profile=b"profile"), "an ICC profile"),
        (saved(IMAGE, "JPEG", icc_profile=b"profile"), "an ICC profile"),
    ],
)
def test_what_a_viewer_shows_otherwise(data: bytes, found: str | None, made: OnDisk) -> None:
    """Refused by the check, and by the command that makes a manifest."""
    assert Image.open(io.BytesIO(data)).convert("RGB").size
    name = "y.png" if data.startswith(b"\x89PNG") else "y.jpg"
    folder = made.mail("blue-1", {name: data})
    if found is None:
        assert problem_beside_pixels(data) is None
        assert len(made.check(folder)) == 1
    else:
        with pytest.raises(
            CleansetError, match=rf"{name}: .*{found}.*; expected nothing but its pixels: save them alone"
        ):
            made.check(folder)


def test_a_submitted_image_of_one_pixel(made: OnDisk) -> None:
    with pytest.raises(CleansetError, match=r"x\.png: 1 x 1 pixels; expected at least 16 a side"):
        made.check(made.mail("blue-1", {"x.png": png((9, 9, 9), (1, 1))}))
