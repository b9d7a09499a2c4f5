"""The work of one reviewer on one edition: the status of each class, as last read, and saving verdicts."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

from cleanset.errors import CleansetError
from cleanset.review.decided import decide_all
from cleanset.review.gold import GoldKey, without_golds
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.opinions import LookAgain, Opinions
from cleanset.review.page.library import Library
from cleanset.review.page.pace import Pace, RecentVerdicts
from cleanset.review.page.shares import Share
from cleanset.review.page.stored import CropScores, StoredVotes
from cleanset.review.queue import ByRole, Question, State, class_status, combined_state, questions
from cleanset.review.save import Step, VerdictChange, save_all
from cleanset.review.store import Votes
from cleanset.review.verdicts import Clean, ImageKey, Review
from cleanset.selection.fill import UNREVIEWED, Decision
from cleanset.selection.rule import least_images


@dataclass(frozen=True, slots=True)
class ReviewerClassStatus:
    """The status of a class for this reviewer: their questions, its state for all models together, the votes on disk.

    Verdicts of others are in it only as far as this reviewer may see them.
    """

    votes: Votes
    questions: tuple[Question, ...]
    state: State
    kept: Mapping[str, int]
    """Number of images kept so far, by model."""

    conflicts: tuple[str, ...] = ()
    """Image ids on which the reviewers differ."""

    clean: frozenset[str] = frozenset()
    """Image ids that are decided to be clean."""

    broken: str | None = None
    """The error in the class's review files, if any; then nothing is asked, and nothing can be saved."""

    look_again: Mapping[str, str] = field(default_factory=dict)
    """By image id, how people in a study rated images to be looked at again."""

    decisions: Mapping[str, Decision] = field(default_factory=dict)
    """By image id, the decision on each reviewed image."""

    read: Votes | None = None
    """The votes as read; `votes` may be a part of them."""

    own: Mapping[str, Review] = field(default_factory=dict)
    """This reviewer's verdicts, by image id."""

    @classmethod
    def of_error(cls, error: str) -> Self:
        """The status of a class whose review files cannot be read."""
        return cls(votes={}, questions=(), state="open", kept={}, broken=error)


Task = Literal["review", "audit", "labels"]
"""What a session is for: the review of candidates; an audit, which asks for each image once, of one auditor; or a check
of labels, which asks for each image of as many reviewers as a decision needs."""

Others = Literal["shown", "counted", "hidden"]
"""How far others' verdicts reach a reviewer: shown on an image once their own is given; counted, in what is asked and
which classes are done; hidden, with all that follows from them, as in a team until the board decides."""


@dataclass
class SessionState:
    """What changes in a session: the statuses as last read, and what the reviewer has done since it began."""

    statuses: dict[int, ReviewerClassStatus] = field(default_factory=dict)
    """By class index."""

    notes: dict[ImageKey, str] = field(default_factory=dict)
    """Notes without a verdict yet; in memory only."""

    steps: dict[str, list[Step]] = field(default_factory=dict)
    """The steps that can be undone, the last one last, by the browser's name of the tab."""

    pace: Pace = field(default_factory=Pace)
    recent: RecentVerdicts = field(default_factory=RecentVerdicts)
    counts_golds: bool = True
    """Whether gold items count like other images; no more once nothing else is asked."""

    told_about_text: bool = False
    told_about_dvc: bool = False
    """Whether a tab has reported the `dvc repro` that is running."""
    """Whether a tab has reported that text detection is off."""


