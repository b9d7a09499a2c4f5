"""A contest after some lines of its log, from one day to the next, and what each kind of line does to it.

So also who may enter what, when, how much and only once: a line that breaks a rule is refused wherever the log is read.
"""

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import check_known, shown
from cleanset.studies.contest import entries
from cleanset.studies.contest.courses import DefenceCourse, DefenceStanding, ImageCourse, SubmittedImages
from cleanset.studies.contest.entries import AnyLine, JudgeExample, Line, SubmittedImage, short, team_of
from cleanset.studies.contest.judging import ControlImage, Draw, JudgeAnswer, JudgeRecord, control_count, drawn_controls
from cleanset.studies.contest.rules import ABSTAIN, INVALID, ContestRules, after, week_of_day


class Contest:
    """Everything that follows from the lines so far."""

    def __init__(self, rules: ContestRules) -> None:
        self.rules = rules
        self.on = datetime.date.min
        """The day that it is."""
        self.teams = set(rules.teams)
        self.roster: set[str] = set()
        self.controls: dict[str, ControlImage] = {}
        self.examples: dict[str, JudgeExample] = {}
        self.judges: dict[str, JudgeRecord] = {}
        self.draws: list[Draw] = []
        """What each week's controls are drawn from."""
        self.defences: dict[str, DefenceCourse] = {}
        self.known: dict[str, str] = {}
        """The digests of file and pixels of all submitted images, with their place."""
        self.a_day: Counter[tuple[str, datetime.date]] = Counter()
        """Images of a team on a day."""
        self.submitted = SubmittedImages()
        self.images = self.submitted.published
        self._given: dict[str, dict[str, set[str]]] = {}
        self._drawn: dict[str, dict[datetime.date, list[str]]] = {}

    def begin_day(self, day: datetime.date) -> None:
        """Continue to a day, and end all days before it."""
        if self.on == datetime.date.min:
            self.on = day
        while self.on < day:
            self._end_day()
            self.on = after(self.on, 1)

    def _end_day(self) -> None:
        for sha256, image in [*self.submitted.open.items()]:
            if image.appeals_until == self.on:
                image.end_appeals(self.on)
                self.note_final(sha256)
        for course in self.defences.values():
            if course.stake is not None and course.settled is None:
                found = course.standing(self.on)
                if found.settled:
                    course.settled = self._without_copies(course, found)

    def _without_copies(self, course: DefenceCourse, found: DefenceStanding) -> DefenceStanding:
        """Without shares if they were given for a defence with the same answers already."""
        for other in self.defences.values():
            if found.shares and other.settled is not None and other.settled.shares and course.answers_as(other):
                return replace(found, shares={}, copy_of=other.defence.name)
        return found

    def note_final(self, sha256: str) -> None:
        """Note which defences an image breaks, once its verdict is final."""
        if self.images[sha256].final_on is not None:
            self.submitted.open.pop(sha256, None)
            for name, answers in self._given.get(sha256, {}).items():
                self._note_mistake(name, sha256, answers)

    def note_answers(self, name: str, answers: Mapping[str, str]) -> None:
        """Note the answers of a defence's run, and its mistakes on images that are valid already."""
        for sha256, answer in answers.items():
            self._given.setdefault(sha256, {}).setdefault(name, set()).add(answer)
            self._note_mistake(name, sha256, {answer})

    def _note_mistake(self, name: str, sha256: str, answers: set[str]) -> None:
        image = self.images[sha256]
        if image.valid_group is not None and answers - {image.valid_group, ABSTAIN}:
            self.defences[name].mistakes.setdefault(sha256, (image, self.on))

    def breaking(self, sha256: str, group: str | None) -> set[str]:
        """The teams with a defence that gives an image of `group` the other one."""
        given = self._given.get(sha256, {})
        return {team_of(name) for name, answers in given.items() if answers - {group, ABSTAIN}}

    def final(self) -> dict[str, object]:
        """All that is final, by what it is of: no line may change it."""
        images = {sha: (each.valid_group, each.final_on) for sha, each in self.images.items() if each.final_on}
        return images | {name: each.settled for name, each in self.defences.items() if each.settled}

    def drawn(self, judge: str) -> dict[datetime.date, list[str]]:
        """By week, the controls that are drawn for a judge."""
        # a draw never changes: those of later weeks are added
        if len(self._drawn.get(judge, ())) < len(self.draws):
            self._drawn[judge] = drawn_controls(self.draws, judge, self.rules.judges.seed)
        return self._drawn.get(judge, {})

    def course(self, name: str) -> DefenceCourse:
        """A defence by its name. Raises CleansetError for an unknown one."""
        if name not in self.defences:
            raise CleansetError(f"unknown defence {name}; expected one that was entered: enter it first")
        return self.defences[name]

    def image(self, sha256: str) -> ImageCourse:
        """A published image. Raises CleansetError for another one."""
        if sha256 not in self.images:
            raise CleansetError(f"{short(sha256)}: not published; expected an image whose week has ended: wait")
        return self.images[sha256]


