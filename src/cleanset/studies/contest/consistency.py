"""The teams that gain or lose by the verdict on an image: who may appeal, and who may not decide.

Check the files of a contest against each other: names, order of dates, duplicates, conflicts of interest.
"""

import datetime
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cleanset.errors import CleansetError
from cleanset.studies.contest.files import (
    BoardDecision,
    ContestFiles,
    DefenceRun,
    Stake,
    Submission,
    SubmittedImage,
    in_order,
    repeats,
    team_of,
)
from cleanset.studies.contest.judging import check_inside
from cleanset.studies.contest.rules import ABSTAIN, BOARD, INVALID, ContestLimits
from cleanset.validation import shown


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


def check_files(files: ContestFiles) -> None:
    """Raise CleansetError for the first contradiction, in an order that does not depend on that of the files."""
    check_submissions(files)
    # of an image that was submitted twice the first submission counts
    first_last = reversed(in_order(files.submissions))
    images = {image.sha256: submission for submission in first_last for image in submission.manifest.images}
    _check_answers(files, images)
    _check_board(files, images)
    _check_runs(files, images)


def check_submissions(files: ContestFiles) -> None:
    """Check defences, stakes and submissions alone, as `check_files` does, before anything was judged or run."""
    _check_defences(files)
    _check_stakes(files)
    _check_submissions(files)


def _check_defences(files: ContestFiles) -> None:
    for name in sorted(files.defences):
        if team_of(name) not in files.rules.teams:
            raise CleansetError(f"defences/{name}: unknown team {team_of(name)}; expected one of contest.yaml's teams")


def _check_stakes(files: ContestFiles) -> None:
    batches: set[str] = set()
    staked: set[str] = set()
    for stake in sorted(files.board.stakes, key=lambda each: (each.date, each.batch, each.by, each.defences)):
        where = f"board/stakes.yaml: batch {stake.batch}"
        if stake.batch in batches:
            raise CleansetError(f"{where}: a second time; expected one entry for each batch")
        batches.add(stake.batch)
        for name in sorted(stake.defences):
            if name not in files.defences:
                raise CleansetError(f"{where}: unknown defence {name}; expected one submitted by {stake.date}")
            if files.defences[name].submitted > stake.date:
                raise CleansetError(
                    f"{where}: {name} was submitted on {files.defences[name].submitted}; expected no earlier stake"
                )
            if name in staked or stake.defences.count(name) > 1:
                raise CleansetError(f"{where}: {name} is staked a second time; expected one stake for each defence")
            if stake.by not in (BOARD, team_of(name)):
                raise CleansetError(f"{where}: {name} is staked by {stake.by}; expected board, or its own team")
            staked.add(name)
        _check_digests(files, stake, where)


def _check_digests(files: ContestFiles, stake: Stake, where: str) -> None:
    if stake.digests.keys() != set(stake.defences):
        wrong = min(stake.digests.keys() ^ set(stake.defences))
        raise CleansetError(
            f"{where}: digests: {wrong}; expected one of each of its defences: cleanset contest stake prints them"
        )
    for name in sorted(stake.digests):
        check_staked_digest(stake, name, files.digests[name])


def check_staked_digest(stake: Stake, name: str, digest: str) -> None:
    """Raise CleansetError for a defence with another digest than its stake's."""
    if stake.digests.get(name, digest) != digest:
        raise CleansetError(
            f"defences/{name}: digest {digest} of defence.yaml and its files; expected {stake.digests[name]}, "
            f"staked on {stake.date}: git checkout it, and submit what has changed under another name"
        )


def stake_days(files: ContestFiles) -> dict[str, datetime.date]:
    """The day on which each staked defence was staked."""
    return {name: stake.date for stake in files.board.stakes for name in stake.defences}


def _check_submissions(files: ContestFiles) -> None:
    numbers = Counter(str(each) for each in files.submissions)
    a_day: Counter[tuple[str, datetime.date]] = Counter()
    for submission in in_order(files.submissions):
        _check_target(files, submission)
        if numbers[str(submission)] > 1:
            raise CleansetError(f"{submission}: a second time; expected another number")
        a_day[submission.team, submission.day] += len(submission.manifest.images)
        if a_day[submission.team, submission.day] > files.rules.limits.images_a_day:
            raise CleansetError(
                f"{submission}: {a_day[submission.team, submission.day]} images of {submission.team} on that day; "
                f"expected at most {files.rules.limits.images_a_day}"
            )
        _check_images(submission, files)
    for repeat in repeats(files.submissions):
        if repeat.first == repeat.submission:
            raise CleansetError(f"{repeat}; expected each image once")


