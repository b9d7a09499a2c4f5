"""Reports of editions that are unlike the sample: one model, ten, nothing kept; names that are not valid HTML."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.report.fates import Fate, HardClass, ReportedCandidate
from cleanset.report.figures import FunnelStep, Rejects, distinct_images, overlaps, rejects
from cleanset.report.pages import pages
from cleanset.report.thumbnails import PageImage
from cleanset.review.verdicts import Rejected, Review
from cleanset.selection.fill import Filled
from cleanset.stages import report as stage
from cleanset.tables import INDEX, SELECTION, read_table, write_table
from tests import own_edition
from tests.own_edition import KEYS

from .editions import made
from .pages import numbers, opened, rows_under, soup, tables

TEN = [f"model_{letter}" for letter in "abcdefghij"]


def sheet(folder: Path) -> dict[tuple[str, str], list[list[str]]]:
    """The lines under each image of the contact sheet, by class and image id."""
    return {
        (str(section["id"]), figure.figcaption.get_text().split()[0]): rows_under(figure)  # type: ignore[union-attr]
        for section in soup(folder / "sheet-1.html").select("section.class")
        for figure in section("figure")
    }


@pytest.mark.long
def test_one_model(tmp_path: Path, browser: Browser) -> None:
    folder = made(tmp_path, ["only"], "clean")
    page = soup(folder / "index.html")
    assert page.h1 is not None
    assert page.h1.get_text() == "A clean set of 2 classes for 1 model"
    notices = [each.get_text() for each in page.select(".notice")]
    assert any(each.startswith("Images that nobody has reviewed were taken for clean") for each in notices)
    assert tables(page, "sets")[0][0][:2] == ["predictions from", "images kept, of 4"]
    assert tables(page, "sets")[0][1:] == [["timm any", "4", "0", "2", "0", "0"]]
    assert [row[0] for row in tables(page, "funnel")[0]][:3] == ["step", "all images", "classified correctly"]
    assert "None: every class is full." in page.select("#classes")[0].get_text()
    assert "Nobody has reviewed yet." in page.select("#reviewers")[0].get_text()
    contact = soup(folder / "sheet-1.html")
    assert [" ".join(each.get_text(" ").split()) for each in contact.select("figcaption")] == [
        "00000001 unreviewed place 1, confidence 0.990", "00000002 unreviewed place 2, confidence 0.900",
        "00000006 unreviewed place 1, confidence 1.000", "00000005 unreviewed place 2, confidence 0.600",
    ]  # fmt: skip
    shown = {path.name: read(window) for path, window in opened(browser, folder)}
    assert len(shown) == 6
    assert {name for _, offered in shown.values() for name in offered} == {"wanted", "sort"}, (
        "there is nothing to choose"
    )
    for word in ("over all models", "every model", "at least one model", "each model", "Overlap", "only"):
        assert not [name for name, (text, _) in shown.items() if re.search(rf"\b{word}\b", text)], word
    assert shown["sheet-1.html"][0].count("class 0") == 1


def read(window: Page) -> tuple[str, list[str]]:
    """The text of a page as a person sees it, and the ids of its search fields, filters and orders."""
    choices = window.locator("[data-controls] :is(input, select):visible").all()
    return " ".join(window.inner_text("body").split()), [each.get_attribute("id") or "" for each in choices]


@pytest.mark.long
def test_ten_models(tmp_path: Path, browser: Browser) -> None:
    """Tench: a to e are surer of 2 and 3, the others of 3 and 4; goldfish: all keep 5 and 6."""
    folder = made(tmp_path, TEN, "clean")
    page = soup(folder / "index.html")
    exactly, common = tables(page, "overlap")
    first, last = ["●"] * 5 + ["·"] * 5, ["·"] * 5 + ["●"] * 5
    assert exactly[1:] == [["●"] * 10 + ["3"], [*first, "1"], [*last, "1"]]
    assert numbers(common) == dict(zip(TEN, [[4] * 5 + [3] * 5] * 5 + [[3] * 5 + [4] * 5] * 5, strict=True))
    shown = sheet(folder)
    assert shown["n01440764", "00000002"] == [
        ["1", "model_a", "0.900"], ["1", "model_b", "0.850"], ["1", "model_c", "0.800"], ["2", "model_d", "0.750"],
        ["2", "model_e", "0.700"],
    ]  # fmt: skip
    assert shown["n01443537", "00000006"] == [["1", name, "1.000"] for name in TEN]
    assert [key[1][-1] for key in shown] == ["2", "3", "4", "6", "5"]
    for path, window in opened(browser, folder):
        for width in (480, 1280):
            window.set_viewport_size({"width": width, "height": 900})
            assert window.evaluate("document.documentElement.scrollWidth") == width, path.name


@pytest.mark.long
def test_no_image_kept(tmp_path: Path, browser: Browser) -> None:
    folder = made(tmp_path, ["a", "b"], "pending")
    page = soup(folder / "index.html")
    assert [row[2:] for row in tables(page, "sets")[0][1:]] == [["0", "0", "0", "2", "2"]] * 2
    assert [row[1:] for row in tables(page, "classes")[2][1:]] == [
        ["a", "0", "unreviewed 4"], ["0", "unreviewed 3"], ["a", "0", "unreviewed 2"], ["0", "unreviewed 2"],
    ]  # fmt: skip
    assert len(tables(page, "overlap")) == 1
    assert numbers(tables(page, "rejected")[0]) == {"unreviewed": [6, 5, 6]}
    text = soup(folder / "sheet-1.html").get_text()
    assert text.count("No image was kept.") == 2
    assert "None was rejected." in soup(folder / "rejected.html").get_text()
    assert "4 open" in soup(folder / "classes.html").get_text()
    assert len(list(opened(browser, folder))) == 6


def test_an_image_rejected_in_two_classes_is_one_image() -> None:
    """By two models that take it for different classes; each of them counts it."""
    columns = ["image_id", "class_index", "tier", "rank", "confidence", "reason", "open"]

    def rejecting(*images: tuple[str, int, int]) -> Filled:
        lines = [(name, index, "relaxed", rank, 0.5, "blur", False) for name, index, rank in images]
        return Filled(pd.DataFrame(columns=columns), pd.DataFrame(lines, columns=columns))

    found = rejects({"a": rejecting(("x", 0, 4), ("y", 0, 5)), "b": rejecting(("x", 1, 2))}, examples=9)
    assert found == [Rejects("blur", {"a": 2, "b": 1}, 2, ((1, "x"), (0, "y")))]


def test_images_that_two_sets_keep_in_different_classes_are_one() -> None:
    columns = ["image_id", "class_index"]
    sets = {
        "a": Filled(pd.DataFrame([("x", 0), ("y", 0)], columns=columns), pd.DataFrame()),
        "b": Filled(pd.DataFrame([("x", 1)], columns=columns), pd.DataFrame()),
    }
    assert distinct_images(sets) == 2
    assert overlaps(sets) == [(("a",), 2), (("b",), 1)]


@pytest.mark.long
@pytest.mark.slow
def test_the_same_edition_elsewhere_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (made(tmp_path / name, ["a", "b"], "clean") for name in ("one", "two"))
    files = {path.relative_to(first): path.read_bytes() for path in first.rglob("*") if path.is_file()}
    assert files == {path.relative_to(second): path.read_bytes() for path in second.rglob("*") if path.is_file()}
    assert len(files) == 6 + 4 + 2 * (2 + 3)


HOSTILE = "<script>alert('x')</script>\"&"


@pytest.mark.long
def test_names_are_text_and_never_html(tmp_path: Path) -> None:
    """Whatever a model, a reviewer or a reason is called."""
    made(tmp_path, ["a"], "clean")
    edition = Edition(tmp_path)
    params = read_params(tmp_path)
    plain = stage.report_data(edition, params, read_table(edition.index, INDEX, imagenet()), imagenet())
    states = tuple(
        replace(state, kept={HOSTILE: 1}, open={HOSTILE: 1}, short={HOSTILE: HOSTILE}) for state in plain.states
    )
    review = Review(verdict=Rejected(HOSTILE), sha256=HOSTILE, note=HOSTILE)
    fates = Fate(HOSTILE, HOSTILE, 1, 0.5, 1, 0.5), Fate(HOSTILE, HOSTILE, 1, 0.5, reason=HOSTILE)
    candidate = ReportedCandidate(0, HOSTILE, None, fates, {HOSTILE: review})
    tainted = replace(
        plain,
        roles=(HOSTILE, HOSTILE),  # of one model the name is not shown
        networks={HOSTILE: HOSTILE},
        notices=(HOSTILE,),
        readings=(HOSTILE,),
        steps=(FunnelStep(HOSTILE, {HOSTILE: 1}),),
        states=states,
        by_size={range(2, 3): {HOSTILE: 1}},
        histograms=tuple(replace(each, role=HOSTILE, tier=HOSTILE) for each in plain.histograms),
        overlaps=(((HOSTILE,), 1),),
        pairwise={},
        rejects=(Rejects(HOSTILE, {HOSTILE: 1}, 1, ((0, HOSTILE),)),),
        hardest=(HardClass(states[0], 1, {HOSTILE: 1}),),
        totals={name: {HOSTILE: 1} for name in plain.totals},
        reviewers={HOSTILE: {HOSTILE: 1}},
        verdicts={HOSTILE: plain.verdicts["clean"]},
        pairs={(HOSTILE, HOSTILE): plain.agreement},
        candidates={0: [candidate]},
        sheets=(replace(plain.sheets[0], classes=states),),
    )
    drawn = pages(tainted, {(HOSTILE, None): [PageImage(HOSTILE, 1, 1)]})
    texts = {name: page.draw() for name, page in drawn.items()}
    for name, text in texts.items():
        assert "<script>alert" not in text
        path = tmp_path / "tainted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        page = soup(path)
        assert len(page("script")) == 1
        assert "alert('x')" in page.get_text(), name


def test_a_model_that_the_pipeline_file_lacks(tmp_path: Path) -> None:
    made(tmp_path, ["a"], "clean")
    (tmp_path / "dvc.yaml").write_text("stages: {report: {deps: [data/selection/b.parquet]}}")
    with pytest.raises(CleansetError, match=r"dvc\.yaml: the deps of report lack data/\w+/a\.parquet"):
        stage.run(Edition(tmp_path))


@pytest.mark.long
def test_without_metrics(tmp_path: Path) -> None:
    made(tmp_path, ["a"], "clean")
    (tmp_path / "metrics").rename(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CleansetError, match=r"metrics/totals: missing; run dvc repro"):
        stage.run(Edition(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.long
def test_another_image_than_the_indexed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is shown that was not measured; the old report stays. Without thumbnail and note the image is read."""
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    folder = made(tmp_path, ["a"], "clean")
    written = (folder / "index.html").read_bytes()
    shutil.rmtree(tmp_path / "cache")
    images = sorted((tmp_path / "images").iterdir())
    images[0].write_bytes(images[1].read_bytes())
    with pytest.raises(CleansetError, match=r"ILSVRC2012_val_00000001 has SHA-256 [0-9a-f]{64}, expected"):
        stage.run(Edition(tmp_path))
    assert (folder / "index.html").read_bytes() == written


