"""`cleanset hints`: the hints at any images, as a table, as CSV and as one page."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps
from playwright.sync_api import Browser
from rich.console import Console

from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import csv_rows
from cleanset.report import hints
from tests.checkouts import Checkout
from tests.dataset.test_shared_parts import saved, scene
from tests.evaluation.compare.command import cleanset

from .pages import soup

NAMES = ["bird/framed.png", "bird/grey.jpg", "bird/whole.jpg", "fish/cropped.jpg", "plain.png"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five images in folders of any depth, and files that are not images."""
    folder = tmp_path_factory.mktemp("hints") / "mine"
    for name in ("bird", "fish"):
        (folder / name).mkdir(parents=True)
    whole = scene(1)
    whole.save(folder / "bird" / "whole.jpg", quality=95)
    saved(whole.crop((40, 30, 280, 210))).save(folder / "fish" / "cropped.jpg", quality=90)
    ImageOps.expand(scene(2), 24, (255, 255, 255)).save(folder / "bird" / "framed.png")
    scene(3).convert("L").save(folder / "bird" / "grey.jpg")
    scene(4).save(folder / "plain.png")
    (folder / "notes.txt").write_text("no image")
    (folder / ".DS_Store").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    return folder.with_name("page.html")


@pytest.fixture(scope="module")
def found(folder: Path, page: Path) -> hints.Hints:
    return hints.write(str(folder), page, text=False)


def rows(found: hints.Hints) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(hints.as_csv(found))))


def test_each_hint_with_its_measure_and_limit(found: hints.Hints) -> None:
    by_image = {(row["image"], row["hint"]): row for row in rows(found)}
    assert set(by_image) == {
        ("bird/framed.png", "border"),
        ("bird/grey.jpg", "filter"),
        ("bird/whole.jpg", "duplicate"),
        ("fish/cropped.jpg", "duplicate"),
    }
    assert found.count == len(NAMES)
    border = by_image["bird/framed.png", "border"]
    assert border["sign"] == "plain margins: left 7 %, top 8 %, right 7 %, bottom 8 %"
    # 24 of 288 rows
    assert (border["value"], border["limit"], border["severity"]) == ("0.083", "0", "0.278")
    grey = by_image["bird/grey.jpg", "filter"]
    assert [grey[name] for name in ("severity", "sign", "measure", "value", "limit", "other")] == [
        "1.000", "nearly without colour", "95th of 100 saturations, in levels", "0", "8", "",
    ]  # fmt: skip
    assert by_image["fish/cropped.jpg", "duplicate"]["other"] == "bird/whole.jpg"


def test_the_table_fits_80_columns_and_cuts_no_name(found: hints.Hints) -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(hints.as_table(found))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(next(line for line in lines if "limit" in line).split()) == "image hint sign value limit"
    assert next(line for line in lines if "bird/framed.png" in line).split()[-2:] == ["0.083", "0"]
    assert all(any(name in line for line in lines) for name in NAMES[:4])
    assert "…" not in out.getvalue()
    assert "4 of 5 images with a hint: duplicate 2, border 1, filter 1" in " ".join(out.getvalue().split())


def test_one_page_holds_the_images_by_severity(found: hints.Hints, page: Path) -> None:
    read = soup(page)
    cards = read.select("li[data-fates]")
    assert [card["id"] for card in cards] == [each.image_id for each in found.hinted]
    severities = [each.severity for each in found.hinted]
    assert severities == sorted(severities, reverse=True)
    # a copy is next to its original
    assert {str(card["id"]): len(card.select("img")) for card in cards} == {
        "bird/framed.png": 1, "bird/grey.jpg": 1, "bird/whole.jpg": 2, "fish/cropped.jpg": 2,
    }  # fmt: skip
    assert all(str(image["src"]).startswith("data:image/jpeg;base64,") for image in read.select("img"))
    assert "limit 8" in next(card for card in cards if card["id"] == "bird/grey.jpg").get_text()
    assert str(page.parent) not in page.read_text()


