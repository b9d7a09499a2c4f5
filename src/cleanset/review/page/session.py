"""The state shared by all tabs of a server: the votes on disk, the status of each class, the reviewer's pace."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cleanset.errors import CleansetError
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.look_again import LookAgain
from cleanset.review.opinions import Opinions
from cleanset.review.page.library import Library
from cleanset.review.page.on_disk import CropScores, StoredVotes
from cleanset.review.page.recent import RecentVerdicts
from cleanset.review.queue import ByRole, Question, Share, State, class_status, combined_state, decide_all, questions
from cleanset.review.save import VerdictChange
from cleanset.review.store import Votes, reviews_of_reviewer
from cleanset.review.verdicts import Review
from cleanset.selection.fill import UNREVIEWED, Decision

MAX_GAP_SECONDS = 90.0
"""Longest time between two verdicts that counts; a longer one is a pause."""

MIN_CLASSES = 3
"""Settled classes needed to estimate the time left."""


@dataclass(frozen=True, slots=True)
class ReviewerClassStatus:
    """The status of a class for this reviewer: their questions, its state for all models together, the votes on disk.

    `kept`: number of images kept so far, by model; `conflicts`: images on which the reviewers differ; `clean`: images
    decided to be clean; `decisions`: by image id, on each reviewed image. `broken`: the error in the class's review
    files, if there is one; then nothing is asked, and nothing can be saved. `look_again`: by image id, how people in a
    study rated images to be looked at again.
    """

    votes: Votes
    questions: tuple[Question, ...]
    state: State
    kept: Mapping[str, int]
    conflicts: tuple[str, ...] = ()
    clean: frozenset[str] = frozenset()
    broken: str | None = None
    look_again: Mapping[str, str] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)


class Pace:
    """The time spent on verdicts, without pauses, and the number of classes settled in it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.settled = 0
        self._last: float | None = None

    def count_verdict(self, now: float, settled: bool) -> None:
        """Count one verdict, at `now` in seconds, and whether it settled its class."""
        if self._last is not None and now - self._last <= MAX_GAP_SECONDS:
            self.seconds += now - self._last
        self._last = now
        self.settled += settled

    def seconds_left(self, classes: int) -> float | None:
        """Estimated seconds for a number of classes; None while too few are settled."""
        return classes * self.seconds / self.settled if self.settled >= MIN_CLASSES else None


def in_words(seconds: float) -> str:
    """A duration in words, such as 40 s, 5 min, 2 h 10 min."""
    if seconds < 60:
        return f"{max(10, round(seconds / 10) * 10)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def lacking_in_words(lacking: Mapping[str, int]) -> str:
    """The number of images that models lack, such as: norm robust lacks 2, standard lacks 1."""
    return ", ".join(f"{role.replace('_', ' ')} lacks {count}" for role, count in lacking.items())


