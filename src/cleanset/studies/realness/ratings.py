"""Ratings and answers, from two kinds of CSV file in which every value is checked, and the rules of exclusion.

Ratings, as source 000's authors published theirs: rating,pid,image_type,image_id. Answers, as the study's page writes
them: without types, which come from the plan's key.
"""

import re
from collections import Counter
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
class Stimulus:
    """An entry of a plan's key: the stimulus's kind, its image, and the expected answer ("" for a rating)."""

    kind: str
    image: str
    expected: str
    wnid: str


@dataclass(frozen=True, slots=True)
class StudyAnswers:
    """All answers of people: ratings, and checks."""

    ratings: tuple[Rating, ...]
    checks: tuple[CheckAnswer, ...] = ()


def read_ratings(texts: Mapping[str, str], key: Mapping[str, Stimulus] | None = None) -> StudyAnswers:
    """The ratings in files, from their texts by name; `key` is the plan's, by stimulus.

    In several files of ratings, equal names of people or modified images mean different ones, equal ids of real images
    the same image. Raises CleansetError for the first value that is not valid, and for an image rated twice.
    """
    ratings: list[Rating] = []
    checks: list[CheckAnswer] = []
    for name, text in sorted(texts.items()):
        # the header tells the files of the page from those of published studies
        if _header(text) == ANSWER_COLUMNS:
            if key is None:
                raise CleansetError(f"{name}: answers of the study's page; expected --plan with the folder of the plan")
            found = list(_answers(text, name, key))
            ratings += [each for each in found if isinstance(each, Rating)]
            checks += [each for each in found if isinstance(each, CheckAnswer)]
        else:
            # the same person id in two studies is another person
            ratings += _published(text, name, f"{name}:" if len(texts) > 1 else "")
    _check_once(ratings)
    return StudyAnswers(tuple(ratings), tuple(checks))


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


def _answers(text: str, where: str, key: Mapping[str, Stimulus]) -> Iterable[Rating | CheckAnswer]:
    for line, row in parse_csv(text, ANSWER_COLUMNS, where):
        at = f"{where}, line {line}"
        person = _name(row["person"], "person", at)
        if row["stimulus"] not in key:
            raise CleansetError(
                f"{at}: stimulus {shown(row['stimulus'])} is not in the plan's key; "
                "expected answers to this plan: name their own with --plan"
            )
        stimulus = key[row["stimulus"]]
        if stimulus.kind == "pair":
            check_known(f"answer ({at})", row["answer"], SIDES)
            yield CheckAnswer(person, "pair", row["answer"] == stimulus.expected)
        elif stimulus.kind == "attention":
            yield CheckAnswer(person, "attention", str(_rating(row["answer"], at)) == stimulus.expected)
        else:
            yield Rating(
                person, "real" if stimulus.kind == "real" else "modified", stimulus.image, _rating(row["answer"], at)
            )


def _kind(text: str, at: str) -> ImageKind:
    for kind in KINDS:
        if text == kind:
            return kind
    raise CleansetError(f"{at}: image_type {shown(text)}; expected real or modified")


def _rating(text: str, at: str) -> int:
    if text not in map(str, SCALE):
        raise CleansetError(f"{at}: rating {shown(text)}; expected one of {', '.join(map(str, SCALE))}")
    return int(text)


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


RULES = {
    "attention": "failed more attention checks than allowed",
    "comprehension": "gave more wrong answers to comprehension pairs than allowed",
}
"""The rules of exclusion, each with the reason for it."""
_CHECK_OF = {"attention": "attention", "comprehension": "pair"}
ALLOWED: Mapping[str, int] = {"attention": 1, "comprehension": 0}
"""Failed checks that a person may have, by default."""


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The people excluded by each rule, sorted; a person may break several. `checked`: people with any check."""

    by_rule: dict[str, tuple[str, ...]]
    checked: int

    @property
    def people(self) -> frozenset[str]:
        """All excluded people."""
        return frozenset(person for people in self.by_rule.values() for person in people)


def exclusions(answers: StudyAnswers, allowed: Mapping[str, int] = ALLOWED) -> Exclusions:
    """The people who failed more checks than allowed, by rule. Ratings without checks exclude nobody."""
    by_rule = {}
    for rule in RULES:
        failed = Counter(each.person for each in answers.checks if each.kind == _CHECK_OF[rule] and not each.passed)
        by_rule[rule] = tuple(sorted(person for person, count in failed.items() if count > allowed[rule]))
    return Exclusions(by_rule, len({each.person for each in answers.checks}))


def leave_out(answers: StudyAnswers, people: Iterable[str]) -> StudyAnswers:
    """The answers of everyone else."""
    left_out = frozenset(people)
    return StudyAnswers(
        tuple(each for each in answers.ratings if each.person not in left_out),
        tuple(each for each in answers.checks if each.person not in left_out),
    )