@dataclass(frozen=True, slots=True)
class Session:
    """One reviewer's work on one edition, shared by their tabs: the status of each class, and saving verdicts.

    Only `state` changes, and not in a thread-safe way: callers hold a lock.
    """

    library: Library
    """With the gold items among the candidates, if there are any."""

    stored: StoredVotes
    reviews: Path
    """The folder of the edition's reviews; that of `stored` is another in an audit."""

    reviewer: str
    crop_scores: CropScores
    hints: BackgroundHints
    share: Share
    """The classes that are asked for."""

    look_again: LookAgain = field(default_factory=dict)
    opinions: Opinions = field(default_factory=dict)
    task: Task = "review"
    others: Others = "shown"
    all_golds: GoldKey = field(default_factory=dict)
    """The gold items of the edition; answers to them decide nothing."""

    golds: GoldKey = field(default_factory=dict)
    """This session's own gold items, whose answers are shown as verdicts."""

    plain: Mapping[int, ByRole] = field(default_factory=dict)
    """The candidates by class index without gold items; empty in a session without any."""

    state: SessionState = field(default_factory=SessionState)

    @property
    def statuses(self) -> Mapping[int, ReviewerClassStatus]:
        """The status of each class as last read, by class index."""
        return self.state.statuses

    def refresh(self, classes: Iterable[int] | None = None) -> None:
        """Read the changed review files of these classes, or of all: if None, or if scores of crops changed."""
        if self.crop_scores.look() or not self.statuses:
            self.state.statuses = {index: self._read_status(index, None) for index in self.library.by_class}
        else:
            for class_index in self.library.by_class if classes is None else classes:
                self.refresh_class(class_index)
        self._end_counting()

    def _end_counting(self) -> None:
        """Stop counting the gold items once nothing else is asked."""
        # in an audit each is looked at once, like a draw
        counts = self.state.counts_golds and self.task != "audit"
        if self.golds and counts and not self.unsettled():
            self.state.counts_golds = False
            self.state.statuses |= {index: self._read_status(index, None) for index, _ in self.golds}

    def refresh_class(self, class_index: int) -> ReviewerClassStatus:
        """Return the current status of a class; its files are read again if they changed."""
        status = self._read_status(class_index, self.statuses.get(class_index))
        self.state.statuses[class_index] = status
        return status

    def _read_status(self, class_index: int, known: ReviewerClassStatus | None) -> ReviewerClassStatus:
        """The status of a class now: `known` if nothing changed."""
        try:
            votes = self.stored.of_class(class_index)
        except CleansetError as error:
            return ReviewerClassStatus.of_error(str(error))
        except OSError as error:
            return ReviewerClassStatus.of_error(f"{error.filename or 'reading'}: {error.strerror or error}")
        # `is`: of_class returns the same object while nothing has changed
        if known is None or known.broken or known.read is not votes:
            status = self._status_of(class_index, votes)
            return replace(status, own=self._own_reviews(status.votes), read=votes)
        return known

    def kinds_of_hints(self, class_index: int) -> Mapping[str, Collection[str]]:
        """The kinds of hints by image id, at the images of a class that are measured."""
        return self.hints.kinds(self.library.candidates(class_index))

    def unmeasured(self, kind: str) -> int:
        """The number of candidates not yet searched for a hint of a kind."""
        return len(self.hints.unmeasured(self.library.images, kind))

    def own(self, class_index: int, image_id: str) -> Review | None:
        """This reviewer's verdict, as last read."""
        return self.statuses[class_index].own.get(image_id)

    def save_verdicts(self, class_index: int, changes: Mapping[str, VerdictChange]) -> None:
        """Write verdicts on images of a class, by image id, atomically, and read the class again.

        Raises CleansetError or OSError as `review.save.save_all` does.
        """
        asked = bool(self.statuses[class_index].questions)
        try:
            over = {image_id: self._over_gold(class_index, image_id, change) for image_id, change in changes.items()}
            classes = self.library.classes
            save_all(self.stored.folder, self.reviewer, classes.keys[class_index], over, classes=classes)
        finally:
            # after a failure, too: the page shows what is on the disk
            status = self.refresh_class(class_index)
        now = time.monotonic()
        self.state.pace.count_verdict(now, settled=asked and not status.questions)
        for image_id, change in changes.items():
            if change.review is None:
                self.state.recent.forget((class_index, image_id))
            else:
                self.state.recent.count_verdict((class_index, image_id), now)
        self._end_counting()  # the last verdict may bring back the classes that had a gold item

    def _over_gold(self, class_index: int, image_id: str, change: VerdictChange) -> VerdictChange:
        """The change, in place of the answer to a gold item that the file may have, which the caller does not see."""
        key = class_index, image_id
        if change.expected is not None or key in self.golds or key not in self.all_golds:
            return change
        own = self.stored.read(class_index).get(key, {}).get(self.reviewer)
        return replace(change, expected=own.review if own else None)

    def lacking_in_words(self, class_index: int) -> str:
        """The number of images that a class lacks: norm robust lacks 2, standard lacks 1; with one model: lacks 2.

        If all images are wanted: has no image. Without the models that lack none.
        """
        count = self.library.params.export.images_per_class
        least = least_images(count)
        kept = self.statuses[class_index].kept
        lacking = {role.replace("_", " "): least - images for role, images in kept.items() if images < least}
        words = {role: "has no image" if count == "all" else f"lacks {each}" for role, each in lacking.items()}
        if len(self.library.params.models) == 1:
            return "".join(words.values())
        return ", ".join(f"{role} {each}" for role, each in words.items())

    def state_in_words(self, class_index: int) -> str:
        """The state of a class for this reviewer, such as: done, short, 3 to review."""
        status = self.statuses[class_index]
        if status.broken:
            return "file error"
        if status.questions:
            # as many as are shown: others are asked for only if one of these is not clean
            return f"{sum(question.certain for question in status.questions) or 1} to review"
        if class_index not in self.share.classes:
            return "not asked of you"
        return {"settled": "done", "open": "waiting for others"}.get(status.state, status.state)

    def unsettled(self, role: str | None = None) -> list[int]:
        """The classes with a question to this reviewer, for a model if given, or whose files are broken."""
        return [
            index
            for index, status in self.statuses.items()
            if status.broken or any(role is None or role in question.serves for question in status.questions)
        ]

    def candidates_asked(self, class_index: int) -> ByRole:
        """The candidates of a class that questions come from."""
        if self.state.counts_golds:
            return self.library.by_class[class_index]
        # never the image of an item: this reviewer has its answer under the same id
        return {
            role: [each for each in candidates if (class_index, each.image_id) not in self.golds]
            for role, candidates in self.plain[class_index].items()
        }

    def _status_of(self, class_index: int, votes: Votes) -> ReviewerClassStatus:
        """The status of a class with these votes."""
        shown = self._votes_shown(votes)
        if self.task != "review":
            return self._audit_status(class_index, shown)
        counted = shown if self.state.counts_golds else without_golds(shown, self.all_golds)
        status = replace(self._review_status(class_index, counted), votes=shown)
        return self._own_part(status) if self.others == "hidden" else status

    def _own_part(self, status: ReviewerClassStatus) -> ReviewerClassStatus:
        """A status without what others have found, and what follows from it."""
        own = self._own_reviews(status.votes)
        clean = frozenset(image_id for image_id, review in own.items() if isinstance(review.verdict, Clean))
        state: State = "open" if status.state == "conflict" else status.state
        votes = self._own_votes(status.votes)
        return replace(status, votes=votes, state=state, conflicts=(), clean=clean, decisions={})

    def _votes_shown(self, votes: Votes) -> Votes:
        """The votes as this reviewer sees them: for a gold item only their own answer, else those on the image."""
        kept = without_golds(votes, self.all_golds)
        if not any(key in votes for key in self.golds):
            return kept
        others = {key: by_reviewer for key, by_reviewer in kept.items() if key not in self.golds}
        return others | self._own_votes({key: votes[key] for key in self.golds if key in votes})

    def _own_votes(self, votes: Votes) -> Votes:
        return {key: {self.reviewer: each[self.reviewer]} for key, each in votes.items() if self.reviewer in each}

    def _own_reviews(self, votes: Votes) -> dict[str, Review]:
        return {name: each[self.reviewer].review for (_, name), each in votes.items() if self.reviewer in each}

    def _audit_status(self, class_index: int, votes: Votes) -> ReviewerClassStatus:
        """The status of the draws in a class, or of its images to be checked. Nobody sees verdicts of others."""
        ((role, candidates),) = self.library.by_class[class_index].items()
        needed = self.library.params.review.min_reviewers if self.task == "labels" else 1
        given = {each.image_id: votes.get((class_index, each.image_id), {}) for each in candidates}
        asked = [
            each
            for each in candidates
            if self.reviewer not in given[each.image_id] and len(given[each.image_id]) < needed
        ]
        questions = tuple(Question(each.image_id, {role: each}, certain=True) for each in asked)
        return ReviewerClassStatus(
            votes=self._own_votes(votes),
            questions=questions,
            state="open" if asked else "settled",
            kept={role: len(candidates) - len(asked)},
        )

    def _review_status(self, class_index: int, votes: Votes) -> ReviewerClassStatus:
        """The status of a class in the reviews."""
        review = self.library.params.review
        count = self.library.params.export.images_per_class
        by_role = self.candidates_asked(class_index)
        predictions = {role: self.crop_scores.predictions[role] for role in by_role}
        # asked even where `review.unreviewed` is clean: verdicts are worth giving there, too
        decided = replace(decide_all(review, votes, predictions), unreviewed=UNREVIEWED)
        mine = decided
        if class_index in self.share.common:
            mine = replace(decide_all(review, self._own_votes(votes), predictions), unreviewed=UNREVIEWED)
        asking = mine.for_reviewer(self.reviewer, self._own_reviews(votes), class_index)
        is_asked = class_index in self.share.classes
        decide = decided.for_class(class_index)
        of_models = {
            role: class_status(candidates, decide[role], count, crops_in_rank=review.crops == "in_rank")
            for role, candidates in by_role.items()
        }
        by_image = {image_id: decision for (_, image_id), decision in decided.decisions.items()}
        asked = questions(by_role, asking, count, crops_in_rank=review.crops == "in_rank") if is_asked else []
        return ReviewerClassStatus(
            votes=votes,
            questions=tuple(asked),
            state=combined_state(each.state for each in of_models.values()),
            kept={role: each.kept for role, each in of_models.items()},
            conflicts=tuple(sorted(image_id for image_id, each in by_image.items() if each.reason == "conflict")),
            clean=frozenset(image_id for image_id, each in by_image.items() if each.verdict == "clean"),
            look_again=self.look_again.get(class_index, {}),
            decisions=by_image,
        )
