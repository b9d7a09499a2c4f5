"""Review files: what they may hold, and what is refused in which words."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ruamel.yaml import YAML

from cleanset.classes import ClassName, ClassTable, imagenet
from cleanset.errors import CleansetError
from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.review.file_format import parse_reviews, review_fields
from cleanset.review.save import with_reviews
from cleanset.review.store import check_note, read_file, read_votes, review_file
from cleanset.review.verdicts import Clean, Cropped, Rejected, Review, Unsure
from cleanset.vocabulary import REASONS, Reason
from tests.review.texts import GOLDFISH, IMAGE, SHA, TENCH, clean, crop, entry, save


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
    assert vote.review == Review(verdict=Cropped("watermark", (0, 0, 480, 330)), sha256=SHA, note="stamp bottom right")
    assert vote.review.box == (0, 0, 480, 330)


# each class of verdict as read and written: the lines of its entry in the file
AS_WRITTEN: list[tuple[Review, str]] = [
    (Review(verdict=Clean(), sha256=SHA), f"""\
    verdict: clean
    sha256: {SHA}
"""),
    (Review(verdict=Clean(), basis="implied", seen="grid", sha256="official", note="a: b"), """\
    verdict: clean
    basis: implied
    seen: grid
    sha256: official
    note: 'a: b'
"""),
    (Review(verdict=Cropped("text", (0, 10, 480, 330)), seen="single", sha256=SHA), f"""\
    verdict: crop
    reason: text
    crop: [0, 10, 480, 330]
    object_fully_visible: true
    seen: single
    sha256: {SHA}
"""),
    (Review(verdict=Cropped("border", UNKNOWN_BOX), basis="default", sha256=SHA), f"""\
    verdict: crop
    reason: border
    crop: unknown
    object_fully_visible: true
    basis: default
    sha256: {SHA}
"""),
    (Review(verdict=Rejected("blur"), sha256=SHA, note="soft all over"), f"""\
    verdict: reject
    reason: blur
    sha256: {SHA}
    note: soft all over
"""),
    (Review(verdict=Rejected("wrong_class", GOLDFISH), sha256=SHA), f"""\
    verdict: reject
    reason: wrong_class
    correct_class: {GOLDFISH}
    sha256: {SHA}
"""),
    (Review(verdict=Unsure(), sha256=SHA), f"""\
    verdict: unsure
    sha256: {SHA}
"""),
    (Review(verdict=Unsure("several_objects"), sha256=SHA), f"""\
    verdict: unsure
    reason: several_objects
    sha256: {SHA}
