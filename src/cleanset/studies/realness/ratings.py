"""Ratings and answers of people, read from CSV files, every value checked; the key of a plan that answers need.

Ratings, as SCOOTER's authors published theirs: rating,pid,image_type,image_id. Answers, as the study's page writes
them: without types, which come from the plan's key.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import csv_rows, parse_rows
from cleanset.plumbing.files import read_text
from cleanset.plumbing.validation import EmptyIsNone, checked, normal_text, numeric, one_of, shown
from cleanset.studies.realness.participants import is_participant_id

ImageKind = Literal["real", "modified"]
IMAGE_KINDS: tuple[ImageKind, ...] = ("real", "modified")
SCALE = (-2, -1, 0, 1, 2)
RATING_COLUMNS = ("rating", "pid", "image_type", "image_id")
VIEW_COLUMNS = (
    "shown_width", "shown_height", "pixel_ratio", "window_width", "window_height", "pixels_per_mm", "darkened",
)  # fmt: skip
"""The columns of a `View`."""
ANSWER_COLUMNS = ("person", "list", "position", "stimulus", "answer", "milliseconds", *VIEW_COLUMNS)
TRIAL_COLUMNS = ("list", "position", "kind", "stimulus", "file", "file_right", "choose")
"""The columns of a plan's lists."""
AnswerKind = Literal["real", "modified", "attention", "pair", "plate"]
"""The kinds of a key's rows: images to be rated, attention checks, comprehension pairs, plates of colour vision."""
SCREENING_KINDS = ("plate", "pair")
"""The kinds of trials before the main part: their answers are final."""
SIDES = ("left", "right")
PLATE_ANSWERS = (*"123456789", "none")
"""The digits that a plate may have, and that none is seen."""
# a name is printed in messages and becomes part of keys
MAX_PERSON = 200

CORRECT = "correct the file, or leave it out"
RESTORE_FILE = "restore the file that cleanset wrote"

