"""The page of a contest: what it shows of a few entries, and the sample's in a browser."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import Browser

from cleanset.errors import CleansetError
from cleanset.report.thumbnails import PageImage
from cleanset.studies.contest.log import Log, read
from cleanset.studies.contest.report import contest_page, write_page
from tests.report.pages import opened, soup, tables, violations
from tests.studies.contest.made import (
    BIRD,
    JUDGES,
    SECOND_FRIDAY,
    SECOND_SATURDAY,
    UNSURE,
    appeal,
    contest,
    day,
    decision,
    judged,
    run,
    sha,
    standing,
    submission,
)
from tests.studies.contest.on_disk import OnDisk, png

DEPICTION = BIRD | {"real": False, "outline": "0,0 50,0 50,50 0,50"}
IMAGES = [submission("red", ["x", "y"]), submission("blue", ["z"], "2026-11-10")]
ANSWERS = [
    *judged({"x": BIRD, "y": DEPICTION}),
    *judged({"z": UNSURE}, JUDGES[:2], SECOND_SATURDAY, SECOND_FRIDAY),
]
RUNS = [
    run({"x": "bicycle", "y": "bicycle"}),
    run({"x": "bicycle", "y": "abstain", "z": "abstain"}, date=SECOND_SATURDAY),
]


def log(**others: Any) -> Log:
    return contest(IMAGES, ANSWERS, RUNS, **others)


def html(found: Log) -> str:
    images = {sha(name): PageImage(f"{name}.jpg", 50, 40) for name in "xyz"}
    return contest_page(standing(found, SECOND_SATURDAY), images)


def page(found: Log) -> BeautifulSoup:
    return BeautifulSoup(html(found), "html.parser")


def card(shown: BeautifulSoup, name: str) -> str:
    """The text below an image."""
    found = shown.find(id=sha(name))
    assert found is not None
    return " ".join(found.get_text(" ").split())


def test_the_standing_and_the_defences() -> None:
    shown = page(log())
    assert tables(shown, "defences")[0][1][:5] == ["gold/wall", "standard, abstains below softmax 0.5", "10", "9", "0"]
    assert tables(shown, "standing")[0][1][:5] == ["gold/wall", "broken", "2026-11-02", "2026-11-06", "red 1"]


def test_each_image_with_its_verdict() -> None:
    shown = page(log(appeals=[appeal("y", "red")], decisions=[decision("y", "invalid", "2026-11-12")]))
    assert "bird by 3 judges; final since 2026-11-14" in card(shown, "x")
    assert "gold/ wall : bicycle" in card(shown, "x").replace("gold/wall", "gold/ wall ")
    assert "rejected : too small, depiction by the board; final since 2026-11-12" in card(shown, "y")
    assert "Appeal of red, 2026-11-09: no bird" in card(shown, "y")
    assert "The board, 2026-11-12: invalid looked at it" in card(shown, "y")
    assert "2 of 3 judges open" in card(shown, "z")


def test_no_member_of_the_board_is_shown() -> None:
    decisions = [decision("y", "invalid", "2026-11-12", recused=["eve"])]
    assert "1 recused" in html(log(decisions=decisions))
    assert not {"ada", "bob", "eve"} & {*page(log(decisions=decisions)).get_text(" ").split()}


def test_the_page_of_the_sample_is_the_committed_one(repository: Path, tmp_path: Path) -> None:
    """The same bytes from the same files, images included, in another place."""
    committed = repository / "studies" / "contest"
    copy = tmp_path / "studies" / "contest"
    shutil.copytree(committed, copy)
    shutil.rmtree(copy / "results" / "page_images")
    (copy / "results" / "page.html").unlink()
    written = write_page(copy, read(copy), day(yaml.safe_load((copy / "params.yaml").read_text())["day"]))
    assert written.read_bytes() == (committed / "results" / "page.html").read_bytes()
    images = sorted((committed / "results" / "page_images").iterdir())
    assert len(images) == 4
    assert all(path.read_bytes() == (copy / "results" / "page_images" / path.name).read_bytes() for path in images)
    verdicts = [" ".join(each.get_text().split()) for each in soup(written).select(".verdict")]
    assert verdicts == ["fruit", "rejected: ambiguous", "fruit", "rejected: ambiguous"]


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_in_a_browser(width: int, scheme: Any, repository: Path, browser: Browser) -> None:
    """Without a network, no wider than the window; axe finds nothing, also with the answers of judges open."""
    for _, shown in opened(browser, repository / "studies" / "contest" / "results", width):
        shown.emulate_media(color_scheme=scheme)
        shown.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
        assert shown.evaluate("document.documentElement.scrollWidth") == width
        assert violations(shown) == []
        shown.locator("a.enlarge").first.click()
        assert shown.get_by_role("dialog").is_visible()


def test_it_is_written_from_the_disk(made: OnDisk) -> None:
    """Images that are gone, and a folder of older ones, are not kept."""
    old = made.folder / "results" / "page_images" / "old.jpg"
    made.text(old, "")
    found = soup(write_page(made.folder, read(made.folder), day("2026-11-14")))
    assert [image["src"] for image in found("img")] == [f"page_images/{made.sha256}.jpg"]
    assert [each.name for each in old.parent.iterdir()] == [f"{made.sha256}.jpg"]
    write_page(made.folder, read(made.folder), day("2026-11-05"))  # a day before the image was published
    assert list(old.parent.iterdir()) == []


def test_a_changed_image(made: OnDisk) -> None:
    path = made.folder / "objects" / made.sha256
    path.write_bytes(png((0, 0, 0)))
    with pytest.raises(CleansetError, match=f"{made.sha256}: SHA-256 .*; expected {made.sha256}"):
        write_page(made.folder, read(made.folder), day("2026-11-14"))
    assert not (made.folder / "results" / "page.html").exists()


def test_results_that_are_a_link(made: OnDisk, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (made.folder / "results").symlink_to(tmp_path / "other")
    with pytest.raises(CleansetError, match="results: a symbolic link; expected none where something is written"):
        write_page(made.folder, read(made.folder), day("2026-11-14"))
