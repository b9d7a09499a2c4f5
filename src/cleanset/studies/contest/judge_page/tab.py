"""One tab of a judge, and the effect of each key in it. No HTML, no network."""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.files import ChangedMeanwhileError
from cleanset.studies.contest.judge_page.session import JudgeDraft, JudgeSession
from cleanset.studies.contest.judge_plan import JudgeTask
from cleanset.studies.contest.judging import CONTAINS, Contains
from cleanset.studies.contest.outlines import MAX_POINTS, Point

ANSWERS: dict[str, Contains] = dict(zip("1234", CONTAINS, strict=True))  # type: ignore[arg-type]
STATED = {"y": True, "n": False}
UNDO = ("z", "Backspace")

TabMode = Literal["instructions", "image", "end"]


@dataclass
class JudgeTab:
    """`pressed`: the number of the last key answered; `notice`: one line to the judge, `is_error`: nothing was saved.

    A notice never names a file, since its name or folder might give the image away: that goes to the terminal.
    """

    session: JudgeSession
    pressed: int = 0
    instructions: bool = False
    notice: str = ""
    is_error: bool = False

    def __post_init__(self) -> None:
        self.instructions = not self.session.answers and self.session.draft is None

    @property
    def task(self) -> JudgeTask | None:
        return self.session.current()

    @property
    def mode(self) -> TabMode:
        return "instructions" if self.instructions else "image" if self.task else "end"

    def press(self, key: str, seen: Collection[str], point: Point | None = None, corner: int | None = None) -> None:
        """Carry out a key. `seen`: tokens of the images that were shown when it was pressed.

        Beside the keys of a keyboard: `corner`, a new corner of the outline at `point`; `move`, the corner of this
        number, counted from 0, is now at `point`.
        """
        self.pressed += 1
        self.notice, self.is_error = "", False
        if self.mode == "instructions":
            self.instructions = key not in ("Enter", "Escape", "?")
        elif key == "?":
            self.instructions = True
        else:
            try:
                self._press_at_image(key, seen, point, corner)
            except ChangedMeanwhileError as error:
                self._fail("Not saved: this image was answered elsewhere in the meantime.", error)
            except (CleansetError, OSError) as error:
                self._fail("Not saved: a file cannot be read or written. See the server's terminal.", error)

    def _fail(self, text: str, error: Exception) -> None:
        self.notice, self.is_error = text, True
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr, flush=True)

    def _press_at_image(self, key: str, seen: Collection[str], point: Point | None, corner: int | None) -> None:
        task = self.task
        if key in UNDO:
            self._undo(task)
        elif task is None:
            return
        elif key == "s":
            self._skip(task)
        elif self.session.tokens[task.sha256] not in seen:
            # keys pressed before the image was drawn would judge an image that nobody has seen
            self.notice, self.is_error = "The image was not shown yet: look at it, and press the key again.", True
        else:
            self._answer(task, self.session.draft_of(task), key, point, corner)

    def _answer(self, task: JudgeTask, draft: JudgeDraft, key: str, point: Point | None, corner: int | None) -> None:
        groups = self.session.groups
        step = draft.step(groups)
        before = draft.model_copy(deep=True)
        if step == "contains" and key in ANSWERS:
            draft.contains.append(ANSWERS[key])
        elif step == "outline" and key == "corner" and point is not None:
            self._add_corner(draft, point, self.session.size(task.sha256))
        elif step == "outline" and key == "move" and point is not None and corner is not None:
            self._move_corner(draft, corner, point, self.session.size(task.sha256))
        elif step == "outline" and key == "Enter":
            self._close(draft, self.session.size(task.sha256))
        elif step == "statement" and key in STATED:
            draft.statements.append(STATED[key])
        elif step != "done":  # done: saving failed before, and is tried again
            return
        try:
            if draft.step(groups) == "done":
                self.session.save(task)
            else:
                self.session.keep_draft()
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
        if len(draft.corners) == MAX_POINTS:
            self.notice = f"An outline has at most {MAX_POINTS} corners."
        elif (x, y) not in draft.corners:
            draft.corners.append((x, y))

    def _close(self, draft: JudgeDraft, size: tuple[int, int]) -> None:
        try:
            draft.close_outline(*size)
        except ValueError as error:
            text = str(error)
            self.notice, self.is_error = f"{text[:1].upper()}{text[1:]}.", True

    def _skip(self, task: JudgeTask) -> None:
        if task.sha256 in self.session.skipped:
            self.session.skipped.remove(task.sha256)
        self.session.skipped.append(task.sha256)
        self.session.draft = None
        self.notice = "Left for later: the image comes again after the others."

    def _undo(self, task: JudgeTask | None) -> None:
        if task is not None and self.session.draft_of(task).take_back():
            self.session.keep_draft()
        elif not self.session.reopen_last():
            self.notice = "Nothing to take back: there is no answer from today."


def _inside(point: Point, size: tuple[int, int]) -> Point:
    """The point of the image that is nearest to a point."""
    x, y = (max(0, min(each, most)) for each, most in zip(point, size, strict=True))
    return x, y
