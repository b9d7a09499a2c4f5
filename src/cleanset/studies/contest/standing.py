"""The standing of a contest on a day, from its files alone, and its history: defences broken and won, and shares.

The files are checked against each other first: names, order of dates, duplicates, conflicts of interest of the teams
that gain or lose by the verdict on an image.
"""

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Literal, NamedTuple

from cleanset.errors import CleansetError
from cleanset.machine import without_garbage_collection
from cleanset.statistics.coverage import overfitting
from cleanset.studies.contest.files import (
    MIN_COSIGNERS,
    BoardDecision,
    Checkpoint,
    ContestFiles,
    DefenceRun,
    Submission,
    SubmittedImage,
    counted,
    in_order,
    reasons_against,
    repeats,
    submitted_images,
    team_of,
)
from cleanset.studies.contest.judges import ImageCourse, ImageState, events_by_image, left_out
from cleanset.studies.contest.judging import points_outside
from cleanset.studies.contest.rules import ABSTAIN, BOARD, INVALID, after
from cleanset.validation import shown


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


def check_files(files: ContestFiles) -> None:
    """Raise CleansetError for the first contradiction, in an order independent of the files' order."""
    # of an image that was submitted twice the first submission counts
    first_last = reversed(in_order(files.submissions))
    images = {image.sha256: each for each, image in submitted_images(first_last)}
    checks = (_defences, _stakes, _submissions, _answers, _board, _conflicts, _runs)
    for problem in chain(*(find(files, images) for find in checks)):
        raise CleansetError(problem)


# The functions below yield a problem and go on as if there were none: nothing is asked for after the first one.
def _defences(files: ContestFiles, _: Mapping[str, Submission]) -> Iterator[str]:
    most = files.rules.limits.defences
    for team, count in sorted(Counter(map(team_of, files.defences)).items()):
        if count > most:
            yield f"{count} defences of {team}; expected at most {most}, limits.defences of the contest"
    for name in sorted(files.defences):
        if team_of(name) not in files.rules.teams:
            yield f"defence {name}: unknown team {team_of(name)}; expected one of the contest's teams"


def _stakes(files: ContestFiles, _: Mapping[str, Submission]) -> Iterator[str]:
    batches: set[str] = set()
    staked: set[str] = set()
    for stake in sorted(files.stakes, key=lambda each: (each.date, each.batch, each.by, each.defences)):
        where = f"stake of batch {stake.batch}"
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


def _submissions(files: ContestFiles, _: Mapping[str, Submission]) -> Iterator[str]:
    limits = files.rules.limits
    staked = {name: stake.date for stake in files.stakes for name in stake.defences}
    a_day: Counter[tuple[str, datetime.date]] = Counter()
    for submission in in_order(files.submissions):
        team = submission.team
        day = submission.day
        target = submission.manifest.target
        if team not in files.rules.teams:
            yield f"{submission}: unknown team {team}; expected one of the contest's teams"
        if target not in files.defences:
            yield f"{submission}: unknown target {target}; expected a defence team/name"
        if target not in staked or staked[target] > day:
            found = f"staked on {staked[target]}" if target in staked else "not staked"
            yield f"{submission}: {target} is {found}; expected a target that is staked by {day}"
        a_day[team, day] += len(submission.manifest.images)
        if a_day[team, day] > limits.images_a_day:
            images = f"{a_day[team, day]} images of {team} on {day}"
            yield f"{submission}: {images}; expected at most {limits.images_a_day}"
        before = {
            name: files.defences[name].pixels for name, on in staked.items() if on <= day and name in files.defences
        }
        smallest = min(before, key=lambda name: (before[name], name), default=target)
        yield from _images(submission, files, smallest)
    for repeat in repeats(files.submissions):
        if repeat.first == repeat.submission:
            yield f"{repeat}; expected each image once"