def test_emptied_scores_of_crops(tmp_path: Path) -> None:
    """A cropped image is in the set, and its scores are lost."""
    made(tmp_path, ["a"], "clean")
    edition = Edition(tmp_path)
    selection = read_table(edition.selection("a"), SELECTION, imagenet())
    selection["crop"] = [[0, 0, 10, 10], *selection["crop"][1:]]
    write_table(edition.selection("a"), selection, SELECTION, imagenet())
    with pytest.raises(CleansetError, match=r"data/crop_scores/a\.parquet: no scores of .* run dvc repro"):
        stage.run(edition)


def texts_of(report: Path) -> dict[str, str]:
    """The text of each page, whose links all lead somewhere."""
    texts = {}
    for page in sorted(report.rglob("*.html")):
        found = soup(page)
        texts[page.name] = " ".join(found.get_text(" ").split())
        for link in found.select("a[href]"):
            path, _, anchor = str(link["href"]).partition("#")
            target = (page.parent / unquote(path)).resolve() if path else page
            assert target.is_file(), link
            assert not anchor or soup(target).find(id=unquote(anchor)) or target.suffix != ".html", link
    return texts


NEITHER = ("softmax", "onfidence", "finds easy", "easiest", "ccuracy", "argin", "for the model", "network",
           "predictions", "correctly", "one label", "relaxed")  # fmt: skip
