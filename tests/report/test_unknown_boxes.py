"""What the report tells of images that are kept for counting only, and of verdicts that are not explicit."""

from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.image_ids import image_id
from cleanset.plumbing.files import sha256
from cleanset.stages import count, report, review_apply
from cleanset.tables import SELECTION, read_table
from tests.report.editions import made

TENCH = "n01440764"


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """Two images of class tench in each set; the first is to be cropped, who knows where."""
    made(tmp_path, ["standard"], "clean")
    written: dict[int, dict[str, object]] = {
        1: {"verdict": "crop", "reason": "border", "crop": "unknown", "object_fully_visible": True, "basis": "implied"},
        2: {"verdict": "clean", "basis": "default"},
        3: {"verdict": "clean"},
    }
    entries = {
        image_id(number): entry | {"sha256": sha256((tmp_path / "images" / f"{image_id(number)}.JPEG").read_bytes())}
        for number, entry in written.items()
    }
    folder = tmp_path / "reviews" / "scooter"
    folder.mkdir()
    (folder / f"{TENCH}.yaml").write_text(yaml.safe_dump({TENCH: entries}))
    return Edition(tmp_path)


def run(edition: Edition, **review: str) -> None:
    params = yaml.safe_load(edition.params_yaml.read_text())
    params["review"] = {"unreviewed": "clean", "crops": "in_rank", **review}
    edition.params_yaml.write_text(yaml.safe_dump(params))
    review_apply.run(edition, "standard")
    count.run(edition)
    report.run(edition)


def numbers(edition: Edition) -> dict[str, str]:
    names = ("images", "images_cropped", "images_box_unknown", "rejected_box_unknown", "classes_unsettled")
    return {name: (edition.metrics / "totals" / f"{name}.json").read_text() for name in names}


def page(edition: Edition, name: str) -> str:
    text = BeautifulSoup((edition.report / name).read_text(), "html.parser").get_text(" ", strip=True)
    return " ".join(text.split())


def test_kept_for_counting(edition: Edition) -> None:
    run(edition, unknown_boxes="count")
    kept = read_table(edition.selection("standard"), SELECTION, imagenet()).set_index("image_id")
    assert kept["box_unknown"].to_dict() == {image_id(number): number == 1 for number in (1, 2, 5, 6)}
    assert numbers(edition) == {
        "images": '{"standard": 4}\n',
        "images_cropped": '{"standard": 1}\n',
        "images_box_unknown": '{"standard": 1}\n',
        "rejected_box_unknown": '{"standard": 0}\n',
        "classes_unsettled": '{"standard": 0}\n',
    }
    assert " 1 of the images kept need a crop box that nobody has drawn yet" in page(edition, "index.html")
    assert "reviewer explicit implied default scooter 1 1 1" in page(edition, "index.html")
    sheet = page(edition, "sheet-1.html")
    assert "00000001 implied crop box unknown, not exported" in sheet
    assert "00000002 default" in sheet
    assert "00000005 unreviewed" in sheet


def test_open_until_the_box_is_drawn(edition: Edition) -> None:
    run(edition)
    kept = read_table(edition.selection("standard"), SELECTION, imagenet())
    assert kept["image_id"].tolist() == [image_id(number) for number in (2, 3, 5, 6)]
    assert numbers(edition) == {
        "images": '{"standard": 4}\n',
        "images_cropped": '{"standard": 0}\n',
        "images_box_unknown": '{"standard": 0}\n',
        "rejected_box_unknown": '{"standard": 1}\n',
        "classes_unsettled": '{"standard": 1}\n',
    }
    assert "nobody has drawn yet" not in page(edition, "index.html")


@pytest.mark.parametrize("accept", [[], ["implied"], ["explicit", "explicit"], ["explicit", "guessed"]])
def test_bases_that_cannot_be_accepted(edition: Edition, accept: list[str]) -> None:
    with pytest.raises(CleansetError, match=r"review\.accept: expected explicit and any others of explicit, implied, "):
        run(edition, accept=accept)  # type: ignore[arg-type]
