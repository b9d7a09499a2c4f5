"""One judge's work on one contest, shared by all tabs of a server: tasks, answers, and what is left for later."""

import datetime
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter

from cleanset.errors import CleansetError
from cleanset.images.codec import decode_file
from cleanset.images.outlines import Point
from cleanset.plumbing.files import read_bytes, replace_file
from cleanset.plumbing.validation import Section, Sha256, validate
from cleanset.studies.contest.entries import AnswerFile, short
from cleanset.studies.contest.judging import STATEMENTS, Contains, JudgeAnswer, JudgeRecord, JudgeTask, tasks_of_week
from cleanset.studies.contest.log import Objects, read_content
from cleanset.studies.contest.state import Contest
from cleanset.web.images import Photos

JudgeStep = Literal["contains", "outline", "statement", "done"]


class JudgeDraft(Section):
    """The answers to an image, in the order of the questions; `closed`: the outline is finished."""

    # JSON has lists, no tuples
    model_config = ConfigDict(frozen=False, strict=False)

    image: Sha256
    contains: list[Contains] = Field(default_factory=list)
    corners: list[Point] = Field(default_factory=list)
    closed: bool = False
    statements: list[bool] = Field(default_factory=list)

    @classmethod
    def of(cls, image: str, answer: JudgeAnswer, groups: tuple[str, ...]) -> Self:
        """The draft that was saved as an answer."""
        given = [getattr(answer, name) for name in STATEMENTS]
        return cls(
            image=image,
            contains=[answer.contains[group] for group in groups],
            corners=list(answer.outline or ()),
            closed=answer.outline is not None,
            statements=[each for each in given if each is not None],
        )

    def step(self, groups: tuple[str, ...]) -> JudgeStep:
        """The next question."""
        if len(self.contains) < len(groups):
            return "contains"
        if self.answer(groups).object_of is None:
            return "done"
        if not self.closed:
            return "outline"
        return "statement" if len(self.statements) < len(STATEMENTS) else "done"

    def take_back(self) -> bool:
        """Take the last step back; False if nothing was answered."""
        if self.closed and not self.statements:
            self.closed = False
        elif given := self.statements or self.corners or self.contains:
            given.pop()
        else:
            return False
        return True

    def answer(self, groups: tuple[str, ...]) -> JudgeAnswer:
        """The answers so far, in the form of the file."""
        contains = dict(zip(groups, self.contains, strict=True))
        statements = dict(zip(STATEMENTS, self.statements, strict=False))
        return JudgeAnswer(contains=contains, outline=tuple(self.corners) if self.closed else None, **statements)


def read_answers(path: Path) -> dict[str, JudgeAnswer]:
    """The answers in a file, by image; empty without the file. Raises CleansetError for a file that is not valid."""
    return dict(validate(AnswerFile, read_content(path), path).answers) if path.exists() else {}