def _images(submission: Submission, files: ContestFiles, smallest: str) -> Iterator[str]:
    """`smallest`: the staked defence that sees the fewest pixels: people must see no more than any of them."""
    limits = files.rules.limits
    most = files.defences[smallest].pixels
    for image in submission.manifest.images:
        where = f"{submission}/{image.file}"
        size = f"{image.width} x {image.height} pixels"
        if image.width != image.height:
            yield f"{where}: {size}; expected a square image: models look at the central square of others"
        if max(image.width, image.height) > most:
            yield f"{where}: {size}; expected at most {most} a side, as many as {smallest} sees: make it smaller"
        if min(image.width, image.height) < limits.min_side:
            yield f"{where}: {size}; expected at least {limits.min_side} a side"
        if image.sha256 in files.controls:
            yield f"{where}: a control image of the judges; expected an image that they do not know"


def _answers(files: ContestFiles, images: dict[str, Submission]) -> Iterator[str]:
    sizes = {image.sha256: (image.width, image.height) for _, image in submitted_images(files.submissions)}
    groups = sorted(files.rules.classes)
    weeks = {each.week for each in files.submissions}
    for each in sorted(files.answers, key=str):
        if each.judge not in files.roster:
            yield f"{each}: judge {each.judge} is not in the roster; expected a judge who was entered before"
        for sha256, answer in sorted(each.answers.items()):
            where = f"{each}: {sha256[:12]}…"
            if sorted(answer.contains) != groups:
                yield f"{where}: contains {', '.join(map(shown, answer.contains))}; expected {', '.join(groups)}"
            # a control has no week of its own: it is mixed into any week with submissions
            if sha256 in files.controls:
                is_shown = each.week in weeks
            else:
                is_shown = sha256 in images and images[sha256].week == each.week
            if not is_shown or answer.date < each.week:
                yield (
                    f"{where}: an image never shown to this judge in the week of {each.week}; expected one that was "
                    "submitted in it, and judged when it was published"
                )
            if answer.outline is not None and sha256 in sizes:
                for problem in points_outside(answer.outline, *sizes[sha256]):
                    yield f"{where}: {problem}"


def _board(files: ContestFiles, images: dict[str, Submission]) -> Iterator[str]:
    rules = files.rules
    parties = Parties(files)
    decided: set[tuple[str, datetime.date]] = set()
    for decision in sorted(files.decisions, key=lambda each: (each.date, each.image, str(each))):
        where = f"decision on {decision.image[:12]}… of {decision.date}"
        if decision.image not in images or images[decision.image].week > decision.date:
            yield f"{where}: no image published by then; expected one whose week has ended"
        if (decision.image, decision.date) in decided:
            yield f"{where}: two decisions on one day; expected one"
        decided.add((decision.image, decision.date))
        if decision.verdict not in (*rules.classes, INVALID, None):
            yield f"{where}: verdict {decision.verdict}; expected one of {', '.join((*rules.classes, INVALID))}"
        yield from _members(files, decision, parties.deciding(images[decision.image], decision), where)
    for appeal in sorted(files.appeals, key=lambda each: (each.date, each.image, each.team)):
        where = f"appeal of {appeal.team} on {appeal.image[:12]}…"
        if appeal.image not in images or images[appeal.image].week > appeal.date:
            yield f"{where}: no image published by {appeal.date}; expected one whose week has ended"
        if appeal.team not in rules.teams:
            yield f"{where}: unknown team; expected one of the contest's teams"
    for accepted in sorted(files.accepted, key=lambda each: (each.date, each.defence)):
        if accepted.defence not in files.defences:
            yield f"acceptance of an unknown defence {accepted.defence}; expected one submitted by then"


def _has_conflict(files: ContestFiles, member: str, teams: frozenset[str], on: datetime.date) -> bool:
    """Whether a member of the board has a conflict of interest with one of some teams, declared before a day."""
    declared = {team for day, name, team in files.conflicts if name == member and day < on}
    return files.rules.board[member].has_conflict_with(teams) or not teams.isdisjoint(declared)


def _conflicts(files: ContestFiles, images: dict[str, Submission]) -> Iterator[str]:
    rules = files.rules
    parties = Parties(files)
    for each in files.withdrawals:
        concerned = (parties.withdrawing(images[one], one, each.date) for one in each.images if one in images)
        teams = each.teams.union(*concerned)
        for member in sorted(each.members & rules.board.keys()):
            if _has_conflict(files, member, teams, each.date):
                yield (
                    f"{each.line}: signed by {member}, who has a conflict with {', '.join(sorted(teams))}; expected "
                    "others"
                )
    yield from _declared(files)


