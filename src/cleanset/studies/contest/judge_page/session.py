"""The work of a judge: answers to one image as a draft, their file answers/<id>/<week>.yaml, and the keys of a tab.

A session is shared by all tabs of a judge's server. No HTML, no network.
"""

import datetime
import secrets
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from cleanset.errors import CleansetError, cut
from cleanset.images.codec import decode
from cleanset.plumbing.file_locks import ChangedMeanwhileError, locked
from cleanset.plumbing.files import read_bytes, replace_file, write_text
from cleanset.plumbing.validation import Section, Sha256, shown, validate
from cleanset.studies.contest.entries import AnswerFile, short
from cleanset.studies.contest.judge_tasks import JudgeTask, tasks
from cleanset.studies.contest.judging import (
    CONTAINS,
    MAX_CORNERS,
    STATEMENTS,
    Contains,
    JudgeAnswer,
    Point,
    as_text,
    parse_outline,
    points_outside,
)
from cleanset.studies.contest.log import read_state
from cleanset.studies.contest.objects import Objects, read_content
from cleanset.studies.contest.standing import standing
from cleanset.web.images import Photos

JudgeStep = Literal["contains", "outline", "statement", "done"]


class JudgeDraft(Section):
    """The answers to an image, in the order of the questions; `closed`: the outline is finished."""

    # JSON has lists, no tuples
    model_config = ConfigDict(frozen=False, strict=False)

    image: Sha256
    contains: list[Contains] = Field(default_factory=list)
    corners: Annotated[list[Point], Field(max_length=MAX_CORNERS)] = Field(default_factory=list)
    closed: bool = False
    statements: list[bool] = Field(default_factory=list)

    @classmethod
    def of(cls, image: str, answer: JudgeAnswer, groups: tuple[str, ...]) -> "JudgeDraft":
        """The draft that was saved as an answer."""
        given = [getattr(answer, name) for name in STATEMENTS]
        return cls(
            image=image,
            contains=[answer.contains[group] for group in groups],
            corners=list(answer.outline or ()),
            closed=answer.outline is not None,
            statements=[each for each in given if each is not None],
        )

    def object_of(self, groups: tuple[str, ...]) -> str | None:
        """The group whose largest object is asked about, once both groups are answered."""
        if len(self.contains) < len(groups):
            return None
        return self.answer(groups, datetime.date.min).object_of

    def step(self, groups: tuple[str, ...]) -> JudgeStep:
        """The next question."""
        if len(self.contains) < len(groups):
            return "contains"
        if self.object_of(groups) is None:
            return "done"
        if not self.closed:
            return "outline"
        return "statement" if len(self.statements) < len(STATEMENTS) else "done"

    @property
    def is_empty(self) -> bool:
        """Whether no question was answered."""
        return not (self.contains or self.corners or self.statements)

    def close_outline(self, width: int, height: int) -> None:
        """Finish the outline. Raises ValueError, and leaves it open, unless it is a simple polygon inside the image."""
        for problem in points_outside(parse_outline(self.corners), width, height):
            raise ValueError(problem)
        self.closed = True

    def take_back(self) -> bool:
        """Take the last step back; False if nothing was answered."""
        given = self.statements or self.corners or self.contains
        if self.closed and not self.statements:
            self.closed = False
        elif given:
            given.pop()
        else:
            return False
        return True

    def answer(self, groups: tuple[str, ...], date: datetime.date) -> JudgeAnswer:
        """The answers so far, in the form of the file."""
        return JudgeAnswer.model_validate(
            {
                "date": date,
                "contains": dict(zip(groups, self.contains, strict=True)),
                "outline": self.corners if self.closed else None,
                **dict(zip(STATEMENTS, self.statements, strict=False)),
            }
        )


class JudgeDrafts(Section):
    """The unfinished answers of a judge, as they are kept on disk."""

    model_config = ConfigDict(strict=False)

    current: JudgeDraft | None
    """Of the image on the page; null if no question was answered."""
    left: list[JudgeDraft]
    """Of images that were left for later, in this order."""