DRAFTS = ".drafts.json"
"""Name of the drafts in answers/<id>/, in the order of the images; a hidden file, which readers of answers skip."""
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
    """One judge's work on the contest in a folder, whose files one server has; callers hold a lock.

    Raises CleansetError for files that are not valid.
    """

    def __init__(self, folder: Path, contest: Contest, judge: str) -> None:
        self.judge = judge
        self.groups = tuple(contest.rules.classes)
        self.drawings_are_real = contest.rules.drawings_are_real
        self.seen = contest.rules.limits.seen_share
        self.examples = contest.examples
        self.tasks = tasks_of(contest, judge)
        """In the order in which they are asked, but for those left for later, which go to the end."""
        objects = Objects(folder)
        digests = list(dict.fromkeys([*self.examples, *(task.sha256 for task in self.tasks)]))
        for digest in digests:
            objects.read(digest)
        self.photos = Photos(objects.read)
        # random names: a digest could be looked up in the published manifests
        self.tokens = {digest: secrets.token_urlsafe(12) for digest in digests}
        """By SHA-256, the name of an image in the browser, drawn again for each server."""
        self._size = cache(lambda sha256: decode_file(self.photos.read(sha256), short(sha256)).size)
        self.left_last: JudgeTask | None = None
        """The image that was left for later by the last key; None after another one."""
        self._folder = folder / "answers" / judge
        self._entered = contest.judges.get(judge, JudgeRecord()).answers
        self._read_saved()

    def size(self, sha256: str) -> tuple[int, int] | None:
        """Width and height of an image, in pixels; None as long as it cannot be shown."""
        with suppress(CleansetError):
            return self._size(sha256)
        return None

    def _file(self, week: datetime.date) -> Path:
        return self._folder / f"{week}.yaml"

    def _read_saved(self) -> None:
        """Read the files, also those of a killed server."""
        weeks = sorted({task.week for task in self.tasks})
        # the file that was saved last has the last answer
        weeks.sort(key=lambda week: self._file(week).stat().st_mtime_ns if self._file(week).exists() else 0)
        self._saved = {week: read_answers(self._file(week)) for week in weeks}
        self.answers = dict(self._entered)
        """In the order in which they were given; those that were entered stay without their file, too."""
        for answers in self._saved.values():
            self.answers |= answers
        kept: list[JudgeDraft] = []
        # without those that are damaged
        with suppress(FileNotFoundError, ValueError, CleansetError):
            kept = _DRAFTS.validate_json(read_bytes(self._folder / DRAFTS))
        self.drafts = {draft.image: draft for draft in kept if draft.contains}
        """The unfinished answers by image."""
        places = {draft.image: place for place, draft in enumerate(kept)}
        self.tasks.sort(key=lambda task: places.get(task.sha256, len(places)))

    def waiting(self) -> list[JudgeTask]:
        """The images without an answer: the one that is asked about first, those left for later last."""
        return [task for task in self.tasks if task.sha256 not in self.answers]

    def draft_of(self, task: JudgeTask) -> JudgeDraft:
        """The answers to an image so far, to be changed and kept."""
        found = self.drafts.get(task.sha256)
        return found.model_copy(deep=True) if found else JudgeDraft(image=task.sha256)

    def keep(self, task: JudgeTask, draft: JudgeDraft) -> None:
        """Keep a draft, as the answers to its image once no question is left, so that it survives a killed server."""
        drafts = {**self.drafts, task.sha256: draft}
        if draft.step(self.groups) == "done":
            self._save(task, draft.answer(self.groups))
            del drafts[task.sha256]
        self._keep(drafts)

    def _keep(self, drafts: Mapping[str, JudgeDraft]) -> None:
        self.left_last = None
        waiting = [task.sha256 for task in self.tasks if task.sha256 in drafts or task.sha256 not in self.answers]
        kept = [drafts.get(image) or JudgeDraft(image=image) for image in waiting]
        # an image may be left without an answer: then the order is all that is kept
        self._write(self._folder / DRAFTS, _DRAFTS.dump_json(kept) if kept else b"")
        self.drafts = dict(drafts)

    def _write(self, path: Path, content: bytes) -> None:
        if content or path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)

    def _save(self, task: JudgeTask, answer: JudgeAnswer | None) -> None:
        """Save the answers to an image; None takes them back."""
        own = {} if answer is None else {task.sha256: answer}
        changed = {key: one for key, one in self._saved[task.week].items() if key != task.sha256} | own
        content = b""
        if changed:
            file = AnswerFile(judge=self.judge, week=task.week, answers=changed)
            # JSON is YAML, too
            content = file.model_dump_json(indent=1, exclude_none=True).encode() + b"\n"
        self._write(self._file(task.week), content)
        self._saved[task.week] = changed
        self.answers.pop(task.sha256, None)
        self.answers |= own

    def _ask(self, task: JudgeTask, place: int, drafts: Mapping[str, JudgeDraft]) -> None:
        self.tasks.remove(task)
        self.tasks.insert(place, task)
        self._keep(drafts)

    def leave(self, task: JudgeTask) -> None:
        """Leave the current image for later, with its answers so far."""
        self._ask(task, len(self.tasks), self.drafts)
        self.left_last = task

    def return_to_left(self) -> bool:
        """Go back to the image that was left by the last key; False if it was another one."""
        last = self.left_last
        if last is not None:
            self._ask(last, 0, self.drafts)
        return last is not None

    def reopen_last(self) -> bool:
        """Take back the last answer that is not entered, as a draft without its last step; False without one."""
        by_name = {task.sha256: task for task in self.tasks}
        mine = [each for each in self.answers if each in by_name and each not in self._entered]
        if not mine:
            return False
        task = by_name[mine[-1]]
        draft = JudgeDraft.of(task.sha256, self.answers[task.sha256], self.groups)
        draft.take_back()
        # the draft first: a kill in between leaves the answers in two places, not in none
        self._ask(task, 0, {**self.drafts, task.sha256: draft})
        self._save(task, None)
        return True
