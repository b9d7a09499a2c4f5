"""The teams that gain or lose by the verdict on an image: who may appeal, and who may not decide.

Check the files of a contest against each other: names, order of dates, duplicates, conflicts of interest.
"""

import datetime
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import (
    BoardDecision,
    ContestFiles,
    DefenceRun,
    Stake,
    Submission,
    in_order,
    repeats,
    submitted_images,
    team_of,
)
from cleanset.studies.contest.judging import points_outside
from cleanset.studies.contest.rules import ABSTAIN, BOARD, INVALID, ContestRules
from cleanset.validation import shown


def accepted_on(files: ContestFiles) -> dict[str, datetime.date]:
    """The day from which each command may be run that the board has accepted."""
    # the latest first, so that the earliest permission of a defence is the one that stays
    return {each.defence: each.date for each in sorted(files.board.accepted, key=lambda each: each.date, reverse=True)}


class Parties:
    """The defences of all teams, and their answers by image and day."""

    def __init__(self, files: ContestFiles) -> None:
        self._files = files
        self._runs: dict[str, list[DefenceRun]] = {name: [] for name in sorted(files.defences)}
        for run in files.runs:
            self._runs.setdefault(run.defence, []).append(run)
        accepted = accepted_on(files)
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

    def defenders(self, sha256: str, target_team: str, group: str, on: datetime.date) -> set[str]:
        """The teams that may appeal against an image that is judged unambiguous."""
        return self.breaking(sha256, group, on) | {target_team}

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


def check_files(files: ContestFiles) -> None:
    """Raise CleansetError for the first contradiction, in an order that does not depend on that of the files."""
    # of an image that was submitted twice the first submission counts
    first_last = reversed(in_order(files.submissions))
    images = {image.sha256: each for each, image in submitted_images(first_last)}
    _raise_first(_submission_problems(files), *(find(files, images) for find in (_answers, _board, _runs)))


def check_submissions(files: ContestFiles) -> None:
    """Check defences, stakes and submissions alone, as `check_files` does, before anything was judged or run."""
    _raise_first(_submission_problems(files))


# The functions below yield a problem and go on as if there were none: nothing is asked for after the first one.
def _raise_first(*problems: Iterator[str]) -> None:
    for problem in chain(*problems):
        raise CleansetError(problem)


def _submission_problems(files: ContestFiles) -> Iterator[str]:
    for name in sorted(files.defences):
        if team_of(name) not in files.rules.teams:
            yield f"defences/{name}: unknown team {team_of(name)}; expected one of contest.yaml's teams"
    yield from _stakes(files)
    yield from _submissions(files)


def _stakes(files: ContestFiles) -> Iterator[str]:
    batches: set[str] = set()
    staked: set[str] = set()
    for stake in sorted(files.board.stakes, key=lambda each: (each.date, each.batch, each.by, each.defences)):
        where = f"board/stakes.yaml: batch {stake.batch}"
        if stake.batch in batches:
            yield f"{where}: a second time; expected one entry for each batch"
        batches.add(stake.batch)
        for name in sorted(stake.defences):
            if name not in files.defences:
                yield f"{where}: unknown defence {name}; expected one submitted by {stake.date}"
            submitted = files.defences[name].submitted
            if submitted > stake.date:
                yield f"{where}: {name} was submitted on {submitted}; expected no earlier stake"
            if name in staked or stake.defences.count(name) > 1:
                yield f"{where}: {name} is staked a second time; expected one stake for each defence"
            if stake.by not in (BOARD, team_of(name)):
                yield f"{where}: {name} is staked by {stake.by}; expected board, or its own team"
            staked.add(name)
        for wrong in sorted(stake.digests.keys() ^ set(stake.defences)):
            yield f"{where}: digests: {wrong}; expected one of each of its defences: cleanset contest stake prints them"
        for name in sorted(stake.digests):
            check_staked_digest(stake, name, files.digests[name])


def check_staked_digest(stake: Stake, name: str, digest: str) -> None:
    """Raise CleansetError for a defence with another digest than its stake's."""
    if stake.digests.get(name, digest) != digest:
        raise CleansetError(
            f"defences/{name}: digest {digest} of defence.yaml and its files; expected {stake.digests[name]}, "
            f"staked on {stake.date}: git checkout it, and submit what has changed under another name"
        )


