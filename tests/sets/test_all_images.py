"""An edition with `images_per_class: all`: from the folder to the release, in DVC, and what each page says of it."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

import cleanset
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review import status
from cleanset.review.status import ALL_MODELS
from cleanset.sets.from_verdicts import problems
from cleanset.stages import export
from tests import own_edition
from tests.checkouts import Checkout
from tests.evaluation.compare.command import cleanset as command
from tests.evaluation.compare.command import says
from tests.once import once

pytestmark = pytest.mark.slow

EACH = 6
ABOUT = {
    "title": "Drawn animals",
    "authors": [{"name": "Lovelace, Ada"}],
    "images": {"source": "Drawn by a test", "licence": "CC0-1.0", "people": "None."},
}
ALL = ("--images-per-class", "all")
REJECTED = {"cat/000.png": own_edition.REJECT, **{f"dog/{place:03d}.png": own_edition.REJECT for place in range(EACH)}}
"""One cat, and all dogs."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, pristine: Checkout) -> Edition:
    """Cats, one of them flawed, and flawed dogs, made by `dvc repro`; not to be changed."""

    def make(folder: Path) -> None:
        edition = own_edition.make(folder, keys=("cat", "dog", "eel"), each=EACH, options=[*ALL, "--git"])
        own_edition.change_params(edition, export={"date": "2026-11-29", "about": ABOUT})
        own_edition.review(edition, "ada", REJECTED)
        done = subprocess.run(
            ["dvc", "repro"],
            cwd=edition.folder,
            env=pristine.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    return Edition(once(tmp_path_factory, "all_images", make) / "own")


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_set_has_all_images_that_qualify(finished: Edition) -> None:
    assert read_params(finished.folder).export.images_per_class == "all"
    table = cleanset.table(finished.export("images"))
    assert table["class"].value_counts().to_dict() == {"cat": EACH - 1, "eel": EACH}
    assert "cat/000.png" not in set(table["image_id"])
    assert len(cleanset.load(finished.export("images"))) == 2 * EACH - 1
    totals = {
        path.stem: json.loads(path.read_text())["images"] for path in (finished.metrics / "totals").glob("*.json")
    }
    assert (totals["images"], totals["classes_full"], totals["classes_short"]) == (2 * EACH - 1, 2, 1)
    assert (totals["classes_unsettled"], totals["rejected_not_needed"]) == (0, 0)
    assert (
        finished.short_classes.read_text() == f"model,class,kept,candidates,rejected\nimages,dog,0,{EACH},blur {EACH}\n"
    )


def test_the_card_and_the_report_say_so(finished: Edition) -> None:
    card = words((finished.export("images") / "README.md").read_text())
    assert f"{2 * EACH - 1} images of 2 classes, all that qualify, out of {3 * EACH} images" in card
    assert "Not all of them yet" not in card
    assert "images_per_class: all" in card
    page = BeautifulSoup((finished.report / "index.html").read_text(), "html.parser")
    said = words(page.get_text(" "))
    assert f"filter, border or noise: all of each class, out of {3 * EACH} images." in said
    assert "A class is full when it has an image and none is open, and short when it has none" in said
    assert f"images kept, of {3 * EACH} candidates" in said
    assert "classes full 2 of 3" in said
    rows = [words(row.get_text(" ")) for row in page.select("#classes table.wide")[0].select("tbody tr")]
    assert rows == ["6 1", "5 1", "4 0", "3 0", "2 0", "1 0", "0 1"]
    sheet = words(BeautifulSoup((finished.report / "sheet-1.html").read_text(), "html.parser").get_text(" "))
    assert "5 images" in sheet
    assert " of all" not in sheet


def test_a_release_follows_from_its_verdicts(finished: Edition, tmp_path: Path) -> None:
    code, _, errors = says(command("publish", ".", str(tmp_path / "out"), "--with-images", cwd=finished.folder))
    assert code == 0, errors
    (release,) = (path for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert list(problems(release)) == []
    params = json.loads((release / "params.json").read_text())
    assert params["export"]["images_per_class"] == "all"
    # a number would give other sets
    (release / "params.json").write_text(json.dumps(params | {"export": {"images_per_class": 2}}))
    assert any("manifest.csv" in line for line in problems(release))


def unfinished(folder: Path) -> Edition:
    """Without a verdict on two cats and on any eel."""
    edition = own_edition.make(folder, keys=("cat", "dog", "eel"), each=EACH, options=ALL)
    own_edition.review(edition, "ada", REJECTED)
    path = edition.reviews / "ada" / "cat.yaml"
    content = yaml.safe_load(path.read_text())
    del content["cat"]["cat/001.png"], content["cat"]["cat/002.png"]
    path.write_text(yaml.safe_dump(content))
    (edition.reviews / "ada" / "eel.yaml").unlink()
    own_edition.run(edition, "crops", "score_crops", "review_apply")
    return edition


@pytest.mark.long
def test_until_all_is_reviewed(tmp_path: Path) -> None:
    edition = unfinished(tmp_path)
    found = status.run(edition).progress[ALL_MODELS]
    assert found.by_state == {"settled": [], "open": [0, 2], "short": [1], "conflict": []}
    assert (found.at_least, found.at_most) == (EACH + 2, EACH + 2)
    said = words(command("review", "status", cwd=edition.folder).stdout)
    assert "At least and at most: images still to be reviewed, every candidate (export.images_per_class: all)." in said
    assert "Short: all candidates are reviewed, but none can be used." in said
    assert json.loads(command("review", "status", "--json", cwd=edition.folder).stdout)["images_per_class"] == "all"
    own_edition.run(edition, "export", "count", "report")
    card = words((edition.export("images") / "README.md").read_text())
    assert "3 images of 1 classes, all that qualify" in card
    assert f"Not all of them yet: candidates that have no decision and are left out: {EACH + 2}." in card
    page = BeautifulSoup((edition.report / "index.html").read_text(), "html.parser")
    assert "classes full 0 of 3" in words(page.get_text(" "))


@pytest.mark.long
def test_strict_wants_an_image_of_each_class_and_no_candidate_undecided(tmp_path: Path) -> None:
    edition = unfinished(tmp_path)
    own_edition.change_params(edition, export={"strict": True})
    with pytest.raises(
        CleansetError, match=r"^images: short classes: 2, the first is dog with no image: review more, or"
    ):
        export.run(edition, "images")
    own_edition.change_params(edition, dataset={"classes": ["cat"]})
    with pytest.raises(
        CleansetError,
        match=r"^images: classes with candidates that are not decided: 1, the first is cat with 2; expected none with "
        r"export\.images_per_class: all: review them, or set export\.strict: false$",
    ):
        export.run(edition, "images")
    # a class of any number is full, whatever else is undecided
    own_edition.change_params(edition, export={"images_per_class": 3})
    own_edition.run(edition, "review_apply", "export")


@pytest.mark.parametrize("text", ["most", "0", "1001", "-1", "3.0", "ALL", ""])
def test_a_wrong_option(text: str, tmp_path: Path) -> None:
    code, out, errors = says(command("edition", "own", "--images", ".", f"--images-per-class={text}", cwd=tmp_path))
    assert (code, out) == (1, "")
    assert errors == f"error: --images-per-class {text!r}: expected a number from 1 to 1,000, or all\n"
    assert list(tmp_path.iterdir()) == []


def test_the_option_for_imagenet(tmp_path: Path) -> None:
    for text in ("all", "7"):
        assert says(command("edition", text, "--images-per-class", text, "--no-git", cwd=tmp_path))[0] == 0
        assert str(read_params(tmp_path / text).export.images_per_class) == text
