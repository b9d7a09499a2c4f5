"""One judge's work on one contest, shared by all tabs of a server: tasks, answers, and what is left for later."""

import datetime
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.plumbing.files import read_bytes, write_bytes
from cleanset.plumbing.validation import shown
from cleanset.studies.contest.entries import short
from cleanset.studies.contest.judge_page.drafts import JudgeDraft, read_answers, save_answer
from cleanset.studies.contest.judges import JudgeRecord, JudgeTask, tasks_of_week
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.log import read
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.standing import replay
from cleanset.studies.contest.state import Contest
from cleanset.web.images import Photos

DRAFTS = ".drafts.json"
"""Name of the drafts in answers/<id>/; a hidden file, which readers of answers skip."""
_DRAFTS = TypeAdapter(list[JudgeDraft])


def tasks_of(contest: Contest, judge: str) -> list[JudgeTask]:
    """The images of one judge, by week, oldest first, and the controls drawn among them.

    Images with a final verdict are left out, unless this judge has answered them.
    """
    answered = contest.judges.get(judge, JudgeRecord()).answers
    found: list[JudgeTask] = []
    for week, controls in contest.drawn(judge).items():
        of_week = {sha256: image for sha256, image in contest.images.items() if image.week == week}
        asked = [sha256 for sha256, image in of_week.items() if sha256 in answered or image.final_on is None]
        found += tasks_of_week(week, [*asked, *controls], judge, contest.rules.judges.seed)
    return found


