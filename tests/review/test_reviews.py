"""Review files: what they may hold, and what is refused in which words."""

from pathlib import Path

import pytest
import yaml
from ruamel.yaml import YAML

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.review.store import check_note, review_file
from cleanset.review.verdicts import Review, parse_reviews
from cleanset.vocabulary import REASONS
from tests.review.texts import GOLDFISH, IMAGE, SHA, TENCH, clean, crop, entry

CROP = {
    "verdict": "crop",
    "reason": "watermark",
    "crop": (0, 0, 480, 330),
    "object_fully_visible": True,
    "sha256": SHA,
}


def parsed(text: str) -> list[Review]:
    return [vote.review for vote in parse_reviews(text, TENCH, "reviews/ann/n01440764.yaml", imagenet())]


def test_the_example_of_the_design() -> None:
    text = f"""
n01440764:
  ILSVRC2012_val_00002138:
    verdict: crop
    reason: watermark
    crop: [0, 0, 480, 330]       # left, top, right, bottom
    object_fully_visible: true
    sha256: {SHA}
    note: stamp bottom right
"""
    [vote] = parse_reviews(text, TENCH, "reviews/ann/n01440764.yaml", imagenet())
    assert (vote.wnid, vote.image_id) == (TENCH, IMAGE)
    assert vote.where == "reviews/ann/n01440764.yaml, line 3, ILSVRC2012_val_00002138"
    assert vote.review.model_dump(exclude_none=True) == CROP | {"note": "stamp bottom right"}
    assert vote.review.box == (0, 0, 480, 330)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason(reason: str) -> None:
    [review] = parsed(entry(verdict="reject", reason=reason, sha256=SHA))
    assert (review.verdict, review.reason, review.box) == ("reject", reason, None)


@pytest.mark.parametrize("fields", [{}, {"reason": "blur"}, {"note": "is it a tench?"}])
def test_unsure_needs_no_reason(fields: dict[str, str]) -> None:
    assert [review.verdict for review in parsed(entry(verdict="unsure", sha256=SHA, **fields))] == ["unsure"]


@pytest.mark.parametrize("text", ["# nothing yet\n", f"{TENCH}: {{}}\n"])
def test_a_file_without_verdicts(text: str) -> None:
    assert parsed(text) == []


@pytest.mark.parametrize("text", ["", "\n", " \n\n", "---\n", "null\n", "~"])
def test_an_empty_file_is_not_a_class_without_verdicts(text: str) -> None:
    with pytest.raises(CleansetError, match="f: no verdicts; expected some, or a comment if there are none"):
        parse_reviews(text, TENCH, "f", imagenet())


def test_line_numbers_of_two_images() -> None:
    text = clean() + f"  ILSVRC2012_val_00000009:\n    verdict: clean\n    sha256: {SHA}\n"
    assert [vote.where for vote in parse_reviews(text, TENCH, "f", imagenet())] == [
        "f, line 2, ILSVRC2012_val_00002138",
        "f, line 5, ILSVRC2012_val_00000009",
    ]


def test_text_that_yaml_could_take_for_something_else_is_quoted() -> None:
    assert [review.note for review in parsed(clean(note='"2012-07-01"'))] == ["2012-07-01"]


FOUR_EDGES = "crop: expected four whole numbers from 0: left, top, right, bottom in pixels; found "

CUT_OFF = "a crop without object_fully_visible: true; the object must remain fully visible"
NO_BOX = "a crop box is needed for verdict crop, and for no other"

