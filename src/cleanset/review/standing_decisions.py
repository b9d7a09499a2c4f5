"""The decisions of an edition as they stand now, for tools that look at them between two runs of the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass

from cleanset.after_crop import Said, said_of_crops
from cleanset.boxes import Crop
from cleanset.edition import Edition
from cleanset.params import Params
from cleanset.review.consensus import UNREVIEWED, Decision
from cleanset.review.folder import Votes, decisions
from cleanset.review.queue import Decide, for_reviewer, of_class, without_wrong_crops
from cleanset.review.verdicts import Review
from cleanset.tables import CROP_SCORES, read_table


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions on the pictures of each class; by role, what the models say of crops, as far as that counts."""

    decisions: Mapping[tuple[int, str], Decision]
    said: Mapping[str, Mapping[Crop, Said]]
    unreviewed: Decision

    def of_class(self, class_index: int) -> dict[str, Decide]:
        """By role, the decisions on one class: a crop that the model no longer gets right is a reject."""
        return self._counted(of_class(self.decisions, class_index, self.unreviewed), class_index)

    def for_reviewer(self, reviewer: str, own: Mapping[str, Review], class_index: int) -> dict[str, Decide]:
        """The same as they matter for what to ask one reviewer; `own` are their verdicts on the class, by image id."""
        decide = of_class(self.decisions, class_index, self.unreviewed)
        return self._counted(for_reviewer(reviewer, own, decide), class_index)

    def _counted(self, decide: Decide, class_index: int) -> dict[str, Decide]:
        return {role: without_wrong_crops(decide, class_index, said) for role, said in self.said.items()}


def read_decided(edition: Edition, params: Params, votes: Votes) -> Decided:
    """The decisions that come of `votes`. A crop that has not been scored yet counts as right."""
    counts = params.review.wrong_after_crop == "reject"
    said = {
        role: said_of_crops(read_table(edition.crop_scores(role), CROP_SCORES))
        if counts and edition.crop_scores(role).is_file()
        else {}
        for role in params.models
    }
    unreviewed = Decision("clean") if params.review.unreviewed == "clean" else UNREVIEWED
    return Decided(decisions(votes, params.review.policy, params.review.min_reviewers), said, unreviewed)
