"""Reviews of images that are not ImageNet's: any class key and image id is written, and read back unchanged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import class_table
from cleanset.errors import CleansetError
from cleanset.image_ids import check_image_names
from cleanset.review.file_format import parse_reviews
from cleanset.review.gold import GoldItem
from cleanset.review.gold_files import gold_key_text, parse_gold_key
from cleanset.review.save import with_reviews
from cleanset.review.store import read_reviews, review_file
from cleanset.review.verdicts import Clean, Review, Unsure
from tests.properties import examples
from tests.review.texts import save

KEYS = ("null", "true", "1e5", "0", "yes", "ä b (c)", "it's", "a, b")
IDS = (
    "null/a.jpg",
    "a: b.jpg",
    "ä b (c).png",
    'it\'s "q".jpg',
    "#x.jpg",
    "x #y.jpg",
    "- a.jpg",
    "1e5/true.png",
    "a,b.jpg",
)
CLEAN = Review(verdict=Clean(), sha256="0" * 64)


CLASSES = class_table([(key, key) for key in KEYS], "here")


def is_id(text: str) -> bool:
    try:
        check_image_names([text], "here")
    except CleansetError:
        return False
    return True


ids = st.one_of(st.sampled_from(IDS), st.text(min_size=1, max_size=20).map(lambda name: f"{name}.jpg").filter(is_id))


@examples(100)
@given(key=st.sampled_from(KEYS), images=st.lists(ids, min_size=1, max_size=6, unique=True), data=st.data())
def test_a_review_file_holds_any_image_ids(key: str, images: list[str], data: st.DataObject) -> None:
    text = ""
    for image_id in images:
        text = with_reviews(text, key, {image_id: CLEAN}, "here")
    assert {vote.image_id: vote.review for vote in parse_reviews(text, key, "here", CLASSES)} == dict.fromkeys(
        images, CLEAN
    )
    changed = data.draw(st.sampled_from(images))
    unsure = Review(verdict=Unsure(), sha256="0" * 64)
    text = with_reviews(text, key, {changed: unsure}, "here")
    expected = dict.fromkeys(images, CLEAN) | {changed: unsure}
    assert {vote.image_id: vote.review for vote in parse_reviews(text, key, "here", CLASSES)} == expected
    for image_id in images:
        text = with_reviews(text, key, {image_id: None}, "here")
    assert text == ""


def test_the_files_of_all_classes_are_read_back(tmp_path: Path) -> None:
    for key in KEYS:
        save(tmp_path, "ada", key, f"{key}/a.jpg", CLEAN, classes=CLASSES)
    assert {(CLASSES.keys[index], image_id) for index, image_id in read_reviews(tmp_path, CLASSES)} == {
        (key, f"{key}/a.jpg") for key in KEYS
    }
    for key in KEYS:
        save(tmp_path, "ada", key, f"{key}/a.jpg", None, classes=CLASSES)
        assert not review_file(tmp_path, "ada", key, CLASSES).exists()


def test_what_is_no_class_or_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"unknown class 'Null'; expected a class such as 0$"):
        review_file(tmp_path, "ada", "Null", CLASSES)
    with pytest.raises(CleansetError, match=r"expected an image id such as robin/0001.jpg$"):
        save(tmp_path, "ada", "null", "../a.jpg", CLEAN, classes=CLASSES)
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "n01440764.yaml").write_text("")
    with pytest.raises(CleansetError, match=r"not of a class here; expected a file <class>.yaml"):
        read_reviews(tmp_path, CLASSES)


def test_gold_items_of_any_name_are_read_back() -> None:
    items = [GoldItem(index, image_id, "0" * 64, None, "settled") for index, image_id in enumerate(IDS[: len(KEYS)])]
    text = gold_key_text(items, CLASSES)
    assert text.startswith("class,image_id,")
    assert list(parse_gold_key(text, "here", CLASSES).values()) == items
