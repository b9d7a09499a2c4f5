"""A team of three and a board on one server: each sees their own work, and the set is reviewed, audited, exported."""

import csv
import http.client
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from cleanset.review.page.shares import common_classes
from tests.browser_tab import PATIENCE, SOURCE
from tests.documents import blocks
from tests.forked_commands import forking

from .reviewing import Reviewing, reviews, serve

CLASSES = int(os.environ.get("CLEANSET_TEAM_CLASSES", "3"))
TEAM = ("ana", "ben", "cy")
NAMES = [argument for name in (*TEAM, "board") for argument in ("--reviewer", name)]
DOCUMENTED = ["cleanset", "review", "serve", *NAMES, "--host", "0.0.0.0"]
OVERLAP = 0.34
COMMON = {f"c{index:02}" for index in common_classes(range(CLASSES), OVERLAP)}


def run(folder: Path, *command: str) -> str:
    environment = os.environ | forking(SOURCE) | {"DVC_SITE_CACHE_DIR": str(folder.parent / "site")}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    """An edition of own images, four of noise in each class, before anybody has reviewed."""
    draw = np.random.default_rng(0)
    for index in range(CLASSES):
        for number in range(4):
            path = tmp_path / "images" / f"c{index:02}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draw.integers(0, 256, (80, 90, 3), np.uint8)).save(path)
    run(tmp_path, "cleanset", "edition", "team", "--images", "images")
    params = tmp_path / "team" / "params.yaml"
    params.write_text(params.read_text().replace("  policy: single\n", f"  policy: single\n  overlap: {OVERLAP}\n"))
    run(tmp_path / "team", "dvc", "repro", "--quiet", "select@images")
    return tmp_path / "team"


@pytest.fixture
def links(edition: Path, repository: Path) -> Iterator[dict[str, str]]:
    """The links that one server prints, by reviewer; started as docs/review_team.md says, but on this machine alone."""
    assert shlex.join(DOCUMENTED) + "\n" in blocks(repository, "console", "docs/review_team.md")
    with (edition.parent / "errors").open("w") as errors:
        process = subprocess.Popen(
            [*DOCUMENTED, "--host", "127.0.0.1", "--port", "0"], cwd=edition, stdout=subprocess.PIPE, stderr=errors,
            text=True, env=os.environ | forking(SOURCE),
        )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Review page, a link for each reviewer"), edition.parent / "errors"
    found = dict(process.stdout.readline().strip().split(": ", 1) for _ in range(4))
    yield found
    process.kill()
    process.communicate()


def answer(link: str, token: str) -> tuple[int, str]:
    """Status and text of an answer over plain HTTP, with the cookie that a link leaves."""
    host, port, name = re.search(r"//([^:]+):(\d+)/(\w+)/", link).groups()  # type: ignore[union-attr]
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.request("GET", f"/{name}/", headers={"Cookie": f"cleanset-{port}-{name}={token}"})
    got = connection.getresponse()
    return got.status, got.read().decode(errors="replace")


def status(edition: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(
        run(edition, "cleanset", "review", "status", "--json", *NAMES)
    )["reviewers"]  # fmt: skip
    return found


def opened(browser: Browser, link: str) -> Reviewing:
    return Reviewing(browser.new_page(viewport={"width": 1280, "height": 800}), link)


def others_named(at: Reviewing, name: str) -> set[str]:
    """The reviewers whose names are on a page, but for the one whose page it is."""
    return set(re.findall(r"\w+", at.page.inner_text("body"))) & {*TEAM, "board"} - {name}


@pytest.mark.exhaustive
def test_a_team_from_links_to_a_set(edition: Path, links: dict[str, str], browser: Browser) -> None:
    assert list(links) == [*TEAM, "board"]
    keys = {name: link.partition("?token=")[2] for name, link in links.items()}
    assert len(set(keys.values())) == 4
    assert answer(links["ana"], "")[0] == answer(links["ana"], keys["ana"][:-1])[0] == 403
    assert all(f"cleanset review: {name}" in answer(link, keys[name])[1] for name, link in links.items())
    before = status(edition)
    shares = {name: set(before[name]["classes"]) for name in TEAM}  # type: ignore[call-overload]
    assert set.union(*shares.values()) == {f"c{index:02}" for index in range(CLASSES)}
    assert shares["ana"] & shares["ben"] == shares["ben"] & shares["cy"] == shares["ana"] & shares["cy"] == COMMON
    pages = {name: opened(browser, links[name]) for name in TEAM}
    contested = min(COMMON)
    image = ""
    for name, at in pages.items():
        seen = []
        while at.mode != "end":
            seen.append(at.wnid)
            if name == "ben" and at.wnid == contested:
                image = at.focus
                at.press("r", "t")
            assert others_named(at, name) == set()
            at.press("a")
        assert set(seen) == shares[name]
        assert "conflict" not in at.page.inner_text("body")
        at.go(contested)
        assert others_named(at, name) == set()
    assert [reviews(edition, name)[contested].get(image, {}).get("verdict") for name in TEAM] == [
        "clean", "reject", "clean",
    ]  # fmt: skip
    after = status(edition)
    assert [after[name]["to_review"] for name in (*TEAM, "board")] == [[], [], [], [contested]]
    assert after["ana"]["verdicts"] == sum(map(len, reviews(edition, "ana").values()))
    board = opened(browser, links["board"])
    assert (board.wnid, board.focus) == (contested, image)
    assert others_named(board, "board") == set(TEAM)
    board.press("1")
    board.type_into_dialog("nothing is written there")
    board.page.wait_for_selector("[data-mode=end]", timeout=PATIENCE)
    pages["ana"].go(contested)
    assert "nothing is written there" not in pages["ana"].page.inner_text("#view")
    run(edition, "dvc", "repro", "--quiet")
    auditor = serve(edition, "dan", "audit", "5", "--model", "images", "--port", "0")
    at = opened(browser, auditor.address)
    while at.mode != "end":
        at.press("a")
    auditor.kill()
    run(edition, "dvc", "repro", "--quiet")
    with (edition / "data/export/images/manifest.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 3 * CLASSES
    assert "5" in run(edition, "cleanset", "audit")
    assert "images are good" in run(edition, "cleanset", "verify", "data/export/images")
    agreement = json.loads(run(edition, "cleanset", "agreement", "--json"))
    assert agreement["images"] == 3 * len(COMMON)
    assert [(each["class"], each["image_id"]) for each in agreement["differences"]] == [(contested, image)]
