"""A crop that the model no longer gets right: what it costs, on tables written by hand."""

from pathlib import Path

import pandas as pd
import pytest

from cleanset.after_crop import Said, are_wrong, check_scored, effect, said_of_crops
from cleanset.boxes import Crop
from cleanset.crops import crops_csv, parse_crops, read_crops
from cleanset.errors import CleansetError
from cleanset.selection import Filled
from cleanset.tables import CROP_SCORES, read_table, write_table
from rules.by_hand import BOX, SNOWMOBILE, SNOWPLOW, after_crops, crop_scores_of

OTHER_BOX = (0, 0, 9, 8)


def kept(found: Filled) -> list[str]:
    return found.selection.sort_values("place")["image_id"].tolist()


def reasons(found: Filled) -> dict[str, str]:
    return dict(zip(found.rejected["image_id"], found.rejected["reason"], strict=True))


def still_open(found: Filled) -> set[str]:
    return set(found.rejected.loc[found.rejected["open"], "image_id"])


def test_the_next_candidate_takes_its_turn() -> None:
    found = after_crops("top5 clean", "top5 wrong", "top5 crop", "reserve clean", "reserve clean")
    assert kept(found) == ["p1", "p3", "p4"]
    assert reasons(found) == {"p2": "wrong_after_crop", "p5": "not_needed"}
    assert still_open(found) == set()


def test_a_crop_that_is_right_stays() -> None:
    found = after_crops("top5 clean", "top5 crop", "top5 crop", "reserve clean")
    assert kept(found) == ["p1", "p2", "p3"]
    assert reasons(found) == {"p4": "not_needed"}


def test_the_class_stays_open_where_that_brings_unreviewed_pictures_in_reach() -> None:
    words = ["top5 clean", "top5 clean", "top5 {}", "reserve undecided", "relaxed undecided"]
    assert still_open(after_crops(*(word.format("crop") for word in words))) == set()
    wrong = after_crops(*(word.format("wrong") for word in words))
    assert kept(wrong) == ["p1", "p2"]
    assert still_open(wrong) == {"p4", "p5"}
    assert reasons(wrong) == {"p3": "wrong_after_crop", "p4": "unreviewed", "p5": "unreviewed"}


def test_it_says_so_of_a_picture_that_would_not_be_needed_either() -> None:
    found = after_crops("top5 clean", "reserve wrong", images_per_class=1)
    assert reasons(found) == {"p2": "wrong_after_crop"}


def test_only_the_box_that_was_decided_on_counts() -> None:
    pictures = pd.DataFrame({"image_id": ["a", "a", "a"], "class_index": SNOWMOBILE, "crop": [BOX, OTHER_BOX, None]})
    said = {Crop("a", BOX): Said(SNOWMOBILE, 0.5), Crop("a", OTHER_BOX): Said(SNOWPLOW, 0.5)}
    assert are_wrong(pictures, said).tolist() == [False, True, False]


def test_the_class_in_question_is_that_of_the_candidate() -> None:
    """A picture of both may stand in either."""
    pictures = pd.DataFrame({"image_id": ["a", "a"], "class_index": [SNOWMOBILE, SNOWPLOW], "crop": [BOX, BOX]})
    assert are_wrong(pictures, {Crop("a", BOX): Said(SNOWPLOW, 0.5)}).tolist() == [True, False]


def test_what_was_said() -> None:
    table = crop_scores_of({Crop("a", BOX): (SNOWMOBILE, 0.75), Crop("a", OTHER_BOX): (SNOWPLOW, 0.25)})
    assert said_of_crops(table) == {("a", BOX): (SNOWMOBILE, 0.75), ("a", OTHER_BOX): (SNOWPLOW, 0.25)}


def test_nothing_was_said() -> None:
    assert said_of_crops(crop_scores_of({})) == {}