"""),
]  # fmt: skip


@pytest.mark.parametrize(("review", "lines"), AS_WRITTEN)
def test_each_verdict_as_read_and_written(review: Review, lines: str) -> None:
    text = f"{TENCH}:\n  {IMAGE}:\n{lines}"
    assert parsed(text) == [review]
    assert with_reviews("", TENCH, {IMAGE: review}, "f") == text


def test_all_keys_of_an_entry_in_their_order() -> None:
    review = Review(verdict=Cropped("text", (1, 2, 3, 4)), seen="single", sha256=SHA)
    assert list(review_fields(review).items()) == [
        ("verdict", "crop"), ("reason", "text"), ("correct_class", None), ("crop", [1, 2, 3, 4]),
        ("object_fully_visible", True), ("basis", None), ("seen", "single"), ("sha256", SHA), ("note", None),
    ]  # fmt: skip


@pytest.mark.parametrize("stated", ["true", "false"])
def test_a_statement_next_to_another_verdict_than_crop_stays_as_written(stated: str) -> None:
    """It means nothing there; another verdict drops it."""
    text = clean(object_fully_visible=stated)
    [review] = parsed(text)
    assert review == Review(verdict=Clean(), sha256=SHA)
    noted = with_reviews(text, TENCH, {IMAGE: replace(review, note="n")}, "f")
    assert noted == text.replace(f"sha256: {SHA}\n", f"sha256: {SHA}\n    note: n\n")
    doubted = with_reviews(text, TENCH, {IMAGE: Review(verdict=Unsure(), sha256=SHA)}, "f")
    assert doubted == entry(verdict="unsure", sha256=SHA)


def test_verdicts_with_fields_of_others_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="correct class n01443537 with reason blur; expected wrong_class"):
        Rejected("blur", GOLDFISH)
    for verdict in (Unsure(), Rejected("blur"), Cropped("text", UNKNOWN_BOX)):
        with pytest.raises(ValueError, match=f"seen grid with verdict {verdict.kind}; only clean"):
            Review(verdict=verdict, seen="grid", sha256=SHA)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason(reason: Reason) -> None:
    [review] = parsed(entry(verdict="reject", reason=reason, sha256=SHA))
    assert (review.verdict, review.reason, review.box) == (Rejected(reason), reason, None)


@pytest.mark.parametrize("fields", [{}, {"reason": "blur"}, {"note": "is it a tench?"}])
def test_unsure_needs_no_reason(fields: dict[str, str]) -> None:
    [review] = parsed(entry(verdict="unsure", sha256=SHA, **fields))
    assert review.verdict == Unsure("blur" if "reason" in fields else None)


@pytest.mark.parametrize("text", ["# nothing yet\n", f"{TENCH}: {{}}\n"])
def test_a_file_without_verdicts(text: str) -> None:
    assert parsed(text) == []


@pytest.mark.parametrize("text", ["", "\n", " \n\n", "---\n", "null\n", "~"])
def test_an_empty_file_is_not_a_class_without_verdicts(text: str) -> None:
    with pytest.raises(CleansetError, match="f: no verdicts; expected verdicts, or a comment in a file without any"):
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
    (entry(verdict="reject", reason="Ugly!", sha256=SHA), "reason: expected a reason such as too_small; found 'Ugly!'"),
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


def given(review: Review) -> dict[str, object]:
    """The keys that have a value."""
    return {name: value for name, value in review_fields(review).items() if value is not None}


@pytest.mark.long
@pytest.mark.slow
def test_the_committed_files_read_alike_in_both_versions_of_yaml(repository: Path) -> None:
    """As PyYAML (1.1) reads them, which was the reader of reviews, and as ruamel.yaml (1.2)."""
    files = sorted(path for edition in ("", "imagenet") for path in (repository / edition / "reviews").rglob("*.yaml"))
    assert len(files) >= 1011
    for path in files:
        text = path.read_text("utf-8")
        votes = parse_reviews(text, path.stem, str(path), imagenet())
        found = {path.stem: {vote.image_id: given(vote.review) for vote in votes}}
        assert found == yaml.load(text, Loader=yaml.CSafeLoader)
        assert found == YAML(typ="safe").load(text)


def test_a_long_name_and_a_long_note(tmp_path: Path) -> None:
    """A file system could not have the one, and a set would carry the other."""
    assert review_file(tmp_path, "a" * 64, "n01443537", imagenet()).parent.name == "a" * 64
    with pytest.raises(CleansetError, match=r"\(300 characters\)': expected a name of .*, at most 64"):
        review_file(tmp_path, "a" * 300, "n01443537", imagenet())
    note = "x" * 3_000_000
    review = Review(verdict=Clean(), sha256="0" * 64, note=note)
    with pytest.raises(CleansetError, match=r"a note of 3,000,000 characters; expected at most 10,000: shorten it"):
        check_note("ada", review, "here")
    check_note("ada", replace(review, note=note[:10_000]), "here")


FORMS = [f"{IMAGE}.JPEG", f"val/{IMAGE}.JPEG", f"{IMAGE}_{TENCH}.png", '"00002138"', '"2138"']


@pytest.mark.parametrize("form", FORMS)
def test_an_image_in_any_form(form: str, tmp_path: Path) -> None:
    """It is read as the image's id, and an entry that is changed keeps its form."""
    path = tmp_path / "ann" / f"{TENCH}.yaml"
    path.parent.mkdir()
    text = f"# mine\n{clean(note='x')}".replace(IMAGE, form)
    path.write_text(text)
    (vote,) = read_file(path, imagenet())
    assert (vote.image_id, vote.review.note) == (IMAGE, "x")
    assert list(read_votes(tmp_path, imagenet())) == [(0, IMAGE)]
    save(tmp_path, "ann", TENCH, IMAGE, replace(vote.review, note="y"))
    assert path.read_text() == text.replace("note: x", "note: y")
    save(tmp_path, "ann", TENCH, IMAGE, None)
    assert IMAGE not in path.read_text()
    assert "2138" not in path.read_text()
    path.write_text(f"{text}  {IMAGE}:\n    verdict: clean\n    sha256: {SHA}\n")
    with pytest.raises(CleansetError, match=f"line 7, {IMAGE}: {IMAGE} a second time; expected one verdict on each"):
        read_file(path, imagenet())


def test_ids_of_your_own_images_are_their_paths(tmp_path: Path) -> None:
    """One may have a name like ImageNet's."""
    classes = ClassTable((ClassName(class_index=0, key="cat", name=""),))
    names = ["00002138.JPEG", f"{IMAGE}.JPEG"]
    text = "cat:\n" + "".join(f"  {name}: {{verdict: clean, sha256: {SHA}}}\n" for name in names)
    assert [vote.image_id for vote in parse_reviews(text, "cat", "f", classes)] == names
    changed = with_reviews(text, "cat", {names[0]: None}, "f")
    assert [vote.image_id for vote in parse_reviews(changed, "cat", "f", classes)] == names[1:]
