"""One verdict changed in the text of a review file: literal texts, and what must hold for any."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.review.file_format import parse_review, parse_reviews
from cleanset.review.save import with_reviews
from cleanset.review.verdicts import Clean, Cropped, Rejected, Review
from tests.properties import examples

TENCH = "n01440764"
SHA, OTHER_SHA = "3f6c0a" + "0" * 58, "b" * 64
FIRST, SECOND, THIRD = (f"ILSVRC2012_val_0000000{number}" for number in (1, 2, 3))

CLEAN = Review(verdict=Clean(), sha256=SHA)
BLURRED = Review(verdict=Rejected("blur"), sha256=OTHER_SHA, note="soft all over")
CROPPED = Review(verdict=Cropped("text", (0, 0, 480, 330)), sha256=SHA)


def changed(text: str, image_id: str, review: Review | None) -> str:
    return with_reviews(text, TENCH, {image_id: review}, "reviews/ann/n01440764.yaml")


ALL = f"""\
n01440764:
  ILSVRC2012_val_00000001:
    verdict: clean
    sha256: {SHA}
  ILSVRC2012_val_00000002:
    verdict: reject
    reason: blur
    sha256: {OTHER_SHA}
    note: soft all over
  ILSVRC2012_val_00000003:
    verdict: crop
    reason: text
    crop: [0, 0, 480, 330]
    object_fully_visible: true
    sha256: {SHA}
"""


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_entries_stand_by_image_id_whatever_the_order_of_saving(order: tuple[int, ...]) -> None:
    entries = [(FIRST, CLEAN), (SECOND, BLURRED), (THIRD, CROPPED)]
    text = ""
    for number in order:
        text = changed(text, *entries[number])
    assert text == ALL
    for number in order:
        text = changed(text, entries[number][0], None)
    assert text == ""


BY_HAND = f"""\
# Ann's verdicts,
--- # begun in May
n01440764:   # tench
    # the first is dark

    ILSVRC2012_val_00000001:
          verdict:  'clean'   # at last
          sha256:     "{SHA}"

    # this one I had twice
    ILSVRC2012_val_00000003: # by the river
          sha256: {SHA} # of the original
          # seen at 200 %
          verdict: crop
          crop: [0,0,
             480,330]     # left, top, right, bottom
          object_fully_visible: true
          reason: text
          note: >-
              stamp
              bottom right
          # this far
    # to do: 00000004
