"""Mail: entries in files and folders, images that are refused or listed, runs, and what is printed."""

import io
import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from cleanset.errors import CleansetError
from cleanset.studies.contest.entering import check, enter_runs
from cleanset.studies.contest.entries import DefenceRun
from cleanset.studies.contest.log import read
from cleanset.studies.contest.runs import rounded_down
from cleanset.studies.contest.standing import replay
from tests.studies.contest.made import BIRD, JUDGES, sha
from tests.studies.contest.on_disk import CLEAN, OnDisk, digest, named, png


def textured(seed: int, side: int = 64) -> Image.Image:
    """An image of blocks, which no other seed gives."""
    blocks = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), np.uint8)
    return Image.fromarray(blocks).resize((side, side), Image.Resampling.NEAREST)


def saved(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_a_submission_by_mail(form: str, made: OnDisk) -> None:
    """Checked without being written, entered, published, and asked about afterwards."""
    data = saved(textured(1), form)
    folder = made.mail("blue-1", {"x.png": data})
    before = made.log.read_bytes()
    assert made.enter(folder, write=False)[0].startswith("line 11 (submission), ")
    assert made.log.read_bytes() == before
    made.enter(folder)
    assert made.folder.joinpath("objects", digest(data)).read_bytes() == data
    made.enter(at="2026-11-13T18:00:00Z", publish=True)
    assert digest(data) in replay(read(made.folder)).images


def with_chunk(kind: bytes, content: bytes) -> bytes:
    info = PngImagePlugin.PngInfo()
    info.add(kind, content)
    return saved(textured(2), pnginfo=info)


def bomb() -> bytes:
    """A PNG of 60,000 x 60,000 pixels, by its header."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    small = saved(textured(2))
    return small[:12] + header + struct.pack(">I", zlib.crc32(header)) + small[33:]


def turned(image: Image.Image) -> bytes:
    exif = image.getexif()
    exif[0x0112] = 6
    return saved(image, "JPEG", exif=exif)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GIF89a", "expected a PNG or JPEG"),
        (saved(textured(2)) + b"more", "4 bytes after the end of the image"),
        (saved(textured(2), "JPEG") + b"more", "4 bytes after the end of the image"),
        (saved(textured(2).convert("RGBA")), "mode RGBA"),
        (saved(textured(2), icc_profile=b"x" * 200), "an ICC profile"),
        (with_chunk(b"gAMA", (99_999).to_bytes(4, "big")), "a gamma"),
        (with_chunk(b"acTL", bytes(8)), "animat"),
        (turned(textured(2)), "an EXIF orientation"),
        (saved(textured(2), transparency=(1, 2, 3)), "without transparency"),
        (saved(textured(2))[:-40], "image file is truncated"),
        (saved(Image.fromarray(np.zeros((64, 64), np.uint16))), "mode I;16"),
        (bomb(), r"3600000000 pixels\) exceeds limit"),
        (saved(textured(2, 65).crop((0, 0, 65, 64))), "65 x 64 pixels; expected a square image"),
        (saved(textured(2, 183)), "183 x 183 pixels; expected 16 to 182 a side"),
    ],
)
def test_refused_images(data: bytes, message: str, made: OnDisk) -> None:
    """People see what models see: nothing but pixels, and no more of them than every defence sees."""
    with pytest.raises(CleansetError, match=message):
        made.enter(made.mail("blue-1", {"x.png": data}))


NAMES = ["x.png.exe", "x.gif", "x\x1b[0m.png", "x\n.png", "-x.png", "a/x.png", f"{'x' * 101}.png"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_refused_names(name: str, made: OnDisk) -> None:
    folder = made.mail("blue-1", {})
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(saved(textured(2)))
    with pytest.raises(CleansetError, match=r"mail/blue-1 \(submission\): images.0.file: expected a name of letters"):
        made.enter(folder)


def test_links_and_pipes_are_refused(made: OnDisk) -> None:
    """At once, and whatever a link leads to."""
    folder = made.mail("blue-1", {"x.png": saved(textured(2))})
    os.mkfifo(folder / "y.png")
    (folder / "z").symlink_to(made.edition)
    for name in ("y.png", "z"):
        with pytest.raises(CleansetError, match=rf"{name}: a link or pipe; expected a file or folder"):
            made.enter(folder)
        (folder / name).unlink()
    (made.edition / "mail" / "linked").symlink_to(folder)
    with pytest.raises(CleansetError, match="linked: a link or pipe"):
        made.enter(made.edition / "mail" / "linked")


def test_an_allowed_gamma(made: OnDisk) -> None:
    made.enter(made.mail("blue-1", {"x.png": with_chunk(b"gAMA", (45_455).to_bytes(4, "big"))}))


def a_little_changed(image: Image.Image, by: int) -> Image.Image:
    pixels = np.asarray(image, np.int16)
    return Image.fromarray(np.clip(pixels + np.where(pixels < 128, by, -by), 0, 255).astype(np.uint8))


@pytest.mark.parametrize(
    ("second", "is_copy"),
    [
        (textured(3), True),
        (a_little_changed(textured(3), 1), True),
        (a_little_changed(textured(3), 3), False),
        (textured(3).rotate(90), False),
        (textured(3).resize((100, 100), Image.Resampling.BICUBIC), False),
        (Image.open(io.BytesIO(saved(textured(3), "JPEG", quality=25, subsampling=0))), False),
        (textured(4), None),
    ],
)
def test_copies_are_refused_and_lookalikes_listed(second: Image.Image, is_copy: bool | None, made: OnDisk) -> None:
    """A level a pixel is a copy; scaled, turned or saved again, an image is listed for the board."""
    made.enter(made.mail("blue-1", {"x.png": saved(textured(3))}))
    folder = made.mail("green-1", {"y.png": saved(second.convert("RGB"))}, team="green")
    if is_copy:
        with pytest.raises(CleansetError, match=r"a copy of x.png in line 11|submitted before, as x.png in line 11"):
            made.enter(folder)
    else:
        notes = made.enter(folder)[1:]
        assert notes == ([] if is_copy is None else ["for the board: y.png in line 12 (submission) looks like x.png in "
                                                     "line 11 (submission)"])  # fmt: skip


def test_copies_in_one_submission(made: OnDisk) -> None:
    twins = {"x.png": saved(textured(3)), "y.png": saved(a_little_changed(textured(3), 1))}
    with pytest.raises(CleansetError, match=r"y.png: a copy of x.png in line 11 \(submission\), which differs by 1 of"):
        made.enter(made.mail("blue-1", twins))


def test_the_clean_set_and_the_judges_images_are_known(made: OnDisk) -> None:
    with pytest.raises(CleansetError, match="a copy of clean image "):
        made.enter(made.mail("blue-1", {"x.png": png(CLEAN, (30, 30))}))
    data = saved(textured(5))
    made.text(made.edition / "mail" / "images" / "c.png", "")
    (made.edition / "mail" / "images" / "c.png").write_bytes(data)
    made.enter(made.yaml("controls.yaml", {"controls": {digest(data): {"contains": {"bird": True, "bicycle": False}}}}))
    with pytest.raises(CleansetError, match="a control image of the judges"):
        made.enter(made.mail("blue-2", {"x.png": data}))
    with pytest.raises(CleansetError, match="a copy of the judges'"):
        made.enter(made.mail("blue-3", {"x.png": saved(a_little_changed(textured(5), 1))}))


def test_an_image_that_is_not_as_its_line_says(made: OnDisk) -> None:
    data = saved(textured(6))
    made.put(data)
    line = {"team": "blue", "target": "gold/wall", "images": [named("y.png", data) | {"pixels_sha256": sha("other")}]}
    made.add("2026-11-09T12:00:00Z", "submission", line)
    with pytest.raises(CleansetError, match=r"not the size and pixels of .*; expected these: void the line"):
        check(made.folder)


def test_an_outline_outside_its_image(made: OnDisk) -> None:
    outside = BIRD | {"outline": "0,0 101,0 101,90"}
    path = made.yaml("a.yaml", made.answers_of(JUDGES[3]) | {"answers": {made.sha256: outside}})
    with pytest.raises(CleansetError, match="an outline with the corner 101,0, outside the image of 100 x 100 pixels"):
        made.enter(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"vote": {}}, "not an entry of a contest; expected manifest.yaml or defence.yaml in a folder"),
        ({"team": {"name": "black"}, "void": {}}, "not an entry of a contest"),
        ({"team": "black"}, "not an entry of a contest"),
        ([1], "expected keys and values"),
    ],
)
def test_what_is_no_entry(content: object, message: str, made: OnDisk) -> None:
    with pytest.raises(CleansetError, match=message):
        made.enter(made.yaml("x.yaml", content))


def test_a_file_that_is_too_long(made: OnDisk) -> None:
    """As lists without end it would fill the memory."""
    made.text(made.edition / "mail" / "x.yaml", f"team: [{'[],' * 2_000_000}]")
    with pytest.raises(CleansetError, match=r"x\.yaml: .*4,194,304"):
        made.enter(made.edition / "mail" / "x.yaml")


def test_a_defence_in_a_folder(made: OnDisk) -> None:
    """All files next to it are its program's, with their digests."""
    folder = made.yaml(
        "d/defence.yaml", {"name": "red/tool", "open": False, "program": {"command": ["sh", "run.sh"]}}
    ).parent
    made.text(folder / "run.sh", "exit 1")
    made.text(folder / "lib" / "part.txt", "p")
    made.enter(folder)
    program = replay(read(made.folder)).defences["red/tool"].defence.program
    assert program is not None
    assert program.files == {"lib/part.txt": digest(b"p"), "run.sh": digest(b"exit 1")}
    model = {"role": "standard", "confidence": "softmax", "threshold": 0.9}
    folder = made.yaml("m/defence.yaml", {"name": "red/model", "open": False, "model": model}).parent
    made.text(folder / "run.sh", "")
    with pytest.raises(CleansetError, match=r"next to the defence\.yaml of a model"):
        made.enter(folder)


@pytest.mark.parametrize("limits", [{"max_side": 183, "seen_share": 0.8}, {"max_side": 182, "seen_share": 0.9}])
def test_a_model_that_sees_less_than_people(limits: dict[str, float], made: OnDisk) -> None:
    """The sample's models scale an image to 182 pixels, and look at 160 of them."""
    made.changed("contest", limits=limits)
    with pytest.raises(
        CleansetError, match=r"model standard: scales a square image to 182 pixels a side, and looks at 0\.8"
    ):
        check(made.folder)


def test_an_unpublished_list_is_named_by_its_digest(made: OnDisk) -> None:
    """In the first line: it shows nothing of its images."""
    made.log.unlink()
    for group, seed in (("bird", 1), ("bicycle", 2)):
        made.text(made.folder / "unpublished" / group / "a.png", "")
        (made.folder / "unpublished" / group / "a.png").write_bytes(saved(textured(seed)))
    made.changed("contest", classes={"bird": ["n01440764"], "bicycle": ["n02835271"]})
    path = made.yaml("contest.yaml", dict(made.story[0][2]))
    made.log.unlink()
    made.enter(path)
    lines = sorted(f"{group} {digest(saved(textured(seed)))}\n" for group, seed in (("bird", 1), ("bicycle", 2)))
    assert read(made.folder).rules.unpublished == digest("".join(lines).encode())


def test_runs_are_entered_one_by_one(made: OnDisk, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A defence that fails keeps no other from being run; each problem is reported."""
    second = dict(made.story[2][2]) | {"name": "blue/roof"}
    made.story.insert(3, ("2026-11-01T10:00:00Z", "defence", second))
    made.write()

    def run(folder: Path, contest: object, name: str, hidden: object) -> Any:
        if name == "blue/roof":
            raise CleansetError("blue/roof: fails")
        return DefenceRun.model_validate(made.run_of({made.sha256: "bicycle"}))

    monkeypatch.setattr("cleanset.studies.contest.runs.run_defence", run)
    found = enter_runs(made.folder)
    assert json.loads(next(found))["defence"] == "gold/wall"
    with pytest.raises(CleansetError, match="no run of blue/roof; expected one of each"):
        next(found)
    assert "blue/roof: fails" in capsys.readouterr().err
    with pytest.raises(CleansetError, match="unknown defence 'x'"):
        list(enter_runs(made.folder, ["x"]))


@pytest.mark.parametrize(("rate", "found"), [(1999.9, 1900.0), (64.37, 64.0), (1.09, 1.0), (0.999, 0.99), (0.0, 0.0)])
def test_a_rate_has_two_digits_and_meets_no_limit_by_rounding(rate: float, found: float) -> None:
    assert rounded_down(rate) == found
