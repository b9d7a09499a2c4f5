"""Review files: what they may say, what is refused and in which words, and how several verdicts become one."""

import re
from itertools import permutations
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.review.consensus import Policy, consensus
from cleanset.review.decisions import decisions
from cleanset.review.store import check_reviews, checked_reviews, read_reviews
from cleanset.review.verdicts import Review, parse_reviews
from cleanset.selection.decision import Decision

SHA = "3f6c0a" + "0" * 58
OTHER_SHA = "b" * 64
TENCH, GOLDFISH = "n01440764", "n01443537"  # class indices 0 and 1
IMAGE = "ILSVRC2012_val_00002138"

CROP = {
    "verdict": "crop",
    "reason": "watermark",
    "crop": [0, 0, 480, 330],
    "object_fully_visible": True,
    "sha256": SHA,
}


def parsed(text: str) -> list[Review]:
    return [vote.review for vote in parse_reviews(text, TENCH, "reviews/ann/n01440764.yaml")]


def entry(**fields: str) -> str:
    """The text of a file with one image; a field is written as given."""
    lines = "".join(f"    {key}: {value}\n" for key, value in fields.items())
    return f"{TENCH}:\n  {IMAGE}:\n{lines}"


def clean(**fields: str) -> str:
    return entry(verdict="clean", sha256=SHA, **fields)


def crop(**fields: str) -> str:
    usual = {"verdict": "crop", "reason": "text", "crop": "[0, 0, 480, 330]", "object_fully_visible": "true"}
    return entry(**(usual | {"sha256": SHA} | fields))


# The format


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
    assert vote.review.model_dump() == CROP | {"note": "stamp bottom right"}
    assert vote.review.box == (0, 0, 480, 330)