def _declared(files: ContestFiles) -> Iterator[str]:
    rules = files.rules
    for day, member, team in sorted(files.conflicts):
        where = f"conflict of {member} with {team}, declared on {day}"
        if member not in rules.board or team not in rules.teams:
            yield f"{where}: unknown; expected a member of the board and a team"
            return
        left = [one for one in rules.board if not _has_conflict(files, one, frozenset({team}), datetime.date.max)]
        if len(left) < rules.quorum:
            yield f"{where}: {len(left)} members are left; expected a quorum of {rules.quorum} without this conflict"


def _members(files: ContestFiles, decision: BoardDecision, parties: frozenset[str], where: str) -> Iterator[str]:
    rules = files.rules
    count = len(decision.members)
    if count < rules.quorum:
        yield f"{where}: signed by {count} members; expected at least {rules.quorum}, the contest's quorum"
    for member in (*decision.members, *decision.recused):
        if member not in rules.board:
            yield f"{where}: {member} is not a member of the board; expected one of {', '.join(rules.board)}"
    # of a team that gains or loses by the decision
    for member in sorted(decision.members):
        if _has_conflict(files, member, parties, decision.date):
            yield (
                f"{where}: signed by {member}, who has a conflict with {', '.join(sorted(parties))}; "
                "expected the member under recused, and the decision of others"
            )


def _runs(files: ContestFiles, images: dict[str, Submission]) -> Iterator[str]:
    seen: set[tuple[str, datetime.date]] = set()
    accepted = accepted_on(files)
    known = {*files.rules.classes, ABSTAIN}
    by_week: dict[datetime.date, set[str]] = {}
    first: dict[str, DefenceRun] = {}
    for sha256, submission in images.items():
        by_week.setdefault(submission.week, set()).add(sha256)
    for run in sorted(files.runs, key=lambda each: (each.defence, each.date)):
        where = f"run of {run.defence} on {run.date}"
        if run.defence not in files.defences:
            yield f"{where}: unknown defence; expected one submitted by then"
        if (run.defence, run.date) in seen:
            yield f"{where}: two runs on one day; expected one"
        seen.add((run.defence, run.date))
        model = first.setdefault(run.defence, run).model
        if run.model != model:
            yield (
                f"{where}: a run of a model with the digest {run.model}; expected {model}, as in its first run: the "
                "model's entry in the edition's params.yaml has changed"
            )
        is_command = files.defences[run.defence].command is not None
        if is_command and accepted.get(run.defence, datetime.date.max) > run.date:
            yield f"{where}: a command that the board has not accepted by then; expected its acceptance"
        for wrong in sorted(set(run.answers.values()) - known):
            yield f"{where}: answers {shown(wrong)}; expected one of {', '.join(sorted(known))}"
        for unknown in sorted(run.answers.keys() - images.keys()):
            yield f"{where}: answers {unknown[:12]}…, which nobody submitted; expected submitted images"
        # by week, because comparing sets is faster than looking up the week of each image
        missing = set[str]().union(*(names - run.answers.keys() for week, names in by_week.items() if week < run.date))
        if missing:
            yield f"{where}: no answer to {min(missing)[:12]}…; expected one to every image published by then"


DefenceStatus = Literal["ineligible", "eligible", "staked", "broken", "awaiting", "won"]
"""May not be staked; may be staked; staked; broken; staked long enough, with open questions (`waits_for`); won."""
Shares = Mapping[str, Fraction]
"""Shares of one stake or one batch, by team."""