def read_answers(path: Path) -> dict[str, JudgeAnswer]:
    """The answers in a file, by image; empty without the file. Raises CleansetError for a file that is not valid."""
    if not path.exists():
        return {}
    return dict(validate(AnswerFile, read_content(path), path).answers)


def save_answer(path: Path, sha256: str, answer: JudgeAnswer | None, expected: JudgeAnswer | None) -> None:
    """Make `answer` a judge's answers to an image in a file; None takes them away, and the file with its last entry.

    `expected`: the answers that the caller last read (None: no answer). Entries keep their order.
    Processes may save at once; after a kill the file is the old or the new one.

    Raises ChangedMeanwhileError if the file has other answers than `expected` (unless they are the new ones),
    CleansetError for an invalid file, and OSError if the disk fails; the file is then unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        answers = read_answers(path)
        current = answers.get(sha256)
        # before `expected` is compared: the same answers twice are no conflict
        if current == answer:
            return
        if current != expected:
            raise ChangedMeanwhileError(
                f"{path}: {short(sha256)}: changed meanwhile; expected the version read before: look and answer again"
            )
        if answer is None:
            del answers[sha256]
        else:
            answers[sha256] = answer
        replace_file(path, as_yaml(path.parent.name, path.stem, answers).encode())


def as_yaml(judge: str, week: str, answers: Mapping[str, JudgeAnswer]) -> str:
    """The content of a file of answers; empty without answers."""
    if not answers:
        return ""
    lines = [f'judge: "{judge}"\nweek: "{week}"\nanswers:\n']
    for sha256, answer in answers.items():
        contains = ", ".join(f"{name}: {each}" for name, each in answer.contains.items())
        lines += [f'  "{sha256}":\n', f'    date: "{answer.date}"\n', f"    contains: {{{contains}}}\n"]
        if answer.outline is not None:
            lines.append(f"    outline: {as_text(answer.outline)}\n")
        given = {name: getattr(answer, name) for name in STATEMENTS}
        lines += [f"    {name}: {str(value).lower()}\n" for name, value in given.items() if value is not None]
    return "".join(lines)


DRAFT = ".draft.json"
"""Name of the draft in answers/<id>/; a hidden file, which readers of answers skip."""


class JudgeSession:
    """One judge's work on one contest. Not safe in threads: callers hold a lock.

    Raises CleansetError for a judge who is not in the roster, and for files that are not valid.
    """

    def __init__(self, contest: Path, judge: str, on: datetime.date) -> None:
        files = read_state(contest, on)
        if judge not in files.roster:
            raise CleansetError(f"judge {shown(judge)}: not in the roster; expected one who has been entered")
        self.contest = contest
        self.judge = judge
        self.on = on
        self.groups = tuple(files.rules.classes)
        self.drawings_are_real = files.rules.drawings_are_real
        self.tasks = tasks(files, judge, standing(files, on).images)
        self.examples = files.examples
        staked = {name for each in files.stakes for name in each.defences}
        models = [each.model for name, each in files.defences.items() if name in staked]
        self.seen = min((each.share_seen for each in models if each is not None), default=1.0)
        """The share of a square's side that every staked model looks at, in the middle."""
        digests = list(dict.fromkeys([*self.examples, *(task.sha256 for task in self.tasks)]))
        objects = Objects(contest)
        for digest in digests:
            objects.read(digest)
        self.photos = Photos(objects.read)
        # random names: a digest could be looked up in the published manifests
        self.tokens = {digest: secrets.token_urlsafe(12) for digest in digests}
        """By SHA-256, the name of an image in the browser, drawn anew for each server."""
        mine = [each.answers for each in files.answers if each.judge == judge]
        self._entered = {key: one for answers in mine for key, one in answers.items()}
        self.answers: dict[str, JudgeAnswer] = {}
        self.skipped: list[str] = []
        """The images that come last."""
        self.draft: JudgeDraft | None = None
        """The unfinished answers to the current image, kept on disk beside the answers."""
        self.left: dict[str, JudgeDraft] = {}
        """By image, the unfinished answers to those left for later, kept beside them."""
        self.left_last: str | None = None
        """The image that was left for later by the last key; None after another answer."""
        self.size = cache(self._size)
        self._draft_file = contest / "answers" / judge / DRAFT
        self.refresh()
        # a draft was left by a server that was killed: the judge goes on where it ended, unless it is damaged
        with suppress(FileNotFoundError, ValueError, CleansetError):
            self._take_up(JudgeDrafts.model_validate_json(read_bytes(self._draft_file)))

    def _take_up(self, drafts: JudgeDrafts) -> None:
        for each in (drafts.current, *drafts.left):
            # nothing is saved without a key: the last question is asked again
            if each is not None and each.step(self.groups) == "done":
                each.take_back()
        self.draft = drafts.current
        self.left = {each.image: each for each in drafts.left}
        self.skipped = list(self.left)

    def refresh(self) -> None:
        """Read the judge's answers again. Raises CleansetError for a file that is not valid."""
        paths = [self._answer_file(week) for week in sorted({task.week for task in self.tasks})]
        # after a restart the file that was saved last has the last answer
        saved = sorted(paths, key=lambda path: path.stat().st_mtime_ns if path.exists() else 0)
        found = {key: one for path in saved for key, one in read_answers(path).items()}
        # answers that were entered stay, also where the judge has the file no longer
        answers = {**self._entered, **found}
        # those of this server keep the order in which they were given
        known = [key for key in self.answers if key in answers]
        self.answers = {key: answers[key] for key in dict.fromkeys([*known, *answers])}

    def _answer_file(self, week: datetime.date) -> Path:
        return self.contest / "answers" / self.judge / f"{week}.yaml"

    def current(self) -> JudgeTask | None:
        """The current image: the one of the draft, else the first without an answer, skipped ones last."""
        left = [task for task in self.tasks if task.sha256 not in self.answers]
        left.sort(key=lambda task: self.skipped.index(task.sha256) + 1 if task.sha256 in self.skipped else 0)
        drafted = [task for task in left if self.draft and task.sha256 == self.draft.image]
        return next(iter(drafted or left), None)

    def draft_of(self, task: JudgeTask) -> JudgeDraft:
        """The answers to an image so far."""
        if self.draft is None or self.draft.image != task.sha256:
            self.draft = self.left.pop(task.sha256, None) or JudgeDraft(image=task.sha256)
        return self.draft

    def keep_drafts(self) -> None:
        """Save the unfinished answers, so that they survive a killed server."""
        current = None if self.draft is None or self.draft.is_empty else self.draft
        if current is None and not self.left:
            self._draft_file.unlink(missing_ok=True)
            return
        drafts = JudgeDrafts(current=current, left=list(self.left.values()))
        write_text(self._draft_file, drafts.model_dump_json() + "\n")

    def leave(self, task: JudgeTask) -> None:
        """Leave the current image for later, with its answers so far."""
        draft = self.draft_of(task)
        self.skipped = [*(each for each in self.skipped if each != task.sha256), task.sha256]
        if not draft.is_empty:
            self.left[task.sha256] = draft
        self.draft = None
        self.left_last = task.sha256
        self.keep_drafts()

    def return_to_left(self) -> bool:
        """Go back to the image that was left by the last key; False if it was another one."""
        last = self.left_last
        if last is None or last in self.answers:
            return False
        self.left_last = None
        self.skipped.remove(last)
        # a page that was drawn meanwhile has taken up the answers to another image, or to this one, if all were left
        if self.draft is not None and not self.draft.is_empty:
            self.left[self.draft.image] = self.draft
        self.draft = self.left.pop(last, None) or JudgeDraft(image=last)
        self.keep_drafts()
        return True

    def save(self, task: JudgeTask) -> None:
        """Save the draft as the first answers to its image."""
        draft = self.draft_of(task)
        answer = draft.answer(self.groups, self.on)
        try:
            save_answer(self._answer_file(task.week), task.sha256, answer, None)
        except (CleansetError, OSError):
            self.refresh()
            raise
        # spares reading the file again
        self.answers[task.sha256] = answer
        self.draft = None
        self.keep_drafts()

    def reopen_last(self) -> bool:
        """Take back the answer that was given last on this day, as a draft without its last step; False without one."""
        weeks = {task.sha256: task for task in self.tasks}
        mine = weeks.keys() - self._entered.keys()
        today = [each for each in self.answers if self.answers[each].date == self.on and each in mine]
        if not today:
            return False
        last = weeks[today[-1]]
        answer = self.answers[today[-1]]
        before = self.draft
        self.draft = JudgeDraft.of(last.sha256, answer, self.groups)
        self.draft.take_back()
        try:
            # the draft first: a kill in between leaves the answers in two places, not in none
            self.keep_drafts()
            save_answer(self._answer_file(last.week), last.sha256, None, answer)
        except (CleansetError, OSError):
            self.draft = before
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


