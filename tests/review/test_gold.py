"""Gold items: their key, what becomes of answers to them, which are chosen, how they are made; calibration."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.review.calibration import calibrations, evidence_of_misses
from cleanset.review.file_format import parse_review
from cleanset.review.gold import (
    GoldAnswer,
    GoldItem,
    chosen_golds,
    gold_answers,
    number_of_golds,
    place_among,
    without_golds,
)
from cleanset.review.gold_files import gold_key_text, parse_gold_key
from cleanset.review.gold_images import PLANTERS, _known
from cleanset.review.page.gold_items import _inserted
from cleanset.review.queue import Candidate
from cleanset.review.store import read_reviews
from cleanset.review.verdicts import Cropped, Review, Vote
from cleanset.sets.description import determining_params
from cleanset.stages import crops, review_apply
from cleanset.tables import SELECTION, VOTES, read_table
from tests.evaluation.compare.command import cleanset, says
from tests.stages.test_stages import PARAMS, edition_in, sha, val

FLAWED = GoldItem(0, val(1), "a" * 64, "watermark", "planted")
CLEAN = GoldItem(1, val(5), "b" * 64, None, "settled")
TEXT = f"""\
wnid,image_id,sha256,reason,source
n01440764,{val(1)},{"a" * 64},watermark,planted
n01443537,{val(5)},{"b" * 64},,settled
"""


def review(verdict: str, sha256: str) -> Review:
    reason = "text" if verdict == "reject" else None
    return parse_review({"verdict": verdict, "reason": reason, "sha256": sha256}, "here")


def vote(verdict: str, sha256: str) -> Vote:
    return Vote("n01440764", val(1), review(verdict, sha256), "")


def test_the_key_is_read_as_written() -> None:
    assert gold_key_text([CLEAN, FLAWED], imagenet()) == TEXT
    assert parse_gold_key(TEXT, "gold.csv", imagenet()) == {FLAWED.key: FLAWED, CLEAN.key: CLEAN}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "n01440764",
            "n0",
            "gold.csv, line 2, wnid: 'n0'; expected one of the 1,000 wnids: correct the line",
        ),
        ("a" * 64, "a", "line 2, sha256: 'a'; expected a SHA-256 of 64 hexadecimal digits"),
        ("watermark", "Ugly!", "line 2, reason: 'Ugly!'; expected a reason, or nothing"),
        ("settled", "guessed", "line 3, source: 'guessed'; expected one of planted, published, settled"),
        (
            val(5),
            val(1),
            f"line 3: image_id '{val(1)}' a second time, after line 2; expected it once",
        ),
        (val(5), "1.JPEG", "line 3: image_id '1.JPEG' a second time, after line 2; expected it once"),
        (val(5), "50001", "line 3, image_id: '50001'; expected an image id such as .*, 1 to 50,000"),
        ("image_id", "id", "line 1: .*expected the header wnid,image_id,sha256,reason,source"),
    ],
)
def test_a_key_with_a_mistake(old: str, new: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        parse_gold_key(TEXT.replace(old, new), "gold.csv", imagenet())


@pytest.mark.parametrize("form", ["00000005", "5", f"val/{val(5)}.JPEG", f"{val(5)}_n01443537.png"])
def test_an_image_in_any_form(form: str) -> None:
    assert parse_gold_key(TEXT.replace(val(5), form), "gold.csv", imagenet()) == parse_gold_key(TEXT, "x", imagenet())


def test_answers_are_distinguished_by_the_bytes_alone() -> None:
    golds = parse_gold_key(TEXT, "gold.csv", imagenet())
    votes = {
        (0, val(1)): {"ada": vote("clean", sha(1)), "ben": vote("clean", "a" * 64)},
        (1, val(5)): {"ben": vote("reject", "b" * 64)},
        (1, val(8)): {"ben": vote("clean", sha(8))},
    }
    kept = without_golds(votes, golds)
    assert {key: list(by_reviewer) for key, by_reviewer in kept.items()} == {(0, val(1)): ["ada"], (1, val(8)): ["ben"]}
    assert [(each.reviewer, each.item, each.is_correct) for each in gold_answers(votes, golds)] == [
        ("ben", FLAWED, False), ("ben", CLEAN, False),
    ]  # fmt: skip
    others = {(1, val(8)): votes[1, val(8)]}
    assert without_golds(others, golds) is others


@pytest.mark.parametrize("verdict", ["clean", "crop", "reject", "unsure"])
def test_any_verdict_but_clean_finds_a_flaw(verdict: str) -> None:
    cropped = Review(verdict=Cropped("text", UNKNOWN_BOX), sha256="a" * 64)
    found = cropped if verdict == "crop" else review(verdict, "a" * 64)
    assert GoldAnswer("ada", FLAWED, found).is_correct == (verdict != "clean")
    assert GoldAnswer("ada", CLEAN, found).is_correct == (verdict == "clean")


ITEMS = {
    (index, val(index)): GoldItem(index, val(index), f"{index:064x}", "blur" if index % 3 else None, "planted")
    for index in range(40)
}


@given(st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39)), st.integers(0, 60))
def test_the_items_chosen(open_classes: set[int], known: set[int], wanted: int) -> None:
    answered = {(index, val(index)) for index in (3, 4)}
    keys = {(index, val(index)) for index in known} - answered
    chosen = chosen_golds(ITEMS, keys, open_classes, answered, wanted)
    further = [item for item in chosen if item.key not in answered]
    assert {item.key for item in chosen} >= answered
    possible = {index for index in open_classes if index not in known} - {3, 4}
    assert len(further) == min(len(possible), max(0, wanted - 2))
    assert {item.class_index for item in further} <= possible
    # flawed ones first: no clean one while a flawed one is left
    left = [index for index in possible if index % 3 and index not in {item.class_index for item in further}]
    assert not left or all(item.is_flawed for item in further)


def test_the_share_is_of_all_images_shown() -> None:
    assert [number_of_golds(0.05, others) for others in (0, 19, 95, 950)] == [0, 1, 5, 50]
    assert {place_among(item, "standard", 3) for item in ITEMS.values()} == {0, 1, 2}


A, B, C, D = ("a", "top5", 1, 0.9), ("b", "top5", 2, 0.7), ("c", "reserve", 3, 0.5), ("d", "reserve", 4, 0.3)


@pytest.mark.parametrize(
    ("image", "place", "shown"),
    [
        ("c", 0, [("c", "top5", 1, 0.95), ("a", "top5", 2, 0.9), ("b", "reserve", 3, 0.7), D]),
        ("c", 1, [A, ("c", "top5", 2, 0.8), ("b", "reserve", 3, 0.7), D]),
        ("c", 2, [A, ("b", "top5", 2, 0.7), ("c", "reserve", 3, 0.5), D]),
        ("x", 0, [A, ("x", "top5", 5, 0.8), B, C, D]),
        ("x", 2, [A, B, C, ("x", "reserve", 5, 0.4), D]),
    ],
)
def test_an_item_takes_a_place_between_its_neighbours(
    image: str, place: int, shown: list[tuple[str, str, int, float]]
) -> None:
    """Also by its confidence, by which the page orders the images of a class."""
    candidates = [Candidate(*each) for each in (A, B, C, D)]
    items = (GoldItem(0, image, f"{number:064x}", None, "settled") for number in range(40))
    item = next(each for each in items if place_among(each, "standard", 3) == place)
    found = _inserted({"standard": candidates}, item, 3)["standard"]
    assert [(each.image_id, each.tier, each.rank, round(each.confidence, 9)) for each in found] == shown


# Calibration


def answers(reviewer: str, missed: int, flawed: int, false_alarms: int = 0, clean: int = 0) -> list[GoldAnswer]:
    one = [GoldAnswer(reviewer, FLAWED, review("clean" if n < missed else "reject", "a" * 64)) for n in range(flawed)]
    two = [
        GoldAnswer(reviewer, CLEAN, review("reject" if n < false_alarms else "clean", "b" * 64)) for n in range(clean)
    ]
    return one + two


def test_sensitivity_and_specificity_with_intervals() -> None:
    (ada, ben) = calibrations([*answers("ben", 0, 0, 1, 4), *answers("ada", 3, 10)])
    assert (ada.reviewer, ada.sensitivity.correct, ada.sensitivity.golds, ada.sensitivity.share) == ("ada", 7, 10, 0.7)
    assert [round(end, 3) for end in ada.sensitivity.interval] == [0.348, 0.933]
    assert ada.by_reason == {"watermark": ada.sensitivity}
    assert (ada.specificity.share, ben.specificity.share, ben.sensitivity.share) == (None, 0.75, None)
    assert ada.finding == ben.finding == "not known yet"


def test_the_findings() -> None:
    assert evidence_of_misses(15, 40) == pytest.approx(2**15 * (70 / 85) ** 25)
    assert calibrations(answers("ada", 15, 40))[0].finding == "misses many"
    assert calibrations(answers("ada", 1, 40))[0].finding == "careful"
    assert calibrations(answers("ada", 8, 40))[0].finding == "not known yet"


# In an edition


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The tiny edition of the stages' tests."""
    return edition_in(tmp_path / "edition")