"""Words of the pages of scored editions."""
OF_SEVERAL = ("over all models", "for all models", "every model", "at least one model", "each model", "many models",
              "Overlap", "the sets", "make robustness", "wnid", "ReaL")  # fmt: skip
"""Words of the pages of several models, or of ImageNet."""


def assert_without(report: Path, words: Sequence[str]) -> dict[str, str]:
    """The text of each page, none with one of the words, nor with a class named twice."""
    texts = texts_of(report)
    for word in words:
        # report.js, too, is part of a page's text
        found = [name for name, text in texts.items() if word in text.partition('"use strict"')[0]]
        assert not found, word
    for page in report.rglob("*.html"):
        for caption in soup(page)("figcaption"):
            assert caption.get_text().count("ripe pears") <= 1
            assert "images" not in caption.get_text(), "the name of the set is not that of a model"
    assert "ripe pears ripe pears" not in texts["classes.html"]
    return texts


@pytest.mark.long
def test_own_images_without_scores(tmp_path: Path) -> None:
    """No model is mentioned, each link leads somewhere, and no class is listed twice."""
    edition = own_edition.make(tmp_path)
    own_edition.review(edition, "ada", {"ripe pears/001.png": own_edition.REJECT})
    own_edition.run(edition, "crops", "score_crops", "review_apply", "count", "report")
    texts = assert_without(edition.report, NEITHER + OF_SEVERAL)
    assert texts["index.html"].startswith(
        "Clean set: report A clean set of 3 classes Images that show exactly one thing"
    )
    assert tables(soup(edition.report / "index.html"), "sets")[0][0] == [
        "images kept, of 9", "cropped", "classes full", "short", "with open images",
    ]  # fmt: skip
    assert "001.png ripe pears rank" in texts["rejected.html"]