@pytest.mark.parametrize("reason", [
    "watermark", "text", "border", "collage", "filter", "noise", "blur", "drawing", "wrong_class",
    "several_objects", "duplicate", "other",
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


REFUSED = {
    # not YAML
    "a colon too many": (clean(note="a: b"), "line 5: not YAML: mapping values are not allowed in this context"),
    "a tab": (f"{TENCH}:\n\tP: {{}}\n", "line 2: not YAML: found character that cannot start any token"),
    "an open bracket": (crop(crop="[0, 0"), "line 6: not YAML: did not find expected ',' or ']'"),
    "an unknown alias": (clean(note="*missing"), "line 5: not YAML: found undefined alias"),
    "two documents": (clean() + "---\n" + clean(), "line 5: not YAML: but found another document"),
    "a control character": (clean(note="a\x00b"), "not YAML: unacceptable character #x0000"),
    # tags
    "python object": (
        clean(note="!!python/object:os.system {}"),
        "line 5: a value of type tag:yaml.org,2002:python/object:os.system; expected text, numbers and lists",
    ),
    "python call": (
        clean(note="!!python/object/apply:os.system ['true']"),
        "line 5: a value of type tag:yaml.org,2002:python/object/apply:os.system; expected text",
    ),
    "python object as entry": (
        f"{TENCH}:\n  {IMAGE}: !!python/object:builtins.dict\n    verdict: clean\n",
        "line 2: a value of type tag:yaml.org,2002:python/object:builtins.dict; expected text",
    ),
    "python object as file": (
        f"!!python/object:builtins.dict {{{TENCH}: {{}}}}",
        "line 1: a value of type tag:yaml.org,2002:python/object:builtins.dict; expected text",
    ),
    "tagged key": (
        clean() + "    !!python/name:os.system note: x\n",
        "line 5: a value of type tag:yaml.org,2002:python/name:os.system; expected text",
    ),
    "own tag": (clean(note="!mine x"), "line 5: a value of type !mine; expected text, numbers and lists"),
    "tag inside a list": (crop(crop="[0, 0, 480, !mine 330]"), "line 5: a value of type !mine; expected text"),
    "unquoted date": (
        clean(note="2012-07-01"),
        "line 5: a value of type tag:yaml.org,2002:timestamp; expected text, numbers and lists: "
        "put it in quotes if it is meant as text",
    ),
    "merge key": (
        f"{TENCH}:\n  <<: {{verdict: clean, sha256: {SHA}}}\n",
        "line 2: a value of type tag:yaml.org,2002:merge; expected text",
    ),
    "no truth value": (clean(object_fully_visible="!!bool maybe"), "line 5: found 'maybe'; expected text, a number"),
    "no number": (clean(note="!!int ''"), "line 5: found ''; expected text, a number or a list"),
    "no table": (clean(note="!!map x"), "line 5: found 'x'; expected text, a number or a list"),
    # aliases that contain themselves
    "alias of the file": (f"&a {{{TENCH}: *a}}", "line 1: found a list or table; expected text, a number or a list"),
    "alias of the class": (f"{TENCH}: &a {{P: *a}}", "line 1: found a list or table; expected text, a number"),
    "alias of the entry": (f"{TENCH}: {{P: &a {{note: *a}}}}", "line 1: found a list or table; expected text"),
    "alias of the list": (f"{TENCH}: {{P: {{crop: &a [*a]}}}}", "line 1: found a list or table; expected text"),
    # shape
    "a list": ("- a\n", "line 1: found a list or table; expected the wnid of the file, n01440764:"),
    "a text": ("clean\n", "line 1: found 'clean'; expected the wnid of the file, n01440764:"),
    "no images": (f"{TENCH}:\n", "line 1: found ''; expected image ids"),
    "images as a list": (f"{TENCH}:\n- {IMAGE}\n", "line 2: found a list or table; expected image ids"),
    "no fields": (f"{TENCH}:\n  {IMAGE}:\n", "line 2: found ''; expected verdict: …"),
    "verdict without its key": (f"{TENCH}:\n  {IMAGE}: clean\n", "line 2: found 'clean'; expected verdict: …"),
    "a truth value as key": (
        f"{TENCH}:\n  !!bool {IMAGE}: {{verdict: clean, sha256: {SHA}}}\n",
        f"line 2: found '{IMAGE}' as a key; expected image ids",
    ),
    "a list as key": (f"{TENCH}:\n  [a, b]: clean\n", "line 2: found a list or table as a key; expected image ids"),
    "a table as value": (clean(note="{a: b}"), "line 5: found a list or table; expected text, a number or a list"),
    "a list in a list": (clean(note="[[a]]"), "line 5: a list or table too deep; a review has text, numbers, a crop"),
    "deeper than the stack": ("[" * 50_000, "line 1: a list or table too deep; a review has text, numbers, a crop"),
    "another class": (
        clean().replace(TENCH, GOLDFISH),
        "line 1: found n01443537; expected one entry, n01440764, the file's name",
    ),
    "two classes": (
        clean() + clean().replace(TENCH, GOLDFISH),
        "line 1: found n01440764, n01443537; expected one entry, n01440764, the file's name",
    ),
    "no class": ("{}", "line 1: found nothing; expected one entry, n01440764, the file's name"),
    "doubled class": (
        clean() * 2,
        "line 5: n01440764 a second time, first in line 1; expected one entry: remove one of the two",
    ),
    "doubled image": (
        clean() + f"  {IMAGE}:\n    verdict: reject\n",
        "line 5: ILSVRC2012_val_00002138 a second time, first in line 2; expected one entry: remove one of the two",
    ),
    "doubled field": (
        clean() + "    verdict: unsure\n",
        "line 5: verdict a second time, first in line 3; expected one entry: remove one of the two",
    ),
    # values
    "unknown key": (
        clean(vedict="crop"),
        f"line 2, {IMAGE}: unknown key 'vedict'; expected verdict, reason, crop, object_fully_visible, sha256, note",
    ),
    "no verdict": (entry(sha256=SHA), f"line 2, {IMAGE}: verdict: Field required"),
    "unknown verdict": (
        entry(verdict="ok", sha256=SHA),
        "verdict: expected 'clean', 'crop', 'reject' or 'unsure'; found 'ok'",
    ),
    "yes as verdict": (entry(verdict="yes", sha256=SHA), "verdict: expected 'clean', 'crop', 'reject' or"),
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
    "short sha256": (entry(verdict="clean", sha256="3f6c0a"), "sha256: String should match pattern"),
    "sha256 in capitals": (entry(verdict="clean", sha256="A" * 64), "sha256: String should match pattern"),
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
    "negative crop": (crop(crop="[-1, 0, 480, 330]"), "crop.0: expected greater than or equal to 0; found -1"),
    "crop of three": (crop(crop="[0, 0, 480]"), "crop: List should have at least 4 items"),
    "crop of five": (crop(crop="[0, 0, 480, 330, 1]"), "crop: List should have at most 4 items"),
    "crop of fractions": (crop(crop="[0, 0, 480.0, 330]"), "crop.2: expected an integer"),
    "crop of truth values": (crop(crop="[0, false, 480, 330]"), "crop.1: expected an integer"),
    "crop as text": (crop(crop="0 0 480 330"), "crop: expected a list"),
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


# The folder reviews/


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


INDEX = pd.DataFrame(
    {
        "image_id": [IMAGE, "ILSVRC2012_val_00000009"],
        "real_classes": [np.array([0], dtype=np.int16), np.array([], dtype=np.int16)],
        "sha256": [SHA, OTHER_SHA],
        "width": [500, 500],
        "height": [375, 375],
    }
)


def test_votes_of_two_reviewers(tmp_path: Path) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", clean())
    write(tmp_path, f"bob/{TENCH}.yaml", crop())
    write(tmp_path, "bob/.draft", "not read")
    write(tmp_path, ".gitkeep", "")
    votes = read_reviews(tmp_path)
    check_reviews(votes, INDEX)
    assert {key: {name: vote.review.verdict for name, vote in of.items()} for key, of in votes.items()} == {
        (0, IMAGE): {"ann": "clean", "bob": "crop"}
    }
    assert decisions(votes, "single", 1) == {(0, IMAGE): Decision("undecided", "conflict")}


def test_no_reviews_yet(tmp_path: Path) -> None:
    assert read_reviews(tmp_path) == {}


def test_the_board_overrules(tmp_path: Path) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", clean())
    write(tmp_path, f"bob/{TENCH}.yaml", crop())
    write(tmp_path, f"board/{TENCH}.yaml", entry(verdict="reject", reason="noise", sha256=SHA, note="seen at 200 %"))
    assert decisions(read_reviews(tmp_path), "unanimous", 2) == {(0, IMAGE): Decision("reject", "noise")}


def test_the_board_alone(tmp_path: Path) -> None:
    write(tmp_path, f"board/{TENCH}.yaml", clean(note="the stamp is part of the scene"))
    assert decisions(read_reviews(tmp_path), "majority", 3) == {(0, IMAGE): Decision("clean")}


@pytest.mark.parametrize("note", [{}, {"note": '""'}, {"note": '"  "'}])
def test_the_board_says_why(tmp_path: Path, note: dict[str, str]) -> None:
    write(tmp_path, f"board/{TENCH}.yaml", clean(**note))
    with pytest.raises(
        CleansetError,
        match=r"board/n01440764\.yaml, line 2, ILSVRC2012_val_00002138: no note; the board's reason",
    ):
        read_reviews(tmp_path)


@pytest.mark.parametrize("path", [f"{TENCH}.yaml", f"Board/{TENCH}.yaml", f"ann b/{TENCH}.yaml"])
def test_what_is_no_folder_of_a_reviewer(tmp_path: Path, path: str) -> None:
    write(tmp_path, path, clean())
    name = path.split("/")[0]
    with pytest.raises(CleansetError, match=rf"{name}: not the folder of a reviewer; expected a name of small letters"):
        read_reviews(tmp_path)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "ann" / f"{TENCH}.yaml").mkdir(parents=True)
    with pytest.raises(CleansetError, match=r"n01440764\.yaml: no class of ILSVRC2012; expected a file"):
        read_reviews(tmp_path)


@pytest.mark.parametrize("name", ["n00000001.yaml", "n01440764.yml", "n01440764", "notes.txt", "N01440764.yaml"])
def test_a_file_of_no_class(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"ann/{name}", clean())
    with pytest.raises(
        CleansetError, match=rf"ann/{name}: no class of ILSVRC2012; expected a file <wnid>\.yaml: rename"
    ):
        read_reviews(tmp_path)


def test_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path, f"ann/{TENCH}.yaml", "")
    path.write_bytes("# très\n".encode("latin-1"))
    with pytest.raises(CleansetError, match=r"n01440764\.yaml: not UTF-8 at byte 4; save it as UTF-8"):
        read_reviews(tmp_path)


UNFIT = {
    "unknown image": (
        TENCH,
        clean().replace(IMAGE, "ILSVRC2012_val_00050001"),
        r"line 2, ILSVRC2012_val_00050001: no such image in the index; correct or remove the entry",
    ),
    "not among the labels": (
        GOLDFISH,
        clean().replace(TENCH, GOLDFISH),
        r"reviewed for n01443537, which is not among the image's reassessed labels; move the entry to the file",
    ),
    "no label at all": (
        TENCH,
        clean().replace(IMAGE, "ILSVRC2012_val_00000009").replace(SHA, OTHER_SHA),
        r"reviewed for n01440764, which is not among the image's reassessed labels",
    ),
    "other bytes": (
        TENCH,
        clean().replace(SHA, OTHER_SHA),
        rf"line 2, {IMAGE}: sha256 {OTHER_SHA}, but the image has {SHA}: other bytes were reviewed; look at",
    ),
    "box too wide": (
        TENCH,
        crop(crop="[0, 0, 501, 330]"),
        r"crop \[0, 0, 501, 330\] in an image of 500 x 375 pixels; expected a box inside it",
    ),
    "box too high": (TENCH, crop(crop="[0, 0, 480, 376]"), r"crop \[0, 0, 480, 376\] in an image of 500 x 375 pixels"),
    "whole image": (
        TENCH,
        crop(crop="[0, 0, 500, 375]"),
        r"crop \[0, 0, 500, 375\] is the whole image; expected a box smaller than it",
    ),
}


@pytest.mark.parametrize(("wnid", "text", "message"), UNFIT.values(), ids=UNFIT.keys())
def test_a_review_that_does_not_fit_its_image(tmp_path: Path, wnid: str, text: str, message: str) -> None:
    write(tmp_path, f"ann/{wnid}.yaml", text)
    votes = read_reviews(tmp_path)
    with pytest.raises(CleansetError, match=message):
        check_reviews(votes, INDEX)


@pytest.mark.parametrize("box", ["[0, 0, 500, 374]", "[1, 0, 500, 375]", "[0, 0, 1, 1]", "[499, 374, 500, 375]"])
def test_boxes_that_fit(tmp_path: Path, box: str) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", crop(crop=box))
    check_reviews(read_reviews(tmp_path), INDEX)


def test_a_crop_with_an_edge_too_short(tmp_path: Path) -> None:
    """The bound itself is allowed; one pixel less on either axis is not."""
    for box, size in (("[10, 10, 41, 100]", "31 x 90"), ("[10, 10, 100, 41]", "90 x 31"), ("[0, 0, 1, 1]", "1 x 1")):
        write(tmp_path, f"ann/{TENCH}.yaml", crop(crop=box))
        expected = f"crop {box} is {size} pixels; expected edges of at least 32 (review.min_crop_pixels)"
        with pytest.raises(CleansetError, match=re.escape(expected)):
            checked_reviews(tmp_path, INDEX, 32)
    write(tmp_path, f"ann/{TENCH}.yaml", crop(crop="[10, 10, 42, 42]"))
    assert len(checked_reviews(tmp_path, INDEX, 32)) == 1


def test_every_reviewers_vote_is_checked(tmp_path: Path) -> None:
    write(tmp_path, f"ann/{TENCH}.yaml", clean())
    write(tmp_path, f"zoe/{TENCH}.yaml", clean().replace(SHA, OTHER_SHA))
    votes = read_reviews(tmp_path)
    with pytest.raises(CleansetError, match=r"zoe/n01440764\.yaml, line 2, .*other bytes were reviewed"):
        check_reviews(votes, INDEX)


# Consensus


def vote(word: str) -> Review:
    """ "clean", "unsure", "reject blur", "crop text", or "crop2 text": a crop with another box."""
    verdict, *reason = word.split()
    fields: dict[str, object] = {
        "verdict": verdict.removesuffix("2"),
        "reason": reason[0] if reason else None,
        "sha256": SHA,
    }
    if verdict.startswith("crop"):
        box = [0, 0, 99, 99] if verdict == "crop" else [0, 0, 98, 99]
        fields |= {"crop": box, "object_fully_visible": True}
    return Review.model_validate(fields)


BOX, BOX2 = (0, 0, 99, 99), (0, 0, 98, 99)
IS_CLEAN, UNSURE = Decision("clean"), Decision("reject", "unsure")
CONFLICT, TOO_FEW = Decision("undecided", "conflict"), Decision("undecided", "too_few_reviewers")
UNREVIEWED = Decision("undecided", "unreviewed")

TABLE: list[tuple[Policy, int, list[str], Decision]] = [
    # one reviewer, one decision
    ("single", 1, [], UNREVIEWED),
    ("single", 1, ["clean"], IS_CLEAN),
    ("single", 1, ["reject blur"], Decision("reject", "blur")),
    ("single", 1, ["crop text"], Decision("crop", "text", BOX)),
    ("single", 1, ["unsure"], UNSURE),
    # two that differ are a conflict, in verdict or in box; not in reason
    ("single", 1, ["clean", "clean"], IS_CLEAN),
    ("single", 1, ["clean", "reject blur"], CONFLICT),
    ("single", 1, ["clean", "clean", "reject blur"], CONFLICT),
    ("single", 1, ["clean", "unsure"], CONFLICT),
    ("single", 1, ["unsure", "unsure"], UNSURE),
    ("single", 1, ["crop text", "crop2 text"], CONFLICT),
    ("single", 1, ["crop2 text", "crop2 border"], Decision("crop", "border", BOX2)),
    ("single", 1, ["reject noise", "reject blur"], Decision("reject", "blur")),
    ("single", 1, ["reject blur", "reject noise", "reject noise"], Decision("reject", "noise")),
    # more than half
    ("majority", 3, [], UNREVIEWED),
    ("majority", 3, ["clean", "clean"], TOO_FEW),
    ("majority", 3, ["clean", "clean", "clean"], IS_CLEAN),
    ("majority", 3, ["clean", "clean", "reject blur"], IS_CLEAN),
    ("majority", 3, ["clean", "reject text", "reject blur"], Decision("reject", "blur")),
    ("majority", 3, ["clean", "crop text", "reject blur"], CONFLICT),
    ("majority", 3, ["clean", "crop text", "crop text"], Decision("crop", "text", BOX)),
    ("majority", 3, ["clean", "crop text", "crop2 text"], CONFLICT),
    ("majority", 3, ["clean", "clean", "unsure"], IS_CLEAN),
    ("majority", 3, ["clean", "unsure", "unsure"], UNSURE),
    ("majority", 2, ["clean", "reject blur"], CONFLICT),
    ("majority", 2, ["clean", "clean", "reject blur", "reject blur"], CONFLICT),
    ("majority", 2, ["clean", "clean", "clean", "reject blur"], IS_CLEAN),
    ("majority", 1, ["clean"], IS_CLEAN),
    # all of them; one unsure rejects
    ("unanimous", 2, [], UNREVIEWED),
    ("unanimous", 2, ["clean"], TOO_FEW),
    ("unanimous", 2, ["unsure"], TOO_FEW),
    ("unanimous", 2, ["clean", "clean"], IS_CLEAN),
    ("unanimous", 2, ["clean", "clean", "clean"], IS_CLEAN),
    ("unanimous", 2, ["clean", "clean", "reject blur"], CONFLICT),
    ("unanimous", 2, ["clean", "clean", "unsure"], UNSURE),
    ("unanimous", 2, ["clean", "reject blur", "unsure"], UNSURE),
    ("unanimous", 2, ["reject text", "reject text", "reject blur"], Decision("reject", "text")),
    ("unanimous", 2, ["crop text", "crop2 text"], CONFLICT),
    ("unanimous", 2, ["crop text", "crop text"], Decision("crop", "text", BOX)),
]


@pytest.mark.parametrize(("policy", "min_reviewers", "votes", "decision"), TABLE)
def test_consensus(policy: Policy, min_reviewers: int, votes: list[str], decision: Decision) -> None:
    for order in permutations(map(vote, votes)):
        assert consensus(order, None, policy, min_reviewers) == decision


@pytest.mark.parametrize("policy", ["single", "majority", "unanimous"])
@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("clean", IS_CLEAN),
        ("reject other", Decision("reject", "other")),
        ("crop2 text", Decision("crop", "text", BOX2)),
        ("unsure", UNSURE),
    ],
)
@pytest.mark.parametrize("votes", [[], ["clean", "clean"], ["unsure", "reject blur"]])
def test_the_board_overrules_whatever_the_others_say(
    policy: Policy, word: str, decision: Decision, votes: list[str]
) -> None:
    assert consensus([vote(other) for other in votes], vote(word), policy, 2) == decision


