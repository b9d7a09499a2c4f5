"""What all tabs of a server share: the votes as they lie on disk, how each class stands, the steps to undo."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cleanset.errors import CleansetError
from cleanset.review.consensus import UNREVIEWED
from cleanset.review.folder import Votes, decisions, of_reviewer
from cleanset.review.queue import Question, State, questions, standing, together
from cleanset.review.standing_decisions import Decided
from cleanset.review.verdicts import Review
from cleanset.review.writing import ChangedMeanwhileError
from cleanset.reviewer.crop_scores import CropScores
from cleanset.reviewer.library import Library
from cleanset.reviewer.pace import Pace
from cleanset.reviewer.said import Said
from cleanset.reviewer.signs import Signs


@dataclass(frozen=True, slots=True)
class Stand:
    """How a class stands: what this reviewer is asked, its state for all models together, and what is on disk.

    `kept` says for each model how many pictures it has so far; `conflicts` are pictures on which the
    reviewers differ. `broken` is what is wrong with its review files, if anything is: then nothing is
    asked, and nothing can be said.
    """

    votes: Votes
    questions: tuple[Question, ...]
    state: State
    kept: Mapping[str, int]
    conflicts: tuple[str, ...] = ()
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What a reviewer changed, so that it can be undone."""

    class_index: int
    image_id: str
    before: Review | None
    after: Review | None


@dataclass
class Room:
    """One reviewer's work on one edition. Not safe in threads: whoever calls it holds a lock."""

    library: Library
    said: Said
    reviewer: str
    crop_scores: CropScores
    signs: Signs
    stands: dict[int, Stand] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)

    def look(self, classes: Iterable[int] | None = None) -> None:
        """Read these classes, else all, where review files changed since; every one, if scores of crops did."""
        if self.crop_scores.look() or not self.stands:
            self.said.check(self.library.classes)
            self.stands = {class_index: self._looked(class_index, None) for class_index in self.library.classes}
            return
        for class_index in self.library.classes if classes is None else classes:
            self.look_at(class_index)

    def look_at(self, class_index: int) -> Stand:
        """How a class stands now; its files are read again if they changed."""
        self.stands[class_index] = self._looked(class_index, self.stands.get(class_index))
        return self.stands[class_index]

    def _looked(self, class_index: int, known: Stand | None) -> Stand:
        """How a class stands now: as `known` if nothing changed."""
        try:
            votes = self.said.of_class(class_index)
        except CleansetError as error:
            return Stand({}, (), "open", {}, (), str(error))
        except OSError as error:
            return Stand({}, (), "open", {}, (), f"{error.filename or 'reading'}: {error.strerror or error}")
        if known is None or known.broken or known.votes is not votes:
            return self._stand(class_index, votes)
        return known

    def own(self, class_index: int, image_id: str) -> Review | None:
        """This reviewer's verdict as it was read last."""
        vote = self.stands[class_index].votes.get((class_index, image_id), {}).get(self.reviewer)
        return vote.review if vote else None

    def say(self, class_index: int, image_id: str, review: Review | None, expected: Review | None) -> Stand:
        """Write a verdict (None: take it back) where `expected` stands now, and read it again.

        Raises CleansetError or OSError if it could not be written; what then holds, `writing.save` says.
        """
        before = self.own(class_index, image_id)
        asked = bool(self.stands[class_index].questions)
        try:
            self.said.say(class_index, image_id, review, expected)
        finally:
            stand = self.look_at(class_index)
        if review != before:
            self.steps.append(Step(class_index, image_id, before, review))
        self.pace.said(time.monotonic(), asked and not stand.questions)
        return stand

    def undo(self) -> Step | None:
        """Take back the last step; None if there is none.

        Raises as `say` does. The step is then forgotten if the entry was changed since, and kept if
        it could only not be written.
        """
        if not self.steps:
            return None
        step = self.steps[-1]
        try:
            self.said.say(step.class_index, step.image_id, step.before, step.after)
        except ChangedMeanwhileError:
            self.steps.pop()
            raise
        finally:
            self.look_at(step.class_index)
        return self.steps.pop()

    def unsettled(self) -> list[int]:
        """The classes in which this reviewer is asked something, or whose files cannot be read."""
        return [index for index, stand in self.stands.items() if stand.questions or stand.broken]

    def _stand(self, class_index: int, votes: Votes) -> Stand:
        """How a class stands with these votes.

        Where `review.unreviewed` is clean the page asks nevertheless: there too verdicts are worth giving.
        """
        review = self.library.params.review
        count = self.library.params.export.images_per_class
        by_role = self.library.classes[class_index]
        counts = review.wrong_after_crop == "reject"
        decided = Decided(
            decisions(votes, review.policy, review.min_reviewers),
            {role: self.crop_scores.said(role) if counts else {} for role in by_role},
            UNREVIEWED,
        )
        own = of_reviewer(votes, self.reviewer).get(class_index, {})
        mine = decided.for_reviewer(self.reviewer, own, class_index)
        decide = decided.of_class(class_index)
        of_models = {role: standing(candidates, decide[role], count) for role, candidates in by_role.items()}
        return Stand(
            votes,
            tuple(questions(by_role, mine, count)),
            together(each.state for each in of_models.values()),
            {role: each.kept for role, each in of_models.items()},
            tuple(sorted(image_id for (_, image_id), each in decided.decisions.items() if each.reason == "conflict")),
        )