def test_the_first_crop_without_scores_is_named() -> None:
    pictures = pd.DataFrame({"image_id": ["c", "b", "a"], "crop": [BOX, OTHER_BOX, BOX]})
    with pytest.raises(CleansetError, match=r"^s: no scores of b cropped to \[0, 0, 9, 8\], as the reviews have it"):
        check_scored(pictures, {Crop("a", BOX): Said(1, 0.5), Crop("b", BOX): Said(1, 0.5)}, "s")


def test_the_effect_of_cropping() -> None:
    selection = pd.DataFrame(
        {
            "image_id": ["whole", "more", "less", "wrong"],
            "class_index": SNOWMOBILE,
            "confidence": [0.5, 0.5, 0.75, 0.5],
            "crop": [None, BOX, BOX, BOX],
        }
    )
    said = {
        Crop("more", BOX): Said(SNOWMOBILE, 0.625),
        Crop("less", BOX): Said(SNOWMOBILE, 0.25),
        Crop("wrong", BOX): Said(SNOWPLOW, 1.0),
    }
    assert effect(selection, said) == {"pictures_wrong_after_crop": 1, "confidence_change_by_crop": -0.1875}
    assert effect(selection[:1], said) == {"pictures_wrong_after_crop": 0}


# The two files


CROPS = [Crop("b", (0, 0, 9, 9)), Crop("a", (10, 0, 20, 9)), Crop("a", (9, 0, 20, 9)), Crop("b", (0, 0, 9, 9))]
TEXT = "image_id,left,top,right,bottom\na,9,0,20,9\na,10,0,20,9\nb,0,0,9,9\n"


def test_crops_as_csv_and_back() -> None:
    assert crops_csv(CROPS) == TEXT
    assert parse_crops(TEXT, "c") == sorted(set(CROPS))
    assert parse_crops(crops_csv([]), "c") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^c, line 1: ''; expected image_id,left,top,right,bottom: run dvc repro$"),
        (TEXT.replace("top", "up"), "^c, line 1: 'image_id,left,up,right,bottom'; expected image_id,left,top"),
        (TEXT.replace("10", "x"), "^c, line 3: 'a,x,0,20,9'; expected an image id and four whole numbers"),
        (TEXT.replace(",20,9\nb", ",20\nb"), "^c, line 3: 'a,10,0,20'; expected an image id and four whole numbers"),
        (TEXT + "\n", "^c, line 5: ''; expected an image id and four whole numbers: run dvc repro$"),
        (TEXT + "b,0,0,9,9\n", r"^c, line 5: b cropped to \[0, 0, 9, 9\] occurs twice: run dvc repro$"),
        (TEXT + "b,9,0,9,9\n", "^c, line 5: a box without area; expected left < right and top < bottom"),
        (TEXT + "b,-1,0,9,9\n", "^c, line 5: a box without area"),
    ],
)
def test_a_list_of_crops_that_is_none(text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        parse_crops(text, "c")


def test_a_file_of_crops_that_is_missing_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "crops.csv"
    with pytest.raises(CleansetError, match=r"crops\.csv: missing; run dvc repro, or dvc pull to fetch it$"):
        read_crops(path)
    path.write_bytes(b"\xff")
    with pytest.raises(CleansetError, match=r"crops\.csv: not a text file \(.*\); run dvc repro$"):
        read_crops(path)


def test_a_picture_may_have_several_boxes_but_each_once(tmp_path: Path) -> None:
    """The rows are sorted by picture and box, and the bytes do not depend on their order."""
    said = dict.fromkeys(CROPS, (SNOWMOBILE, 0.5))
    for name, crops in (("one", CROPS[:3]), ("other", CROPS[2::-1])):
        write_table(tmp_path / name, crop_scores_of({crop: said[crop] for crop in crops}), CROP_SCORES)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    table = read_table(tmp_path / "one", CROP_SCORES)
    assert list(zip(table["image_id"], table["left"], strict=True)) == [("a", 9), ("a", 10), ("b", 0)]
    twice = pd.concat([table, table[:1]])
    with pytest.raises(ValueError, match=r"table: a 9 0 20 9 occurs twice$"):
        write_table(tmp_path / "table", twice, CROP_SCORES)
