"""`cleanset look`: one page of a finished set."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from cleanset.errors import CleansetError
from cleanset.report import look
from cleanset.sets.archive import write_tar
from tests.checkouts import Checkout
from tests.own_edition import KEYS, finished

from .pages import soup


@pytest.fixture(scope="module")
def export(built: Checkout) -> Path:
    return built.folder / "data" / "export" / "standard"


@pytest.fixture(scope="module")
def folder(export: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the sample's set of standard."""
    out = tmp_path_factory.mktemp("look") / "page"
    assert look.write(str(export), out) == f"{out}/index.html: 34 images; open it in a browser"
    return out


def test_every_image_once_with_its_class_tier_crop_and_review(folder: Path) -> None:
    page = soup(folder / "index.html")
    assert page.title is not None
    assert page.title.text == "standard 1.0.0"
    assert page.select_one(".lead").text == "34 images of 12 of 1,000 classes"  # type: ignore[union-attr]
    cards = page.select("li[data-fates]")
    files = {str(path.relative_to(folder)) for path in (folder / "images").rglob("*.jpg")}
    assert sorted(str(card.select_one("img")["src"]) for card in cards) == sorted(files)  # type: ignore[index]
    first = page.select_one("#n07734744 li")
    assert first is not None
    assert {card["data-fates"].split("/")[1] for card in cards} == {"whole", "cropped"}  # type: ignore[union-attr]
    assert page.select_one("figcaption").text.startswith("00")  # type: ignore[union-attr]


@pytest.mark.long
def test_without_a_model_no_confidence_is_named_and_a_class_has_one_name(folder: Path, tmp_path: Path) -> None:
    """A set of own images without scores, compared with a model's."""
    edition = finished(tmp_path / "own")
    look.write(str(edition.export("images")), tmp_path / "page")
    page = soup(tmp_path / "page" / "index.html")
    assert "onfidence" not in page.get_text()
    assert [each["data-sorts"] for each in page.select("[data-sorts]")] == ["rank"]
    assert [each.text for each in page.select("h2")] == [f"{key} class {place}" for place, key in enumerate(KEYS)]
    of_model = soup(folder / "index.html")
    assert [each["data-sorts"] for each in of_model.select("[data-sorts]")] == ["rank confidence"]
    assert "Confidence is the model's softmax probability" in of_model.get_text()


def test_search_and_filters_in_a_browser(folder: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "index.html").as_uri())
    page.select_option("#filter-image", "cropped")
    cropped = page.locator('li[data-fates*="/cropped/"]').count()
    assert page.inner_text("#found") == f"{cropped} images"
    page.select_option("#filter-image", "")
    page.fill("#wanted", "goldfish")
    assert page.inner_text("#found") == f"{page.locator('#n01443537 li[data-fates]').count()} images"
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert all(url.startswith("file:") for url in asked)
    page.close()


def test_an_image_that_differs_and_a_page_within_the_set(export: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(export, tmp_path / "standard"))
    with pytest.raises(CleansetError, match=r"inside the set .*; expected a new or empty folder outside"):
        look.write(str(copy), copy / "page")
    image = next(copy.rglob("*.JPEG"))
    image.write_bytes(image.read_bytes() + b"x")
    with pytest.raises(CleansetError, match=r"SHA-256 .*, expected .* as in the manifest"):
        look.write(str(copy), tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_a_tar_and_the_name_of_the_page(export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_tar(export, tmp_path / "standard-1.tar")
    assert look.write("standard-1.tar", None).startswith("standard-1-look/index.html: 34 images")