def test_gold_items_decide_nothing(edition: Edition) -> None:
    """Ben's answer has the form of any verdict, and the stages write the same bytes with it."""

    def written() -> list[bytes]:
        crops.run(edition)
        review_apply.run(edition, "standard")
        return [path.read_bytes() for path in (edition.selection("standard"), edition.votes("standard"), edition.crops)]

    before = written()
    answer = f"{{verdict: crop, reason: text, crop: [0, 0, 40, 30], object_fully_visible: true, sha256: {'a' * 64!r}}}"
    (edition.reviews / "ben").mkdir()
    (edition.reviews / "ben" / "n01440764.yaml").write_text(f"n01440764:\n  {val(3)}: {answer}\n")
    with pytest.raises(CleansetError, match="other bytes were reviewed"):
        written()
    (edition.reviews / "gold.csv").write_text(TEXT.replace(val(1), val(3)))
    assert written() == before
    assert (0, val(3)) not in read_reviews(edition.reviews, imagenet())
    assert len(read_table(edition.selection("standard"), SELECTION, imagenet())) == 3
    assert set(read_table(edition.votes("standard"), VOTES, imagenet())["reviewer"]) == {"ann", "board"}
    code, out, _ = says(cleanset("review", "calibration", "--json", cwd=edition.folder))
    assert code == 0
    assert json.loads(out)["ben"]["sensitivity"] == {
        "correct": 1, "golds": 1, "share": 1.0, "low": pytest.approx(0.025), "high": 1.0,
    }  # fmt: skip
    shown = says(cleanset("review", "calibration", cwd=edition.folder))[1]
    assert "ben: too few gold items for a finding" in shown