_ANSWERS_FILE = re.compile(r"answers-([0-9]+)-(.+)")
_Name = Annotated[
    str,
    AfterValidator(normal_text),
    checked(lambda name: name.isprintable() and 0 < len(name) <= MAX_PERSON, f"1 to {MAX_PERSON} printable characters"),
]
_Milliseconds = Annotated[float, numeric(float, 0, 1e15, "a number of 0 or more, or nothing")]
_Pixels = Annotated[int, numeric(int, 0, 100_000, "a number of pixels, or nothing")]
_Ratio = Annotated[float, numeric(float, 0.01, 100, "device pixels for each CSS pixel, or nothing")]
_Density = Annotated[float, numeric(float, 0, 1000, "device pixels in a millimetre, or nothing")]
_Flag = Annotated[int, numeric(int, 0, 1, "0, 1, or nothing")]
_Stripped = Annotated[str, AfterValidator(str.strip)]
# as the page sends them: JSON has numbers
_SentPixels = Annotated[int, Field(strict=True, ge=0, le=100_000)]
_SentRatio = Annotated[float, Field(strict=True, ge=0.01, le=100)]
_SentDensity = Annotated[float, Field(strict=True, ge=0, le=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How a trial appeared on a screen when it was answered."""

    shown_width: _SentPixels
    """Width of each of its images in device pixels; 0: it has none."""

    shown_height: _SentPixels
    """Their height in device pixels."""

    pixel_ratio: _SentRatio
    """Device pixels for each CSS pixel: the screen's, times the browser's zoom."""

    window_width: _SentPixels
    """Width of the window in CSS pixels."""

    window_height: _SentPixels
    """Height of the window in CSS pixels."""

    pixels_per_mm: _SentDensity = 0.0
    """Device pixels in a millimetre of the screen, by a card that was held to it; 0: not measured."""

    darkened: bool = False
    """Whether the browser replaced the page's own colours, as in an automatic dark mode."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer: the rating of an image, or the answer to a check: attention, a pair, a plate.

    `rating`: the rating of `image`, -2 (surely modified) to 2 (surely real). `passed`: whether a check's answer is
    correct. `is_trial`: whether it is to a trial of a list; published ratings name none. `milliseconds` and `view`:
    None if not measured.
    """

    person: str
    kind: AnswerKind
    image: str = ""
    rating: int = 0
    passed: bool = True
    is_trial: bool = False
    list_name: str = ""
    position: str = ""
    milliseconds: float | None = None
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Stimulus:
    """An entry of a plan's key: the stimulus's kind, its image, and the expected answer ("" for a rating)."""

    stimulus: str
    kind: AnswerKind
    image: str
    expected: str
    wnid: str
    sha256: str


@dataclass(frozen=True, slots=True)
class _Published:
    """A row of RATING_COLUMNS."""

    rating: Annotated[str, one_of(*map(str, SCALE))]
    person: _Name
    kind: ImageKind
    image: _Name


@dataclass(frozen=True, slots=True)
class _Answered:
    """A row of ANSWER_COLUMNS; survey tools may leave times and sizes out."""

    person: _Name
    list_name: _Stripped
    position: _Stripped
    stimulus: str
    answer: str
    milliseconds: Annotated[_Milliseconds | None, EmptyIsNone]
    shown_width: Annotated[_Pixels | None, EmptyIsNone]
    shown_height: Annotated[_Pixels | None, EmptyIsNone]
    pixel_ratio: Annotated[_Ratio | None, EmptyIsNone]
    window_width: Annotated[_Pixels | None, EmptyIsNone]
    window_height: Annotated[_Pixels | None, EmptyIsNone]
    pixels_per_mm: Annotated[_Density | None, EmptyIsNone]
    darkened: Annotated[_Flag | None, EmptyIsNone]

    @property
    def view(self) -> View | None:
        """What the screen showed; None if any part was left out."""
        sizes = (self.shown_width, self.shown_height, self.window_width, self.window_height)
        if self.pixel_ratio is None or None in sizes:
            return None
        width, height, across, down = (each or 0 for each in sizes)
        return View(
            shown_width=width,
            shown_height=height,
            pixel_ratio=self.pixel_ratio,
            window_width=across,
            window_height=down,
            pixels_per_mm=self.pixels_per_mm or 0.0,
            darkened=bool(self.darkened),
        )


class StudyAnswers(NamedTuple):
    """All answers of people.

    `published`: number of files of ratings in the published form. `invalid`: the message of each row left out.
    `revised`: number of answers that a later one to the same trial replaced.
    """

    answers: tuple[Answer, ...]
    published: int = 0
    invalid: tuple[str, ...] = ()
    revised: int = 0

    @property
    def ratings(self) -> tuple[Answer, ...]:
        """The ratings of images."""
        return tuple(each for each in self.answers if each.kind in IMAGE_KINDS)

    @property
    def checks(self) -> tuple[Answer, ...]:
        """The answers to attention checks, comprehension pairs and plates of colour vision."""
        return tuple(each for each in self.answers if each.kind not in IMAGE_KINDS)

    @property
    def trials(self) -> tuple[Answer, ...]:
        """The answers that the study's page took."""
        return tuple(each for each in self.answers if each.is_trial)


def texts_of(paths: Iterable[Path]) -> dict[str, str]:
    """The texts of files of ratings, by name without suffix. Raises CleansetError for two files of one name."""
    texts: dict[str, str] = {}
    for path in paths:
        if path.stem in texts:
            raise CleansetError(f"{path}: a second file of the name {path.stem}; expected each study's file once")
        texts[path.stem] = read_text(path, CORRECT)
    return texts


def read_ratings(
    texts: Mapping[str, str],
    key: Mapping[str, Stimulus] | None = None,
    shown_milliseconds: int = 0,
    *,
    revision: bool = False,
) -> StudyAnswers:
    """The ratings in files, from their texts by name; `key` is the plan's, by stimulus.

    `shown_milliseconds`: the time before which the plan's page takes no answer; an answer before it is not valid.
    `revision`: whether people could change their answers: the last one to a trial then counts.

    In several files of ratings, equal names of people or modified images mean different ones, equal ids of real images
    the same image. A row that is not valid is left out, and so is the second rating of an image by one person. Raises
    CleansetError for files that are something else, and if no row is valid.
    """
    answers: list[Answer] = []
    invalid: list[str] = []
    seen: dict[tuple[str, ...], int] = {}
    revised = 0
    published = 0
    for name, text in sorted(texts.items()):
        # the header distinguishes the files of the page from those of published studies
        is_page = _header(text, name)[: len(ANSWER_COLUMNS)] == ANSWER_COLUMNS
        if is_page and key is None:
            raise CleansetError(f"{name}: answers of the study's page; expected --plan with the folder of the plan")
        published += not is_page
        # the same person id in two studies is another person
        prefix = f"{name}:" if len(texts) > 1 else ""
        columns, kind = (ANSWER_COLUMNS, _Answered) if is_page else (RATING_COLUMNS, _Published)
        rows: Iterator[tuple[str, _Answered | _Published]] = parse_rows(
            text, columns, kind, name, remedy=CORRECT, invalid=invalid, is_own=is_page
        )
        for at, row in rows:
            try:
                answer = _answered(row, at, key or {}) if isinstance(row, _Answered) else _published(row, prefix)
                if is_page:
                    _check_file(name, answer, at)
                    _check_time(answer, shown_milliseconds, at)
                before = _answer_before(answer, answers, seen, at, revision=revision and is_page)
            except CleansetError as error:
                invalid.append(str(error))
            else:
                if before is None:
                    answers.append(answer)
                else:
                    answers[before] = answer
                    revised += 1
    if invalid and not answers:
        raise CleansetError(invalid[0])
    return StudyAnswers(tuple(answers), published, tuple(invalid), revised)


def key_columns(class_column: str) -> tuple[str, ...]:
    """The columns of a plan's key; `class_column`: wnid of ImageNet's images, else class."""
    return ("stimulus", "kind", "image", "expected", class_column, "sha256")


def class_column_of(text: str) -> str:
    """The column of classes in the text of a key."""
    return "class" if "class" in _header(text, "key.csv") else "wnid"


def parse_key(text: str, where: str) -> dict[str, Stimulus]:
    """The key of a plan, by stimulus. Raises CleansetError for anything else."""
    columns = key_columns(class_column_of(text))
    rows = parse_rows(text, columns, Stimulus, where, remedy=RESTORE_FILE, key=("stimulus",), is_own=True)
    return {row.stimulus: row for _, row in rows}


def _header(text: str, where: str) -> tuple[str, ...]:
    return tuple(next(csv_rows(text, where, CORRECT), (1, []))[1])


def _published(row: _Published, prefix: str) -> Answer:
    image = (prefix if row.kind == "modified" else "") + row.image
    return Answer(prefix + row.person, row.kind, image, int(row.rating))


def _answered(row: _Answered, at: str, key: Mapping[str, Stimulus]) -> Answer:
    if row.stimulus not in key:
        raise CleansetError(
            f"{at}: stimulus {shown(row.stimulus)} is not in the plan's key; "
            "expected answers to this plan: name their own with --plan"
        )
    stimulus = key[row.stimulus]
    choices = choices_of(stimulus.kind)
    if row.answer not in choices:
        raise CleansetError(f"{at}, answer: {shown(row.answer)}; expected one of {', '.join(choices)}")
    is_rating = stimulus.kind in IMAGE_KINDS
    return Answer(
        person=row.person,
        kind=stimulus.kind,
        image=stimulus.image,
        rating=int(row.answer) if is_rating else 0,
        passed=is_rating or row.answer == stimulus.expected,
        is_trial=True,
        list_name=row.list_name,
        position=row.position,
        milliseconds=row.milliseconds,
        view=row.view,
    )


def choices_of(kind: str) -> tuple[str, ...]:
    """The answers to a trial of a kind."""
    if kind == "plate":
        return PLATE_ANSWERS
    return SIDES if kind == "pair" else tuple(map(str, SCALE))


def _check_file(name: str, trial: Answer, at: str) -> None:
    """Raise CleansetError for an answer in the file of somebody else, named as the page names it."""
    of = _ANSWERS_FILE.fullmatch(normal_text(name))
    # a browser that has the file already calls the next one "… (1)"
    if of and is_participant_id(of[2]) and of.groups() != (trial.list_name, trial.person):
        raise CleansetError(
            f"{at}: belongs to person {shown(trial.person)} and list {shown(trial.list_name)}; expected the ones in "
            "the file's name: move it to the file of this person"
        )


def _check_time(trial: Answer, least: int, at: str) -> None:
    if trial.milliseconds is not None and trial.milliseconds < least:
        raise CleansetError(f"{at}: answered after {trial.milliseconds:g} ms; expected at least the plan's {least} ms")


def _answer_before(
    answer: Answer, answers: list[Answer], seen: dict[tuple[str, ...], int], at: str, *, revision: bool
) -> int | None:
    """The place, among `answers`, of the earlier answer that this one replaces, or None.

    Notes in `seen` where this one will be. Raises CleansetError for a second answer to one trial, or a second rating of
    an image, that is not a revision.
    """
    found: tuple[str, ...]
    if answer.kind in IMAGE_KINDS:
        found = (answer.person, answer.kind, answer.image)
        what = f"the {answer.kind} image {shown(answer.image)}"
    elif answer.position:
        found = (answer.person, answer.list_name, "", answer.position)
        what = f"trial {shown(answer.position)}"
    else:
        return None
    place = seen.setdefault(found, len(answers))
    if place == len(answers):
        return None
    before = answers[place]
    is_same_trial = (before.list_name, before.position) == (answer.list_name, answer.position)
    if revision and answer.kind not in SCREENING_KINDS and is_same_trial:
        return place
    raise CleansetError(
        f"{at}: person {shown(answer.person)} rates {what} twice; "
        f"expected once: remove one, or name the files of different studies apart"
    )