WORDS = ["clean", "unsure", "reject blur", "reject noise", "reject text", "crop text", "crop border", "crop2 text"]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(WORDS), max_size=6),
    st.sampled_from(["single", "majority", "unanimous"]),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_reviewers_does_not_matter(
    words: list[str], policy: Policy, least: int, random: Random
) -> None:
    votes = [vote(word) for word in words]
    mixed = list(votes)
    random.shuffle(mixed)
    assert consensus(mixed, None, policy, least) == consensus(votes, None, policy, least)


def cropped(*box: int) -> Review:
    return Review.model_validate(CROP | {"crop": list(box)})


NEAR: list[tuple[list[tuple[int, ...]], Policy, tuple[int, ...] | None]] = [
    # the shorter side of the box that keeps least is 100: two pixels are allowed at 0.02
    ([(0, 0, 200, 100), (0, 0, 200, 101)], "single", (0, 0, 200, 100)),
    ([(0, 0, 200, 100), (1, 1, 201, 102)], "unanimous", (0, 0, 200, 100)),
    ([(0, 0, 200, 100), (0, 0, 202, 102)], "unanimous", (0, 0, 200, 100)),
    ([(0, 0, 200, 100), (0, 0, 203, 100)], "unanimous", None),
    ([(0, 0, 200, 100), (3, 0, 203, 100)], "single", None),
    # two boxes of the same area: the first by its edges
    ([(1, 0, 201, 100), (0, 0, 200, 100)], "single", (0, 0, 200, 100)),
    # each is near the next, but the last is not near the first
    ([(0, 0, 200, 100), (0, 0, 202, 100), (0, 0, 204, 100)], "unanimous", None),
    ([(0, 0, 200, 100), (0, 0, 202, 100), (0, 0, 204, 100)], "majority", (0, 0, 200, 100)),
    ([(0, 0, 200, 100), (0, 0, 203, 100), (0, 0, 205, 100)], "majority", (0, 0, 203, 100)),
    ([(0, 0, 200, 100), (0, 0, 250, 100), (0, 0, 300, 100)], "majority", None),
]