@dataclass(frozen=True, slots=True)
class DefenceStanding:
    """A defence on a day."""

    name: str
    status: DefenceStatus
    staked_on: datetime.date | None = None
    batch: str | None = None
    """The name of the batch that it is staked in."""

    reasons: tuple[str, ...] = ()
    """Reasons why it is not eligible."""

    broken_in: datetime.date | None = None
    """The first week, by its Friday, with a valid image that the defence gives the other group."""

    broken_by: tuple[str, ...] = ()
    """The teams of that week."""

    shares: Shares = field(default_factory=dict)
    """These teams' parts of the stake."""

    settled: bool = False
    """Whether nothing dated later changes that it is broken in this week and by these teams, or that it has won."""

    open_until: str = ""
    """The last day for appeals against images of that week and before, or the missing part; "" once settled."""

    waits_for: tuple[str, ...] = ()
    """Open questions before it wins."""

    overfitting: Fraction | None = None
    """Accuracy on the eligibility list minus accuracy on an unpublished one, in its first run over both."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The contest at the end of a day."""

    on: datetime.date
    images: Mapping[str, ImageState]
    """The state of every published image, by its SHA-256, in the order of submission."""

    defences: Sequence[DefenceStanding]
    attackers: Shares
    """The sum of each team's settled shares of the stakes of broken defences."""

    defenders: Shares
    """The sum of each team's shares of the batches that have won."""

    left_out: Mapping[str, str] = field(default_factory=dict)
    """The judges whose answers do not count, by id, each with the reason."""

    notes: tuple[str, ...] = ()
    """Sentences on the limits of this contest's checks."""

    contest: str = ""
    """The digest of the first line of the log, which is the contest's identity."""

    head: str = ""
    """The digest of the last line of the log."""

    checkpoints: tuple[Checkpoint, ...] = ()
    """One for each published week."""


@without_garbage_collection()
def standing(files: ContestFiles, on: datetime.date) -> Standing:
    """The standing at the end of a day, from the entries up to it; the order of files does not matter.

    Raises CleansetError for files that contradict each other or the rules.
    """
    check_files(files)
    said = notes(files)
    files = replace(files, submissions=counted(files.submissions))
    contest = _Contest(files)
    contest.advance(on)
    defences = contest.defences()
    attackers, defenders = _shares(files, defences)
    return Standing(
        on=on,
        images=contest.states,
        defences=defences,
        attackers=attackers,
        defenders=defenders,
        left_out=left_out(files, on),
        notes=said,
        contest=files.contest,
        head=files.head,
        checkpoints=tuple(files.checkpoints),
    )


def cosigned_by_few(checkpoints: Iterable[Checkpoint]) -> Iterator[str]:
    """A sentence for each checkpoint that fewer teams have cosigned than have to.

    Nothing is refused for it: otherwise teams could end a contest by saying nothing.
    """
    for each in checkpoints:
        if len(each.teams) < MIN_COSIGNERS:
            yield (
                f"The checkpoint of {each.day}, of {each.size} lines, is cosigned by "
                f"{', '.join(each.teams) or 'no team'}; expected at least {MIN_COSIGNERS} teams before the next one: "
                "only the organizers vouch that everybody was shown the same lines."
            )


def notes(files: ContestFiles) -> tuple[str, ...]:
    """The sentences on the limits of the contest's checks."""
    found = []
    if files.rules.unpublished is None:
        found.append(
            "No unpublished list decides who is eligible: a defence that knows the published images by heart is, too."
        )
    found += cosigned_by_few(files.checkpoints)
    if files.rules.made_up:
        found.append("This contest is made up: none of it has happened, and its dates were chosen.")
    unconfined = sorted({run.defence for run in files.runs if run.confined is False})
    if unconfined:
        found.append(f"Ran unconfined, so that it could read whatever the machine has: {', '.join(unconfined)}.")
    return (*found, *(f"Left out: {each}, which counts." for each in repeats(files.submissions)))


class _Mistake(NamedTuple):
    """A valid image that a defence gives the other group; `day`: from which on both are known."""

    day: datetime.date
    sha256: str
    submission: Submission


@dataclass(slots=True)
class _DayImages:
    """The published images of a week that were submitted on one day."""

    week: datetime.date
    open: dict[str, ImageState] = field(default_factory=dict)
    """Those without a final verdict."""

    closed_on: datetime.date | None = None
    """The last of the first days with a final verdict of the others; None without any."""


