"""A judge's answers to one image as they come, question by question, and the file answers/<id>/<week>.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, Field

from cleanset.images.outlines import Outline, Point, as_text, check_outline
from cleanset.plumbing.file_locks import ChangedMeanwhileError, locked
from cleanset.plumbing.files import replace_file
from cleanset.plumbing.validation import Section, Sha256, validate
from cleanset.studies.contest.entries import AnswerFile, short
from cleanset.studies.contest.judging import STATEMENTS, Contains, JudgeAnswer
from cleanset.studies.contest.objects import read_content

JudgeStep = Literal["contains", "outline", "statement", "done"]


class JudgeDraft(Section):
    """The answers to an image, in the order of the questions; `closed`: the outline is finished.

    `left`: the image was left for later, after the others.
    """

    # JSON has lists, no tuples
    model_config = ConfigDict(frozen=False, strict=False)

    image: Sha256
    contains: list[Contains] = Field(default_factory=list)
    corners: list[Point] = Field(default_factory=list)
    closed: bool = False
    statements: list[bool] = Field(default_factory=list)
    left: bool = False

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

    @property
    def is_empty(self) -> bool:
        """Whether no question was answered."""
        return not (self.contains or self.corners or self.statements)

    @property
    def outline(self) -> Outline:
        return tuple(self.corners)

    def object_of(self, groups: tuple[str, ...]) -> str | None:
        """The group whose largest object is asked about, once both groups are answered."""
        return None if len(self.contains) < len(groups) else self.answer(groups).object_of

    def step(self, groups: tuple[str, ...]) -> JudgeStep:
        """The next question."""
        if len(self.contains) < len(groups):
            return "contains"
        if self.object_of(groups) is None:
            return "done"
        if not self.closed:
            return "outline"
        return "statement" if len(self.statements) < len(STATEMENTS) else "done"

    def close_outline(self, width: int, height: int) -> None:
        """Finish the outline. Raises ValueError, and leaves it open, unless it is a simple polygon inside the image."""
        check_outline(self.outline, width, height)
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

    def answer(self, groups: tuple[str, ...]) -> JudgeAnswer:
        """The answers so far, in the form of the file."""
        contains = dict(zip(groups, self.contains, strict=True))
        statements = dict(zip(STATEMENTS, self.statements, strict=False))
        return JudgeAnswer(contains=contains, outline=self.outline if self.closed else None, **statements)


def read_answers(path: Path) -> dict[str, JudgeAnswer]:
    """The answers in a file, by image; empty without the file. Raises CleansetError for a file that is not valid."""
    return dict(validate(AnswerFile, read_content(path), path).answers) if path.exists() else {}


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
        answers.pop(sha256, None)
        if answer is not None:
            answers[sha256] = answer
        if answers:
            replace_file(path, as_yaml(path.parent.name, path.stem, answers).encode())
        else:
            path.unlink()


def as_yaml(judge: str, week: str, answers: Mapping[str, JudgeAnswer]) -> str:
    """The content of a file of answers."""
    lines = [f'judge: "{judge}"\nweek: "{week}"\nanswers:\n']
    for sha256, answer in answers.items():
        contains = ", ".join(f"{name}: {each}" for name, each in answer.contains.items())
        lines += [f'  "{sha256}":\n', f"    contains: {{{contains}}}\n"]
        if answer.outline is not None:
            lines.append(f"    outline: {as_text(answer.outline)}\n")
        given = {name: getattr(answer, name) for name in STATEMENTS}
        lines += [f"    {name}: {str(value).lower()}\n" for name, value in given.items() if value is not None]
    return "".join(lines)