@dataclass
class Session:
    """One reviewer's work on one edition. Not thread-safe: callers hold a lock.

    `share`: the classes that are asked for; None for all. `notes`: notes without a verdict yet, by class index and
    image id; kept in memory only. `told_about_text`: a tab has said that text is not looked for.
    """

    library: Library
    stored: StoredVotes
    reviewer: str
    crop_scores: CropScores
    hints: BackgroundHints
    look_again: LookAgain = field(default_factory=dict)
    opinions: Opinions = field(default_factory=dict)
    share: Share | None = None
    statuses: dict[int, ReviewerClassStatus] = field(default_factory=dict)
    notes: dict[tuple[int, str], str] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    recent: RecentVerdicts = field(default_factory=RecentVerdicts)
    told_about_text: bool = False

    def refresh(self, classes: Iterable[int] | None = None) -> None:
        """Read the changed review files of these classes, or of all: if None, or if scores of crops changed."""
        if self.crop_scores.look() or not self.statuses:
            self.stored.check(self.library.classes)
            self.statuses = {index: self._read_status(index, None) for index in self.library.classes}
            return
        for class_index in self.library.classes if classes is None else classes:
            self.refresh_class(class_index)

    def refresh_class(self, class_index: int) -> ReviewerClassStatus:
        """Return the current status of a class; its files are read again if they changed."""
        self.statuses[class_index] = self._read_status(class_index, self.statuses.get(class_index))
        return self.statuses[class_index]

    def _read_status(self, class_index: int, known: ReviewerClassStatus | None) -> ReviewerClassStatus:
        """The status of a class now: `known` if nothing changed."""
        try:
            votes = self.stored.of_class(class_index)
        except CleansetError as error:
            return ReviewerClassStatus({}, (), "open", {}, broken=str(error))
        except OSError as error:
            return ReviewerClassStatus(
                {}, (), "open", {}, broken=f"{error.filename or 'reading'}: {error.strerror or error}"
            )
        # `is`: of_class returns the same object while nothing has changed
        if known is None or known.broken or known.votes is not votes:
            return self._status_of(class_index, votes)
        return known

    def own(self, class_index: int, image_id: str) -> Review | None:
        """This reviewer's verdict, as last read."""
        vote = self.statuses[class_index].votes.get((class_index, image_id), {}).get(self.reviewer)
        return vote.review if vote else None

    def save_verdicts(self, class_index: int, changes: Mapping[str, VerdictChange]) -> None:
        """Write verdicts on images of a class, by image id, all or none, and read the class again.

        Raises CleansetError or OSError as `review.save.save_all` does.
        """
        asked = bool(self.statuses[class_index].questions)
        try:
            self.stored.save(class_index, changes)
        finally:
            # after a failure, too: the page shows what is on the disk
            status = self.refresh_class(class_index)
        now = time.monotonic()
        self.pace.count_verdict(now, asked and not status.questions)
        for image_id, change in changes.items():
            if change.review is None:
                self.recent.forget((class_index, image_id))
            else:
                self.recent.count_verdict((class_index, image_id), now)

    def asked_for(self) -> int:
        """The number of classes of which this reviewer is asked."""
        return len(self.statuses) if self.share is None else len(self.share.classes)

    def lacking(self, class_index: int) -> dict[str, int]:
        """By role, how many images a class that is short lacks; only the models that lack some."""
        status, count = self.statuses[class_index], self.library.params.export.images_per_class
        if status.state != "short":
            return {}
        return {role: count - kept for role, kept in status.kept.items() if kept < count}

    def state_in_words(self, class_index: int) -> str:
        """The state of a class for this reviewer, such as: done, short, 3 to review."""
        status = self.statuses[class_index]
        if status.broken:
            return "file error"
        if status.questions:
            return f"{len(status.questions)} to review"
        if self.share is not None and class_index not in self.share.classes:
            return "not asked of you"
        return {"settled": "done", "open": "waits for others"}.get(status.state, status.state)

    def unsettled(self, role: str | None = None) -> list[int]:
        """The classes in which this reviewer is asked something, for a model if given, or whose files are broken."""
        return [
            index
            for index, status in self.statuses.items()
            if status.broken or any(role is None or role in question.serves for question in status.questions)
        ]

    @property
    def shows_others(self) -> bool:
        """Whether a reviewer sees others' verdicts on an image once their own is given."""
        return True

    def candidates_asked(self, class_index: int) -> ByRole:
        """The candidates of a class that questions come from."""
        return self.library.classes[class_index]

    def _status_of(self, class_index: int, votes: Votes) -> ReviewerClassStatus:
        """The status of a class with these votes.

        The page asks even where `review.unreviewed` is clean: verdicts are worth giving there, too.
        """
        review = self.library.params.review
        count = self.library.params.export.images_per_class
        by_role = self.candidates_asked(class_index)
        predictions = {role: self.crop_scores.predictions(role) for role in by_role}
        decided = replace(decide_all(review, votes, predictions), unreviewed=UNREVIEWED)
        own = reviews_of_reviewer(votes, self.reviewer).get(class_index, {})
        if self.share is not None and class_index in self.share.common:
            alone = {key: {self.reviewer: votes[key][self.reviewer]} for key in votes if self.reviewer in votes[key]}
            mine = replace(decide_all(review, alone, predictions), unreviewed=UNREVIEWED)
        else:
            mine = decided
        asking = mine.for_reviewer(self.reviewer, own, class_index)
        is_asked = self.share is None or class_index in self.share.classes
        decide = decided.for_class(class_index)
        of_models = {
            role: class_status(candidates, decide[role], count, review.crops_in_rank)
            for role, candidates in by_role.items()
        }
        by_image = {image_id: decision for (_, image_id), decision in decided.decisions.items()}
        return ReviewerClassStatus(
            votes,
            tuple(questions(by_role, asking, count, review.crops_in_rank)) if is_asked else (),
            combined_state(each.state for each in of_models.values()),
            {role: each.kept for role, each in of_models.items()},
            tuple(sorted(image_id for image_id, each in by_image.items() if each.reason == "conflict")),
            frozenset(image_id for image_id, each in by_image.items() if each.verdict == "clean"),
            look_again=self.look_again.get(class_index, {}),
            decisions=by_image,
        )
