"""The main path of the review page in Firefox: verdicts by key and by mouse, a box, a note, a search, all the rest."""

from pathlib import Path

from playwright.sync_api import Browser

from .conftest import Serve
from .reviewing import Reviewing, reviews


def test_reviewing_in_firefox(edition: Path, start: Serve, firefox: Browser) -> None:
    server = start(alone=True)
    page = firefox.new_page(viewport={"width": 1280, "height": 800})
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    at = Reviewing(page, server.address)
    wnid, (first, second, third, *_) = at.wnid, at.shown
    at.press("c", "r", "w")
    at.open(wnid, third)
    at.crop([4, 5, 60, 61], "border")
    at.open(wnid, first)
    at.enter({"note": "in Firefox", "verdict": "unsure"})
    found = reviews(edition)[wnid]
    assert found[first] == {"verdict": "unsure", "note": "in Firefox"}
    assert found[second] == {"verdict": "reject", "reason": "watermark"}
    assert (found[third]["verdict"], found[third]["crop"]) == ("crop", [4, 5, 60, 61])
    at.page.reload()
    at.ready()
    while at.wnid == wnid:
        at.press("n")
    before = at.wnid
    at.look_for_long(9.0)
    at.press("a")
    at.look_for_long(9.0)
    page.wait_for_function("wnid => document.querySelector('#view').dataset.classKey !== wnid", arg=before)
    assert {each["verdict"] for each in reviews(edition)[before].values()} == {"clean"}
    assert failures == []
    page.close()
