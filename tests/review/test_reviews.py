"""Review files: what they may hold, and what is refused in which words."""

import pytest

from cleanset.errors import CleansetError
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
        f"line 2, {IMAGE}: unknown key 'vedict'; expected verdict, reason, crop, object_fully_visible, basis, sha256, "
        "note",
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
    "another word for a sha256": (entry(verdict="clean", sha256="Official"), "sha256: String should match pattern"),
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
