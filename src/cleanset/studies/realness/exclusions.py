"""The rules by which people are excluded from an analysis: failed or missing checks, missing or careless answers.

No rule looks at whether a rating is correct. The first two rules always apply, the others where a limit is given.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from cleanset.errors import CleansetError
from cleanset.studies.realness.ratings import KINDS, StudyAnswers

RULES = {
    "attention": "failed more attention checks than allowed",
    "comprehension": "gave more wrong answers to comprehension pairs than allowed",
    "unchecked": "answered fewer attention checks than required",
    "incomplete": "answered a smaller share of the trials of their lists than required",
    "straight_lining": "gave one rating to a larger share of the images than allowed",
    "too_fast": "took less time for an image, by the median, than required",
    "repeated_list": "answered a list that another person answered, too",
}
"""The rules of exclusion, each with the reason for it."""
CHECK_RULES = {"attention": "attention", "comprehension": "pair"}
"""The rules that always apply, with the kind of their checks."""


@dataclass(frozen=True, slots=True)
class ExclusionLimits:
    """The limits of the rules; the rules from `min_attention` on are not applied by default.

    `attention`, `comprehension`: failed checks that a person may have. `min_attention`: attention checks that a person
    must have answered. `min_share`: share of the trials, 0 to 1. `max_same`: largest share of a person's ratings that
    may be equal, 0 to 1. `min_milliseconds`: median time for an image. `one_person_a_list`: of several people with the
    same list, only the one who answered most of it is kept.
    """

    attention: int = 1
    comprehension: int = 0
    min_attention: int = 0
    min_share: float = 0.0
    max_same: float | None = None
    min_milliseconds: float = 0.0
    one_person_a_list: bool = False


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The people excluded by each rule that was applied, sorted; a person may break several.

    `checked`: number of people with any check. `without_attention`: people who answered the page, but no attention
    check, though others did. `repeated`: the people of each list that several people answered. Both are found whether
    or not their rule is applied.
    """

    by_rule: dict[str, tuple[str, ...]]
    checked: int
    without_attention: tuple[str, ...] = ()
    repeated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
    if not answers.trials and (
        limits.min_attention or limits.min_share or limits.min_milliseconds or limits.one_person_a_list
    ):
        raise CleansetError(
            "the ratings: no lists, times or checks; expected answers of the study's page for --min-attention, "
            "--min-share, --min-milliseconds and --one-person-a-list"
        )
    by_rule = {rule: _failed(answers, kind, getattr(limits, rule)) for rule, kind in CHECK_RULES.items()}
    if limits.min_attention:
        by_rule["unchecked"] = _unchecked(answers, limits.min_attention)
    if limits.min_share:
        by_rule["incomplete"] = _incomplete(answers, limits.min_share, list_sizes or {})
    if limits.max_same is not None:
        by_rule["straight_lining"] = _straight_lining(answers, limits.max_same)
    if limits.min_milliseconds:
        by_rule["too_fast"] = _too_fast(answers, limits.min_milliseconds)
    if limits.one_person_a_list:
        # last: whoever another rule excludes takes no list from anybody
        excluded = {person for people in by_rule.values() for person in people}
        by_rule["repeated_list"] = _repeating(leave_out(answers, excluded))
    has_attention = any(each.kind == "attention" for each in answers.checks)
    return Exclusions(
        by_rule,
        len({each.person for each in answers.checks}),
        _unchecked(answers, 1) if has_attention else (),
        repeated_lists(answers),
    )


def leave_out(answers: StudyAnswers, people: Iterable[str]) -> StudyAnswers:
    """The answers of everyone else."""
    left_out = frozenset(people)
    return StudyAnswers(
        tuple(each for each in answers.ratings if each.person not in left_out),
        tuple(each for each in answers.checks if each.person not in left_out),
        tuple(each for each in answers.trials if each.person not in left_out),
        answers.published,
    )


def repeated_lists(answers: StudyAnswers) -> dict[str, tuple[str, ...]]:
    """The lists that several people answered, with these people, sorted."""
    people = defaultdict(set)
    for each in answers.trials:
        people[each.list_name].add(each.person)
    return {name: tuple(sorted(found)) for name, found in sorted(people.items()) if len(found) > 1}


def _failed(answers: StudyAnswers, kind: str, allowed: int) -> tuple[str, ...]:
    failed = Counter(each.person for each in answers.checks if each.kind == kind and not each.passed)
    return tuple(sorted(person for person, count in failed.items() if count > allowed))


def _unchecked(answers: StudyAnswers, required: int) -> tuple[str, ...]:
    counts = Counter(each.person for each in answers.checks if each.kind == "attention")
    return tuple(sorted(person for person in {each.person for each in answers.trials} if counts[person] < required))


def _incomplete(answers: StudyAnswers, required: float, list_sizes: Mapping[str, int]) -> tuple[str, ...]:
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
    return tuple(sorted(person for person, count in counts.items() if count < required * shown[person]))


def _straight_lining(answers: StudyAnswers, allowed: float) -> tuple[str, ...]:
    ratings = defaultdict(list)
    for each in answers.ratings:
        ratings[each.person].append(each.rating)
    return tuple(
        sorted(person for person, given in ratings.items() if max(Counter(given).values()) > allowed * len(given))
    )


def _too_fast(answers: StudyAnswers, required: float) -> tuple[str, ...]:
    times = defaultdict(list)
    for each in answers.trials:
        if each.kind in KINDS and each.milliseconds is not None:
            times[each.person].append(each.milliseconds)
    if not times:
        raise CleansetError("the answers: no milliseconds; expected some for --min-milliseconds: leave it out")
    return tuple(sorted(person for person, taken in times.items() if median(taken) < required))


def _repeating(answers: StudyAnswers) -> tuple[str, ...]:
    """All people with a list of somebody else but the one who answered most of it; of equals the first by name."""
    counts = Counter((each.list_name, each.person) for each in answers.trials)
    left_out = set()
    for name, people in repeated_lists(answers).items():
        ordered = sorted(people, key=lambda person: (-counts[name, person], person))
        left_out |= set(ordered[1:])
    return tuple(sorted(left_out))
