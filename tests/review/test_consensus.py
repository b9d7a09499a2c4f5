"""How the verdicts of several reviewers become one."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.images.boxes import parse_box
from cleanset.review.consensus import Policy, consensus
from cleanset.review.file_format import parse_review
from cleanset.review.verdicts import Cropped, Verdict, crop_box, reason_of
from cleanset.selection.fill import Decision
from tests.properties import examples
from tests.review.texts import SHA


def vote(word: str) -> Verdict:
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
    return parse_review(fields, "here").verdict


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


@examples(200)
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


def cropped(*box: int) -> Cropped:
    return Cropped("watermark", parse_box(box))


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


def exact(votes: list[Verdict], policy: Policy) -> Decision:
    """The decision where only equal boxes agree, counted another way."""
    if policy == "unanimous" and any(vote.kind == "unsure" for vote in votes):
        return UNSURE
    needed = len(votes) if policy != "majority" else len(votes) // 2 + 1
    for chosen in votes:
        agreeing = [vote for vote in votes if (vote.kind, crop_box(vote)) == (chosen.kind, crop_box(chosen))]
        if len(agreeing) >= needed:
            reasons = sorted(reason_of(vote) or "" for vote in agreeing)
            reason = max(reasons, key=lambda each: (reasons.count(each), -reasons.index(each))) or None
            return UNSURE if chosen.kind == "unsure" else Decision(chosen.kind, reason, crop_box(chosen))
    return CONFLICT


A_BOX = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(90, 94), st.integers(90, 94))
OTHER_VOTE = st.sampled_from(["clean", "unsure", "reject blur", "reject text"]).map(vote)
A_VOTE = A_BOX.map(lambda box: cropped(*box)) | OTHER_VOTE
POLICIES: list[Policy] = ["single", "majority", "unanimous"]


@examples(300)
@given(st.lists(A_VOTE, min_size=1, max_size=5), st.sampled_from(POLICIES), st.sampled_from([0.0, 0.01, 0.02, 0.03]),
       st.randoms(use_true_random=False))  # fmt: skip
def test_any_tolerance(votes: list[Verdict], policy: Policy, tolerance: float, random: Random) -> None:
    """No order matters, the box is a drawn one, 0 means equal boxes, and more tolerance loses no decision."""
    found = consensus(votes, None, policy, 1, tolerance)
    mixed = list(votes)
    random.shuffle(mixed)
    assert consensus(mixed, None, policy, 1, tolerance) == found
    assert found.box is None or found.box in [crop_box(vote) for vote in votes]
    equal = consensus(votes, None, policy, 1, 0.0)
    assert equal == exact(votes, policy)
    if equal != CONFLICT:
        assert found.verdict == equal.verdict
