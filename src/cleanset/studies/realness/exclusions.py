"""Leaving whole people out: for failed or missing checks, missing or careless answers, images seen at other sizes.

No rule looks at whether a rating is correct. Attention and comprehension checks, and plates of colour vision where
there are some, always apply; the others do where a limit is given.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field, NonNegativeInt

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import AtLeastOne
from cleanset.studies.realness.ratings import IMAGE_KINDS, StudyAnswers

CHECK_RULES = {"attention": "attention", "comprehension": "pair", "colour_vision": "plate"}
"""The rules that always apply, with the kind of their checks."""


@dataclass(frozen=True, slots=True)
class ExclusionLimits:
    """The limits of the rules; by default only those on checks are applied."""

    attention: NonNegativeInt = 1
    """Failed attention checks that a person may have."""

    comprehension: NonNegativeInt | None = None
    """Failed comprehension pairs that a person may have; None: as many as the plan's page lets pass, else none."""

    colour_vision: NonNegativeInt = 0
    """Plates of colour vision that a person may have read wrongly."""

    min_attention: NonNegativeInt = 0
    """Attention checks that a person must have answered."""

    min_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the trials of a list that a person must have answered, 0 to 1."""

    max_same: Annotated[float, Field(ge=0.2, le=1)] | None = None
    """Largest share of a person's ratings that may be equal, 0.2 to 1; None: any."""

    min_milliseconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Smallest median time of a person for an image, in milliseconds."""

    min_shown: NonNegativeInt = 0
    """Smallest width, in device pixels, at which a person may have seen an image."""

    max_shown: AtLeastOne | None = None
    """Largest width, in device pixels, at which a person may have seen an image; None: any."""

    one_person_a_list: bool = False
    """Whether of several people with the same list only the one who answered most of it is kept."""


class Exclusions(NamedTuple):
    """The people excluded by each rule that was applied, sorted; a person may break several.

    `checked`: number of people with any check. `without_attention`: people who answered the page, but no attention
    check, though others did. `repeated`: the people of each list that several people answered. Both are found whether
    or not their rule is applied.
    """

    by_rule: dict[str, tuple[str, ...]]
    checked: int
    without_attention: tuple[str, ...] = ()
    repeated: Mapping[str, tuple[str, ...]] = {}

    @property
    def people(self) -> frozenset[str]:
        """All excluded people."""
        return frozenset(person for people in self.by_rule.values() for person in people)


def exclusions(
    answers: StudyAnswers, limits: ExclusionLimits | None = None, list_sizes: Mapping[str, int] | None = None
) -> Exclusions:
    """The people who break a rule, by rule; `list_sizes`: number of trials of each list of the plan.

    Raises CleansetError for a rule about lists, times or missing checks that the answers cannot be judged by.
    """
    limits = limits or ExclusionLimits()
    _check_judgeable(answers, limits)
    has_plates = any(each.kind == "plate" for each in answers.checks)
    found = {
        rule: _failed(answers, kind, getattr(limits, rule) or 0)
        for rule, kind in CHECK_RULES.items()
        if kind != "plate" or has_plates
    }
    if limits.min_attention:
        found["unchecked"] = _unchecked(answers, limits.min_attention)
    if limits.min_share:
        found["incomplete"] = _incomplete(answers, limits.min_share, list_sizes or {})
    if limits.max_same is not None:
        found["straight_lining"] = _straight_lining(answers, limits.max_same)
    if limits.min_milliseconds:
        found["too_fast"] = _too_fast(answers, limits.min_milliseconds)
    if limits.min_shown or limits.max_shown:
        found["size"] = _at_other_sizes(answers, limits.min_shown, limits.max_shown)
    if limits.one_person_a_list:
        # last: whoever another rule excludes takes no list from anybody
        found["repeated_list"] = _repeating(leave_out(answers, set[str]().union(*found.values())))
    has_attention = any(each.kind == "attention" for each in answers.checks)
    return Exclusions(
        {rule: tuple(sorted(people)) for rule, people in found.items()},
        len({each.person for each in answers.checks}),
        tuple(sorted(_unchecked(answers, 1))) if has_attention else (),
        repeated_lists(answers),
    )


def _check_judgeable(answers: StudyAnswers, limits: ExclusionLimits) -> None:
    """Raise CleansetError for a rule about what published ratings do not have."""
    by_list = limits.min_attention or limits.min_share or limits.one_person_a_list
    by_trial = limits.min_milliseconds or limits.min_shown or limits.max_shown
    if not answers.trials and (by_list or by_trial):
        raise CleansetError(
            "the ratings: no lists, times, sizes or checks; expected answers of the study's page for min_attention, "
            "min_share, min_milliseconds, min_shown, max_shown and one_person_a_list of --exclude"
        )


def leave_out(answers: StudyAnswers, people: Iterable[str]) -> StudyAnswers:
    """The answers of everyone else."""
    left_out = frozenset(people)
    return answers._replace(answers=tuple(each for each in answers.answers if each.person not in left_out))


def repeated_lists(answers: StudyAnswers) -> dict[str, tuple[str, ...]]:
    """The lists whose images several people rated, with these people, sorted.

    Who is screened out before the images leaves the list to somebody else.
    """
    people = defaultdict(set)
    for each in answers.trials:
        if each.kind in IMAGE_KINDS:
            people[each.list_name].add(each.person)
    return {name: tuple(sorted(found)) for name, found in sorted(people.items()) if len(found) > 1}


def _failed(answers: StudyAnswers, kind: str, allowed: int) -> set[str]:
    failed = Counter(each.person for each in answers.checks if each.kind == kind and not each.passed)
    return {person for person, count in failed.items() if count > allowed}


def _unchecked(answers: StudyAnswers, required: int) -> set[str]:
    counts = Counter(each.person for each in answers.checks if each.kind == "attention")
    return {each.person for each in answers.trials if counts[each.person] < required}


def _incomplete(answers: StudyAnswers, required: float, list_sizes: Mapping[str, int]) -> set[str]:
    # a set: an answer that is in two files is one
    answered = {(each.person, each.list_name, each.position) for each in answers.trials}
    counts = Counter(person for person, _, _ in answered)
    lists = {(person, name) for person, name, _ in answered}
    for person, name in sorted(lists):
        if name not in list_sizes:
            raise CleansetError(
                f"the answers of {person!r}: list {name!r} is not in the plan; expected answers to this plan: "
                "name their own with --plan"
            )
    shown = Counter[str]()
    for person, name in lists:
        shown[person] += list_sizes[name]
    exact = Fraction(str(required))
    return {person for person, count in counts.items() if count < exact * shown[person]}


def _straight_lining(answers: StudyAnswers, allowed: float) -> set[str]:
    ratings = defaultdict(list)
    for each in answers.ratings:
        ratings[each.person].append(each.rating)
    exact = Fraction(str(allowed))
    return {person for person, given in ratings.items() if max(Counter(given).values()) > exact * len(given)}


def _too_fast(answers: StudyAnswers, required: float) -> set[str]:
    times = defaultdict(list)
    for each in answers.trials:
        if each.kind in IMAGE_KINDS and each.milliseconds is not None:
            times[each.person].append(each.milliseconds)
    if not times:
        raise CleansetError(
            "the answers: no milliseconds; expected some for min_milliseconds of --exclude: leave it out"
        )
    return {person for person, taken in times.items() if median(taken) < required}


def _at_other_sizes(answers: StudyAnswers, least: int, most: int | None) -> set[str]:
    """The people who saw an image smaller or larger, in device pixels, or whose image size is not known."""
    rated = [each for each in answers.trials if each.kind in IMAGE_KINDS]
    if all(each.view is None for each in rated):
        raise CleansetError("the answers: no shown_width; expected some for min_shown and max_shown: leave them out")
    widths = [(each.person, None if each.view is None else each.view.shown_width) for each in rated]
    return {person for person, width in widths if width is None or width < least or (most is not None and width > most)}


def _repeating(answers: StudyAnswers) -> set[str]:
    """All people with a list of somebody else but the one who answered most of it, ties by name."""
    counts = Counter((each.list_name, each.person) for each in answers.trials)
    left_out = set[str]()
    for name, people in repeated_lists(answers).items():
        left_out.update(sorted(people, key=lambda person: (-counts[name, person], person))[1:])
    return left_out
