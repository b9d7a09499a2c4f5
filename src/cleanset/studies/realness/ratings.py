"""Ratings and answers, from two kinds of CSV file in which every value is checked.

Ratings, as source 000's authors published theirs: rating,pid,image_type,image_id. Answers, as the study's page writes
them: without types, which come from the plan's key.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.parsing import parse_csv
from cleanset.validation import check_known, shown

ImageKind = Literal["real", "modified"]
KINDS: tuple[ImageKind, ...] = ("real", "modified")
SCALE = (-2, -1, 0, 1, 2)
LABELS = ("surely modified", "rather modified", "cannot tell", "rather real", "surely real")
"""The ratings of SCALE in words."""
RATING_COLUMNS = ("rating", "pid", "image_type", "image_id")
ANSWER_COLUMNS = ("person", "list", "position", "stimulus", "answer", "milliseconds")
KEY_COLUMNS = ("stimulus", "kind", "image", "expected", "wnid", "sha256")
TRIALS = (*KINDS, "attention", "pair")
"""The kinds of a key's rows: images to be rated, attention checks, comprehension pairs."""
SIDES = ("left", "right")
MAX_NAME = 200

_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")


@dataclass(frozen=True, slots=True)
class Rating:
    """One person's rating of one image, -2 (surely modified) to 2 (surely real)."""

    person: str
    kind: ImageKind
    image: str
    rating: int


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """One person's answer to an attention check or a comprehension pair."""

    person: str
    kind: Literal["attention", "pair"]
    passed: bool


@dataclass(frozen=True, slots=True)
class AnsweredTrial:
    """A trial of a list that a person answered; `milliseconds`: how long it took, None if not measured."""

    person: str
    list_name: str
    position: str
    kind: str
    milliseconds: float | None


@dataclass(frozen=True, slots=True)
class Stimulus:
    """An entry of a plan's key: the stimulus's kind, its image, and the expected answer ("" for a rating)."""

    kind: str
    image: str
    expected: str
    wnid: str


@dataclass(frozen=True, slots=True)
class StudyAnswers:
    """All answers of people: ratings and checks, and, of the page's answers, the trials that they were given in.

    `published`: number of files of ratings in the published form.
    """

    ratings: tuple[Rating, ...]
    checks: tuple[CheckAnswer, ...] = ()
    trials: tuple[AnsweredTrial, ...] = ()
    published: int = 0


def read_ratings(texts: Mapping[str, str], key: Mapping[str, Stimulus] | None = None) -> StudyAnswers:
    """The ratings in files, from their texts by name; `key` is the plan's, by stimulus.

    In several files of ratings, equal names of people or modified images mean different ones, equal ids of real images
    the same image. Raises CleansetError for the first value that is not valid, and for an image rated twice.
    """
    ratings: list[Rating] = []
    checks: list[CheckAnswer] = []
    trials: list[AnsweredTrial] = []
    published = 0
    for name, text in sorted(texts.items()):
        # the header tells the files of the page from those of published studies
        if _header(text) == ANSWER_COLUMNS:
            if key is None:
                raise CleansetError(f"{name}: answers of the study's page; expected --plan with the folder of the plan")
            for trial, answer in _answers(text, name, key):
                trials.append(trial)
                if isinstance(answer, Rating):
                    ratings.append(answer)
                else:
                    checks.append(answer)
        else:
            published += 1
            # the same person id in two studies is another person
            ratings += _published(text, name, f"{name}:" if len(texts) > 1 else "")
    _check_once(ratings)
    return StudyAnswers(tuple(ratings), tuple(checks), tuple(trials), published)


def parse_key(text: str, where: str) -> dict[str, Stimulus]:
    """The key of a plan, by stimulus. Raises CleansetError for anything else."""
    key = {}
    for line, row in parse_csv(text, KEY_COLUMNS, where):
        if row["kind"] not in TRIALS or row["stimulus"] in key:
            found = f"{shown(row['kind'])} {shown(row['stimulus'])}"
            raise CleansetError(
                f"{where}, line {line}: {found}; expected one of {', '.join(TRIALS)}, each stimulus once"
            )
        key[row["stimulus"]] = Stimulus(row["kind"], row["image"], row["expected"], row["wnid"])
    return key


def _header(text: str) -> tuple[str, ...]:
    return tuple(text.partition("\n")[0].strip().split(","))


def _published(text: str, where: str, prefix: str) -> Iterable[Rating]:
    for line, row in parse_csv(text, RATING_COLUMNS, where):
        at = f"{where}, line {line}"
        kind = _kind(row["image_type"], at)
        image = _name(row["image_id"], "image_id", at)
        rating = _rating(row["rating"], at)
        yield Rating(
            prefix + _name(row["pid"], "pid", at), kind, (prefix if kind == "modified" else "") + image, rating
        )


def _answers(
    text: str, where: str, key: Mapping[str, Stimulus]
) -> Iterable[tuple[AnsweredTrial, Rating | CheckAnswer]]:
    for line, row in parse_csv(text, ANSWER_COLUMNS, where):
        at = f"{where}, line {line}"
        person = _name(row["person"], "person", at)
        if row["stimulus"] not in key:
            raise CleansetError(
                f"{at}: stimulus {shown(row['stimulus'])} is not in the plan's key; "
                "expected answers to this plan: name their own with --plan"
            )
        stimulus = key[row["stimulus"]]
        trial = AnsweredTrial(
            person, row["list"], row["position"], stimulus.kind, _milliseconds(row["milliseconds"], at)
        )
        yield trial, _answer(row["answer"], stimulus, person, at)


def _answer(answer: str, stimulus: Stimulus, person: str, at: str) -> Rating | CheckAnswer:
    if stimulus.kind == "pair":
        check_known(f"answer ({at})", answer, SIDES)
        return CheckAnswer(person, "pair", answer == stimulus.expected)
    rating = _rating(answer, at)
    if stimulus.kind == "attention":
        return CheckAnswer(person, "attention", str(rating) == stimulus.expected)
    return Rating(person, "real" if stimulus.kind == "real" else "modified", stimulus.image, rating)


def _kind(text: str, at: str) -> ImageKind:
    for kind in KINDS:
        if text == kind:
            return kind
    raise CleansetError(f"{at}: image_type {shown(text)}; expected real or modified")


def _rating(text: str, at: str) -> int:
    if text not in map(str, SCALE):
        raise CleansetError(f"{at}: rating {shown(text)}; expected one of {', '.join(map(str, SCALE))}")
    return int(text)


def _milliseconds(text: str, at: str) -> float | None:
    # survey tools may leave times out
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise CleansetError(f"{at}: milliseconds {shown(text)}; expected a number from 0 on, or nothing")
    return float(text)


def _name(text: str, column: str, at: str) -> str:
    if not _NAME.fullmatch(text):
        raise CleansetError(f"{at}: {column} {shown(text)}; expected 1 to {MAX_NAME} characters")
    return text


def _check_once(ratings: Sequence[Rating]) -> None:
    seen = set()
    for each in ratings:
        rated = (each.person, each.kind, each.image)
        if rated in seen:
            raise CleansetError(
                f"person {shown(each.person)} rates the {each.kind} image {shown(each.image)} twice; "
                f"expected once: remove one, or name the files of different studies apart"
            )
        seen.add(rated)
