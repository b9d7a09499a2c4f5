"""The teams that gain or lose by the verdict on an image: a board member with a conflict of interest may not decide."""

import datetime
from collections.abc import Collection, Iterable
from functools import cached_property

from cleanset.studies.contest.entries import BoardDecision, team_of
from cleanset.studies.contest.files import ContestFiles, Submission
from cleanset.studies.contest.rules import ABSTAIN


def accepted_on(files: ContestFiles) -> dict[str, datetime.date]:
    """The day from which each command may be run that the board has accepted."""
    # the latest first, so that the earliest permission of a defence is the one that stays
    return {each.defence: each.date for each in sorted(files.accepted, key=lambda each: each.date, reverse=True)}


class Parties:
    """The defences of all teams, and their answers by image and day."""

    def __init__(self, files: ContestFiles) -> None:
        self._files = files
        accepted = accepted_on(files)
        # by name, the day from which on a defence can be run
        self._known_on = {
            name: each.submitted if each.command is None else max(each.submitted, accepted.get(name, datetime.date.max))
            for name, each in files.defences.items()
        }

    @cached_property
    def _answers(self) -> dict[str, list[tuple[datetime.date, str, str]]]:
        """By image: day, defence and answer."""
        found: dict[str, list[tuple[datetime.date, str, str]]] = {}
        for run in self._files.runs:
            for sha256, answer in run.answers.items():
                found.setdefault(sha256, []).append((run.date, run.defence, answer))
        return found

    def breaking(self, sha256: str, group: str, on: datetime.date) -> set[str]:
        """The teams with a defence that gives an image of `group` the other one, in a run up to a day."""
        given = self._answers.get(sha256, ())
        return {team_of(name) for day, name, answer in given if day <= on and answer not in (group, ABSTAIN)}

    def deciding(self, submission: Submission, decision: BoardDecision) -> frozenset[str]:
        """The teams that may not take part in a decision on an image of a submission.

        They are the attacker, the target's team, those that appealed, and every team with a defence that the image
        breaks: as the judges answer, as the board decides, and without either as any of the two groups. A defence that
        has not answered the image yet, though it can be run, counts as broken, since its team may know the answer.
        """
        return self.concerned(submission, decision.image, decision.date, self._groups(decision))

    def withdrawing(self, submission: Submission, sha256: str, on: datetime.date) -> frozenset[str]:
        """The teams that may not take part in making void what was said of an image, whichever group it has."""
        return self.concerned(submission, sha256, on, self._files.rules.classes)

    def concerned(
        self, submission: Submission, sha256: str, on: datetime.date, groups: Iterable[str]
    ) -> frozenset[str]:
        """The teams that gain or lose if the group of an image changes, on a day, from or to one of some groups."""
        found = {submission.team, team_of(submission.manifest.target)}
        found |= {each.team for each in self._files.appeals if each.image == sha256}
        for group in groups:
            found |= self.breaking(sha256, group, on)
        answered = {name for day, name, _ in self._answers.get(sha256, ()) if day <= on}
        unknown = (name for name, day in self._known_on.items() if day <= on and name not in answered)
        return frozenset(found | {team_of(name) for name in unknown})

    def _groups(self, decision: BoardDecision) -> Collection[str]:
        every = self._files.rules.classes.keys()
        given = (each.answers[decision.image] for each in self._files.answers if decision.image in each.answers)
        claimed = {each.object_of for each in given if each.date <= decision.date}
        return every & {*claimed, decision.verdict} or every
