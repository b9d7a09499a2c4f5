"""An image that is to be cropped by a box that nobody has drawn: it is never exported."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.sets.delivered import without_unknown_boxes
from cleanset.sets.folder import read_entries
from cleanset.sets.verify import run as verify
from cleanset.stages import export
from cleanset.tables import SELECTION, read_table, write_table
from tests.ten_images import id_of

from .conftest import FILES, make_edition


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The crop boxes of the second images of classes 0 and 278 are unknown."""
    edition = make_edition(tmp_path)
    selection = read_table(edition.selection("standard"), SELECTION, imagenet())
    unknown = selection["image_id"].isin([id_of(8), id_of(9)])
    selection["crop"] = selection["crop"].where(~unknown, None)
    write_table(edition.selection("standard"), selection.assign(box_unknown=unknown), SELECTION, imagenet())
    return edition


def test_it_is_left_out_and_said(edition: Edition, capsys: pytest.CaptureFixture[str]) -> None:
    export.run(edition, "standard")
    folder = edition.export("standard")
    assert capsys.readouterr().err == (
        f"standard: images left out, as their crop boxes are not known: 2, the first is {id_of(8)}: draw the boxes "
        "(review.unknown_boxes: open asks for them)\n"
    )
    written = sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*"))
    assert written == [FILES[0], FILES[2], FILES[4], FILES[5]]
    assert [(entry.wnid, entry.rank) for entry in read_entries(folder)] == [
        ("n01440764", 1), ("n02119789", 1), ("n02119789", 2), ("n02123045", 1),
    ]  # fmt: skip
    assert verify(folder, decode=True).problems == []
    card = " ".join((folder / "README.md").read_text().split())
    assert "4 images of 3 classes" in card
    assert "left out because they are to be cropped and nobody has drawn the box yet: 2." in card
    assert "| box_unknown | 2 |" in card
    assert "| n01440764 tench | 1 | 4 | blur 1, box_unknown 1, not_needed 1 |" in card


def test_strict_refuses_naming_the_first(edition: Edition) -> None:
    params = yaml.safe_load(edition.params_yaml.read_text())
    params["export"] = {"strict": True, "images_per_class": 1}
    params["dataset"]["classes"] = ["n01440764", "n02119789", "n02123045"]
    edition.params_yaml.write_text(yaml.safe_dump(params))
    before = sorted(edition.export("standard").rglob("*"))
    with pytest.raises(CleansetError) as error:
        export.run(edition, "standard")
    assert str(error.value) == (
        f"standard: images with an unknown crop box: 2, the first is {id_of(8)}; expected a box for each: draw them "
        "(review.unknown_boxes: open asks for them), or set export.strict: false, which leaves them out"
    )
    assert sorted(edition.export("standard").rglob("*")) == before


def test_places_without_a_gap(edition: Edition) -> None:
    selection = read_table(edition.selection("standard"), SELECTION, imagenet())
    none = pd.DataFrame(columns=["image_id", "class_index", "tier", "rank", "confidence", "reason", "open"])
    known, others = without_unknown_boxes(selection, none)
    assert known.sort_values(["class_index", "place"])[["class_index", "place"]].to_numpy().tolist() == [
        [0, 1], [278, 1], [278, 2], [281, 1],
    ]  # fmt: skip
    assert others[["image_id", "reason", "open"]].to_numpy().tolist() == [
        [id_of(8), "box_unknown", False], [id_of(9), "box_unknown", False],
    ]  # fmt: skip
