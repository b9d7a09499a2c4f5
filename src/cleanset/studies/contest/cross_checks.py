"""Check the entries of a contest against each other: who may enter what, when, how much and only once.

Beyond what an entry shows by itself: teams and their defences, stakes, submissions and the sizes of their images,
judges' answers, the board's decisions and conflicts of interest, runs.
"""

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.studies.contest.entries import BoardDecision, DefenceRun, short, team_of
from cleanset.studies.contest.files import ContestFiles, Submission, in_order, repeats, submitted_images
from cleanset.studies.contest.judging import points_outside
from cleanset.studies.contest.parties import Parties, accepted_on
from cleanset.studies.contest.rules import ABSTAIN, BOARD, INVALID


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
            where = f"{each}: {short(sha256)}"
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
        where = f"decision on {short(decision.image)} of {decision.date}"
        if decision.image not in images or images[decision.image].week > decision.date:
            yield f"{where}: no image published by then; expected one whose week has ended"
        if (decision.image, decision.date) in decided:
            yield f"{where}: two decisions on one day; expected one"
        decided.add((decision.image, decision.date))
        if decision.verdict not in (*rules.classes, INVALID, None):
            yield f"{where}: verdict {decision.verdict}; expected one of {', '.join((*rules.classes, INVALID))}"
        yield from _members(files, decision, parties.deciding(images[decision.image], decision), where)
    for appeal in sorted(files.appeals, key=lambda each: (each.date, each.image, each.team)):
        where = f"appeal of {appeal.team} on {short(appeal.image)}"
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
            yield f"{where}: answers {short(unknown)}, which nobody submitted; expected submitted images"
        # by week, because comparing sets is faster than looking up the week of each image
        missing = set[str]().union(*(names - run.answers.keys() for week, names in by_week.items() if week < run.date))
        if missing:
            yield f"{where}: no answer to {short(min(missing))}; expected one to every image published by then"