def test_the_params_of_a_set_do_not_name_gold_items(edition: Edition) -> None:
    before = determining_params(read_params(edition.folder), "standard")
    with_gold = PARAMS.replace("unreviewed: pending}", "unreviewed: pending, gold: {folder: data/gold}}")
    (edition.folder / "params.yaml").write_text(with_gold)
    params = read_params(edition.folder)
    assert params.review.gold is not None
    assert params.review.gold.share == 0.05
    assert determining_params(params, "standard") == before


@pytest.mark.parametrize("share", ["0", "0.6", "much"])
def test_a_share_that_cannot_be(edition: Edition, share: str) -> None:
    with_gold = PARAMS.replace("unreviewed: pending}", f"unreviewed: pending, gold: {{folder: g, share: {share}}}}}")
    (edition.folder / "params.yaml").write_text(with_gold)
    with pytest.raises(CleansetError, match=r"review\.gold\.share"):
        read_params(edition.folder)


def test_without_an_answer(edition: Edition) -> None:
    code, _, error = says(cleanset("review", "calibration", cwd=edition.folder))
    assert code == 1
    assert "no answer to a gold item yet; cleanset review gold makes items" in error
    code, _, error = says(cleanset("review", "gold", "data/gold", cwd=edition.folder))
    assert code == 1
    assert "no number; expected how many: --planted 50" in error


# Where the verdicts come from


def by(**verdicts: str) -> dict[str, Review]:
    return {name: review(verdict, "a" * 64) for name, verdict in verdicts.items()}


@pytest.mark.parametrize(
    ("source", "flawed", "reviews", "found"),
    [
        ("planted", True, by(ada="clean"), (None, "planted")),
        ("planted", True, by(ada="clean", ben="unsure"), None),
        ("published", True, by(scooter="reject"), ("text", "published")),
        ("published", True, by(ada="reject"), None),
        ("settled", True, by(ada="reject", ben="reject", cy="reject"), ("text", "settled")),
        ("settled", True, by(ada="reject", ben="reject", cy="clean"), None),
        ("settled", True, by(ada="reject", ben="reject"), None),
        ("", False, by(ada="clean", ben="clean", cy="clean"), (None, "settled")),
        ("", False, by(scooter="clean"), (None, "published")),
        ("", False, by(ada="clean", ben="clean", cy="clean", board="reject"), None),
    ],
)
def test_a_known_verdict(
    source: str, flawed: bool, reviews: dict[str, Review], found: tuple[str | None, str] | None
) -> None:
    assert _known(source, reviews, is_flawed=flawed) == found


@pytest.mark.parametrize("reason", sorted(PLANTERS))
def test_a_planted_flaw_changes_pixels_and_is_the_same_each_time(reason: str) -> None:
    image = Image.radial_gradient("L").resize((180, 120)).convert("RGB")
    one, other = (PLANTERS[reason](image.copy(), Random(7)) for _ in range(2))
    assert one.tobytes() == other.tobytes()
    assert one.size != image.size or one.tobytes() != image.tobytes()
