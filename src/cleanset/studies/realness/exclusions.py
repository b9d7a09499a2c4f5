"""Who is left out of an analysis: rules by name, each with the people that it excludes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cleanset.studies.realness.ratings import Answers

RULES = {
    "attention": "failed more attention checks than allowed",
    "comprehension": "gave more wrong answers to comprehension pairs than allowed",
}
"""What a person did whom a rule excludes, by its name."""
_CHECK_OF = {"attention": "attention", "comprehension": "pair"}
ALLOWED: Mapping[str, int] = {"attention": 1, "comprehension": 0}
"""Failed checks that do not exclude a person yet, by default."""


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The people excluded by each rule, sorted; a person may break several. `checked`: who answered any check."""

    by_rule: dict[str, tuple[str, ...]]
    checked: int

    @property
    def people(self) -> frozenset[str]:
        """All that are excluded."""
        return frozenset(person for people in self.by_rule.values() for person in people)


def exclusions(answers: Answers, allowed: Mapping[str, int] = ALLOWED) -> Exclusions:
    """Who failed more checks than allowed, by rule. Ratings without checks exclude nobody."""
    by_rule = {}
    for rule in RULES:
        failed = Counter(each.person for each in answers.checks if each.kind == _CHECK_OF[rule] and not each.passed)
        by_rule[rule] = tuple(sorted(person for person, count in failed.items() if count > allowed[rule]))
    return Exclusions(by_rule, len({each.person for each in answers.checks}))


def without(answers: Answers, people: Iterable[str]) -> Answers:
    """The answers of everyone else."""
    left_out = frozenset(people)
    return Answers(
        tuple(each for each in answers.ratings if each.person not in left_out),
        tuple(each for each in answers.checks if each.person not in left_out),
    )