class JudgeSession:
    """One judge's work on one contest. Not safe in threads: callers hold a lock.

    `on`: the day; images that are published by then are asked about. Raises CleansetError for a judge who is not in the
    roster, and for files that are not valid.
    """

    def __init__(self, folder: Path, judge: str, on: datetime.date) -> None:
        contest = replay(read(folder), on)
        if judge not in contest.roster:
            raise CleansetError(f"judge {shown(judge)}: not in the roster; expected one who has been entered")
        self.judge = judge
        self.groups = tuple(contest.rules.classes)
        self.drawings_are_real = contest.rules.drawings_are_real
        self.seen = contest.rules.limits.seen_share
        self.examples = contest.examples
        self.tasks = tasks_of(contest, judge)
        objects = Objects(folder)
        digests = list(dict.fromkeys([*self.examples, *(task.sha256 for task in self.tasks)]))
        for digest in digests:
            objects.read(digest)
        self.photos = Photos(objects.read)
        # random names: a digest could be looked up in the published manifests
        self.tokens = {digest: secrets.token_urlsafe(12) for digest in digests}
        """By SHA-256, the name of an image in the browser, drawn anew for each server."""
        self.size = cache(self._size)
        self.answers: dict[str, JudgeAnswer] = {}
        """In the order in which they were given."""
        self.drafts: dict[str, JudgeDraft] = {}
        """The unfinished answers by image; those left for later in the order in which they come."""
        self.left_last: str | None = None
        """The image that was left for later by the last key; None after another answer."""
        self._first: str | None = None
        self._entered = dict(contest.judges.get(judge, JudgeRecord()).answers)
        self._folder = folder / "answers" / judge
        self.refresh()
        # drafts were left by a server that was killed: the judge goes on where it ended, unless they are damaged
        with suppress(FileNotFoundError, ValueError, CleansetError):
            for draft in _DRAFTS.validate_json(read_bytes(self._folder / DRAFTS)):
                # nothing is saved without a key: the last question is asked again
                if draft.step(self.groups) == "done":
                    draft.take_back()
                self.drafts[draft.image] = draft
            self._first = next((image for image, draft in self.drafts.items() if not draft.left), None)

    def refresh(self) -> None:
        """Read the judge's answers again. Raises CleansetError for a file that is not valid."""
        paths = [self._answer_file(week) for week in sorted({task.week for task in self.tasks})]
        # after a restart the file that was saved last has the last answer
        saved = sorted(paths, key=lambda path: path.stat().st_mtime_ns if path.exists() else 0)
        # answers that were entered stay, also where the judge has the file no longer
        answers = self._entered | {key: one for path in saved for key, one in read_answers(path).items()}
        # those of this server keep the order in which they were given
        known = [key for key in self.answers if key in answers]
        self.answers = {key: answers[key] for key in dict.fromkeys([*known, *answers])}

    def _answer_file(self, week: datetime.date) -> Path:
        return self._folder / f"{week}.yaml"

    def waiting(self) -> list[JudgeTask]:
        """The images without an answer, the current one first, those left for later last."""
        left = [image for image, draft in self.drafts.items() if draft.left]
        places = {image: place for place, image in enumerate(left, start=1)}
        found = [task for task in self.tasks if task.sha256 not in self.answers]
        return sorted(found, key=lambda task: (task.sha256 != self._first, places.get(task.sha256, 0)))

    def current(self) -> JudgeTask | None:
        """The image that is asked about; None once all are answered."""
        return next(iter(self.waiting()), None)

    def draft_of(self, task: JudgeTask) -> JudgeDraft:
        """The answers to an image so far."""
        return self.drafts.setdefault(task.sha256, JudgeDraft(image=task.sha256))

    def keep_drafts(self) -> None:
        """Save the unfinished answers, so that they survive a killed server."""
        kept = [draft for draft in self.drafts.values() if not draft.is_empty]
        path = self._folder / DRAFTS
        if kept:
            write_bytes(path, _DRAFTS.dump_json(kept))
        else:
            path.unlink(missing_ok=True)

    def leave(self, task: JudgeTask) -> None:
        """Leave the current image for later, with its answers so far."""
        draft = self.drafts.pop(task.sha256, None) or JudgeDraft(image=task.sha256)
        draft.left = True
        self.drafts[task.sha256] = draft
        self._first = None
        self.left_last = task.sha256
        self.keep_drafts()

    def return_to_left(self) -> bool:
        """Go back to the image that was left by the last key; False if it was another one."""
        last = self.left_last
        self.left_last = None
        if last is None or last in self.answers:
            return False
        self.drafts[last].left = False
        self._first = last
        self.keep_drafts()
        return True

    def save(self, task: JudgeTask) -> None:
        """Save the draft as the first answers to its image."""
        answer = self.draft_of(task).answer(self.groups)
        try:
            save_answer(self._answer_file(task.week), task.sha256, answer, None)
        except (CleansetError, OSError):
            self.refresh()
            raise
        # spares reading the file again
        self.answers[task.sha256] = answer
        del self.drafts[task.sha256]
        self._first = None
        self.keep_drafts()

    def reopen_last(self) -> bool:
        """Take back the last answer that is not entered, as a draft without its last step; False without one."""
        by_name = {task.sha256: task for task in self.tasks}
        mine = [each for each in self.answers if each in by_name and each not in self._entered]
        if not mine:
            return False
        last = by_name[mine[-1]]
        answer = self.answers.pop(last.sha256)
        draft = self.drafts[last.sha256] = JudgeDraft.of(last.sha256, answer, self.groups)
        draft.take_back()
        self._first = last.sha256
        try:
            # the draft first: a kill in between leaves the answers in two places, not in none
            self.keep_drafts()
            save_answer(self._answer_file(last.week), last.sha256, None, answer)
        except (CleansetError, OSError):
            del self.drafts[last.sha256]
            self.answers[last.sha256] = answer
            raise
        finally:
            self.refresh()
        return True

    def _size(self, sha256: str) -> tuple[int, int]:
        """Width and height of an image, in pixels. Raises CleansetError if it cannot be read."""
        try:
            return decode(self.photos.read(sha256)).size
        except (OSError, ValueError) as error:
            raise CleansetError(f"{short(sha256)}: {error}") from None