def _submissions(files: ContestFiles) -> Iterator[str]:
    limits, staked = files.rules.limits, {name: stake.date for stake in files.board.stakes for name in stake.defences}
    numbers = Counter(str(each) for each in files.submissions)
    a_day: Counter[tuple[str, datetime.date]] = Counter()
    for submission in in_order(files.submissions):
        team, day, target = submission.team, submission.day, submission.manifest.target
        if team not in files.rules.teams:
            yield f"{submission}: unknown team {team}; expected one of contest.yaml's teams"
        if target not in files.defences:
            yield f"{submission}: unknown target {target}; expected a defence team/name"
        if target not in staked or staked[target] > day:
            found = f"staked on {staked[target]}" if target in staked else "not staked"
            yield f"{submission}: {target} is {found}; expected a target that is staked by {day}"
        if numbers[str(submission)] > 1:
            yield f"{submission}: a second time; expected another number"
        a_day[team, day] += len(submission.manifest.images)
        if a_day[team, day] > limits.images_a_day:
            images = f"{a_day[team, day]} images of {team} on that day"
            yield f"{submission}: {images}; expected at most {limits.images_a_day}"
        yield from _images(submission, files)
    for repeat in repeats(files.submissions):
        if repeat.first == repeat.submission:
            yield f"{repeat}; expected each image once"


def _images(submission: Submission, files: ContestFiles) -> Iterator[str]:
    limits = files.rules.limits
    for image in submission.manifest.images:
        where, size = f"{submission}/{image.file}", f"{image.width} x {image.height} pixels"
        if max(image.width, image.height) > limits.max_side:
            yield f"{where}: {size}; expected at most {limits.max_side} a side"
        if min(image.width, image.height) < limits.min_side:
            yield f"{where}: {size}; expected at least {limits.min_side} a side"
        if image.sha256 in files.controls:
            yield f"{where}: a control image of the judges; expected an image that they do not know"


def _answers(files: ContestFiles, images: dict[str, Submission]) -> Iterator[str]:
    sizes = {image.sha256: (image.width, image.height) for _, image in submitted_images(files.submissions)}
    groups, weeks = sorted(files.rules.classes), {each.week for each in files.submissions}
    seen: set[tuple[str, str]] = set()
    for each in sorted(files.answers, key=str):
        if each.judge not in files.roster:
            yield f"{each}: judge {each.judge} is not in the roster; expected one of judges/roster.yaml"
        for sha256, answer in sorted(each.answers.items()):
            where = f"{each}: {sha256[:12]}…"
            if (each.judge, sha256) in seen:
                yield f"{where}: answered twice by this judge; expected one answer to an image"
            seen.add((each.judge, sha256))
            if sorted(answer.contains) != groups:
                yield f"{where}: contains {', '.join(map(shown, answer.contains))}; expected {', '.join(groups)}"
            # a control has no week of its own: it is mixed into any week with submissions
            if sha256 in files.controls:
                is_shown = each.week in weeks
            else:
                is_shown = sha256 in images and images[sha256].week == each.week
            if not is_shown or answer.date <= each.week:
                yield (
                    f"{where}: an image never shown to this judge in the week of {each.week}; expected one that was "
                    "submitted in it, and judged after its Friday"
                )
            if answer.outline is not None and sha256 in sizes:
                for problem in points_outside(answer.outline, *sizes[sha256]):
                    yield f"{where}: {problem}"


