"""Submissions that are no new images, or that people are shown otherwise than models see them."""

import io
import struct
import zlib
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.contest.checking import run
from cleanset.studies.contest.images import copied, known_images, lookalikes, problem_beside_pixels
from tests.studies.contest.made import BIRD, day
from tests.studies.contest.on_disk import FIRST, OnDisk, digest, png
from tests.studies.contest.test_history import commit

SIDE = 96
SECOND = "submissions/blue/2026-11-09-1"


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


IMAGE = drawn(0)
COPIES = {
    "the same": (saved(IMAGE, compress_level=0), "0 of 255"),
    "one pixel": (saved(changed(IMAGE, 90, 1)), "differs by 0.0"),
    "a level": (saved(changed(IMAGE, 1)), "differs by"),
    "jpeg": (saved(IMAGE, "JPEG", quality=60), "encoded anew as JPEG"),
    "low quality": (saved(IMAGE, "JPEG", quality=20, subsampling=2), "encoded anew as JPEG"),
    "lowest quality": (saved(IMAGE, "JPEG", quality=1, subsampling=2), "encoded anew as JPEG"),
    "own tables": (saved(IMAGE, "JPEG", qtables=[list(range(9, 73))] * 2), "encoded anew as JPEG"),
    "png of a jpeg": (saved(opened(saved(IMAGE, "JPEG", quality=83, subsampling=1))), "encoded anew as JPEG"),
}
NEW = {
    "an attack": saved(changed(IMAGE, 8)),
    "turned": saved(IMAGE.transpose(Image.Transpose.ROTATE_90)),
    "mirrored": saved(IMAGE.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies(name: str, tmp_path: Path) -> None:
    for file, data in (("known.png", saved(IMAGE)), ("other.png", saved(drawn(1))), ("new", COPIES[name][0])):
        (tmp_path / file).write_bytes(data)
    found = copied(tmp_path / "new", known_images({each: tmp_path / each for each in ("known.png", "other.png")}))
    assert found is not None
    assert found.startswith("known.png, ")
    assert COPIES[name][1] in found


@pytest.mark.parametrize("name", NEW)
def test_lookalikes_are_new(name: str, tmp_path: Path) -> None:
    for file, data in (("known.png", saved(IMAGE)), ("other.png", saved(drawn(1))), ("new", NEW[name])):
        (tmp_path / file).write_bytes(data)
    known = known_images({each: tmp_path / each for each in ("known.png", "other.png", "missing.png")})
    assert len(known) == 2
    assert copied(tmp_path / "new", known) is None
    ((bits, found),) = lookalikes(tmp_path / "new", known)
    assert found == "known.png"
    assert bits <= 31


def of_the_judges(made: OnDisk, data: bytes = saved(IMAGE)) -> None:
    """A control image of the judges."""
    made.yaml("judges/controls.yaml", {"controls": {digest(data): {"contains": {"bird": True, "bicycle": False}}}})
    made.path("judges/images").mkdir()
    made.path("judges/images/control.png").write_bytes(data)


def clean(made: OnDisk) -> None:
    made.clean.write_bytes(saved(IMAGE))


def published(made: OnDisk) -> None:
    name = made.submit("submissions/red/2026-11-03-1", {"y.png": saved(IMAGE)})["y.png"]
    made.run("2026-11-07", {made.sha256: "bicycle", name: "bird"})
    for judge in ("a" * 8, "b" * 8, "c" * 8):
        answers = {each: deepcopy(BIRD) | {"date": "2026-11-07"} for each in (made.sha256, name)}
        made.judge(judge, "2026-11-06", answers)


@pytest.mark.parametrize(
    ("arrange", "where"),
    [
        (of_the_judges, "the judges' control.png"),
        (clean, "clean image [^ ]*JPEG"),
        (published, "submissions/red/2026-11-03-1/y.png"),
    ],
)
def test_copies_are_refused_and_lookalikes_reported(arrange: Any, where: str, made: OnDisk) -> None:
    arrange(made)
    for copy in (saved(changed(IMAGE, 90, 1)), saved(IMAGE, "JPEG", quality=75)):
        name = "x.png" if copy.startswith(b"\x89PNG") else "x.jpg"
        made.submit(SECOND, {name: copy})
        for path in (None, made.path(SECOND)):
            with pytest.raises(
                CleansetError, match=rf"{SECOND}/images/{name}: a copy of {where}, .*; expected a new image"
            ):
                run(made.folder, path, None)
        made.path(f"{SECOND}/images/{name}").unlink()
    made.submit(SECOND, {"x.png": NEW["mirrored"]})
    summary, line, _ = run(made.folder, made.path(SECOND), None).splitlines()
    assert summary == f"{SECOND}: 1 images"
    assert line.startswith(f"for the board: {SECOND}/x.png looks like ")
    assert run(made.folder, None, day("2026-11-14")).splitlines()[1] == line


def test_a_lookalike_of_the_same_week_is_reported(made: OnDisk) -> None:
    """Of another team's image that was submitted before: its images may have been seen before they are published."""
    for name, image in (("red/2026-11-09-1", IMAGE), ("red/2026-11-09-2", drawn(2)), ("blue/2026-11-10-1", IMAGE)):
        copy = changed(image, 2) if name.startswith("blue") else image
        made.submit(f"submissions/{name}", {"x.png": saved(copy)})
    made.submit("submissions/red/2026-11-11-1", {"x.png": saved(changed(drawn(2), 2))})  # of one's own
    _, *lines, _ = run(made.folder, None, None).splitlines()
    (line,) = lines
    assert line.startswith("for the board: submissions/blue/2026-11-10-1/x.png looks like submissions/red/2026-11-09-1")


@pytest.mark.parametrize("change", [0, 1])
def test_the_first_commit_decides_who_has_copied(change: int, made: OnDisk) -> None:
    """Not the time in a manifest: one who copies an image, with a pixel changed or none, may write an earlier one."""
    original, copy = "submissions/red/2026-11-09-1", "submissions/blue/2026-11-09-1"
    commit(made, "2026-11-02T12:00:00Z")
    made.submit(original, {"x.png": saved(IMAGE)})
    commit(made, "2026-11-09T12:00:00Z")
    made.submit(copy, {"y.png": saved(changed(IMAGE, 90, change))}, submitted="2026-11-09T00:00:00Z")
    commit(made, "2026-11-09T13:00:00Z")
    if change:
        *_, line = run(made.folder, None, day("2026-11-09")).splitlines()
        assert line.startswith(f"for the board: {copy}/y.png looks like {original}/x.png")
    else:
        message = f"{copy}: submitted 2026-11-09T00:00:00Z, but {original} has committed the same image before it; expe"
        with pytest.raises(CleansetError, match=message):
            run(made.folder, None, day("2026-11-09"))


def test_what_judges_are_shown_later_makes_no_image_a_copy(made: OnDisk) -> None:
    """Else whoever adds controls would refuse an image that was there before."""
    commit(made, "2026-11-02T12:00:00Z")
    made.submit(SECOND, {"x.png": saved(IMAGE)})
    commit(made, "2026-11-09T12:00:00Z")
    of_the_judges(made, saved(changed(IMAGE, 90, 1)))
    commit(made, "2026-11-10T12:00:00Z")
    assert "looks like" not in run(made.folder, None, day("2026-11-10"))


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
    made.submit(SECOND, {name: data})
    if found is None:
        assert problem_beside_pixels(data) is None
        assert run(made.folder, made.path(SECOND), None).splitlines()[0] == f"{SECOND}: 1 images"
    else:
        with pytest.raises(
            CleansetError, match=rf"{name}: .*{found}.*; expected nothing but its pixels: save them alone"
        ):
            run(made.folder, made.path(SECOND), None)


def test_a_submitted_image_of_one_pixel(made: OnDisk) -> None:
    made.submit(FIRST, {"x.png": png((9, 9, 9), (1, 1))})
    with pytest.raises(CleansetError, match=r"x\.png: 1 x 1 pixels; expected at least 16 a side"):
        run(made.folder, made.path(FIRST), None)
