"""The state shared by all tabs of a server: the votes on disk, the status of each class, the reviewer's pace.

Others may change files during a review: the review files, and the scores of crops.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from cleanset.classes import ClassTable
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import is_there, read_text
from cleanset.images.boxes import Crop
from cleanset.review.decided import decide_all
from cleanset.review.gold import GoldKey, without_golds
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.opinions import LookAgain, Opinions
from cleanset.review.page.library import IndexedImage, Library, Share
from cleanset.review.page.steps import Step
from cleanset.review.queue import ByRole, Question, State, class_status, combined_state, questions
from cleanset.review.save import VerdictChange, save_all
from cleanset.review.store import Votes, check_votes, refuse_link, review_file, reviewer_folders, votes_in
from cleanset.review.verdicts import Review, Vote
from cleanset.selection.crop_check import Prediction, predictions_of_crops
from cleanset.selection.fill import UNREVIEWED, Decision
from cleanset.tables import CROP_SCORES, read_table


class StoredVotes:
    """The review files of all reviewers in `folder`, as the page reads them.

    Others may change files at any time. The page asks at every step, so a file is parsed only when its text changed.
    Its time and size would not do: another text within a tick of the clock may have the same.
    `official_images`: the images come from the official archive, so that a review may name one by its id alone.
    `golds`: the gold items; answers to them are among the votes, and not checked against the images.
    """

    def __init__(
        self,
        folder: Path,
        images: Mapping[str, IndexedImage],
        classes: ClassTable,
        min_crop_pixels: int,
        *,
        official_images: bool = False,
        golds: GoldKey = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        self._images = images
        self._classes = classes
        self._min_crop_pixels = min_crop_pixels
        self._official_images = official_images
        self._golds = golds
        self._files: dict[Path, tuple[str, list[Vote]]] = {}
        self._checked: dict[int, Votes] = {}

    def of_class(self, class_index: int) -> Votes:
        """The votes on a class; the same object if nothing changed. Raises CleansetError for an invalid one."""
        votes = self.read(class_index)
        if votes != self._checked.get(class_index):
            on_images = without_golds(votes, self._golds)
            check_votes(
                on_images,
                self._images,
                self._classes,
                self._min_crop_pixels,
                official_images=self._official_images,
            )
            self._checked[class_index] = votes
        return self._checked[class_index]

    def changed_at(self, reviewer: str, class_index: int) -> int:
        """Modification time in nanoseconds of a reviewer's file of a class; 0 without one."""
        path = self._path(reviewer, class_index)
        return path.stat().st_mtime_ns if is_there(path) else 0

    def read(self, class_index: int) -> Votes:
        """All votes on a class, not checked against the images."""
        votes: Votes = {}
        for folder in reviewer_folders(self.folder):
            for vote in self._votes_in(self._path(folder.name, class_index)):
                votes.setdefault((class_index, vote.image_id), {})[folder.name] = vote
        return votes

    def _path(self, reviewer: str, class_index: int) -> Path:
        return review_file(self.folder, reviewer, self._classes.keys[class_index], self._classes)

    def _votes_in(self, path: Path) -> list[Vote]:
        refuse_link(path)
        if not path.exists():
            return []
        text = read_text(path, "save it as UTF-8")
        if path not in self._files or self._files[path][0] != text:
            self._files[path] = text, votes_in(text, path, self._classes)
        return self._files[path][1]


class CropScores:
    """The tables `data/crop_scores/<role>.parquet` of an edition, read again when they change; they may be missing."""

    def __init__(self, edition: Edition, roles: Sequence[str], classes: ClassTable) -> None:
        self._classes = classes
        self._paths = {role: edition.crop_scores(role) for role in roles}
        self._stamps: dict[str, tuple[int, int] | None] = dict.fromkeys(roles)
        self.predictions: dict[str, dict[Crop, Prediction]] = {role: {} for role in roles}
        """By role, a model's predictions on the crops that are scored."""

    def look(self) -> bool:
        """Read changed tables; return whether any changed. Raises CleansetError for a table that cannot be read."""
        changed = False
        for role, path in self._paths.items():
            stamp = (path.stat().st_mtime_ns, path.stat().st_size) if is_there(path) else None
            if stamp != self._stamps[role]:
                table = read_table(path, CROP_SCORES, self._classes) if stamp else None
                self.predictions[role] = {} if table is None else predictions_of_crops(table)
                self._stamps[role] = stamp
                changed = True
        return changed


ImageKey = tuple[int, str]
"""Class index and image id."""


@dataclass
class Visit:
    """The time from opening a class until the last verdict there, in seconds, and the number of verdicts."""

    start: float
    end: float
    verdicts: int = 0


