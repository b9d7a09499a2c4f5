"""The teams that gain or lose by the verdict on an image: who may appeal, and who may not decide."""

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cleanset.studies.contest.entries import BoardDecision
from cleanset.studies.contest.files import ContestFiles, Submission, team_of
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.runs import DefenceRun


class Parties:
    """The defences of all teams, and their answers by image and day."""

    def __init__(self, files: ContestFiles) -> None:
        self._files = files
        self._runs: dict[str, list[DefenceRun]] = {name: [] for name in sorted(files.defences)}
        for run in files.runs:
            self._runs.setdefault(run.defence, []).append(run)
        accepted = {each.defence: each.date for each in sorted(files.board.accepted, key=lambda each: each.date)[::-1]}
        # by name, the day from which on a defence can be run
        self._known_on = {
            name: each.submitted if each.command is None else max(each.submitted, accepted[name])
            for name, each in files.defences.items()
            if each.command is None or name in accepted
        }
        self._appeals: dict[str, set[str]] = {}
        for appeal in files.board.appeals:
            self._appeals.setdefault(appeal.image, set()).add(appeal.team)
        self._claimed: Mapping[str, list[tuple[datetime.date, str]]] | None = None

    def breaking(self, sha256: str, group: str, on: datetime.date) -> set[str]:
        """The teams with a defence that gives an image of `group` the other one, in a run up to a day."""
        return {team_of(name) for name in self._runs if self._given(name, sha256, on) - {group, ABSTAIN}}

    def deciding(self, submission: Submission, decision: BoardDecision) -> frozenset[str]:
        """The teams that may not take part in a decision on an image of a submission.

        They are the attacker, the target's team, those that appealed, and every team with a defence that the image
        breaks: as the judges answer, as the board decides, and without either as any of the two groups. A defence that
        has not answered the image yet, though it can be run, counts as broken, since its team may know the answer.
        """
        sha256, on = decision.image, decision.date
        found = {submission.team, team_of(submission.manifest.target), *self._appeals.get(sha256, ())}
        for group in self._groups(decision):
            found |= self.breaking(sha256, group, on)
        unknown = (name for name, day in self._known_on.items() if day <= on and not self._given(name, sha256, on))
        return frozenset(found | {team_of(name) for name in unknown})

    def _given(self, name: str, sha256: str, on: datetime.date) -> set[str]:
        return {run.answers[sha256] for run in self._runs.get(name, ()) if run.date <= on and sha256 in run.answers}

    def _groups(self, decision: BoardDecision) -> Collection[str]:
        if self._claimed is None:
            claimed: dict[str, list[tuple[datetime.date, str]]] = {}
            decided = {each.image for each in self._files.board.decisions}
            for each in self._files.answers:
                for sha256 in decided & each.answers.keys():
                    answer = each.answers[sha256]
                    if answer.object_of is not None:
                        claimed.setdefault(sha256, []).append((answer.date, answer.object_of))
            self._claimed = claimed
        groups = {group for date, group in self._claimed.get(decision.image, ()) if date <= decision.date}
        groups |= {decision.verdict} & self._files.rules.classes.keys() if decision.verdict else set()
        return groups or self._files.rules.classes.keys()


@dataclass(frozen=True, slots=True)
class Defenders:
    """The teams that may appeal against an image, once it is judged unambiguous."""

    parties: Parties
    sha256: str
    target_team: str

    def __call__(self, group: str, on: datetime.date) -> Collection[str]:
        return self.parties.breaking(self.sha256, group, on) | {self.target_team}
