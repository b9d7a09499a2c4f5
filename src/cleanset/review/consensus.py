"""One decision from the verdicts of several reviewers on an image, under a policy."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from cleanset.images.boxes import UNKNOWN_BOX, Box, CropBox, known_box
from cleanset.review.verdicts import Clean, Cropped, Rejected, Unsure, Verdict, crop_box, reason_of
from cleanset.selection.fill import CONFLICT, TO_BE_CROPPED, UNREVIEWED, Decision

Policy = Literal["single", "majority", "unanimous"]


def consensus(
    votes: Sequence[Verdict], board: Verdict | None, policy: Policy, min_reviewers: int, box_tolerance: float = 0.0
) -> Decision:
    """One decision from the verdicts of different reviewers on one image; their order does not matter.

    The board's verdict, if any, overrules. `single`: the verdict of all reviewers, else a conflict.
    `majority`: the verdict of more than half, else a conflict. `unanimous`: one unsure rejects; else as `single`.
    A decision needs `min_reviewers` votes.

    Reasons may differ, the most frequent is kept. A crop agrees with another vote's box that keeps no less, if no
    edge of the two is further apart than `box_tolerance` times the shorter side of the box that keeps less; this one
    is then the box of the decision. A crop whose box is not known agrees with any other, whose box is taken.
    """
    if board is not None:
        return _of_board(board, votes, box_tolerance)
    if not votes:
        return UNREVIEWED
    if len(votes) < min_reviewers:
        return Decision("undecided", "too_few_reviewers")
    if policy == "unanimous" and any(isinstance(vote, Unsure) for vote in votes):
        return Decision("reject", "unsure")
    candidates = _with_known_boxes(votes)
    # of equally many votes, the box that keeps least: others may agree with it, not it with them
    best = min(
        candidates, key=lambda vote: (-len(_agreeing(votes, vote, box_tolerance)), _kept(_drawn_box(vote)), vote.kind)
    )
    agreeing = _agreeing(votes, best, box_tolerance)
    needed = len(votes) // 2 + 1 if policy == "majority" else len(votes)
    if len(agreeing) < needed:
        return CONFLICT
    if any(_lacks_box(vote) for vote in votes):  # they may make a majority for either of two boxes
        others = [vote for vote in candidates if _drawn_box(vote) is not None and vote not in agreeing]
        if any(len(_agreeing(votes, vote, box_tolerance)) >= needed for vote in others):
            return CONFLICT
    return _decision(agreeing, crop_box(best))


def _of_board(board: Verdict, votes: Sequence[Verdict], box_tolerance: float) -> Decision:
    """The board's decision. A box that it does not know is taken from the reviewers who drew it and agree."""
    drawn = [vote for vote in votes if _drawn_box(vote) is not None]
    if not _lacks_box(board) or not drawn:
        return _decision([board], crop_box(board))
    # single: a box that not all who drew one agree on is a conflict, whatever the policy
    found = consensus(drawn, None, "single", 1, box_tolerance=box_tolerance)
    return found if found == CONFLICT else _decision([board], found.box)


def _drawn_box(vote: Verdict) -> Box | None:
    """The box of a crop that somebody has drawn; None of any other verdict."""
    return known_box(crop_box(vote))


def _lacks_box(vote: Verdict) -> bool:
    return crop_box(vote) is UNKNOWN_BOX


def _with_known_boxes(votes: Sequence[Verdict]) -> Sequence[Verdict]:
    """The votes without crops of unknown box, unless nobody has drawn a box."""
    if all(_drawn_box(vote) is None for vote in votes):
        return votes
    return [vote for vote in votes if not _lacks_box(vote)]


def _agreeing(votes: Sequence[Verdict], with_vote: Verdict, box_tolerance: float) -> list[Verdict]:
    """The votes of the same verdict; for a crop, those whose box is the same, slightly larger, or unknown."""
    same = [vote for vote in votes if vote.kind == with_vote.kind]
    box = _drawn_box(with_vote)
    if box is None:
        return same
    left, top, right, bottom = box
    limit = box_tolerance * min(right - left, bottom - top)
    return [vote for vote in same if _keeps_no_less(_drawn_box(vote), box, limit)]


def _keeps_no_less(other: Box | None, box: Box, limit: float) -> bool:
    """Whether another box keeps no less than `box`, with no edge further away than `limit`, or is not known."""
    if other is None:
        return True
    return _kept(other) >= _kept(box) and max(abs(a - b) for a, b in zip(other, box, strict=True)) <= limit


def _kept(box: Box | None) -> tuple[int, ...]:
    """Sort key of boxes: by area, then by edges; no box comes first."""
    if box is None:
        return ()
    left, top, right, bottom = box
    return ((right - left) * (bottom - top), *box)


def _decision(agreeing: Sequence[Verdict], box: CropBox) -> Decision:
    """The decision of votes of one verdict; `box`: the box of a crop."""
    match agreeing[0]:
        case Clean():
            return Decision("clean")
        case Unsure():
            return Decision("reject", "unsure")
        case Cropped() | Rejected() as verdict:
            return Decision(verdict.kind, _most_frequent(map(reason_of, agreeing)), box)


def asking_for_box(decision: Decision) -> Decision:
    """The decision, but undecided for a crop until its box is drawn."""
    return TO_BE_CROPPED if decision.box is UNKNOWN_BOX else decision


def _most_frequent(reasons: Iterable[str | None]) -> str | None:
    """The most frequent reason; in a tie, the first by name."""
    # by name, so that the order of reviewers does not matter
    counts = Counter(reasons)
    return min(counts, key=lambda reason: (-counts[reason], reason or ""))