class _Contest:
    """The published images with their states, and the answers of each defence to them, as the days go by.

    Each day costs as much as its entries, and as the defences that are staked and not settled.
    """

    def __init__(self, files: ContestFiles) -> None:
        self._files = files
        self._on = datetime.date.min
        self._stakes = {name: stake for stake in files.stakes for name in stake.defences}
        # the files come in any order; the order of submission is that of the standing and the page
        self._unpublished: dict[datetime.date, list[tuple[SubmittedImage, Submission]]] = {}
        for each in in_order(files.submissions):
            images = [(image, each) for image in sorted(each.manifest.images, key=lambda image: image.sha256)]
            self._unpublished.setdefault(each.week, []).extend(images)
        self._events = events_by_image(files)
        self._due = [(event[0], sha256) for sha256, events in self._events.items() for event in events]
        """When the state of an image may change: a heap."""
        heapify(self._due)
        self._waiting_runs = sorted(files.runs, key=lambda each: each.date, reverse=True)
        self._breaking = Parties(files).breaking
        self._courses: dict[str, ImageCourse] = {}
        self._submissions: dict[str, Submission] = {}
        self.states: dict[str, ImageState] = {}
        """By SHA-256, in the order of submission."""
        self._days: dict[tuple[datetime.date, datetime.date], _DayImages] = {}
        """By the day of submission and the week."""
        self._aimed: dict[str, list[str]] = {}
        """By defence, the published images that are aimed at it."""
        self._valid: dict[str, str] = {}
        """The group of each valid image."""
        self._runs: dict[str, list[DefenceRun]] = {name: [] for name in files.defences}
        self._counting: dict[str, list[tuple[DefenceRun, Sequence[str]]]] = {name: [] for name in files.defences}
        """The runs over the list that decides who is eligible, with the reasons against it in their results on it."""
        self._mistakes: dict[str, dict[str, _Mistake]] = {name: {} for name in files.defences}
        self._kept: dict[str, DefenceStanding] = {}
        """The standings that change only with a run, a stake or a mistake."""
        self._sides: dict[str, int] = {}
        """Of each published image the longer side."""
        # many defences are staked on one day
        self._submitted_before = cache(self._images_before)

    def advance(self, on: datetime.date) -> None:
        """Go on to the end of a day."""
        self._on = on
        touched = dict.fromkeys(self._publish())
        while self._due and self._due[0][0] <= on:
            touched[heappop(self._due)[1]] = None
        valid = [sha256 for sha256 in touched if sha256 in self._courses and self._is_newly_valid(sha256)]
        for run in chain.from_iterable(self._runs.values() if valid else ()):
            self._find_mistakes(run, valid)
        while self._waiting_runs and self._waiting_runs[-1].date <= on:
            run = self._waiting_runs.pop()
            self._runs[run.defence].append(run)
            self._count(run)
            self._kept.pop(run.defence, None)
            self._find_mistakes(run, self._valid)

    def _publish(self) -> list[str]:
        """Add the images of the weeks that have ended; their SHA-256."""
        found = []
        for week in sorted(each for each in self._unpublished if each <= self._on):
            for image, submission in self._unpublished.pop(week):
                found.append(image.sha256)
                self._submissions[image.sha256] = submission
                self._sides[image.sha256] = max(image.width, image.height)
                self.states[image.sha256] = ImageState("open")
                self._aimed.setdefault(submission.manifest.target, []).append(image.sha256)
                self._courses[image.sha256] = ImageCourse(
                    self._files.rules,
                    image,
                    attacker=submission.team,
                    target_team=team_of(submission.manifest.target),
                    breaking=partial(self._breaking, image.sha256),
                )
        return found

    def _is_newly_valid(self, sha256: str) -> bool:
        """Bring an image up to the day; whether it is valid since."""
        events = self._events.get(sha256, [])
        new = [each for each in events if each[0] <= self._on]
        self._events[sha256] = events[len(new) :]
        state = self.states[sha256] = self._courses[sha256].state_on(self._on, new)
        if state.appeals_until is not None:
            heappush(self._due, (state.appeals_until, sha256))
        submission = self._submissions[sha256]
        of_day = self._days.setdefault((submission.day, submission.week), _DayImages(submission.week))
        if state.closed_on is None:
            of_day.open[sha256] = state
        else:
            of_day.open.pop(sha256, None)
            of_day.closed_on = max(of_day.closed_on or state.closed_on, state.closed_on)
        if state.valid_group is None or sha256 in self._valid:
            return False
        self._valid[sha256] = state.valid_group
        return True

    def _count(self, run: DefenceRun) -> None:
        rules = self._files.rules
        hidden = run.unpublished
        if rules.unpublished is None:
            self._counting[run.defence].append((run, reasons_against(run.eligibility, rules)))
        elif hidden is not None and hidden.list_sha256 == rules.unpublished:
            against = hidden.against if hidden.figures is None else reasons_against(hidden.figures, rules)
            self._counting[run.defence].append((run, against))

    def _find_mistakes(self, run: DefenceRun, images: Iterable[str]) -> None:
        """Add the valid images among some that a run gives the other group; the first run that does so stays.

        None is larger than what the defence sees: it was submitted before the defence was staked, and people may have
        seen more.
        """
        known = self._mistakes[run.defence]
        answers = run.answers
        valid = self._valid
        most = self._files.defences[run.defence].pixels
        for sha256 in images:
            is_mistaken = answers.get(sha256, ABSTAIN) not in (valid[sha256], ABSTAIN)
            if is_mistaken and self._sides[sha256] <= most and sha256 not in known:
                valid_on = self.states[sha256].final_on
                assert valid_on is not None
                known[sha256] = _Mistake(max(run.date, valid_on), sha256, self._submissions[sha256])
                self._kept.pop(run.defence, None)

    def defences(self) -> list[DefenceStanding]:
        """The standings of the defences that were submitted by then, by name."""
        there = (name for name, each in sorted(self._files.defences.items()) if each.submitted <= self._on)
        return [self._kept.get(name) or self._defence(name) for name in there]

    def _defence(self, name: str) -> DefenceStanding:
        figures = (
            overfitting(run.eligibility, run.unpublished.figures)
            for run in self._runs[name]
            if run.unpublished is not None and run.unpublished.figures is not None
        )
        found = replace(self._status(name), overfitting=next(figures, None))
        if found.settled or name not in self._stakes:
            self._kept[name] = found
        return found

    def _status(self, name: str) -> DefenceStanding:
        stake = self._stakes.get(name)
        mistakes = sorted(self._mistakes[name].values())
        if stake is None or stake.date > self._on:
            reasons = self._with_mistake(self._why_ineligible(name), mistakes)
            return DefenceStanding(name, "ineligible" if reasons else "eligible", reasons=reasons)
        ends = after(stake.date, self._files.rules.limits.unbroken_days)
        within = [each for each in mistakes if stake.date <= each.submission.day < ends]
        before = [each for each in mistakes if each.submission.day < stake.date]
        reasons = self._why_ineligible(name, ends)
        last = self._last_run(name, ends)
        of_last = () if last is None else self._against(*last)
        won_on = None if last is None or reasons or of_last else self._won_on(name, ends, last[0].date)
        # what is seen after the win takes nothing back
        if won_on is not None and not any(each.day <= won_on for each in (*within, *before)):
            return DefenceStanding(name, "won", stake.date, stake.batch, settled=True)
        if within:
            return self._broken(name, within, before, ends)
        reasons = self._with_mistake(reasons or of_last, before)
        if reasons:
            return DefenceStanding(name, "ineligible", stake.date, stake.batch, reasons=reasons)
        if self._on < ends:
            return DefenceStanding(name, "staked", stake.date, stake.batch)
        waits_for = self._waits_for(name, ends, has_run=last is not None)
        return DefenceStanding(name, "awaiting", stake.date, stake.batch, waits_for=waits_for)

    @staticmethod
    def _with_mistake(reasons: tuple[str, ...], mistakes: Sequence[_Mistake]) -> tuple[str, ...]:
        return (*reasons, "mistake_before") if mistakes else reasons

    def _broken(
        self, name: str, within: Sequence[_Mistake], before: Sequence[_Mistake], ends: datetime.date
    ) -> DefenceStanding:
        """A broken defence, staked until `ends`: the teams of the first week share equally.

        Organizers, the board's teams and the defence's own have no share; nobody has one of a defence that was never
        eligible while it was staked.
        """
        stake = self._stakes[name]
        settled_on, week = self._settled_on(name, within)
        if settled_on is not None:
            within = [each for each in within if each.day <= settled_on]
            before = [each for each in before if each.day <= settled_on]
            # a later run makes nobody eligible any more
            ends = min(ends, after(settled_on, 1))
        reasons = self._why_ineligible(name, ends)
        teams = tuple(sorted({each.submission.team for each in within if each.submission.week == week}))
        without = self._files.rules.without_shares() | {team_of(name)}
        sharing = [team for team in teams if team not in without]
        first = self._counting[name][0][0].date if not reasons else None
        if first is None or any(each.day <= max(first, stake.date) for each in before):
            sharing = []
        # fractions, because three thirds of a stake have to be the whole of it
        shares = {team: Fraction(1, len(sharing)) for team in sharing}
        return DefenceStanding(
            name,
            "broken",
            stake.date,
            stake.batch,
            reasons=self._with_mistake(reasons, before),
            broken_in=week,
            broken_by=teams,
            shares=shares,
            settled=settled_on is not None,
            open_until="" if settled_on else self._open_until(name, week),
        )

    def _settled_on(self, name: str, within: Sequence[_Mistake]) -> tuple[datetime.date | None, datetime.date]:
        """The day from which on nothing changes who has broken a defence, None if it has not come, and the week.

        On that day no image of the week or before is open, and the defence has answered all of them.
        """
        days = sorted({each.day for each in within})
        for day, following in zip(days, [*days[1:], None], strict=True):
            week = min(each.submission.week for each in within if each.day <= day)
            images = self._images_until(name, week)
            # the first run over all images of the week; a later one was over all of them, or it was refused
            runs = (each for each in self._runs[name] if each.date >= week)
            run = next((each.date for each in runs if each.date > week or self._is_over_all(each, week)), None)
            if run is None or any(each.open for each in images):
                continue
            settled = max((day, run, *(each.closed_on for each in images if each.closed_on is not None)))
            if following is None or settled < following:
                return settled, week
        return None, week

    def _is_over_all(self, run: DefenceRun, week: datetime.date) -> bool:
        return all(each.week > week or sha256 in run.answers for sha256, each in self._submissions.items())

    def _images_until(self, name: str, week: datetime.date) -> list[_DayImages]:
        """The images submitted from the stake on that could break a defence in a week or before."""
        staked = self._stakes[name].date
        ends = after(staked, self._files.rules.limits.unbroken_days)
        return [each for (day, _), each in self._days.items() if staked <= day < ends and each.week <= week]

    def _open_until(self, name: str, week: datetime.date) -> str:
        last = [each for of_day in self._images_until(name, week) for each in of_day.open.values()]
        if any(each.appeals_until is None for each in last):
            return "missing verdicts"
        return str(max(each.appeals_until for each in last if each.appeals_until)) if last else "a run over that week"

    def _why_ineligible(self, name: str, ends: datetime.date = datetime.date.max) -> tuple[str, ...]:
        """The reasons against eligibility, by the first run; one of a staked defence has to be before `ends`."""
        reasons = () if self._files.defences[name].open else ("closed",)
        first = next((self._against(*each) for each in self._counting[name] if each[0].date < ends), ("not_run",))
        return (*reasons, *first)

    def _against(self, run: DefenceRun, on_list: Sequence[str]) -> tuple[str, ...]:
        """The reasons against eligibility in one run, with those on the list that decides."""
        too_slow = run.images_per_minute < self._files.rules.limits.images_per_minute
        return (*on_list, "too_slow") if too_slow else tuple(on_list)

    def _last_run(self, name: str, ends: datetime.date) -> tuple[DefenceRun, Sequence[str]] | None:
        """The run that decides a win: the first one from `ends` on over all images submitted before, and the list."""
        if self._on < ends:
            return None
        submitted, _ = self._submitted_before(ends)
        runs = (each for each in self._counting[name] if each[0].date >= ends)
        return next((each for each in runs if submitted <= each[0].answers.keys()), None)

    def _won_on(self, name: str, ends: datetime.date, last: datetime.date) -> datetime.date | None:
        """The day on which a defence wins unless it is broken by then; None while something is missing."""
        if self._waits_for(name, ends, has_run=True):
            return None
        days = [last, *(each.closed_on for each in self._published_before(ends) if each.closed_on is not None)]
        for state in self._aimed_before(name, ends):
            # an image that the board found unambiguous needs no confirmation from then on
            found_valid = state.final_on if state.valid_group else None
            days.append(min(day for day in (state.confirmed_on, found_valid) if day is not None))
        return max(days)

    def _waits_for(self, name: str, ends: datetime.date, *, has_run: bool) -> tuple[str, ...]:
        """Open questions: verdicts on images submitted before `ends`, confirmations by the board, a last run."""
        aimed = self._aimed_before(name, ends)
        rejected = [each for each in aimed if each.stage == "final" and each.valid_group is None]
        _, last_week = self._submitted_before(ends)
        found = {
            "publication": last_week > self._on,
            "verdicts": any(each.open for each in self._published_before(ends)),
            "confirmations": not all(each.confirmed for each in rejected),
            "last_run": not has_run,
        }
        return tuple(question for question, is_open in found.items() if is_open)

    def _published_before(self, ends: datetime.date) -> list[_DayImages]:
        """The published images that were submitted before a day."""
        return [each for (day, _), each in self._days.items() if day < ends]

    def _aimed_before(self, name: str, ends: datetime.date) -> list[ImageState]:
        """The states of the published images that were submitted before a day and aimed at a defence."""
        return [self.states[each] for each in self._aimed.get(name, ()) if self._submissions[each].day < ends]

    def _images_before(self, day: datetime.date) -> tuple[Set[str], datetime.date]:
        """All images submitted before a day that has come, and the last of their weeks."""
        submissions = [each for each in self._files.submissions if each.day < day]
        images = {image.sha256 for _, image in submitted_images(submissions)}
        return images, max((each.week for each in submissions), default=datetime.date.min)