REFUSED = [
    (clean(note="a: b"), "line 5: not YAML: mapping values are not allowed in this context"),
    ("- a\n", "line 1: found a list; expected the wnid of the file, n01440764:"),
    (f"{TENCH}:\n", "line 1: found nothing; expected image ids"),
    (f"{TENCH}:\n  {IMAGE}:\n", "line 2: found nothing; expected verdict: …"),
    (f"{TENCH}:\n  {IMAGE}: clean\n", "line 2: found 'clean'; expected verdict: …"),
    (clean(note="{a: b}"), f"line 2, {IMAGE}: note: expected a string"),
    (clean(note="[[a]]"), f"line 2, {IMAGE}: note: expected a string; found [['a']]"),
    (clean().replace(TENCH, GOLDFISH), "line 1: found n01443537; expected one entry, n01440764, the file's name"),
    ("{}", "line 1: found nothing; expected one entry, n01440764, the file's name"),
    (
        clean() + f"  {IMAGE}:\n    verdict: reject\n",
        "line 5: the key 'ILSVRC2012_val_00002138' a second time, first in line 2; a key comes once: remove one",
    ),
    (
        clean(vedict="crop"),
        f"line 2, {IMAGE}: unknown key 'vedict'; expected verdict, reason, correct_class, crop, object_fully_visible, "
        "basis, seen, sha256, note",
    ),
    (entry(sha256=SHA), f"line 2, {IMAGE}: verdict: Field required"),
    (entry(verdict="ok", sha256=SHA), "verdict: expected 'clean', 'crop', 'reject' or 'unsure'; found 'ok'"),
    (entry(verdict="reject", reason="ugly", sha256=SHA), "reason: expected 'watermark', 'text'"),
    (clean(note="5"), f"line 2, {IMAGE}: note: expected a string; found 5"),
    (crop(object_fully_visible='"true"'), "object_fully_visible: expected a boolean"),
    (entry(verdict="clean"), f"line 2, {IMAGE}: sha256: Field required"),
    (entry(verdict="clean", sha256="3f6c0a"), "sha256: expected a match of"),
    (entry(verdict="clean", sha256="A" * 64), "sha256: expected a match of"),
    (clean(reason="blur"), "verdict clean with a reason; a reason names a flaw of the image"),
    (entry(verdict="reject", sha256=SHA), f"{IMAGE}: verdict reject without a reason"),
    (crop(reason="null"), "verdict crop without a reason"),
    (crop(crop="null"), NO_BOX),
    (clean(crop="[0, 0, 9, 9]"), NO_BOX),
    (crop(verdict="reject"), NO_BOX),
    (crop(crop="[480, 0, 480, 330]"), "crop [480, 0, 480, 330] has no area; expected left < right and top < bottom"),
    (crop(crop="[-1, 0, 480, 330]"), FOUR_EDGES + "[-1, 0, 480, 330]"),
    (crop(crop="0 0 480 330"), "crop: expected left, top, right, bottom in pixels, or unknown; found"),
    (clean(crop="unknown"), NO_BOX),
    (crop(crop="unknown", object_fully_visible="false"), CUT_OFF),
    (crop(crop="unknown", reason="null"), "verdict crop without a reason"),
    (clean(basis="guessed"), "basis: expected 'explicit', 'implied' or 'default'; found 'guessed'"),
    (clean(seen="twice"), "seen: expected 'grid' or 'single'; found 'twice'"),
    (
        entry(verdict="reject", reason="blur", seen="grid", sha256=SHA),
        "seen grid with verdict reject; only clean is given to several images at once",
    ),
    (entry(verdict="clean", sha256="Official"), "sha256: expected a match of"),
    (crop(object_fully_visible="false"), CUT_OFF),
    (crop(object_fully_visible="null"), CUT_OFF),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(CleansetError) as refusal:
        parsed(text)
    words = str(refusal.value)
    assert words.startswith("reviews/ann/n01440764.yaml")
    assert message in words
    assert "\n" not in words


@pytest.mark.long
@pytest.mark.slow
def test_the_committed_files_read_alike_in_both_versions_of_yaml(repository: Path) -> None:
    """As PyYAML (1.1) reads them, which was the reader of reviews, and as ruamel.yaml (1.2)."""
    files = sorted(path for edition in ("", "imagenet") for path in (repository / edition / "reviews").rglob("*.yaml"))
    assert len(files) >= 1011
    for path in files:
        text = path.read_text("utf-8")
        votes = parse_reviews(text, path.stem, str(path), imagenet())
        found = {path.stem: {vote.image_id: vote.review.model_dump(mode="json", exclude_unset=True) for vote in votes}}
        assert found == yaml.load(text, Loader=yaml.CSafeLoader)
        assert found == YAML(typ="safe").load(text)


def test_a_long_name_and_a_long_note(tmp_path: Path) -> None:
    """A file system could not have the one, and a set would carry the other."""
    assert review_file(tmp_path, "a" * 64, "n01443537", imagenet()).parent.name == "a" * 64
    with pytest.raises(CleansetError, match=r"\(300 characters\)': expected a name of .*, at most 64"):
        review_file(tmp_path, "a" * 300, "n01443537", imagenet())
    note = "x" * 3_000_000
    review = Review(verdict="clean", sha256="0" * 64, note=note)
    with pytest.raises(CleansetError, match=r"a note of 3,000,000 characters; expected at most 10,000: shorten it"):
        check_note("ada", review, "here")
    check_note("ada", review.model_copy(update={"note": note[:10_000]}), "here")


@pytest.mark.filterwarnings("error")
def test_a_crop_is_serialized_without_a_warning() -> None:
    review = Review.model_validate(CROP)
    assert review.model_dump(mode="json")["crop"] == [0, 0, 480, 330]
    assert '"crop":[0,0,480,330]' in review.model_dump_json()