class RecentVerdicts:
    """The verdicts of a session, newest last, with the mean time of a verdict in the same visit to the class.

    The mean, because a reviewer may look at all images of a class before giving several verdicts at once: the time
    between two verdicts then says nothing about either.
    """

    def __init__(self) -> None:
        self._visits: dict[int, Visit] = {}
        self._of_verdict: dict[ImageKey, Visit] = {}

    def open_class(self, class_index: int, now: float) -> None:
        """Begin a visit to a class, at `now` in seconds."""
        self._visits[class_index] = Visit(now, now)

    def count_verdict(self, key: ImageKey, now: float) -> None:
        """Count a verdict, given at `now`."""
        visit = self._visits.setdefault(key[0], Visit(now, now))
        # last, although it may have had a verdict before
        self._of_verdict.pop(key, None)
        self._of_verdict[key] = visit
        visit.end = now
        visit.verdicts += 1

    def forget(self, key: ImageKey) -> None:
        """Leave out a verdict that was taken back."""
        self._of_verdict.pop(key, None)

    def newest_first(self, keys: Iterable[ImageKey]) -> list[ImageKey]:
        """The keys with a verdict in this session, the newest first, then the others in the order given."""
        wanted = dict.fromkeys(keys)
        given = [key for key in reversed(self._of_verdict) if key in wanted]
        return [*given, *(key for key in wanted if key not in self._of_verdict)]

    def seconds(self, key: ImageKey) -> float | None:
        """Mean seconds of a verdict in this one's visit; None if it is older than the session."""
        visit = self._of_verdict.get(key)
        return (visit.end - visit.start) / visit.verdicts if visit else None


# longest time between two verdicts that counts; a longer one is a pause
MAX_GAP_SECONDS = 90.0

MIN_SETTLED_CLASSES = 3
"""Settled classes needed to estimate the time left."""


@dataclass(frozen=True, slots=True)
class ReviewerClassStatus:
    """The status of a class for this reviewer: their questions, its state for all models together, the votes on disk.

    `kept`: number of images kept so far, by model; `own`: this reviewer's verdicts, by image id; `conflicts`: images on
    which the reviewers differ; `clean`: images decided to be clean; `decisions`: by image id, on each reviewed image.
    `broken`: the error in the class's review files, if any; then nothing is asked, and nothing can be saved.
    `look_again`: by image id, how people in a study rated images to be looked at again.
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
    read: Votes | None = None
    """The votes as read; `votes` may be a part of them."""
    own: Mapping[str, Review] = field(default_factory=dict)


class Pace:
    """The time spent on verdicts, without pauses, and the number of classes settled in it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.settled = 0
        self._last: float | None = None

    def count_verdict(self, now: float, *, settled: bool) -> None:
        """Count one verdict, at `now` in seconds, and whether it settled its class."""
        if self._last is not None and now - self._last <= MAX_GAP_SECONDS:
            self.seconds += now - self._last
        self._last = now
        self.settled += settled

    def seconds_left(self, classes: int) -> float | None:
        """Estimated seconds for a number of classes; None while too few are settled."""
        return classes * self.seconds / self.settled if self.settled >= MIN_SETTLED_CLASSES else None


def in_words(seconds: float) -> str:
    """A duration in words, such as 40 s, 5 min, 2 h 10 min."""
    if seconds < 60:
        return f"{max(10, round(seconds / 10) * 10)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@dataclass
