"""The keys of a tab of the judge page. No HTML, no network."""

import sys
from collections.abc import Collection
from typing import Literal

from cleanset.errors import CleansetError, cut
from cleanset.images.outlines import MAX_CORNERS, Point
from cleanset.studies.contest.judge_page.session import JudgeDraft, JudgeSession, JudgeStep
from cleanset.studies.contest.judging import CONTAINS, Contains, JudgeTask

ANSWER_OF_KEY: dict[str, Contains] = dict(zip("1234", CONTAINS, strict=True))
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
        self.instructions = not (session.answers or session.drafts)

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

    def press(self, key: str, seen: str | None, point: Point | None = None, corner: int | None = None) -> None:
        """Carry out a key. `seen`: the question that had been on the screen, with its image; None for too short a time.

        Beside the keys of a keyboard: `corner`, a new corner of the outline at `point`; `move`, the corner of this
        number, counted from 0, is now at `point`.
        """
        self.pressed += 1
        self._tell("")
        if self.mode == "instructions":
            self.instructions = key not in ("Enter", "Escape", "?")
            if self.instructions:
                self._tell_nothing(key, "Enter leaves the instructions")
        elif key == "?":
            self.instructions = True
        else:
            try:
                self._press_at_image(key, seen, point, corner)
            except (CleansetError, OSError) as error:
                self._tell("Not saved: a file cannot be read or written. See the server's terminal.", is_error=True)
                print(f"error: {' '.join(str(error).split())}", file=sys.stderr, flush=True)

    def _tell(self, notice: str, *, is_error: bool = False) -> None:
        self.notice = notice
        self.is_error = is_error

    def _tell_nothing(self, key: str, instead: str) -> None:
        self._tell(f"{cut(key, MAX_KEY)} does nothing here; {instead}.")

    def _press_at_image(self, key: str, seen: str | None, point: Point | None, corner: int | None) -> None:
        task = self.task
        if key in UNDO:
            self._undo(task)
            return
        if task is None:
            self._tell_nothing(key, "z takes the last answer back")
            return
        draft = self.session.draft_of(task)
        if key == "s":
            kept = "" if draft.is_empty else ", with the answers so far"
            self.session.leave(task)
            self._tell(f"Left for later{kept}: the image comes again after the others; z goes back to it.")
        elif key not in KEYS_OF_STEP[draft.step(self.session.groups)]:
            self._tell_nothing(key, "? shows the instructions")
        elif seen != self.question:
            # it was pressed for the question before, or before anybody can have seen this image
            text = "This question was not shown for half a second yet: look at the image, and answer again."
            self._tell(text, is_error=True)
        else:
            self._answer(task, draft, key, point, corner)

    def _undo(self, task: JudgeTask | None) -> None:
        draft = None if task is None else self.session.draft_of(task)
        if self.session.return_to_left():
            self._tell("Back to the image that was left for later.")
        elif task is not None and draft is not None and draft.take_back():
            self.session.keep(task, draft)
        elif not self.session.reopen_last():
            self._tell("Nothing to take back: no answer that is not entered yet.")

    def _answer(self, task: JudgeTask, draft: JudgeDraft, key: str, point: Point | None, corner: int | None) -> None:
        step = draft.step(self.session.groups)
        if step == "contains":
            draft.contains.append(ANSWER_OF_KEY[key])
        elif step == "statement":
            draft.statements.append(STATED[key])
        else:
            self._outline(draft, key, self.session.size(task.sha256), point, corner)
        self.session.keep(task, draft)

    def _outline(
        self, draft: JudgeDraft, key: str, size: tuple[int, int], point: Point | None, corner: int | None
    ) -> None:
        if key == "Enter":
            try:
                draft.close_outline(*size)
            except ValueError as error:
                text = str(error)
                self._tell(f"{text[:1].upper()}{text[1:]}.", is_error=True)
        elif point is not None:
            # the point of the image that is nearest
            x, y = (max(0, min(each, most)) for each, most in zip(point, size, strict=True))
            self._corner(draft, (x, y), corner if key == "move" else len(draft.corners))

    def _corner(self, draft: JudgeDraft, point: Point, place: int | None) -> None:
        """Set a corner, or move the one at a place."""
        if place is None or not 0 <= place <= len(draft.corners):
            return
        if point in draft.corners[:place] + draft.corners[place + 1 :]:
            if place < len(draft.corners):
                self._tell("Two corners cannot be at one place: the corner stays where it was.")
        elif place == MAX_CORNERS:
            self._tell(f"An outline has at most {MAX_CORNERS} corners.")
        else:
            draft.corners[place : place + 1] = [point]
