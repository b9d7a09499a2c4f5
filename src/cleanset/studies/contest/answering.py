"""Saving a judge's answers, one at a time, into answers/<id>/<week>.yaml, losing nothing that is there."""

import datetime
from collections.abc import Mapping
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.saving import ChangedMeanwhileError, locked, replace_file
from cleanset.studies.contest.entries import AnswerFile
from cleanset.studies.contest.judging import STATEMENTS, Answer
from cleanset.studies.contest.outlines import as_text
from cleanset.studies.contest.reading import read_section
from cleanset.validation import shown


def answer_file(contest: Path, judge: str, week: datetime.date) -> Path:
    """The file of a judge's answers to the images of a week."""
    return contest / "answers" / judge / f"{week}.yaml"


def save_answer(
    contest: Path, judge: str, week: datetime.date, sha256: str, answer: Answer | None, expected: Answer | None
) -> None:
    """Make `answer` the judge's answers to an image; None takes them away, and the file with its last entry.

    `expected`: what the caller last read (None: no answer). Entries stay in the order in which they were given.
    Processes may save at once; after a kill the file is the old or the new one.

    Raises ChangedMeanwhileError if the file has other answers than `expected` (unless they are the new ones),
    CleansetError for a file that is not valid, and OSError where the disk fails: then the file stays as it was.
    """
    path = answer_file(contest, judge, week)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        answers = dict(read_section(AnswerFile, path).answers) if path.exists() else {}
        current = answers.get(sha256)
        if current == answer:
            return
        if current != expected:
            raise ChangedMeanwhileError(
                f"{path}: {sha256[:12]}…: changed meanwhile; expected what was read before: look and answer again"
            )
        if answer is None:
            del answers[sha256]
        else:
            answers[sha256] = answer
        replace_file(path, as_yaml(answers).encode())


def as_yaml(answers: Mapping[str, Answer]) -> str:
    """The content of a file of answers; nothing for no answers."""
    if not answers:
        return ""
    lines = ["answers:\n"]
    for sha256, answer in answers.items():
        contains = ", ".join(f"{name}: {each}" for name, each in answer.contains.items())
        lines += [f'  "{sha256}":\n', f'    date: "{answer.date}"\n', f"    contains: {{{contains}}}\n"]
        if answer.outline is not None:
            lines.append(f"    outline: {as_text(answer.outline)}\n")
        given = {name: getattr(answer, name) for name in STATEMENTS}
        lines += [f"    {name}: {str(value).lower()}\n" for name, value in given.items() if value is not None]
    return "".join(lines)


def check_judge(judge: str, roster: frozenset[str]) -> None:
    """Raise CleansetError unless a judge is in the roster."""
    if judge not in roster:
        raise CleansetError(f"judge {shown(judge)}: not in the roster; expected one of judges/roster.yaml")
