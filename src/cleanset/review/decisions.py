"""The decisions that follow from votes under a review policy, as they count for each model."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from cleanset.review.consensus import Policy, asking_for_box, consensus
from cleanset.review.queue import DecideInClass, for_reviewer
from cleanset.review.store import BOARD, Votes, accepted_votes, is_accepted
from cleanset.review.verdicts import Review, Vote
from cleanset.selection.crop_check import Predictions, after_crop
from cleanset.selection.decision import UNREVIEWED, Decision
from cleanset.vocabulary import BASES


class ReviewRules(Protocol):
    """The rules that a review policy must state; those of an edition are the section `review` of its params.yaml."""

    @property
    def policy(self) -> Policy: ...
    @property
    def min_reviewers(self) -> int: ...
    @property
    def box_tolerance(self) -> float: ...
    @property
    def accept(self) -> Collection[str]: ...
    @property
    def boxes_asked(self) -> bool: ...
    @property
    def unreviewed_are_clean(self) -> bool: ...
    @property
    def wrong_crops_are_rejected(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions on the images of each class, as they count for each model.

    `predictions`: by role, on crops; a crop that a model misclassifies is rejected for that model. `unreviewed`: the
    decision on an image without a vote. `boxes_asked`: a crop without a known box is undecided. `accept`: the bases of
    the votes that count.
    """

    decisions: Mapping[tuple[int, str], Decision]
    predictions: Mapping[str, Predictions]
    unreviewed: Decision
    boxes_asked: bool = True
    accept: Collection[str] = BASES

    def for_candidate(self, role: str, class_index: int, image_id: str) -> Decision:
        """The decision on one candidate of a model."""
        decision = self.decisions.get((class_index, image_id), self.unreviewed)
        return after_crop(decision, image_id, class_index, self.predictions[role])

    def for_class(self, class_index: int) -> dict[str, DecideInClass]:
        """By role, the decisions on one class, by image id."""
        return self._by_role(self._by_reviewers(class_index), class_index)

    def for_reviewer(
        self, reviewer: str, own_reviews: Mapping[str, Review], class_index: int
    ) -> dict[str, DecideInClass]:
        """As `for_class`, but for choosing what to ask one reviewer, whose reviews in the class are `own_reviews`."""
        counted = {name: review for name, review in own_reviews.items() if is_accepted(review, self.accept)}
        decide = for_reviewer(reviewer, counted, self._by_reviewers(class_index), self.boxes_asked)
        return self._by_role(decide, class_index)

    def _by_reviewers(self, class_index: int) -> DecideInClass:
        return lambda image_id: self.decisions.get((class_index, image_id), self.unreviewed)

    def _by_role(self, decide: DecideInClass, class_index: int) -> dict[str, DecideInClass]:
        def counted(predictions: Predictions) -> DecideInClass:
            return lambda image_id: after_crop(decide(image_id), image_id, class_index, predictions)

        return {role: counted(predictions) for role, predictions in self.predictions.items()}


def decisions(
    votes: Votes, policy: Policy, min_reviewers: int, box_tolerance: float = 0.0
) -> Mapping[tuple[int, str], Decision]:
    """The decision on each reviewed image, by class index and image id."""
    return {key: _decide(by_reviewer, policy, min_reviewers, box_tolerance) for key, by_reviewer in votes.items()}


def _decide(by_reviewer: Mapping[str, Vote], policy: Policy, min_reviewers: int, box_tolerance: float) -> Decision:
    board = by_reviewer.get(BOARD)
    others = [vote.review for reviewer, vote in sorted(by_reviewer.items()) if reviewer != BOARD]
    return consensus(others, board.review if board else None, policy, min_reviewers, box_tolerance)


def decide_all(policy: ReviewRules, votes: Votes, predictions: Mapping[str, Predictions]) -> Decisions:
    """The decisions that follow from `votes` under a policy; `predictions` on crops, by role."""
    return Decisions(
        decisions_under(policy, votes),
        # without predictions after_crop rejects nothing
        predictions if policy.wrong_crops_are_rejected else {role: {} for role in predictions},
        Decision("clean") if policy.unreviewed_are_clean else UNREVIEWED,
        policy.boxes_asked,
        policy.accept,
    )


def decisions_under(policy: ReviewRules, votes: Votes) -> dict[tuple[int, str], Decision]:
    """The decision on each image that has a vote which counts under a policy, by class index and image id."""
    counted = decisions(accepted_votes(votes, policy.accept), policy.policy, policy.min_reviewers, policy.box_tolerance)
    return {key: asking_for_box(each) for key, each in counted.items()} if policy.boxes_asked else dict(counted)