# end
"""
DARK = {"verdict": "unsure", "sha256": SHA}

EDITS: dict[str, tuple[str, Review | None, str, str]] = {
    "insert between": (
        SECOND, CLEAN,
        f'"{SHA}"\n',
        f'"{SHA}"\n    {SECOND}:\n          verdict: clean\n          sha256: {SHA}\n',
    ),
    "insert at the end": (
        "ILSVRC2012_val_00000005", CLEAN,
        "          # this far\n",
        f"          # this far\n    ILSVRC2012_val_00000005:\n          verdict: clean\n          sha256: {SHA}\n",
    ),
    "other verdict, comment kept": (
        FIRST, parse_review(DARK, "here"),
        "'clean'   # at last", "unsure   # at last",
    ),
    "with a reason": (
        FIRST, parse_review(DARK | {"reason": "blur"}, "here"),
        "'clean'   # at last\n", "unsure   # at last\n          reason: blur\n",
    ),
    "note gone": (
        THIRD, CROPPED,
        "          note: >-\n              stamp\n              bottom right\n", "",
    ),
    "other note": (
        THIRD, replace(CROPPED, note="a: b"),
        "note: >-\n              stamp\n              bottom right\n", "note: 'a: b'\n",
    ),
    "entry gone": (
        FIRST, None,
        BY_HAND[BY_HAND.index("    ILSVRC2012_val_00000001") : BY_HAND.index("\n    # this one")], "",
    ),
    "last entry gone": (
        THIRD, None,
        BY_HAND[BY_HAND.index("    ILSVRC2012_val_00000003") : BY_HAND.index("    # to do")], "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("image_id", "review", "old", "new"), EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_all_else_stays_as_written(image_id: str, review: Review | None, old: str, new: str, newline: str) -> None:
    assert BY_HAND.count(old) == 1
    text, wanted = (part.replace("\n", newline) for part in (BY_HAND, BY_HAND.replace(old, new)))
    assert changed(text, image_id, review) == wanted


def test_the_same_verdict_changes_nothing() -> None:
    assert changed(BY_HAND, FIRST, CLEAN) == BY_HAND
    assert changed(BY_HAND, SECOND, None) == BY_HAND


def test_comments_of_a_file_without_entries_stay() -> None:
    text = f"# mine\n{TENCH}: # tench\n  {FIRST}:\n    verdict: clean\n    sha256: {SHA}\n"
    emptied = changed(text, FIRST, None)
    assert emptied == f"# mine\n{TENCH}: {{}} # tench\n"
    assert changed(emptied, FIRST, CLEAN) == text
    assert changed("# mine\n", FIRST, CLEAN) == text.replace(" # tench", "")


def test_without_a_line_end_at_the_end() -> None:
    assert changed(ALL.removesuffix("\n"), THIRD, CROPPED) == ALL.removesuffix("\n")
    assert changed(changed(ALL, THIRD, None).removesuffix("\n"), THIRD, CROPPED) == ALL.removesuffix("\n")


def test_an_entry_in_braces() -> None:
    first = f"{TENCH}:\n  {FIRST}: {{verdict: unsure, sha256: {SHA}}}\n"
    third = f"  {THIRD}:\n    {{verdict: clean,\n sha256: {SHA}}} # two lines\n"
    second = changed("", SECOND, CLEAN).split("\n", 1)[1]
    assert changed(first + third, FIRST, CLEAN) == first.replace("unsure", "clean") + third
    assert changed(first + third, THIRD, None) == first
    assert changed(first + third, SECOND, CLEAN) == first + second + third
    noted = replace(CLEAN, note="a, b")
    assert changed(first + third, THIRD, noted) == first + third.replace("}", ", note: 'a, b'}")


IN_BRACES = f"{{{TENCH}: {{{THIRD}: {{verdict: unsure, sha256: {SHA}}}}}}} # mine\n"


def test_a_file_in_braces_stays_in_braces() -> None:
    with_both = IN_BRACES.replace(f"{{{THIRD}", f"{{{FIRST}: {{verdict: clean, sha256: {SHA}}}, {THIRD}")
    assert changed(IN_BRACES, FIRST, CLEAN) == with_both
    assert changed(with_both, FIRST, None) == IN_BRACES
    assert changed(IN_BRACES, THIRD, None) == f"{{{TENCH}: {{}}}} # mine\n"


def test_a_file_that_is_written_again_is_sorted() -> None:
    """One with a box under an explicit key, which cannot be changed in its place."""
    third = f"  {THIRD}:\n    verdict: unsure\n    sha256: {SHA}\n"
    first = f"  {FIRST}:\n    verdict: crop\n    reason: text\n    {{}}\n    object_fully_visible: true\n"
    first += f"    sha256: {SHA}\n"
    before = first.format("? crop\n    : - 0\n      - 0\n      - 480\n      - 330")
    found = changed(f"{TENCH}:\n{third}{before}", FIRST, replace(CROPPED, verdict=Cropped("text", (1, 2, 3, 4))))
    assert found == f"{TENCH}:\n{first.format('crop: [1, 2, 3, 4]')}{third}"


def test_explicit_keys() -> None:
    text = f"? {TENCH}\n: ? {FIRST}\n  : verdict: unsure\n    sha256: {SHA} # mine\n"
    assert changed(text, FIRST, CLEAN) == text.replace("unsure", "clean")
    with pytest.raises(CleansetError, match=rf"yaml: written in a way in which {FIRST} cannot be changed alone"):
        changed(text, FIRST, None)
    assert changed(text.replace(" # mine", ""), FIRST, None) == ""


FIELDS_WITH_COMMENTS = {
    "box over two lines": (
        "    crop: [0,0, # left, top\n     480,330]\n    note: soft\n",
        None,
    ),
    "box as a block": (
        "    crop:\n    - 0 # left\n    - 0\n    - 480\n    - 330\n    note: soft\n",
        None,
    ),
    "folded note": (
        "    crop: [0, 0, 480, 330]\n    note: >- # mine\n      soft\n",
        None,
    ),
    "comment behind a box": (
        "    crop: [0,0,\n     480,330] # left, top, right, bottom\n    note: soft\n",
        "    crop: [1, 2, 3, 4] # left, top, right, bottom\n    note: softer\n",
    ),
    "note below a comment": (
        "    crop: [0, 0, 480, 330]\n    note: # mine\n      soft\n",
        "    crop: [1, 2, 3, 4]\n    note: # mine\n      softer\n",
    ),
    "quoted note": (
        "    crop: [0, 0, 480, 330]\n    note: 'soft\n\n      # no comment' # mine\n",
        "    crop: [1, 2, 3, 4]\n    note: softer # mine\n",
    ),
}


@pytest.mark.parametrize(("fields", "expected"), FIELDS_WITH_COMMENTS.values(), ids=FIELDS_WITH_COMMENTS.keys())
def test_comments_within_a_field_are_not_dropped_unseen(fields: str, expected: str | None) -> None:
    head, tail = (
        f"{TENCH}:\n  {FIRST}:\n    verdict: crop\n    reason: text\n",
        f"    object_fully_visible: true\n    sha256: {SHA}\n",
    )
    other = replace(CROPPED, verdict=Cropped("text", (1, 2, 3, 4)), note="softer")
    if expected is None:
        with pytest.raises(CleansetError, match=rf"yaml: written in a way in which {FIRST} cannot be changed alone"):
            changed(head + fields + tail, FIRST, other)
        fields = re.sub(r" # (mine|left.*)", "", fields)
        expected = "    crop: [1, 2, 3, 4]\n    note: softer\n"
    assert changed(head + fields + tail, FIRST, other) == head + expected + tail


def test_half_a_character_does_not_break_the_file() -> None:
    with pytest.raises(CleansetError, match=rf"yaml: this verdict on {FIRST} cannot be written as YAML"):
        changed("", FIRST, replace(CLEAN, note="x\ud83d"))


def test_the_committed_files_are_as_they_would_be_written(repository: Path) -> None:
    files = sorted((repository / "reviews").glob("*/*.yaml"))
    assert len(files) >= 14
    for path in files:
        text, written = path.read_bytes().decode(), ""
        votes = parse_reviews(text, path.stem, str(path), imagenet())
        for vote in reversed(votes):
            assert with_reviews(text, path.stem, {vote.image_id: vote.review}, "") == text
            written = with_reviews(written, path.stem, {vote.image_id: vote.review}, "")
        assert written == "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


# Any verdicts, any notes

SUMS = st.sampled_from(["0" * 64, "1" * 64, "1" * 62 + "e9", "0" * 62 + "e9", SHA, "a" * 64])
NOTES = st.none() | st.text(max_size=60) | st.sampled_from(
    ["yes", "null", "2012-07-01", "1e3", "- a", "a: b", "a #b", "'", '"', "|", "a\nb", "\n", " a ", "\t", "=", "<<",
     "a\u2028b", "\ufeff", "\x85", "🐟", "x" * 300, "x " * 300, "!mine", "&a", "*a", "%a", "@", "`", "---", "..."]
)  # fmt: skip


@st.composite
def any_review(draw: st.DrawFn) -> Review:
    verdict = draw(st.sampled_from(["clean", "crop", "reject", "unsure"]))
    fields: dict[str, Any] = {"verdict": verdict, "sha256": draw(SUMS), "note": draw(NOTES)}
    if verdict != "clean":
        fields["reason"] = draw(st.sampled_from(["blur", "several_objects"]))
    if verdict == "crop":
        left, top = draw(st.integers(0, 9999)), draw(st.integers(0, 9999))
        fields["crop"] = [left, top, left + draw(st.integers(1, 9)), top + draw(st.integers(1, 9))]
    fields["object_fully_visible"] = True if verdict == "crop" else draw(st.none() | st.booleans())
    return parse_review(fields, "here")


STEPS = st.lists(st.tuples(st.sampled_from([FIRST, SECOND, THIRD]), st.none() | any_review()), max_size=8)


@examples(200)
@given(STEPS)
def test_what_was_saved_is_what_is_read(steps: list[tuple[str, Review | None]]) -> None:
    text, wanted = "", dict[str, Review]()
    for image_id, review in steps:
        text = changed(text, image_id, review)
        wanted.pop(image_id, None)
        if review:
            wanted[image_id] = review
        # of nothing, no file is written
        votes = parse_reviews(text, TENCH, "f", imagenet()) if text else []
        assert {vote.image_id: vote.review for vote in votes} == wanted
    fresh = ""
    for image_id in sorted(wanted):
        fresh = changed(fresh, image_id, wanted[image_id])
    assert text == fresh


@st.composite
def handwritten(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]]]:
    """A file as people write: any indent, comments and blank lines anywhere; its entries with their text."""
    outer = " " * draw(st.integers(1, 5))
    inner = outer + " " * draw(st.integers(1, 5))
    between = st.lists(st.sampled_from(["", f"{outer}# above", "# at the margin"]), max_size=2)
    within = st.lists(st.sampled_from(["", f"{inner}# inside"]), max_size=1)
    entries = []
    for image_id in (FIRST, SECOND, THIRD):
        fields = draw(st.permutations(["verdict: clean", f'sha256:   "{SHA}"', "note: 'a'  # why", "reason: null"]))
        if draw(st.booleans()):
            fields = [field.replace("note: 'a'  # why", f"note: |\n{inner}    # no comment") for field in fields]
        lines = [f"{outer}{image_id}:"]
        for field in fields:
            lines += [*draw(within), f"{inner}{field}"]
        entries.append((image_id, "\n".join(lines) + "\n"))
    text = f"{TENCH}:\n"
    for _, entry in entries:
        text += "".join(line + "\n" for line in draw(between)) + entry
    return text + "".join(line + "\n" for line in draw(between)), entries


@examples(200)
@given(handwritten(), st.integers(0, 2), st.none() | any_review())
def test_other_entries_and_comments_between_stay(
    file: tuple[str, list[tuple[str, str]]], at: int, review: Review | None
) -> None:
    text, entries = file
    image_id, own = entries[at]
    result = changed(text, image_id, review)
    before, after = text.split(own)
    assert result.startswith(before)
    assert result.endswith(after)
    kept = result[len(before) : len(result) - len(after)]
    assert kept.count("# inside") == (own.count("# inside") if review else 0)