ANSWER_OF_KEY: dict[str, Contains] = dict(zip("1234", CONTAINS, strict=True))  # type: ignore[arg-type]
STATED = {"y": True, "n": False}
KEYS_OF_STEP: dict[JudgeStep, Collection[str]] = {
    "contains": ANSWER_OF_KEY,
    "outline": ("corner", "move", "Enter"),
    "statement": STATED,
}
"""The keys that answer a question, by step."""

MAX_KEY = 20
"""Characters of a key in a notice."""

UNDO = ("z", "Backspace")

TabMode = Literal["instructions", "image", "end"]


class JudgeTab:
    """`pressed`: the number of the last key answered; `notice`: one line to the judge, `is_error`: nothing was saved.

    A notice never names a file, since its name or folder might give the image away: that goes to the terminal.
    """

    def __init__(self, session: JudgeSession) -> None:
        self.session = session
        self.pressed = 0
        self.notice = ""
        self.is_error = False
        self.instructions = not (session.answers or session.draft or session.left)
        self._shown: tuple[str, tuple[Point, ...]] | None = None

    @property
    def task(self) -> JudgeTask | None:
        return self.session.current()

    @property
    def mode(self) -> TabMode:
        return "instructions" if self.instructions else "image" if self.task else "end"

    @property
    def question(self) -> str:
        """The question on the page, by the token of its image and its place; empty without one.

        All corners of an outline answer one question.
        """
        task = self.task
        if self.mode != "image" or task is None:
            return ""
        draft = self.session.draft_of(task)
        step = draft.step(self.session.groups)
        given = {"contains": len(draft.contains), "statement": len(draft.statements)}.get(step, 0)
        return f"{self.session.tokens[task.sha256]} {step} {given}"

    def note_shown(self) -> None:
        """Remember the question and the outline that the tab shows now: keys answer nothing else."""
        self._shown = self._state()

    def _state(self) -> tuple[str, tuple[Point, ...]]:
        task = self.task
        corners = () if task is None else tuple(self.session.draft_of(task).corners)
        return self.question, corners

    def press(self, key: str, seen: str | None, point: Point | None = None, corner: int | None = None) -> None:
        """Carry out a key. `seen`: the question that had been on the screen, with its image; None for too short a time.

        Beside the keys of a keyboard: `corner`, a new corner of the outline at `point`; `move`, the corner of this
        number, counted from 0, is now at `point`.
        """
        self.pressed += 1
        self.notice = ""
        self.is_error = False
        if self.mode == "instructions":
            self.instructions = key not in ("Enter", "Escape", "?")
            if self.instructions:
                self._tell_nothing(key, "Enter leaves the instructions")
        elif key == "?":
            self.instructions = True
        elif self._shown not in (None, self._state()):
            self.notice = "Another tab has changed these answers: look at them, and press the key again."
            self.is_error = True
        else:
            try:
                self._press_at_image(key, seen, point, corner)
            except ChangedMeanwhileError as error:
                self._fail("Not saved: this image was answered elsewhere in the meantime.", error)
            except (CleansetError, OSError) as error:
                self._fail("Not saved: a file cannot be read or written. See the server's terminal.", error)

    def _fail(self, text: str, error: Exception) -> None:
        self.notice = text
        self.is_error = True
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr, flush=True)

    def _tell_nothing(self, key: str, instead: str) -> None:
        self.notice = f"{cut(key, MAX_KEY)} does nothing here; {instead}."

    def _press_at_image(self, key: str, seen: str | None, point: Point | None, corner: int | None) -> None:
        task = self.task
        if key in UNDO:
            self._undo(task)
        elif task is None:
            self._tell_nothing(key, "z takes the last answer back")
        elif key == "s":
            self._skip(task)
        elif key not in KEYS_OF_STEP[self.session.draft_of(task).step(self.session.groups)]:
            self._tell_nothing(key, "? shows the instructions")
        elif seen != self.question:
            # it was pressed for the question before, or before anybody can have seen this image
            self.notice = "This question was not shown for half a second yet: look at the image, and answer again."
            self.is_error = True
        else:
            self._answer(task, self.session.draft_of(task), key, point=point, corner=corner)

    def _answer(self, task: JudgeTask, draft: JudgeDraft, key: str, *, point: Point | None, corner: int | None) -> None:
        groups = self.session.groups
        step = draft.step(groups)
        before = draft.model_copy(deep=True)
        if step == "contains" and key in ANSWER_OF_KEY:
            draft.contains.append(ANSWER_OF_KEY[key])
        elif step == "outline" and key == "corner" and point is not None:
            self._add_corner(draft, point, self.session.size(task.sha256))
        elif step == "outline" and key == "move" and point is not None and corner is not None:
            self._move_corner(draft, corner, point, self.session.size(task.sha256))
        elif step == "outline" and key == "Enter":
            self._close(draft, self.session.size(task.sha256))
        elif step == "statement" and key in STATED:
            draft.statements.append(STATED[key])
        else:
            return  # a corner without a place, which only another page than ours sends
        self.session.left_last = None
        try:
            if draft.step(groups) == "done":
                self.session.save(task)
            else:
                self.session.keep_drafts()
        except (CleansetError, OSError):
            self.session.draft = before
            raise

    def _move_corner(self, draft: JudgeDraft, corner: int, point: Point, size: tuple[int, int]) -> None:
        if not 0 <= corner < len(draft.corners):
            return
        moved = _inside(point, size)
        if moved in draft.corners[:corner] + draft.corners[corner + 1 :]:
            self.notice = "Two corners cannot be at one place: the corner stays where it was."
        else:
            draft.corners[corner] = moved

    def _add_corner(self, draft: JudgeDraft, point: Point, size: tuple[int, int]) -> None:
        x, y = _inside(point, size)
        if len(draft.corners) == MAX_CORNERS:
            self.notice = f"An outline has at most {MAX_CORNERS} corners."
        elif (x, y) not in draft.corners:
            draft.corners.append((x, y))

    def _close(self, draft: JudgeDraft, size: tuple[int, int]) -> None:
        try:
            draft.close_outline(*size)
        except ValueError as error:
            text = str(error)
            self.notice = f"{text[:1].upper()}{text[1:]}."
            self.is_error = True

    def _skip(self, task: JudgeTask) -> None:
        kept = "" if self.session.draft_of(task).is_empty else ", with the answers so far"
        self.session.leave(task)
        self.notice = f"Left for later{kept}: the image comes again after the others; z goes back to it."

    def _undo(self, task: JudgeTask | None) -> None:
        if self.session.return_to_left():
            self.notice = "Back to the image that was left for later."
        elif task is not None and self.session.draft_of(task).take_back():
            self.session.keep_drafts()
        elif not self.session.reopen_last():
            self.notice = "Nothing to take back: no answer from today."


def _inside(point: Point, size: tuple[int, int]) -> Point:
    """The point of the image that is nearest to a point."""
    x, y = (max(0, min(each, most)) for each, most in zip(point, size, strict=True))
    return x, y