def _check_target(files: ContestFiles, submission: Submission) -> None:
    staked, target = stake_days(files), submission.manifest.target
    if submission.team not in files.rules.teams:
        raise CleansetError(f"{submission}: unknown team {submission.team}; expected one of contest.yaml's teams")
    if target not in files.defences:
        raise CleansetError(f"{submission}: unknown target {target}; expected a defence team/name")
    if target not in staked or staked[target] > submission.day:
        found = f"staked on {staked[target]}" if target in staked else "not staked"
        raise CleansetError(f"{submission}: {target} is {found}; expected a target that is staked by {submission.day}")


def _check_images(submission: Submission, files: ContestFiles) -> None:
    for image in submission.manifest.images:
        where = f"{submission}/{image.file}"
        _check_size(image, files.rules.limits, where)
        if image.sha256 in files.controls:
            raise CleansetError(f"{where}: a control image of the judges; expected an image that they do not know")


def _check_size(image: SubmittedImage, limits: ContestLimits, where: str) -> None:
    size = f"{image.width} x {image.height} pixels"
    if max(image.width, image.height) > limits.max_side:
        raise CleansetError(f"{where}: {size}; expected at most {limits.max_side} a side")
    if min(image.width, image.height) < limits.min_side:
        raise CleansetError(f"{where}: {size}; expected at least {limits.min_side} a side")


def _check_answers(files: ContestFiles, images: dict[str, Submission]) -> None:
    sizes = {image.sha256: image for each in files.submissions for image in each.manifest.images}
    groups, weeks = sorted(files.rules.classes), {each.week for each in files.submissions}
    seen: set[tuple[str, str]] = set()
    for each in sorted(files.answers, key=str):
        if each.judge not in files.roster:
            raise CleansetError(f"{each}: judge {each.judge} is not in the roster; expected one of judges/roster.yaml")
        for sha256, answer in sorted(each.answers.items()):
            where = f"{each}: {sha256[:12]}…"
            if (each.judge, sha256) in seen:
                raise CleansetError(f"{where}: answered twice by this judge; expected one answer to an image")
            seen.add((each.judge, sha256))
            if sorted(answer.contains) != groups:
                raise CleansetError(
                    f"{where}: contains {', '.join(map(shown, answer.contains))}; expected {', '.join(groups)}"
                )
            # a control has no week of its own: it is mixed into any week with submissions
            if sha256 in files.controls:
                is_shown = each.week in weeks
            else:
                is_shown = sha256 in images and images[sha256].week == each.week
            if not is_shown or answer.date <= each.week:
                raise CleansetError(
                    f"{where}: an image never shown to this judge in the week of {each.week}; expected one that was "
                    "submitted in it, and judged after its Friday"
                )
            image = sizes.get(sha256)
            if answer.outline is not None and image is not None:
                try:
                    check_inside(answer.outline, image.width, image.height)
                except ValueError as error:
                    raise CleansetError(f"{where}: {error}") from None


def _check_board(files: ContestFiles, images: dict[str, Submission]) -> None:
    decided: set[tuple[str, datetime.date]] = set()
    parties = Parties(files)
    for decision in sorted(files.board.decisions, key=lambda each: (each.date, each.image, str(each))):
        where = f"board/decisions.yaml: {decision.image[:12]}… on {decision.date}"
        if decision.image not in images or images[decision.image].week >= decision.date:
            raise CleansetError(f"{where}: no image published by then; expected one whose week has ended")
        if (decision.image, decision.date) in decided:
            raise CleansetError(f"{where}: two decisions on one day; expected one")
        decided.add((decision.image, decision.date))
        if decision.verdict is not None and decision.verdict not in (*files.rules.classes, INVALID):
            expected = ", ".join((*files.rules.classes, INVALID))
            raise CleansetError(f"{where}: verdict {decision.verdict}; expected one of {expected}")
        _check_members(files, decision, parties.deciding(images[decision.image], decision), where)
    for appeal in sorted(files.board.appeals, key=lambda each: (each.date, each.image, each.team)):
        where = f"board/appeals.yaml: {appeal.image[:12]}… by {appeal.team}"
        if appeal.image not in images or images[appeal.image].week >= appeal.date:
            raise CleansetError(f"{where}: no image published by {appeal.date}; expected one whose week has ended")
        if appeal.team not in files.rules.teams:
            raise CleansetError(f"{where}: unknown team; expected one of contest.yaml's teams")
    for accepted in sorted(files.board.accepted, key=lambda each: (each.date, each.defence)):
        if accepted.defence not in files.defences:
            raise CleansetError(
                f"board/accepted.yaml: unknown defence {accepted.defence}; expected one submitted by then"
            )