def apply_line(contest: Contest, line: AnyLine) -> None:
    """Continue to a line. Raises CleansetError, which names it, if it breaks a rule."""
    contest.begin_day(line.day)
    try:
        # the first line and a void change nothing by themselves
        if line.kind in _HANDLERS:
            _HANDLERS[line.kind](contest, line)
    except CleansetError as error:
        raise CleansetError(f"{line}: {error}") from None


def _controls(contest: Contest, line: Line[entries.ControlsFile]) -> None:
    for sha256, one in line.entry.controls.items():
        _check_groups(contest, sha256, one)
    contest.controls |= line.entry.controls


def _check_groups(contest: Contest, sha256: str, one: ControlImage | JudgeAnswer) -> None:
    groups = contest.rules.classes
    if one.contains.keys() != groups.keys():
        given = ", ".join(map(shown, one.contains)) or "nothing"
        raise CleansetError(f"{short(sha256)}: contains {given}; expected {', '.join(groups)}: answer for both")


def _defence(contest: Contest, line: Line[entries.Defence]) -> None:
    name = line.entry.name
    team = team_of(name)
    check_known("team", team, sorted(contest.teams))
    if name in contest.defences:
        raise CleansetError(f"{name}: entered before; expected another name for whatever has changed")
    most = contest.rules.limits.defences
    if sum(team_of(each) == team for each in contest.defences) >= most:
        raise CleansetError(f"{most} defences of {team} are there; expected no more, limits.defences")
    contest.defences[name] = DefenceCourse(contest.rules, line.entry, contest.submitted)


def _stake(contest: Contest, line: Line[entries.Stake]) -> None:
    for name in line.entry.defences:
        course = contest.course(name)
        if course.stake is not None:
            raise CleansetError(f"{name}: staked a second time; expected one stake for each: leave it out")
        course.stake = line


def _submission(contest: Contest, line: Line[entries.SubmissionManifest]) -> None:
    entry = line.entry
    check_known("team", entry.team, sorted(contest.teams))
    if contest.course(entry.target).stake is None:
        raise CleansetError(f"{entry.target} is not staked; expected a target that is: see the standing")
    contest.a_day[entry.team, line.day] += len(entry.images)
    today = contest.a_day[entry.team, line.day]
    most = contest.rules.limits.images_a_day
    if today > most:
        raise CleansetError(f"{today} images of {entry.team} on {line.day}; expected at most {most} a day: wait")
    for image in entry.images:
        _check_image(contest, image)
        place = f"as {image.file} in {line}"
        for digest in (image.sha256, image.pixels_sha256):
            if contest.known.setdefault(digest, place) is not place:
                raise CleansetError(f"{image.file}: submitted before, {contest.known[digest]}; expected a new one")
        contest.submitted.waiting.append((line, image))


def _check_image(contest: Contest, image: SubmittedImage) -> None:
    limits = contest.rules.limits
    size = f"{image.file}: {image.width} x {image.height} pixels"
    if image.width != image.height:
        raise CleansetError(f"{size}; expected a square image: models look at the central square of others: crop it")
    if not limits.min_side <= image.width <= limits.max_side:
        raise CleansetError(f"{size}; expected {limits.min_side} to {limits.max_side} a side: scale it")
    if image.sha256 in contest.controls:
        raise CleansetError(f"{image.file}: a control image of the judges; expected one unknown to them: take it out")


