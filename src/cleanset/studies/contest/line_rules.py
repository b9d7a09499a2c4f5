"""What each kind of line does to a contest, and who may enter what, when, how much and only once.

A line that breaks a rule is refused wherever the log is read.
"""

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.studies.contest.defence_course import DefenceCourse, PastRun, Stake, reasons_against
from cleanset.studies.contest.entries import AnswerFile, SubmittedImage, short, team_of
from cleanset.studies.contest.image_course import GivenAnswer, ImageCourse, Submission
from cleanset.studies.contest.judges import Draw, JudgeRecord, control_count
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from cleanset.studies.contest.log import Line
from cleanset.studies.contest.rules import ABSTAIN, INVALID, after, week_of_day
from cleanset.studies.contest.state import Contest


def apply_line(contest: Contest, line: Line) -> None:
    """Go on to a line. Raises CleansetError, which names it, if it breaks a rule."""
    contest.begin_day(line.day)
    try:
        _HANDLERS[line.kind](contest, line)
    except CleansetError as error:
        raise CleansetError(f"{line}: {error}") from None


def _no_effect(contest: Contest, line: Line) -> None:
    """The first line and a void change nothing by themselves."""


def _check_one_of(what: str, names: Iterable[str], known: Collection[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CleansetError(f"unknown {what} {shown(min(unknown))}; expected one of {', '.join(sorted(known))}")


def _team(contest: Contest, line: Line) -> None:
    if line.entry.name in contest.teams:
        raise CleansetError(f"{line.entry.name} takes part already; expected another name")
    contest.teams.add(line.entry.name)


def _roster(contest: Contest, line: Line) -> None:
    contest.roster |= {*line.entry.judges}


def _judges_images(contest: Contest, line: Line) -> None:
    """Controls or examples."""
    for sha256, one in getattr(line.entry, line.kind).items():
        if sha256 in contest.controls or sha256 in contest.examples or sha256 in contest.images:
            raise CleansetError(f"{short(sha256)}: entered before; expected each image once: void the first one")
        _check_groups(contest, sha256, one)
        (contest.examples if line.kind == "examples" else contest.controls)[sha256] = one


def _check_groups(contest: Contest, sha256: str, one: ControlImage | JudgeAnswer) -> None:
    groups = contest.rules.classes
    if one.contains.keys() != groups.keys():
        given = ", ".join(map(shown, one.contains)) or "nothing"
        raise CleansetError(f"{short(sha256)}: contains {given}; expected {', '.join(groups)}")


def _defence(contest: Contest, line: Line) -> None:
    name = line.entry.name
    team = team_of(name)
    _check_one_of("team", [team], contest.teams)
    if name in contest.defences:
        raise CleansetError(f"{name}: entered before; expected another name for whatever has changed")
    most = contest.rules.limits.defences
    if sum(team_of(each) == team for each in contest.defences) >= most:
        raise CleansetError(f"{most} defences of {team} are there; expected at most {most}, limits.defences")
    contest.defences[name] = DefenceCourse(contest.rules, line.entry)


def _stake(contest: Contest, line: Line) -> None:
    batch = line.entry.batch
    if batch in contest.batches:
        raise CleansetError(f"batch {batch}: a second time; expected one entry for each batch")
    contest.batches.add(batch)
    ends = after(line.day, contest.rules.limits.unbroken_days)
    for name in line.entry.defences:
        course = contest.course(name)
        if course.stake is not None:
            raise CleansetError(f"{name}: staked a second time; expected one stake for each defence")
        course.stake = Stake(number=line.n, day=line.day, batch=batch, ends=ends)


def _submission(contest: Contest, line: Line) -> None:
    entry = line.entry
    _check_one_of("team", [entry.team], contest.teams)
    if contest.course(entry.target).stake is None:
        raise CleansetError(f"{entry.target} is not staked; expected a target that is staked")
    contest.a_day[entry.team, line.day] += len(entry.images)
    today = contest.a_day[entry.team, line.day]
    most = contest.rules.limits.images_a_day
    if today > most:
        raise CleansetError(f"{today} images of {entry.team} on {line.day}; expected at most {most}")
    submission = Submission(number=line.n, day=line.day, team=entry.team, target=entry.target)
    for image in entry.images:
        _check_image(contest, image)
        place = f"as {image.file} in {line}"
        for digest in (f"file {image.sha256}", f"pixels {image.pixels_sha256}"):
            if digest in contest.known:
                raise CleansetError(f"{image.file}: submitted before, {contest.known[digest]}; expected a new image")
            contest.known[digest] = place
        contest.waiting.append((submission, image))


def _check_image(contest: Contest, image: SubmittedImage) -> None:
    limits = contest.rules.limits
    size = f"{image.file}: {image.width} x {image.height} pixels"
    if image.width != image.height:
        raise CleansetError(f"{size}; expected a square image: models look at the central square of others")
    if not limits.min_side <= image.width <= limits.max_side:
        raise CleansetError(f"{size}; expected {limits.min_side} to {limits.max_side} a side")
    if image.sha256 in contest.controls:
        raise CleansetError(f"{image.file}: a control image of the judges; expected one that they do not know")


def _publish(contest: Contest, line: Line) -> None:
    if not contest.waiting:
        raise CleansetError("no submission before it; expected one")
    since = contest.waiting[0][0].day
    last = contest.draws[-1].week if contest.draws else datetime.date.min
    friday = week_of_day(since if since > last else after(last, 1))
    if line.day < friday:
        raise CleansetError(f"on {line.day}; expected a day from {friday} on, the Friday that ends the week")
    for submission, image in contest.waiting:
        course = ImageCourse(contest.rules, image, submission, line.day)
        contest.images[image.sha256] = contest.open[image.sha256] = course
        contest.aimed.setdefault(submission.target, []).append(course)
    number = control_count(len(contest.waiting), contest.rules.judges.controls)
    contest.draws.append(Draw(line.day, frozenset(contest.controls if number else ()), number))
    contest.weeks.append((line.n, since))
    contest.waiting = []


def _answers(contest: Contest, line: Line) -> None:
    judge = line.entry.judge
    week = line.entry.week
    _check_one_of("judge", [judge], contest.roster)
    drawn = contest.drawn(judge)
    if week not in drawn:
        raise CleansetError(f"no week was published on {week}; expected the day of one that was")
    record = contest.judges.setdefault(judge, JudgeRecord())
    new = _new_answers(contest, line.entry, record)
    for sha256 in new.keys() & contest.controls.keys():
        record.add_control(week, sha256, contest.controls[sha256])
    _check_drawn(judge, {*drawn[week]}, record.controls[week])
    # settled with its line, so that no later control takes a verdict back
    counts = record.problem(contest.rules.judges) is None
    for sha256, answer in new.items():
        if sha256 not in contest.controls:
            course = contest.images[sha256]
            course.answer(GivenAnswer(judge, answer, counts), line.day)
            if course.appeals_until is not None:
                contest.closing.setdefault(course.appeals_until, set()).add(sha256)


def _new_answers(contest: Contest, file: AnswerFile, record: JudgeRecord) -> dict[str, JudgeAnswer]:
    """The answers in a file that were not entered before, each checked and added to the judge's."""
    record.controls.setdefault(file.week, set())
    new = {}
    for sha256, answer in file.answers.items():
        before = record.answers.setdefault(sha256, answer)
        if before is not answer:
            if before != answer:
                raise CleansetError(f"{short(sha256)} was answered otherwise before; expected the same answer")
            continue
        course = contest.images.get(sha256)
        if sha256 not in contest.controls and (course is None or course.week != file.week):
            raise CleansetError(f"{short(sha256)} was not published on {file.week}; expected an image of that week")
        _check_groups(contest, sha256, answer)
        new[sha256] = answer
    if not new:
        raise CleansetError("no answer that was not entered before; expected new ones")
    return new


def _check_drawn(judge: str, expected: set[str], there: set[str]) -> None:
    if there != expected:
        what = "lacking" if expected - there else "with"
        raise CleansetError(
            f"answers of {judge} {what} control image {short(min(expected - there or there - expected))}; expected "
            f"answers to all {len(expected)} that were drawn for this judge, and to no other: finish the week at the "
            "judge page"
        )


def _appeal(contest: Contest, line: Line) -> None:
    entry = line.entry
    _check_one_of("team", [entry.team], contest.teams)
    image = contest.published(entry.image)
    group = image.verdict.group if image.verdict is not None else None
    image.appeal(entry, line.day, contest.breaking(entry.image, group))


def _decision(contest: Contest, line: Line) -> None:
    entry = line.entry
    rules = contest.rules
    if entry.verdict is not None:
        _check_one_of("verdict", [entry.verdict], [*rules.classes, INVALID])
    _check_one_of("member of the board", entry.recused, rules.board)
    if not rules.board.keys() - entry.recused:
        raise CleansetError("all members are recused; expected one who decides")
    contest.published(entry.image).decide(entry, line.day)
    contest.note_final(entry.image)


def _run(contest: Contest, line: Line) -> None:
    run = line.entry
    course = contest.course(run.defence)
    model = course.runs[0].run.model if course.runs else run.model
    if run.model != model or (model is None) != (course.defence.model is None):
        raise CleansetError(
            f"a run of a model with the digest {run.model}; expected {model}, as in its first run: the model's entry "
            "in the edition's params.yaml has changed"
        )
    wanted = contest.rules.unpublished
    found = None if run.unpublished is None else run.unpublished.list_sha256
    if found != wanted:
        raise CleansetError(f"over the unpublished list {found}; expected {wanted}, as the first line names")
    _check_one_of("answer", run.answers.values(), [*contest.rules.classes, ABSTAIN])
    for other in sorted(run.answers.keys() ^ contest.images.keys()):
        what = "an answer to" if other in run.answers else "no answer to"
        raise CleansetError(f"{what} {short(other)}; expected one to every published image, and to no other")
    course.runs.append(PastRun(line.n, line.day, run, reasons_against(run, contest.rules)))
    contest.note_answers(run.defence, run.answers)


_HANDLERS: Mapping[str, Callable[[Contest, Line], None]] = {
    "contest": _no_effect, "void": _no_effect, "team": _team, "roster": _roster, "controls": _judges_images,
    "examples": _judges_images, "defence": _defence, "stake": _stake, "submission": _submission, "publish": _publish,
    "answers": _answers, "appeal": _appeal, "decision": _decision, "run": _run,
}  # fmt: skip
