"""judges/: each line of bad input of controls, examples, images and masks."""

import datetime
import io
import os
import re
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.contest import reading
from cleanset.studies.contest.checking import run
from cleanset.studies.contest.commands import judges
from cleanset.studies.contest.judge_page.session import JudgeSession
from cleanset.studies.contest.reading import file_sha256, read_contest
from cleanset.studies.contest.standing import standing
from tests.studies.contest.made import BIRD, JUDGES, day
from tests.studies.contest.on_disk import OnDisk, digest, png
from tests.time_limits import at_most

CONTROL, EXAMPLE = png((0, 90, 0), (30, 20)), png((0, 0, 90), (30, 20))
BOTH = {"bird": True, "bicycle": False}
ANSWER = {
    "date": "2026-11-01", "contains": {"bird": "definitely_no", "bicycle": "definitely_no"}, "because": "It is blue.",
}  # fmt: skip


def mask(size: tuple[int, int] = (30, 20), value: int = 255) -> bytes:
    out = io.BytesIO()
    Image.new("L", size, value).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def made(tmp_path: Path) -> OnDisk:
    made = OnDisk(tmp_path)
    for folder in ("images", "masks"):
        made.path(f"judges/{folder}").mkdir()
    made.path("judges/images/control.png").write_bytes(CONTROL)
    made.path("judges/images/example.png").write_bytes(EXAMPLE)
    made.path(f"judges/masks/{digest(CONTROL)}.png").write_bytes(mask())
    made.yaml("judges/controls.yaml", {"controls": {digest(CONTROL): {"contains": BOTH}}})
    made.yaml("judges/examples.yaml", {"examples": {digest(EXAMPLE): ANSWER}})
    return made


def test_what_is_in_order(made: OnDisk) -> None:
    assert run(made.folder, None, None).splitlines()[0] == "1 defences, 1 submissions with 1 images"


def write(name: str, data: bytes) -> Callable[[OnDisk], object]:
    return lambda made: made.path(name).write_bytes(data)


def examples(contains: Mapping[str, str]) -> Callable[[OnDisk], object]:
    content = {"examples": {digest(EXAMPLE): ANSWER | {"contains": dict(contains)}}}
    return lambda made: made.yaml("judges/examples.yaml", content)


def test_the_page_refuses_the_same_examples(made: OnDisk) -> None:
    examples({"bird": "definitely_yes"})(made)
    with pytest.raises(CleansetError, match=r"examples\.yaml: [0-9a-f]{12}…: contains 'bird'; expected bicycle, bird"):
        JudgeSession(made.folder, JUDGES[0], datetime.date(2026, 11, 7))


def test_each_file_is_hashed_for_masks_and_for_the_check(made: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def counted(path: Path) -> str:
        hashed.append(path.name)
        return file_sha256(path)

    monkeypatch.setattr(reading, "file_sha256", counted)
    run(made.folder, None, None)
    assert hashed == 2 * ["control.png", "example.png"]


OF_CONTROL = f"judges/masks/{digest(CONTROL)}.png"


def outlined(right: int, below: int) -> dict[str, object]:
    """A bird whose outline ends there."""
    return BIRD | {"outline": [[0, 0], [right, 0], [right, below]]}


def test_an_outline_may_touch_the_border(made: OnDisk) -> None:
    made.judge(JUDGES[3], "2026-11-06", {digest(CONTROL): outlined(30, 20) | {"date": "2026-11-07"}})
    made.yaml("judges/examples.yaml", {"examples": {digest(EXAMPLE): ANSWER | outlined(30, 20)}})
    assert run(made.folder, None, None)


def test_judges_are_scored_by_masks(made: OnDisk) -> None:
    """A mask of all 30 x 20 pixels, and an outline of the upper right half of them."""
    made.judge(JUDGES[3], "2026-11-06", {digest(CONTROL): outlined(30, 20) | {"date": "2026-11-07"}})
    shown = table_of_judges(made)
    assert re.search(f"{JUDGES[3]} *│ *0 *│ *1 *│ *1 *│ *1.00 *│ *0.50 ", shown)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (mask((3, 3)), r": 3 x 3 pixels; expected those of its image, 30 x 20$"),
        (mask()[:40], r"\.png: .*; expected a PNG, white where the object is$"),
        (b"no image", r"\.png: .*; expected a PNG, white where the object is$"),
        (mask(value=100), r": nothing in it is white; expected white where the object is$"),
    ],
)
def test_judges_are_not_scored_by_a_mask_that_does_not_fit(made: OnDisk, data: bytes, message: str) -> None:
    made.path(OF_CONTROL).write_bytes(data)
    for refused in (table_of_judges, lambda made: standing(read_contest(made.folder), day("2026-11-14"))):
        with pytest.raises(CleansetError, match=message):
            refused(made)


def test_a_pipe_in_place_of_a_mask(made: OnDisk) -> None:
    made.path(OF_CONTROL).unlink()
    os.mkfifo(made.path(OF_CONTROL))
    with at_most(5), pytest.raises(CleansetError, match="a named pipe; expected a regular file"):
        table_of_judges(made)
    with at_most(5), pytest.raises(CleansetError, match="a named pipe; expected a regular file"):
        run(made.folder, None, None)


def table_of_judges(made: OnDisk) -> str:
    """What `cleanset contest judges` prints."""
    with redirect_stdout(io.StringIO()) as out:
        judges(made.folder)
    return out.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            write("judges/images/control.png", png((1, 1, 1))),
            r"no file with SHA-256 [0-9a-f]{12}…; expected every control",
        ),
        (write("judges/images/more.png", png((1, 1, 1))), r"more\.png: neither a control nor an example"),
        (write("judges/masks/more.png", mask()), r"more\.png: a mask without a control"),
        (write(OF_CONTROL, mask((20, 30))), r"20 x 30 pixels; expected those of its image, 30 x 20"),
        (write(OF_CONTROL, mask(value=100)), r"nothing in it is white"),
        (write(OF_CONTROL, mask()[:40]), r"expected a PNG, white where the object is"),
        (
            lambda made: made.yaml(
                "judges/controls.yaml", {"controls": {digest(CONTROL): {"contains": {"bird": True}}}}
            ),
            r"controls\.yaml: [0-9a-f]{12}…: contains 'bird'; expected bicycle, bird",
        ),
        (
            examples({"b\nx": "definitely_yes"}),
            r"examples\.yaml: [0-9a-f]{12}…: contains 'b\\nx'; expected bicycle, bird",
        ),
        (
            lambda made: made.judge(
                JUDGES[3], "2026-11-06", {digest(CONTROL): outlined(30, 21) | {"date": "2026-11-07"}}
            ),
            r"2026-11-06\.yaml: [0-9a-f]{12}…: an outline with the point \[30, 21\], outside the image of 30 x 20",
        ),
        (
            lambda made: made.yaml("judges/examples.yaml", {"examples": {digest(EXAMPLE): ANSWER | outlined(31, 20)}}),
            r"examples\.yaml: [0-9a-f]{12}…: an outline with the point \[31, 0\], outside the image of 30 x 20",
        ),
        (examples({}), r"examples\.yaml: [0-9a-f]{12}…: contains nothing; expected bicycle, bird"),
    ],
)
def test_what_is_refused(change: Callable[[OnDisk], object], message: str, made: OnDisk) -> None:
    change(made)
    with pytest.raises(CleansetError, match=message) as caught:
        run(made.folder, None, None)
    assert "\n" not in str(caught.value)