@pytest.mark.parametrize(("boxes", "policy", "expected"), NEAR)
def test_boxes_that_are_nearly_the_same_agree(
    boxes: list[tuple[int, ...]], policy: Policy, expected: tuple[int, ...] | None
) -> None:
    decision = CONFLICT if expected is None else Decision("crop", "watermark", expected)  # type: ignore[arg-type]
    for order in permutations(boxes):
        assert consensus([cropped(*box) for box in order], None, policy, 1, 0.02) == decision
        if len(set(boxes)) == len(boxes):
            assert consensus([cropped(*box) for box in order], None, policy, 1, 0.0) == CONFLICT


def exact(votes: list[Review], policy: Policy) -> Decision:
    """The decision where only equal boxes agree, counted another way."""
    if policy == "unanimous" and any(vote.verdict == "unsure" for vote in votes):
        return UNSURE
    needed = len(votes) if policy != "majority" else len(votes) // 2 + 1
    for chosen in votes:
        agreeing = [vote for vote in votes if (vote.verdict, vote.crop) == (chosen.verdict, chosen.crop)]
        if len(agreeing) >= needed:
            reasons = sorted(vote.reason or "" for vote in agreeing)
            reason = max(reasons, key=lambda each: (reasons.count(each), -reasons.index(each))) or None
            return UNSURE if chosen.verdict == "unsure" else Decision(chosen.verdict, reason, chosen.box)
    return CONFLICT