@pytest.mark.long
def test_classes_are_found_by_keys_with_capitals(tmp_path: Path) -> None:
    """What is typed is searched for in lower case."""
    (tmp_path / "names.csv").write_text("class,name\nN01,red rose\nN02,ripe pear\n")
    edition = own_edition.make(tmp_path, keys=("N01", "N02"), options=["--names", "names.csv"])
    own_edition.review(edition, "ada", {"N02/001.png": own_edition.REJECT})
    own_edition.run(edition, "crops", "score_crops", "review_apply", "count", "report")
    found = {
        name: [str(item["data-words"]) for item in soup(edition.report / f"{name}.html").select("[data-words]")]
        for name in ("classes", "sheet-1", "rejected")
    }
    assert found["classes"] == ["red rose n01", "ripe pear n02"]
    assert sorted(found["sheet-1"])[:2] == ["red rose n01 n01/000.png", "red rose n01 n01/001.png"]
    assert found["rejected"] == ["ripe pear n02 n02/001.png"]


@pytest.mark.long
def test_own_images_with_scores(tmp_path: Path) -> None:
    """One model, whose predictions of crops nobody knows: a crop has the confidence of the whole image."""
    lines = [
        "file,class,confidence",
        *(f"{key}/{place:03d}.png,{key},.{9 - place}" for key in KEYS for place in range(4)),
    ]
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    edition = own_edition.make(tmp_path, options=["--scores", "scores.csv"])
    crop = {"verdict": "crop", "reason": "border", "crop": [0, 0, 30, 30], "object_fully_visible": True}
    own_edition.review(edition, "ada", {f"ripe pears/{place:03d}.png": crop for place in range(4)})
    own_edition.run(edition, "crops", "score_crops", "review_apply", "count", "report")
    texts = assert_without(edition.report, (*OF_SEVERAL, "one label", "relaxed", "on the crop", "as delivered"))
    assert "A clean set of 3 classes for 1 model Images that the model finds easy, that show" in texts["index.html"]
    assert "000.png before and after the crop place 1, confidence 0.900" in texts["sheet-1.html"]
    assert "kept, place 1, rank 1, confidence 0.900" in texts["ripe pears.html"]
    assert "–" not in texts["ripe pears.html"]
