"""How the verdicts of several reviewers on one picture become one decision."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cleanset.boxes import Box
from cleanset.review.verdicts import Review

Policy = Literal["single", "majority", "unanimous"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the reviewers together say of a picture.

    `verdict` undecided means that no verdict counts yet, and `reason` then says why: `unreviewed`,
    `too_few_reviewers` or `conflict`. For reject it is the reviewers' reason, or `unsure`.
    """

    verdict: Literal["clean", "crop", "reject", "undecided"]
    reason: str | None = None
    crop: Box | None = None


UNREVIEWED = Decision("undecided", "unreviewed")
CONFLICT = Decision("undecided", "conflict")


def consensus(votes: Sequence[Review], board: Review | None, policy: Policy, min_reviewers: int) -> Decision:
    """One decision from the votes of different reviewers on one picture.

    The board's verdict, where there is one, overrules. `single`: what the reviewers agree on; two
    that differ are a conflict. `majority`: what more than half say, else a conflict. `unanimous`: one
    unsure rejects; else what all say; else a conflict. Verdicts agree when verdict and
    crop box are the same; reasons may differ, the most frequent is kept. A majority or unanimity
    needs `min_reviewers` votes.
    """
    if board is not None:
        return _decision([board])
    if not votes:
        return UNREVIEWED
    if len(votes) < min_reviewers:
        return Decision("undecided", "too_few_reviewers")
    if policy == "unanimous" and any(vote.verdict == "unsure" for vote in votes):
        return Decision("reject", "unsure")
    counts = Counter((vote.verdict, vote.box) for vote in votes)
    (verdict, box), most = counts.most_common(1)[0]
    needed = len(votes) // 2 + 1 if policy == "majority" else len(votes)
    if most < needed:
        return CONFLICT
    return _decision([vote for vote in votes if (vote.verdict, vote.box) == (verdict, box)])


def _decision(agreeing: Sequence[Review]) -> Decision:
    first = agreeing[0]
    if first.verdict == "unsure":
        return Decision("reject", "unsure")
    if first.verdict == "clean":
        return Decision("clean")
    reason = _most_frequent(vote.reason for vote in agreeing)
    return Decision(first.verdict, reason, first.box)


def _most_frequent(reasons: Iterable[str | None]) -> str | None:
    """Equally frequent: the first by name, so that the order of reviewers does not matter."""
    counts = Counter(reasons)
    return min(counts, key=lambda reason: (-counts[reason], reason or ""))
