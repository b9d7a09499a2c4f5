"""Review files: what they may hold, and what is refused in which words."""

from pathlib import Path

import pytest
import yaml
from ruamel.yaml import YAML

from cleanset.errors import CleansetError
from cleanset.review.store import check_note, review_file
from cleanset.review.verdicts import Review, parse_reviews
from tests.review.texts import GOLDFISH, IMAGE, SHA, TENCH, clean, crop, entry

CROP = {
    "verdict": "crop",
    "reason": "watermark",
    "crop": (0, 0, 480, 330),
    "object_fully_visible": True,
    "sha256": SHA,
}


def parsed(text: str) -> list[Review]:
    return [vote.review for vote in parse_reviews(text, TENCH, "reviews/ann/n01440764.yaml")]


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
    [vote] = parse_reviews(text, TENCH, "reviews/ann/n01440764.yaml")
    assert (vote.wnid, vote.image_id) == (TENCH, IMAGE)
    assert vote.where == "reviews/ann/n01440764.yaml, line 3, ILSVRC2012_val_00002138"
    assert vote.review.model_dump(exclude_none=True) == CROP | {"note": "stamp bottom right"}
    assert vote.review.box == (0, 0, 480, 330)


@pytest.mark.parametrize("reason", [
    "watermark", "text", "border", "collage", "filter", "noise", "blur", "drawing", "too_small",
    "artificial_background", "modification", "wrong_class", "several_objects", "duplicate", "other",
])  # fmt: skip
def test_every_reason(reason: str) -> None:
    [review] = parsed(entry(verdict="reject", reason=reason, sha256=SHA))
    assert (review.verdict, review.reason, review.box) == ("reject", reason, None)


@pytest.mark.parametrize("fields", [{}, {"reason": "blur"}, {"note": "is it a tench?"}])
def test_unsure_needs_no_reason(fields: dict[str, str]) -> None:
    assert [review.verdict for review in parsed(entry(verdict="unsure", sha256=SHA, **fields))] == ["unsure"]


@pytest.mark.parametrize("text", ["", "# nothing yet\n", f"{TENCH}: {{}}\n"])
def test_a_file_without_verdicts(text: str) -> None:
    assert parsed(text) == []


def test_line_numbers_of_two_images() -> None:
    text = clean() + f"  ILSVRC2012_val_00000009:\n    verdict: clean\n    sha256: {SHA}\n"
    assert [vote.where for vote in parse_reviews(text, TENCH, "f")] == [
        "f, line 2, ILSVRC2012_val_00002138",
        "f, line 5, ILSVRC2012_val_00000009",
    ]


def test_text_that_yaml_could_take_for_something_else_is_quoted() -> None:
    assert [review.note for review in parsed(clean(note='"2012-07-01"'))] == ["2012-07-01"]


FOUR_EDGES = "crop: expected four whole numbers from 0: left, top, right, bottom in pixels; found "