def _check_members(files: ContestFiles, decision: BoardDecision, parties: frozenset[str], where: str) -> None:
    """Refuse too few members, and one with a conflict of interest: with a team that gains or loses by the decision."""
    if len(decision.members) < files.rules.quorum:
        raise CleansetError(
            f"{where}: {len(decision.members)} members; expected at least {files.rules.quorum}, contest.yaml's quorum"
        )
    for member in (*decision.members, *decision.recused):
        if member not in files.rules.board:
            raise CleansetError(f"{where}: {member} is not a member of the board; expected one of contest.yaml's board")
    for member in sorted(decision.members):
        if files.rules.board[member].has_conflict_with(parties):
            raise CleansetError(
                f"{where}: counts {member}, who has a conflict with {', '.join(sorted(parties))}; "
                "expected the member under recused, and the decision of others"
            )


def _check_runs(files: ContestFiles, images: dict[str, Submission]) -> None:
    seen: set[tuple[str, datetime.date]] = set()
    # the latest first, so that the earliest permission of a defence is the one that stays
    accepted = {each.defence: each.date for each in sorted(files.board.accepted, key=lambda each: each.date)[::-1]}
    known = {*files.rules.classes, ABSTAIN}
    by_week: dict[datetime.date, set[str]] = {}
    models: dict[str, DefenceRun] = {}
    for sha256, submission in images.items():
        by_week.setdefault(submission.week, set()).add(sha256)
    for run in sorted(files.runs, key=lambda each: (each.defence, each.date)):
        where = f"results/runs/{run.defence}/{run.date}.json"
        if run.defence not in files.defences:
            raise CleansetError(f"{where}: unknown defence; expected one submitted by then")
        if (run.defence, run.date) in seen:
            raise CleansetError(f"{where}: two runs on one day; expected one")
        seen.add((run.defence, run.date))
        _check_same_defence(files, run, models, where)
        is_command = files.defences[run.defence].command is not None
        if is_command and (run.defence not in accepted or accepted[run.defence] > run.date):
            raise CleansetError(
                f"{where}: a command that the board has not accepted by then; expected board/accepted.yaml"
            )
        if not set(run.answers.values()) <= known:
            wrong = min(set(run.answers.values()) - known)
            raise CleansetError(f"{where}: answers {shown(wrong)}; expected one of {', '.join(sorted(known))}")
        _check_complete(run, images, by_week, where)


def _check_same_defence(files: ContestFiles, run: DefenceRun, first: dict[str, DefenceRun], where: str) -> None:
    """Refuse a run of another defence than the one that lies there, or of a model that has changed since the first."""
    if run.digest != files.digests[run.defence]:
        raise CleansetError(
            f"{where}: a run of a {run.defence} with the digest {run.digest}; expected {files.digests[run.defence]} of "
            "its defence.yaml and files: git checkout it, and submit what has changed under another name"
        )
    before = first.setdefault(run.defence, run)
    if run.model != before.model:
        raise CleansetError(
            f"{where}: a run of a model with the digest {run.model}; expected {before.model}, as in the run of "
            f"{before.date}: the model's entry in the edition's params.yaml has changed"
        )


def _check_complete(
    run: DefenceRun, images: dict[str, Submission], by_week: dict[datetime.date, set[str]], where: str
) -> None:
    unknown = run.answers.keys() - images.keys()
    # by week, because comparing sets is faster than looking up the week of each image
    missing = set[str]().union(*(names - run.answers.keys() for week, names in by_week.items() if week < run.date))
    if unknown:
        raise CleansetError(f"{where}: answers {min(unknown)[:12]}…, which nobody submitted; expected submitted images")
    if missing:
        raise CleansetError(
            f"{where}: no answer to {min(missing)[:12]}…; expected one to every image published by then"
        )