def _board(files: ContestFiles, images: dict[str, Submission]) -> Iterator[str]:
    rules, parties = files.rules, Parties(files)
    decided: set[tuple[str, datetime.date]] = set()
    for decision in sorted(files.board.decisions, key=lambda each: (each.date, each.image, str(each))):
        where = f"board/decisions.yaml: {decision.image[:12]}… on {decision.date}"
        if decision.image not in images or images[decision.image].week >= decision.date:
            yield f"{where}: no image published by then; expected one whose week has ended"
        if (decision.image, decision.date) in decided:
            yield f"{where}: two decisions on one day; expected one"
        decided.add((decision.image, decision.date))
        if decision.verdict not in (*rules.classes, INVALID, None):
            yield f"{where}: verdict {decision.verdict}; expected one of {', '.join((*rules.classes, INVALID))}"
        yield from _members(rules, decision, parties.deciding(images[decision.image], decision), where)
    for appeal in sorted(files.board.appeals, key=lambda each: (each.date, each.image, each.team)):
        where = f"board/appeals.yaml: {appeal.image[:12]}… by {appeal.team}"
        if appeal.image not in images or images[appeal.image].week >= appeal.date:
            yield f"{where}: no image published by {appeal.date}; expected one whose week has ended"
        if appeal.team not in rules.teams:
            yield f"{where}: unknown team; expected one of contest.yaml's teams"
    for accepted in sorted(files.board.accepted, key=lambda each: (each.date, each.defence)):
        if accepted.defence not in files.defences:
            yield f"board/accepted.yaml: unknown defence {accepted.defence}; expected one submitted by then"


def _members(rules: ContestRules, decision: BoardDecision, parties: frozenset[str], where: str) -> Iterator[str]:
    count = len(decision.members)
    if count < rules.quorum:
        yield f"{where}: {count} members; expected at least {rules.quorum}, contest.yaml's quorum"
    for member in (*decision.members, *decision.recused):
        if member not in rules.board:
            yield f"{where}: {member} is not a member of the board; expected one of contest.yaml's board"
    # of a team that gains or loses by the decision
    for member in sorted(decision.members):
        if rules.board[member].has_conflict_with(parties):
            yield (
                f"{where}: counts {member}, who has a conflict with {', '.join(sorted(parties))}; "
                "expected the member under recused, and the decision of others"
            )


def _runs(files: ContestFiles, images: dict[str, Submission]) -> Iterator[str]:
    seen: set[tuple[str, datetime.date]] = set()
    accepted, known = accepted_on(files), {*files.rules.classes, ABSTAIN}
    by_week: dict[datetime.date, set[str]] = {}
    first: dict[str, DefenceRun] = {}
    for sha256, submission in images.items():
        by_week.setdefault(submission.week, set()).add(sha256)
    for run in sorted(files.runs, key=lambda each: (each.defence, each.date)):
        where = f"results/runs/{run.defence}/{run.date}.json"
        if run.defence not in files.defences:
            yield f"{where}: unknown defence; expected one submitted by then"
        if (run.defence, run.date) in seen:
            yield f"{where}: two runs on one day; expected one"
        seen.add((run.defence, run.date))
        yield from _other_defence(files, run, first.setdefault(run.defence, run), where)
        is_command = files.defences[run.defence].command is not None
        if is_command and accepted.get(run.defence, datetime.date.max) > run.date:
            yield f"{where}: a command that the board has not accepted by then; expected board/accepted.yaml"
        for wrong in sorted(set(run.answers.values()) - known):
            yield f"{where}: answers {shown(wrong)}; expected one of {', '.join(sorted(known))}"
        for unknown in sorted(run.answers.keys() - images.keys()):
            yield f"{where}: answers {unknown[:12]}…, which nobody submitted; expected submitted images"
        # by week, because comparing sets is faster than looking up the week of each image
        missing = set[str]().union(*(names - run.answers.keys() for week, names in by_week.items() if week < run.date))
        if missing:
            yield f"{where}: no answer to {min(missing)[:12]}…; expected one to every image published by then"


def _other_defence(files: ContestFiles, run: DefenceRun, first: DefenceRun, where: str) -> Iterator[str]:
    if run.digest != files.digests[run.defence]:
        yield (
            f"{where}: a run of a {run.defence} with the digest {run.digest}; expected {files.digests[run.defence]} of "
            "its defence.yaml and files: git checkout it, and submit what has changed under another name"
        )
    if run.model != first.model:
        yield (
            f"{where}: a run of a model with the digest {run.model}; expected {first.model}, as in the run of "
            f"{first.date}: the model's entry in the edition's params.yaml has changed"
        )
