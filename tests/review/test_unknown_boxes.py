"""Crops whose box nobody has drawn yet, and crops that count in their rank: consensus, filling, queue."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.edition.params import ReviewPolicy
from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.review.consensus import Policy, consensus
from cleanset.review.decided import decide_all
from cleanset.review.file_format import parse_review
from cleanset.review.queue import Decisions, for_reviewer, questions
from cleanset.review.store import BOARD, Votes
from cleanset.review.verdicts import Review, Vote
from cleanset.selection.fill import CONFLICT, TO_BE_CROPPED, UNREVIEWED, Decision
from cleanset.vocabulary import TIERS
from tests.properties import examples
from tests.review.classes import candidates_of, decide_by
from tests.selection.by_hand import filled, kept, reviewed, still_open

SHA = "0" * 64
CLASS, IMAGE = 802, "ILSVRC2012_val_00000001"
A, B, NEAR_A = [0, 0, 100, 100], [300, 300, 400, 400], [0, 0, 101, 100]
BOXLESS = Decision("crop", "border", UNKNOWN_BOX)

small = examples(200)


def crop(box: list[int] | None, reason: str = "border", **fields: object) -> Review:
    """A crop; without a box its box is not known."""
    what = {"reason": reason, "crop": box or "unknown", "object_fully_visible": True}
    return parse_review({"verdict": "crop", "sha256": SHA, **what, **fields}, "here")


def plain(verdict: str, **fields: object) -> Review:
    reason = "border" if verdict == "reject" else None
    return parse_review({"verdict": verdict, "reason": reason, "sha256": SHA, **fields}, "here")


# Consensus


@pytest.mark.parametrize(
    ("policy", "votes", "expected"),
    [
        ("single", [crop(None)], BOXLESS),
        ("single", [crop(None), crop(None)], BOXLESS),
        ("single", [crop(None), crop(A)], Decision("crop", "border", (0, 0, 100, 100))),
        ("single", [crop(None), crop(NEAR_A), crop(A)], Decision("crop", "border", (0, 0, 100, 100))),
        ("single", [crop(None), crop(A), crop(B)], CONFLICT),
        ("single", [crop(None), plain("clean")], CONFLICT),
        ("single", [crop(None), plain("reject")], CONFLICT),
        ("unanimous", [crop(None), crop(A)], Decision("crop", "border", (0, 0, 100, 100))),
        ("unanimous", [crop(None), plain("unsure")], Decision("reject", "unsure")),
        ("majority", [crop(None), crop(None), plain("clean")], BOXLESS),
        ("majority", [crop(None), crop(A), plain("clean")], Decision("crop", "border", (0, 0, 100, 100))),
        # either box has two of three, with the help of the vote that names none
        ("majority", [crop(None), crop(A), crop(B)], CONFLICT),
        ("majority", [crop(None), crop(A), crop(A), crop(B)], Decision("crop", "border", (0, 0, 100, 100))),
        ("majority", [crop(None), crop(None), crop(A), plain("clean"), plain("clean")],
         Decision("crop", "border", (0, 0, 100, 100))),
    ],
)  # fmt: skip
def test_an_unknown_box_agrees_with_any(policy: Policy, votes: list[Review], expected: Decision) -> None:
    for order in permutations(vote.verdict for vote in votes):
        assert consensus(order, None, policy, 1, 0.02) == expected


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([], BOXLESS),
        ([plain("clean")], BOXLESS),
        ([crop(A, "watermark"), plain("clean")], Decision("crop", "border", (0, 0, 100, 100))),
        ([crop(A), crop(B)], CONFLICT),
    ],
)
def test_the_board_may_leave_the_box_to_others(votes: list[Review], expected: Decision) -> None:
    board = crop(None, note="so be it")
    assert consensus([vote.verdict for vote in votes], board.verdict, "single", 1) == expected


# The policy


def decided(policy: ReviewPolicy, **by_reviewer: Review) -> Decisions:
    votes: Votes = {(CLASS, IMAGE): {name: Vote("", IMAGE, review, "") for name, review in by_reviewer.items()}}
    return decide_all(policy, votes, {"standard": {}})


def test_open_and_count() -> None:
    for unknown_boxes, expected in (("open", TO_BE_CROPPED), ("count", BOXLESS)):
        policy = ReviewPolicy(unknown_boxes=unknown_boxes)  # type: ignore[arg-type]
        assert decided(policy, ada=crop(None)).for_candidate("standard", CLASS, IMAGE) == expected
        drawn = decided(policy, ada=crop(None), ben=crop(A)).for_candidate("standard", CLASS, IMAGE)
        assert drawn == Decision("crop", "border", (0, 0, 100, 100))


def test_who_has_not_drawn_the_box_is_asked_and_who_has_is_not() -> None:
    """Also the reviewer who gave the verdict without a box; under `count` nobody."""
    two = ReviewPolicy(policy="majority", min_reviewers=2)
    for policy, own, asked in (
        (ReviewPolicy(), crop(None), True),
        (ReviewPolicy(unknown_boxes="count"), crop(None), False),
        (two, crop(None), True),
        (two, crop(A), False),
    ):
        decide = decided(policy, ada=own).for_reviewer("ada", {IMAGE: own}, CLASS)["standard"]
        assert (decide(IMAGE).verdict == "undecided") is asked
    others = decided(ReviewPolicy(), ada=crop(None)).for_reviewer("ben", {}, CLASS)["standard"]
    assert others(IMAGE) == TO_BE_CROPPED
    board = for_reviewer(BOARD, {}, lambda _: TO_BE_CROPPED)
    assert board(IMAGE).verdict == "clean"  # others are asked


@pytest.mark.parametrize("basis", ["explicit", "implied", "default", None])
def test_a_vote_counts_only_with_an_accepted_basis(basis: str | None) -> None:
    own = plain("clean", basis=basis)
    for accept in (["explicit"], ["explicit", "implied"], ["default", "explicit"]):
        found = decided(ReviewPolicy(accept=accept), ada=own)
        counts = (basis or "explicit") in accept
        assert found.for_candidate("standard", CLASS, IMAGE) == (Decision("clean") if counts else UNREVIEWED)
        mine = found.for_reviewer("ada", {IMAGE: own}, CLASS)["standard"](IMAGE)
        assert (mine == UNREVIEWED) is not counts


def test_a_vote_that_does_not_count_contradicts_nobody() -> None:
    policy = ReviewPolicy(accept=["explicit"])
    found = decided(policy, scooter=plain("clean", basis="default"), ada=plain("reject"))
    assert found.for_candidate("standard", CLASS, IMAGE) == Decision("reject", "border")
    clean = ReviewPolicy(accept=["explicit"], unreviewed="clean")
    counted = decided(clean, scooter=plain("reject", basis="implied"))
    assert counted.for_candidate("standard", CLASS, IMAGE) == Decision("clean")


# Filling a class, and what is asked


def test_a_crop_in_its_rank() -> None:
    words = ("top5 crop", "top5 clean", "top5 crop", "top5 clean", "top5 clean", "reserve clean")
    assert kept(*words) == ["p2", "p4", "p5"]
    assert kept(*words, crops_in_rank=True) == ["p1", "p2", "p3"]


def test_from_rank_1_down_until_there_are_three() -> None:
    """As published: nothing below the third is looked at, were it clean or not."""
    words = ("top5 crop", "top5 reject", "top5 clean", "top5 crop", "top5 undecided", "reserve undecided")
    assert still_open(*words, crops_in_rank=True) == set()
    assert still_open(*words) == {"p5"}


@pytest.mark.parametrize(
    ("crops_in_rank", "open_ids", "kept_ids"), [(False, {"p2"}, ["p3", "p4"]), (True, {"p2"}, ["p3", "p4"])]
)
def test_a_box_to_be_drawn_is_open_and_nothing_takes_its_place(
    crops_in_rank: bool, open_ids: set[str], kept_ids: list[str]
) -> None:
    words = ("top5 reject", "top5 boxless", "top5 clean", "top5 clean", "top5 reject")
    assert still_open(*words, crops_in_rank=crops_in_rank) == open_ids
    assert kept(*words, crops_in_rank=crops_in_rank) == kept_ids


def test_a_box_to_be_drawn_is_sorted_as_a_crop() -> None:
    """Three clean ones of its tier make it needless, unless crops count in their rank."""
    words = ("top5 boxless", "top5 clean", "top5 clean", "top5 clean")
    assert still_open(*words) == set()
    assert still_open(*words, crops_in_rank=True) == {"p1"}
    assert filled(*words).rejected["reason"].tolist() == ["not_needed"]
    assert filled(*words, crops_in_rank=True).rejected["reason"].tolist() == ["box_unknown"]


def ask(*words: str, places: int = 3, crops_in_rank: bool = False) -> list[tuple[str, bool, bool]]:
    """Each question: image, whether it is certain, whether only its box is asked for."""
    pairs = [word.split() for word in words]
    candidates = candidates_of(tuple((f"p{rank}", tier) for rank, (tier, _) in enumerate(pairs, start=1)))
    decide = decide_by({f"p{rank}": verdict for rank, (_, verdict) in enumerate(pairs, start=1)})
    found = questions({"a": candidates}, {"a": decide}, places, crops_in_rank=crops_in_rank)
    return [(each.image_id, each.certain, each.only_box) for each in found]


def test_boxes_are_asked_first() -> None:
    words = ("top5 undecided", "top5 boxless", "top5 undecided", "reserve undecided")
    assert ask(*words) == [("p2", True, True), ("p1", True, False), ("p3", True, False), ("p4", False, False)]
    # among what is not certain, too
    later = ("top5 undecided", "top5 undecided", "top5 undecided", "top5 undecided", "top5 boxless")
    assert [name for name, _, _ in ask(*later)] == ["p1", "p2", "p3", "p5", "p4"]


verdicts = st.sampled_from(["clean", "crop", "reject", "undecided", "boxless"])
classes = st.lists(st.tuples(st.sampled_from(TIERS), verdicts), min_size=1, max_size=9).map(
    lambda some: sorted(some, key=lambda pair: TIERS.index(pair[0]))
)


@small
@given(classes, st.integers(1, 4), st.booleans())
def test_the_queue_asks_for_what_the_pipeline_leaves_open(
    some: list[tuple[str, str]], places: int, crops_in_rank: bool
) -> None:
    words = [f"{tier} {verdict}" for tier, verdict in some]
    asked = ask(*words, places=places, crops_in_rank=crops_in_rank)
    assert {name for name, _, _ in asked} == still_open(*words, images_per_class=places, crops_in_rank=crops_in_rank)
    assert not asked or asked[0][1]


@small
@given(classes, st.integers(1, 4), st.booleans())
def test_filling_by_an_oracle(some: list[tuple[str, str]], places: int, crops_in_rank: bool) -> None:
    """Tier by tier: in rank, all that is accepted; else first what is clean, then what is cropped."""
    words = [f"{tier} {verdict}" for tier, verdict in some]
    steps = [{"clean", "crop"}] if crops_in_rank else [{"clean"}, {"crop"}]
    expected = [
        f"p{rank}"
        for wanted in TIERS
        for step in steps
        for rank, (tier, verdict) in enumerate(some, start=1)
        if tier == wanted and verdict in step
    ]
    assert kept(*words, images_per_class=places, crops_in_rank=crops_in_rank) == expected[:places]
    assert len(reviewed(*words)) == len(words)


@small
@given(classes, st.integers(1, 4), st.booleans())
def test_an_image_is_open_if_accepting_it_alone_would_bring_it_in(
    some: list[tuple[str, str]], places: int, crops_in_rank: bool
) -> None:
    best = {"undecided": "clean", "boxless": "crop"}
    words = [f"{tier} {verdict}" for tier, verdict in some]
    could = {
        f"p{rank}"
        for rank, (tier, verdict) in enumerate(some, start=1)
        if verdict in best
        and f"p{rank}"
        in kept(
            *words[: rank - 1], f"{tier} {best[verdict]}", *words[rank:],
            images_per_class=places, crops_in_rank=crops_in_rank,
        )
    }  # fmt: skip
    assert still_open(*words, images_per_class=places, crops_in_rank=crops_in_rank) == could