def test_copies_stand_side_by_side_on_any_screen(found: hints.Hints, page: Path, browser: Browser) -> None:
    shown = browser.new_page(viewport={"width": 390, "height": 844})
    shown.goto(page.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") == 390
    shown.select_option("#filter-hint", "duplicate")
    assert shown.locator("#found").inner_text() == "2 images"
    boxes = [each.bounding_box() for each in shown.locator("li:visible img").all()[:2]]
    assert all(each is not None and each["x"] + each["width"] <= 390 for each in boxes)
    shown.close()


def test_the_page_has_as_many_images_as_wanted(folder: Path, tmp_path: Path) -> None:
    hints.write(str(folder), tmp_path / "page.html", most=1, text=False)
    read = soup(tmp_path / "page.html")
    assert [card["id"] for card in read.select("li[data-fates]")] == ["bird/grey.jpg"]
    assert "Shown: the most severe 1 of 4 images" in read.get_text()


@pytest.mark.long
def test_a_finished_set_is_read_by_its_manifest(built: Checkout) -> None:
    export = built.folder / "data" / "export" / "standard"
    found = hints.write(str(export), None, text=False)
    assert found.count == 34
    assert {row["image"].partition("/")[0][0] for row in rows(found)} <= {"n"}


def test_what_is_not_looked_for_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "can_read_text", lambda: False)
    monkeypatch.setattr(hints, "can_fingerprint", lambda: False)
    monkeypatch.setattr(hints, "can_find_features", lambda: False)
    notices = hints.write(str(folder), None).notices
    assert [each.partition(":")[0] for each in notices] == [
        "Text is not looked for",
        "Near-duplicates are not looked for by hashes",
        "Copies that are cropped by more than 8 % of a side are not looked for",
    ]
    monkeypatch.setattr(hints, "can_read_text", lambda: True)
    monkeypatch.setattr(hints, "MAX_TEXT_UNASKED", 4)
    assert hints.write(str(folder), None).notices[0].startswith("Text is not looked for in more than 4 images unless")


def test_places_and_images_that_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"nowhere: missing, or not a folder; expected a folder of images"):
        hints.write(str(tmp_path / "nowhere"), None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CleansetError, match=r"empty: no image in it; expected files that end in \.jpeg, \.jpg, \.png"):
        hints.write(str(tmp_path / "empty"), None)
    with pytest.raises(CleansetError, match=r"page: not the name of a page; expected a new file that ends in \.html"):
        hints.write(str(folder), tmp_path / "page")
    (tmp_path / "there.html").write_text("")
    with pytest.raises(CleansetError, match=r"there\.html: exists already; expected a new file"):
        hints.write(str(folder), tmp_path / "there.html")


def test_images_that_cannot_be_read_are_left_out_and_named(tmp_path: Path) -> None:
    """Those of any size are measured; if none can be read, the command fails."""
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for width, height in ((8, 8), (1, 1), (6518, 88), (3, 700)):
        Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(damaged / f"{width}.png")
    (damaged / "cut.png").write_bytes((damaged / "8.png").read_bytes()[:40])
    (damaged / "text.jpg").write_text("no image")
    found = hints.write(str(damaged), tmp_path / "new.html")
    assert found.count == 4
    expected = (
        r"damaged: 2 images of 6 cannot be read: cut\.png \(.+\), text\.jpg \(not a JPEG or PNG\); expected whole"
    )
    assert re.search(expected, found.notices[0])
    for path in damaged.glob("[0-9]*"):
        path.unlink()
    with pytest.raises(CleansetError, match=r"damaged: 2 images of 2 cannot be read"):
        hints.write(str(damaged), tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_an_edition_without_a_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("")
    with pytest.raises(CleansetError, match="an edition without a finished set; expected one, or a folder of images"):
        hints.write(str(tmp_path), None)


def test_the_command_prints_csv_and_names_the_page(folder: Path, tmp_path: Path) -> None:
    run = cleanset("hints", str(folder), "--no-text", "--format", "csv", "--out", "page.html", cwd=tmp_path)
    assert next(cells for _, cells in csv_rows(run.stdout, "stdout", "")) == list(hints.COLUMNS)
    assert (tmp_path / "page.html").is_file()
    assert "page.html: open it in a browser" in run.stderr