REFUSED = {
    # what tests/test_yaml_files.py tries in all its forms
    "a colon too many": (clean(note="a: b"), "line 5: not YAML: mapping values are not allowed in this context"),
    "python object": (
        clean(note="!!python/object:os.system {}"),
        "line 5: a tag, '!!python/object:os.system'; expected text, numbers, lists and tables",
    ),
    "yes as a truth value": (crop(object_fully_visible="yes"), "line 6: 'yes' without quotes"),
    "alias of the file": (f"&a {{{TENCH}: *a}}", "line 1: an anchor or alias; expected the values themselves"),
    # shape
    "a list": ("- a\n", "line 1: found a list; expected the wnid of the file, n01440764:"),
    "a text": ("clean\n", "line 1: found 'clean'; expected the wnid of the file, n01440764:"),
    "no images": (f"{TENCH}:\n", "line 1: found nothing; expected image ids"),
    "images as a list": (f"{TENCH}:\n- {IMAGE}\n", "line 1: found a list; expected image ids"),
    "no fields": (f"{TENCH}:\n  {IMAGE}:\n", "line 2: found nothing; expected verdict: …"),
    "verdict without its key": (f"{TENCH}:\n  {IMAGE}: clean\n", "line 2: found 'clean'; expected verdict: …"),
    "a table as value": (clean(note="{a: b}"), f"line 2, {IMAGE}: note: expected a string"),
    "a list in a list": (clean(note="[[a]]"), f"line 2, {IMAGE}: note: expected a string; found [['a']]"),
    "another class": (
        clean().replace(TENCH, GOLDFISH),
        "line 1: found n01443537; expected one entry, n01440764, the file's name",
    ),
    "two classes": (
        clean() + clean().replace(TENCH, GOLDFISH),
        "line 1: found n01440764, n01443537; expected one entry, n01440764, the file's name",
    ),
    "no class": ("{}", "line 1: found nothing; expected one entry, n01440764, the file's name"),
    "doubled image": (
        clean() + f"  {IMAGE}:\n    verdict: reject\n",
        "line 5: the key 'ILSVRC2012_val_00002138' a second time, first in line 2; a key comes once: remove one",
    ),
    # values
    "unknown key": (
        clean(vedict="crop"),
        f"line 2, {IMAGE}: unknown key 'vedict'; expected verdict, reason, crop, object_fully_visible, basis, seen, "
        "sha256, note",
    ),
    "no verdict": (entry(sha256=SHA), f"line 2, {IMAGE}: verdict: Field required"),
    "unknown verdict": (
        entry(verdict="ok", sha256=SHA),
        "verdict: expected 'clean', 'crop', 'reject' or 'unsure'; found 'ok'",
    ),
    "unknown reason": (
        entry(verdict="reject", reason="ugly", sha256=SHA),
        "reason: expected 'watermark', 'text'",
    ),
    "number as note": (clean(note="5"), f"line 2, {IMAGE}: note: expected a string; found 5"),
    "text as truth value": (
        crop(object_fully_visible='"true"'),
        "object_fully_visible: expected a boolean",
    ),
    "no sha256": (entry(verdict="clean"), f"line 2, {IMAGE}: sha256: Field required"),
    "short sha256": (entry(verdict="clean", sha256="3f6c0a"), "sha256: expected a match of"),
    "sha256 in capitals": (entry(verdict="clean", sha256="A" * 64), "sha256: expected a match of"),
    "clean with reason": (clean(reason="blur"), "verdict clean with a reason; a reason says what is wrong with"),
    "reject without reason": (entry(verdict="reject", sha256=SHA), f"{IMAGE}: verdict reject without a reason"),
    "crop without reason": (crop(reason="null"), "verdict crop without a reason"),
    "crop without box": (crop(crop="null"), "a crop box is needed for verdict crop, and for no other"),
    "clean with box": (clean(crop="[0, 0, 9, 9]"), "a crop box is needed for verdict crop, and for no other"),
    "reject with box": (crop(verdict="reject"), "a crop box is needed for verdict crop, and for no other"),
    "crop of no width": (
        crop(crop="[480, 0, 480, 330]"),
        "crop [480, 0, 480, 330] has no area; expected left < right and top < bottom",
    ),
    "crop of no height": (
        crop(crop="[0, 330, 480, 330]"),
        "crop [0, 330, 480, 330] has no area; expected left < right",
    ),
    "crop upside down": (crop(crop="[0, 330, 480, 0]"), "crop [0, 330, 480, 0] has no area; expected left < right and"),
    "negative crop": (crop(crop="[-1, 0, 480, 330]"), FOUR_EDGES + "[-1, 0, 480, 330]"),
    "crop of three": (crop(crop="[0, 0, 480]"), FOUR_EDGES + "[0, 0, 480]"),
    "crop of five": (crop(crop="[0, 0, 480, 330, 1]"), FOUR_EDGES + "[0, 0, 480, 330, 1]"),
    "crop of fractions": (crop(crop="[0, 0, 480.0, 330]"), FOUR_EDGES + "[0, 0, 480.0, 330]"),
    "crop of truth values": (crop(crop="[0, false, 480, 330]"), FOUR_EDGES + "[0, False, 480, 330]"),
    "crop as text": (crop(crop="0 0 480 330"), "crop: expected left, top, right, bottom in pixels, or unknown; found"),
    "crop as a number": (crop(crop="480"), FOUR_EDGES + "480"),
    "clean with unknown box": (clean(crop="unknown"), "a crop box is needed for verdict crop, and for no other"),
    "object cut off by an unknown box": (
        crop(crop="unknown", object_fully_visible="false"),
        "a crop without object_fully_visible: true; the object must remain fully visible",
    ),
    "crop of unknown box without reason": (crop(crop="unknown", reason="null"), "verdict crop without a reason"),
    "unknown basis": (clean(basis="guessed"), "basis: expected 'explicit', 'implied' or 'default'; found 'guessed'"),
    "unknown way of seeing": (clean(seen="twice"), "seen: expected 'grid' or 'single'; found 'twice'"),
    "rejected with others": (
        entry(verdict="reject", reason="blur", seen="grid", sha256=SHA),
        "seen grid with verdict reject; only clean is given to several images at once",
    ),
    "another word for a sha256": (entry(verdict="clean", sha256="Official"), "sha256: expected a match of"),
    "object cut off": (
        crop(object_fully_visible="false"),
        "a crop without object_fully_visible: true; the object must remain fully visible",
    ),
    "visibility not answered": (
        crop(object_fully_visible="null"),
        "a crop without object_fully_visible: true; the object must remain fully visible",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(text: str, message: str) -> None:
    with pytest.raises(CleansetError) as refusal:
        parsed(text)
    words = str(refusal.value)
    assert words.startswith("reviews/ann/n01440764.yaml")
    assert message in words
    assert "\n" not in words


@pytest.mark.slow
def test_the_committed_files_read_alike_in_both_versions_of_yaml(repository: Path) -> None:
    """As PyYAML (1.1) reads them, which was the reader of reviews, and as ruamel.yaml (1.2)."""
    files = sorted(path for edition in ("", "imagenet") for path in (repository / edition / "reviews").rglob("*.yaml"))
    assert len(files) >= 1011
    for path in files:
        text = path.read_text("utf-8")
        votes = parse_reviews(text, path.stem, str(path))
        found = {path.stem: {vote.image_id: vote.review.model_dump(mode="json", exclude_unset=True) for vote in votes}}
        assert found == yaml.load(text, Loader=yaml.CSafeLoader)
        assert found == YAML(typ="safe").load(text)


def test_a_long_name_and_a_long_note(tmp_path: Path) -> None:
    """A file system could not have the one, and a set would carry the other."""
    assert review_file(tmp_path, "a" * 64, "n01443537").parent.name == "a" * 64
    with pytest.raises(CleansetError, match=r"\(300 characters\)': expected a name of .*, at most 64"):
        review_file(tmp_path, "a" * 300, "n01443537")
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