def _shares(files: ContestFiles, defences: Sequence[DefenceStanding]) -> tuple[Shares, Shares]:
    """The shares of attackers and of defenders.

    Each batch is shared equally among its defences that have won, once no other can still win.
    """
    batches: dict[str | None, list[DefenceStanding]] = {}
    for each in defences:
        batches.setdefault(each.batch, []).append(each)
    found: list[Shares] = []
    for batch, members in batches.items():
        if batch is None or any(each.status in ("staked", "awaiting") for each in members):
            continue
        winners = [team_of(each.name) for each in members if each.status == "won"]
        sharing = [team for team in winners if team not in files.rules.without_shares()]
        found += [{team: Fraction(1, len(sharing))} for team in sharing]
    return _summed(each.shares for each in defences if each.settled), _summed(found)


def _summed(shares: Iterable[Shares]) -> Shares:
    total: dict[str, Fraction] = {}
    for each in shares:
        for team, share in each.items():
            total[team] = total.get(team, Fraction(0)) + share
    return dict(sorted(total.items()))


class PastStanding(NamedTuple):
    """The defences of a contest at the end of a day that is over."""

    on: datetime.date
    defences: Sequence[DefenceStanding]
    attackers: Shares
    defenders: Shares


def history(files: ContestFiles, days: Iterable[datetime.date]) -> Iterator[PastStanding]:
    """The standings at the end of some days, in their order, each from what is dated up to it.

    Raises CleansetError as `standing` does on the last day.
    """
    check_files(files)
    files = replace(files, submissions=counted(files.submissions))
    contest = _Contest(files)
    for day in days:
        contest.advance(day)
        defences = contest.defences()
        attackers, defenders = _shares(files, defences)
        yield PastStanding(day, defences, attackers, defenders)


def changed(standings: Iterable[PastStanding]) -> list[PastStanding]:
    """The standings that differ from the previous one in the state of a defence or in shares."""
    found: list[PastStanding] = []
    for each in standings:
        if not found or _shown(each) != _shown(found[-1]):
            found.append(each)
    return found


def _shown(each: PastStanding) -> tuple[Sequence[tuple[str, str, tuple[str, ...]]], object, object]:
    return [(one.name, one.status, one.waits_for) for one in each.defences], each.attackers, each.defenders