class Session:
    """One reviewer's work on one edition, shared by their tabs: the status of each class, and the steps after a
    verdict.

    Not thread-safe: callers hold a lock.

    `share`: the classes that are asked for. `is_audit`: each image is asked for once, of one auditor;
    `checks_labels`: of as many reviewers as a decision needs. `shows_others`: a reviewer sees others' verdicts on an
    image once their own is given; `sees_own_only`: of no image, nor their consequences, as in a team until the board
    decides. `notes`: notes without a verdict yet, by class index and image id; kept in memory only. `told_about_text`:
    a tab has said that text is not looked for. `steps`: the steps to undo, by the browser's name
    of the tab.

    `all_golds`: the gold items of the edition; `golds`: this session's own, whose answers are shown as verdicts.
    `plain`: the classes without items. While `counts_golds` the items count like other images; no more once nothing
    else is asked.
    """

    library: Library
    stored: StoredVotes
    reviewer: str
    crop_scores: CropScores
    hints: BackgroundHints
    share: Share
    look_again: LookAgain = field(default_factory=dict)
    opinions: Opinions = field(default_factory=dict)
    is_audit: bool = False
    checks_labels: bool = False
    shows_others: bool = True
    sees_own_only: bool = False
    golds: GoldKey = field(default_factory=dict)
    all_golds: GoldKey = field(default_factory=dict)
    plain: Mapping[int, ByRole] = field(default_factory=dict)
    counts_golds: bool = True
    statuses: dict[int, ReviewerClassStatus] = field(default_factory=dict)
    notes: dict[tuple[int, str], str] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    recent: RecentVerdicts = field(default_factory=RecentVerdicts)
    told_about_text: bool = False
    steps: dict[str, list[Step]] = field(default_factory=dict)

    def refresh(self, classes: Iterable[int] | None = None) -> None:
        """Read the changed review files of these classes, or of all: if None, or if scores of crops changed."""
        if self.crop_scores.look() or not self.statuses:
            self.statuses = {index: self._read_status(index, None) for index in self.library.by_class}
        else:
            for class_index in self.library.by_class if classes is None else classes:
                self.refresh_class(class_index)
        self._end_counting()

    def _end_counting(self) -> None:
        """Stop counting the gold items once nothing else is asked."""
        # in an audit each is looked at once, like a draw
        if self.golds and self.counts_golds and not self.is_audit and not self.unsettled():
            self.counts_golds = False
            self.statuses |= {index: self._read_status(index, None) for index, _ in self.golds}

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
        if known is None or known.broken or known.read is not votes:
            status = self._status_of(class_index, votes)
            return replace(status, own=self._own_reviews(status.votes), read=votes)
        return known

    def kinds_of_hints(self, class_index: int) -> dict[str, set[str]]:
        """The kinds of hints by image id, at the images of a class that were measured since the server started."""
        found = self.hints.of(self.library.candidates(class_index))
        return {image_id: {hint.kind for hint in hints} for image_id, hints in found.items()}

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
        self.pace.count_verdict(now, settled=asked and not status.questions)
        for image_id, change in changes.items():
            if change.review is None:
                self.recent.forget((class_index, image_id))
            else:
                self.recent.count_verdict((class_index, image_id), now)
        self._end_counting()  # the last verdict may bring back the classes that had a gold item

    def _over_gold(self, class_index: int, image_id: str, change: VerdictChange) -> VerdictChange:
        """The change, in place of the answer to a gold item that the file may have, which the caller does not see."""
        key = class_index, image_id
        if change.expected is not None or key in self.golds or key not in self.all_golds:
            return change
        own = self.stored.read(class_index).get(key, {}).get(self.reviewer)
        return replace(change, expected=own.review if own else None)

    def lacking_in_words(self, class_index: int) -> str:
        """The number of images that a short class lacks: norm robust lacks 2, standard lacks 1; of one model: lacks 2.

        Empty for any other class, and without the models that lack none.
        """
        status = self.statuses[class_index]
        count = self.library.params.export.images_per_class
        if status.state != "short":
            return ""
        lacking = {role.replace("_", " "): count - kept for role, kept in status.kept.items() if kept < count}
        if len(self.library.params.models) == 1:
            return "".join(f"lacks {each}" for each in lacking.values())
        return ", ".join(f"{role} lacks {each}" for role, each in lacking.items())

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
        return {"settled": "done", "open": "waits for others"}.get(status.state, status.state)

    def unsettled(self, role: str | None = None) -> list[int]:
        """The classes with a question to this reviewer, for a model if given, or whose files are broken."""
        return [
            index
            for index, status in self.statuses.items()
            if status.broken or any(role is None or role in question.serves for question in status.questions)
        ]

    def candidates_asked(self, class_index: int) -> ByRole:
        """The candidates of a class that questions come from."""
        if self.counts_golds:
            return self.library.by_class[class_index]
        # never the image of an item: this reviewer has its answer under the same id
        return {
            role: [each for each in candidates if (class_index, each.image_id) not in self.golds]
            for role, candidates in self.plain[class_index].items()
        }

    def _status_of(self, class_index: int, votes: Votes) -> ReviewerClassStatus:
        """The status of a class with these votes."""
        shown = self._votes_shown(votes)
        if self.is_audit or self.checks_labels:
            return self._audit_status(class_index, shown)
        counted = shown if self.counts_golds else without_golds(shown, self.all_golds)
        status = replace(self._review_status(class_index, counted), votes=shown)
        return self._own_part(status) if self.sees_own_only else status

    def _own_part(self, status: ReviewerClassStatus) -> ReviewerClassStatus:
        """A status without what others have found, and what follows from it."""
        own = self._own_reviews(status.votes)
        clean = frozenset(image_id for image_id, review in own.items() if review.verdict == "clean")
        state: State = "open" if status.state == "conflict" else status.state
        votes = self._own_votes(status.votes)
        return replace(status, votes=votes, state=state, conflicts=(), clean=clean, decisions={})

    def _votes_shown(self, votes: Votes) -> Votes:
        """The votes as this reviewer sees them: of a gold item their own answer alone, else those on the image."""
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
        needed = self.library.params.review.min_reviewers if self.checks_labels else 1
        given = {each.image_id: votes.get((class_index, each.image_id), {}) for each in candidates}
        asked = [
            each
            for each in candidates
            if self.reviewer not in given[each.image_id] and len(given[each.image_id]) < needed
        ]
        questions = tuple(Question(each.image_id, {role: each}, certain=True) for each in asked)
        kept = {role: len(candidates) - len(asked)}
        return ReviewerClassStatus(self._own_votes(votes), questions, "open" if asked else "settled", kept)

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
