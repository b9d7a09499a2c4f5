"""The keys of a tab of the judge page. No HTML, no network."""

import sys
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from cleanset.errors import CleansetError, cut
from cleanset.images.outlines import MAX_CORNERS, Outline, check_outline
from cleanset.studies.contest.judge_page.session import JudgeDraft, JudgeSession
from cleanset.studies.contest.judging import CONTAINS, Contains, JudgeTask
from cleanset.web.keys import SentKey

ANSWER_OF_KEY: dict[str, Contains] = dict(zip("1234", CONTAINS, strict=True))
STATED = {"y": True, "n": False}
MAX_KEY = 20
"""Characters of a key in a notice."""

JudgeState = Literal["instructions", "contains", "outline", "statement", "end"]
"""What the page shows: the instructions, one of the questions on an image, or that all images are judged."""

JudgeAction = Literal["answer", "undo", "leave", "instruct", "go_on"]
_AT_END: Mapping[str, JudgeAction] = {"z": "undo", "Backspace": "undo", "?": "instruct"}
_AT_IMAGE: Mapping[str, JudgeAction] = {**_AT_END, "s": "leave"}
STATES: Mapping[JudgeState, Mapping[str, JudgeAction]] = {
    "instructions": {"Enter": "go_on", "Escape": "go_on", "?": "go_on"},
    "contains": {**dict.fromkeys(ANSWER_OF_KEY, "answer"), **_AT_IMAGE},
    "outline": {"corner": "answer", "Enter": "answer", **_AT_IMAGE},
    "statement": {**dict.fromkeys(STATED, "answer"), **_AT_IMAGE},
    "end": _AT_END,
}
"""By state, what each key does; any other key is reported to do nothing there."""


class JudgeKey(SentKey):
    """A key of a judge; its subject is `JudgeTab.question`. `corner` sets a corner of the outline, at `point`."""

    # JSON has lists, no tuples
    point: Annotated[tuple[int, int], Field(strict=False)] | None = None

    @property
    def question(self) -> str | None:
        """The question that had been on the screen, with its image; None for too short a time."""
        return self.subject if self.is_subject_seen and any(self.seen.values()) else None


class JudgeTab:
    """A tab: what it asks, and what each key does.

    `pressed`: the number of the last key answered; `notice`: one line to the judge, `is_error`: nothing was saved.
    A notice never names a file, since its name or folder might give the image away: that goes to the terminal.
    """

    def __init__(self, session: JudgeSession) -> None:
        self.session = session
        self.pressed = 0
        self.notice = ""
        self.is_error = False
        self.instructions = not (session.answers or session.drafts)
        self._shown: tuple[str, Outline] | None = None

    @property
    def task(self) -> JudgeTask | None:
        return next(iter(self.session.waiting()), None)

    @property
    def state(self) -> JudgeState:
        if self.instructions:
            return "instructions"
        step = "done" if self.task is None else self.session.draft_of(self.task).step(self.session.groups)
        return "end" if step == "done" else step

    @property
    def question(self) -> str:
        """The question on the page, by the token of its image and its place; empty without one.

        All corners of an outline answer one question.
        """
        task = self.task
        if self.instructions or task is None:
            return ""
        draft = self.session.draft_of(task)
        given = {"contains": len(draft.contains), "statement": len(draft.statements)}.get(self.state, 0)
        return f"{self.session.tokens[task.sha256]} {self.state} {given}"

    def note_shown(self) -> None:
        """Remember the question and the outline that the tab shows now: keys answer nothing else."""
        self._shown = self._at()

    def _at(self) -> tuple[str, Outline]:
        return self.question, () if self.task is None else tuple(self.session.draft_of(self.task).corners)

    def press(self, sent: JudgeKey) -> None:
        """Carry out a key."""
        # counted first: else the browser would send it for ever where even the terminal cannot be written
        self.pressed += 1
        self._tell("")
        action = STATES[self.state].get(sent.key)
        if action in ("go_on", "instruct"):
            self.instructions = action == "instruct"
        elif action is None:
            hint = "Enter leaves the instructions" if self.instructions else "z takes back, ? shows the instructions"
            self._tell(f"{cut(sent.key, MAX_KEY)} does nothing here; {hint}.")
        elif self._shown not in (None, self._at()):
            self._tell("Another tab has changed these answers: look at them, and press the key again.", is_error=True)
        else:
            try:
                self._press_at_image(action, sent)
            except (CleansetError, OSError) as error:
                self._tell("Not saved: a file cannot be read or written. See the server's terminal.", is_error=True)
                print(f"error: {' '.join(str(error).split())}", file=sys.stderr, flush=True)

    def _tell(self, notice: str, *, is_error: bool = False) -> None:
        self.notice = notice
        self.is_error = is_error

    def _press_at_image(self, action: JudgeAction, sent: JudgeKey) -> None:
        task = self.task
        if action == "undo" or task is None:
            self._undo(task)
            return
        draft = self.session.draft_of(task)
        if action == "leave":
            kept = ", with the answers so far" if draft.contains else ""
            self.session.leave(task)
            self._tell(f"Left for later{kept}: the image comes again after the others; z goes back to it.")
        elif sent.question != self.question:
            # it was pressed for the question before, or before anybody can have seen this image
            text = "This question has not been on the screen for half a second: look at the image, and answer again."
            self._tell(text, is_error=True)
        else:
            self._answer(task, draft, sent)

    def _undo(self, task: JudgeTask | None) -> None:
        draft = None if task is None else self.session.draft_of(task)
        if self.session.return_to_left():
            self._tell("Back to the image that was left for later.")
        elif task is not None and draft is not None and draft.take_back():
            self.session.keep(task, draft)
        elif not self.session.reopen_last():
            self._tell("Nothing to take back: no answer that is not entered yet.")

    def _answer(self, task: JudgeTask, draft: JudgeDraft, sent: JudgeKey) -> None:
        step = draft.step(self.session.groups)
        if step == "contains":
            draft.contains.append(ANSWER_OF_KEY[sent.key])
        elif step == "statement":
            draft.statements.append(STATED[sent.key])
        elif size := self.session.size(task.sha256):
            self._outline(draft, sent, size)
        self.session.keep(task, draft)

    def _outline(self, draft: JudgeDraft, sent: JudgeKey, size: tuple[int, int]) -> None:
        """Set a corner, or finish the outline if it is a simple polygon inside an image of this size."""
        if sent.key == "Enter":
            try:
                check_outline(tuple(draft.corners), *size)
                draft.closed = True
            except ValueError as error:
                text = str(error)
                self._tell(f"{text[:1].upper()}{text[1:]}.", is_error=True)
        elif len(draft.corners) == MAX_CORNERS:
            self._tell(f"An outline has at most {MAX_CORNERS} corners.")
        elif sent.point is not None:
            # the point of the image that is nearest; a double click sets one corner
            x, y = (max(0, min(each, most)) for each, most in zip(sent.point, size, strict=True))
            if (x, y) not in draft.corners:
                draft.corners.append((x, y))
