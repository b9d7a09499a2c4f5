"""The state shared by all tabs of a judge's server: the images to judge, and the answers on disk."""

import datetime
import io
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import write_text
from cleanset.studies.contest.entries import AnswerFile, JudgeExample
from cleanset.studies.contest.judge_page.answers import JudgeDraft, answer_file, check_judge, save_answer
from cleanset.studies.contest.judge_plan import JudgeTask, tasks
from cleanset.studies.contest.judges_folder import FORMATS, image_paths, read_checked_examples, read_image
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.reading import read_contest, read_section
from cleanset.web.images import Photos

DRAFT = ".draft.json"
"""Name of the draft in answers/<id>/; a hidden file, which readers of answers skip."""


@dataclass
class JudgeSession:
    """One judge's work on one contest. Not safe in threads: callers hold a lock.

    `tokens`: by SHA-256, the name of an image in the browser, drawn anew for each server. `skipped`: images that come
    last. `draft`: the unfinished answers to the current image, kept on disk beside the answers.
    """

    contest: Path
    judge: str
    on: datetime.date
    groups: tuple[str, ...]
    drawings_are_real: bool
    tasks: list[JudgeTask]
    examples: Mapping[str, JudgeExample]
    photos: Photos
    tokens: dict[str, str]
    answers: dict[str, JudgeAnswer] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    draft: JudgeDraft | None = None
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def refresh(self) -> None:
        """Read the judge's answers again. Raises CleansetError for a file that is not valid."""
        found: dict[str, JudgeAnswer] = {}
        for week in sorted({task.week for task in self.tasks}):
            path = answer_file(self.contest, self.judge, week)
            if path.exists():
                found |= read_section(AnswerFile, path).answers
        self.answers = found

    def current(self) -> JudgeTask | None:
        """The current image: the one of the draft, else the first without an answer, skipped ones last."""
        left = [task for task in self.tasks if task.sha256 not in self.answers]
        left.sort(key=lambda task: self.skipped.index(task.sha256) + 1 if task.sha256 in self.skipped else 0)
        drafted = [task for task in left if self.draft and task.sha256 == self.draft.image]
        return next(iter(drafted or left), None)

    def draft_of(self, task: JudgeTask) -> JudgeDraft:
        """The answers to an image so far."""
        if self.draft is None or self.draft.image != task.sha256:
            self.draft = JudgeDraft(image=task.sha256)
        return self.draft

    def keep_draft(self) -> None:
        """Save the draft, so that it survives a killed server."""
        assert self.draft is not None
        folder = self.contest / "answers" / self.judge
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / DRAFT, self.draft.model_dump_json() + "\n")

    def save(self, task: JudgeTask) -> None:
        """Save the draft as the first answers to its image."""
        draft = self.draft_of(task)
        answer = draft.answer(self.groups, self.on)
        try:
            save_answer(self.contest, self.judge, task.week, task.sha256, answer, None)
        except (CleansetError, OSError):
            self.refresh()
            raise
        # spares reading the file again
        self.answers[task.sha256] = answer
        self.draft = None
        (self.contest / "answers" / self.judge / DRAFT).unlink(missing_ok=True)

    def reopen_last(self) -> bool:
        """Take back the answer that was given last on this day, as a draft without its last step; False without one."""
        weeks = {task.sha256: task for task in self.tasks}
        today = [each for each in self.answers if self.answers[each].date == self.on and each in weeks]
        if not today:
            return False
        last, answer = weeks[today[-1]], self.answers[today[-1]]
        before = self.draft
        self.draft = JudgeDraft.of(last.sha256, answer, self.groups)
        self.draft.take_back()
        try:
            # the draft first: a kill in between leaves the answers in two places, not in none
            self.keep_draft()
            save_answer(self.contest, self.judge, last.week, last.sha256, None, answer)
        except (CleansetError, OSError):
            self.draft = before
            raise
        finally:
            self.refresh()
        return True

    def size(self, sha256: str) -> tuple[int, int]:
        """Width and height of an image, in pixels. Raises CleansetError if it cannot be read."""
        if sha256 not in self.sizes:
            try:
                with Image.open(io.BytesIO(self.photos.read(sha256)), formats=FORMATS) as image:
                    self.sizes[sha256] = image.size
            except (OSError, ValueError) as error:
                raise CleansetError(f"{sha256[:12]}…: {error}") from None
        return self.sizes[sha256]


def open_session(contest: Path, judge: str, on: datetime.date) -> JudgeSession:
    """The session of a judge of the roster. Raises CleansetError for another, and for files that are not valid."""
    files = read_contest(contest)
    check_judge(judge, files.roster)
    asked, examples = tasks(files, judge, on), read_checked_examples(contest, files)
    digests = list(dict.fromkeys([*examples, *(task.sha256 for task in asked)]))
    paths = image_paths(contest, files, digests)
    session = JudgeSession(
        contest, judge, on, tuple(files.rules.classes), files.rules.drawings_are_real, asked, examples,
        Photos(lambda digest: read_image(paths, digest), FORMATS),
        # random names: a digest could be looked up in the published manifests
        {digest: secrets.token_urlsafe(12) for digest in digests},
    )  # fmt: skip
    session.refresh()
    path = contest / "answers" / judge / DRAFT
    if path.is_file():
        # left by a server that was killed: the judge goes on where it ended
        session.draft = _read_draft(path)
    return session


def _read_draft(path: Path) -> JudgeDraft | None:
    try:
        return JudgeDraft.model_validate_json(path.read_bytes())
    except ValueError:  # the image is asked about again
        return None