A_BOX = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(90, 94), st.integers(90, 94))
OTHER_VOTE = st.sampled_from(["clean", "unsure", "reject blur", "reject text"]).map(vote)
A_VOTE = A_BOX.map(lambda box: cropped(*box)) | OTHER_VOTE
POLICIES: list[Policy] = ["single", "majority", "unanimous"]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(A_VOTE, min_size=1, max_size=5), st.sampled_from(POLICIES), st.sampled_from([0.0, 0.01, 0.02, 0.03]),
       st.randoms(use_true_random=False))  # fmt: skip
def test_any_tolerance(votes: list[Review], policy: Policy, tolerance: float, random: Random) -> None:
    """No order matters, the box is a drawn one, 0 means equal boxes, and more tolerance loses no decision."""
    found = consensus(votes, None, policy, 1, tolerance)
    mixed = list(votes)
    random.shuffle(mixed)
    assert consensus(mixed, None, policy, 1, tolerance) == found
    assert found.crop is None or found.crop in [vote.box for vote in votes]
    equal = consensus(votes, None, policy, 1, 0.0)
    assert equal == exact(votes, policy)
    if equal != CONFLICT:
        assert found.verdict == equal.verdict


@pytest.mark.parametrize("linked", ["bob", "bob/n01440764.yaml"])
def test_a_link_is_no_second_reviewer(tmp_path: Path, linked: str) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "n01440764.yaml").write_text(f"n01440764:\n  {IMAGE}:\n    verdict: clean\n    sha256: {SHA}\n")
    link = tmp_path / linked
    link.parent.mkdir(exist_ok=True)
    target = tmp_path / "ann" / Path(*Path(linked).parts[1:])
    link.symlink_to(target)
    with pytest.raises(CleansetError, match=rf"{linked}: a link to \S+; expected a reviewer's own folder and files"):
        read_reviews(tmp_path)