def _publish(contest: Contest, line: Line[entries.Publication]) -> None:
    submitted = contest.submitted
    if not submitted.waiting:
        raise CleansetError("no submission before it; expected one: enter it first")
    since = submitted.waiting[0][0].day
    last = contest.draws[-1].week if contest.draws else datetime.date.min
    friday = week_of_day(max(since, after(last, 1)))
    if line.day < friday:
        raise CleansetError(f"on {line.day}; expected {friday}, the Friday that ends the week, or later: wait")
    for submission, image in submitted.waiting:
        course = ImageCourse(contest.rules, image, submission, line.day)
        submitted.published[image.sha256] = course
        submitted.open[image.sha256] = course
    number = control_count(len(submitted.waiting), contest.rules.judges.controls)
    contest.draws.append(Draw(line.day, frozenset(contest.controls if number else ()), number))
    submitted.weeks.append((line.n, since))
    submitted.waiting.clear()


def _answers(contest: Contest, line: Line[entries.AnswerFile]) -> None:
    judge = line.entry.judge
    check_known("judge", judge, sorted(contest.roster))
    drawn = contest.drawn(judge).get(line.entry.week)
    if drawn is None:
        raise CleansetError(f"no week was published on {line.entry.week}; expected a day of one: correct it")
    record = contest.judges.setdefault(judge, JudgeRecord())
    new = {}
    for sha256, answer in line.entry.answers.items():
        before = record.answers.setdefault(sha256, answer)
        if before is answer:
            new[sha256] = answer
        elif before != answer:
            raise CleansetError(f"{short(sha256)} had another answer before; expected the same: leave it out")
    if contest.controls:
        _score_controls(contest, judge, new, drawn)
    # settled with its line, so that no later control takes a verdict back
    counts = record.problem(contest.rules.judges) is None
    for sha256, answer in new.items():
        _check_groups(contest, sha256, answer)
        if sha256 not in contest.controls:
            course = contest.image(sha256)
            if course.week != line.entry.week:
                raise CleansetError(f"{short(sha256)} was published on {course.week}; expected it in that week")
            course.answer(judge, answer, line.day, counts=counts)


def _score_controls(contest: Contest, judge: str, new: Mapping[str, JudgeAnswer], drawn: Sequence[str]) -> None:
    """Score new answers to controls: to all that were drawn for the judge in the week, and to no others."""
    record = contest.judges[judge]
    controls = [each for each in new if each in contest.controls]
    other = [*(each for each in controls if each not in drawn), *(each for each in drawn if each not in record.answers)]
    if other:
        raise CleansetError(
            f"answers of {judge} {'with' if other[0] in new else 'lacking'} control image {short(other[0])}; expected "
            f"answers to all {len(drawn)} drawn for this judge, and to no other: finish the week at the judge page"
        )
    for sha256 in controls:
        record.control_count += 1
        record.correct += contest.controls[sha256].is_met_by(new[sha256])


def _appeal(contest: Contest, line: Line[entries.Appeal]) -> None:
    entry = line.entry
    check_known("team", entry.team, sorted(contest.teams))
    image = contest.image(entry.image)
    group = image.verdict.group if image.verdict is not None else None
    image.appeal(line, contest.breaking(entry.image, group))


def _decision(contest: Contest, line: Line[entries.BoardDecision]) -> None:
    check_known("verdict", line.entry.verdict or INVALID, [*contest.rules.classes, INVALID])
    contest.image(line.entry.image).decide(line)
    contest.note_final(line.entry.image)


def _run(contest: Contest, line: Line[entries.DefenceRun]) -> None:
    run = line.entry
    course = contest.course(run.defence)
    model = course.runs[0].entry.model if course.runs else run.model
    if run.model != model:
        raise CleansetError(f"a run of the model {run.model}; expected {model}, as before: enter it as another defence")
    if run.answers.keys() != contest.images.keys():
        other = min(run.answers.keys() ^ contest.images.keys())
        raise CleansetError(f"not the published images, such as {short(other)}; expected all of them: run it again")
    course.runs.append(line)
    contest.note_answers(run.defence, run.answers)


_HANDLERS: Mapping[str, Callable[[Contest, AnyLine], None]] = {
    "team": lambda contest, line: contest.teams.add(line.entry.name),
    "roster": lambda contest, line: contest.roster.update(line.entry.judges),
    "examples": lambda contest, line: contest.examples.update(line.entry.examples),
    "controls": _controls, "defence": _defence, "stake": _stake, "submission": _submission, "publish": _publish,
    "answers": _answers, "appeal": _appeal, "decision": _decision, "run": _run,
}  # fmt: skip
