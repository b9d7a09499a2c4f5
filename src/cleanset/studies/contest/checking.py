"""`cleanset contest check`: a submission, a defence, or everything, on the disk and against the other files."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST
from cleanset.studies.contest.consistency import check_submissions
from cleanset.studies.contest.files import Board, ContestFiles, Submission, last_day
from cleanset.studies.contest.folders import (
    check_defence,
    check_judges_folder,
    check_submission,
    clean_pixels,
)
from cleanset.studies.contest.history import (
    check_controls,
    check_entries,
    check_log,
    check_none_removed,
    check_signatures,
    check_submission_unchanged,
    is_committed,
    require_whole_history,
)
from cleanset.studies.contest.images import KnownImage, can_hash, known_images, lookalikes
from cleanset.studies.contest.judges import JudgeRecords
from cleanset.studies.contest.reading import DEFENCE_YAML, IMAGES, MANIFEST_YAML, read_contest, visible
from cleanset.studies.contest.standing import standing


def run(contest: Path, path: Path | None, on: datetime.date | None) -> str:
    """Check, and return a line on what was checked. Raises CleansetError for the first problem."""
    files = read_contest(contest)
    if path is None:
        return _check_all(contest, files, on)
    path = path.resolve()
    name = f"{path.parent.name}/{path.name}"
    if (path / DEFENCE_YAML).is_file() and name in files.defences and path == (contest / "defences" / name).resolve():
        check_defence(contest / "defences" / name, files.defences[name])
        return f"{name}: {len(files.defences[name].files)} files as named"
    for submission in files.submissions:
        if path == (contest / str(submission)).resolve():
            _check_date(submission, on)
            check_submissions(files)
            clean, known = clean_pixels(_edition(contest)), _Known(contest, files)
            _check_one(contest, submission, files, clean, known, on)
            summary = f"{submission}: {len(submission.manifest.images)} images"
            return "\n".join([summary, *_reported(contest, [submission], known), *_not_asked(contest, files)])
    raise CleansetError(
        f"{path}: neither a submission nor a defence of this contest; expected a folder with {MANIFEST_YAML} or "
        f"{DEFENCE_YAML}"
    )


def _edition(contest: Path) -> Edition:
    return Edition(contest / ".." / "..")


def _check_all(contest: Path, files: ContestFiles, on: datetime.date | None) -> str:
    signed: list[str] = []
    for submission in sorted(files.submissions, key=str):
        _check_date(submission, on)
    _check_other_dates(files, on)
    if files.defences or files.submissions:
        # computing the standing checks the files against each other
        standing(files, last_day(files))
        if files.rules.history == "git":
            require_whole_history(contest)
            check_none_removed(contest, on or last_day(files))
            check_entries(contest)
            check_controls(contest, files)
            signed = check_signatures(contest, files)
    _check_judges(files)
    check_log(contest, files)
    check_judges_folder(contest, files)
    for name in sorted(files.defences):
        check_defence(contest / "defences" / name, files.defences[name])
    images = sum(len(each.manifest.images) for each in files.submissions)
    summary = f"{len(files.defences)} defences, {len(files.submissions)} submissions with {images} images"
    if not files.submissions:
        return "\n".join([summary, *signed, *_not_asked(contest, files)])
    clean, known = clean_pixels(_edition(contest)), _Known(contest, files)
    for submission in sorted(files.submissions, key=str):
        _check_one(contest, submission, files, clean, known, on)
    reported = _reported(contest, sorted(files.submissions, key=str), known)
    return "\n".join([summary, *signed, *reported, *_not_asked(contest, files)])


def _not_asked(contest: Path, files: ContestFiles) -> list[str]:
    if files.rules.history == "made_up" or not files.defences or is_committed(contest):
        return []
    return ["git has no commit of this contest: what may have changed after its day was not looked for"]


class _Known:
    """The images that may not be submitted as copies: clean ones, the judges' own, and those of earlier weeks."""

    def __init__(self, contest: Path, files: ContestFiles) -> None:
        edition = _edition(contest)
        paths = {
            f"clean image {path.parent.name}/{path.name}": path
            for manifest in sorted((edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
            for path in (manifest.parent / entry.file for entry in read_entries(manifest.parent))
        }
        paths |= {f"the judges' {path.name}": path for path in visible(contest / "judges" / IMAGES)}
        self._always = known_images(paths)
        self._contest, self._submissions = contest, files.submissions
        self._by_week: dict[datetime.date, list[KnownImage]] = {}

    def before(self, day: datetime.date) -> list[KnownImage]:
        """The images that are known on a day."""
        weeks = sorted({each.week for each in self._submissions if each.week < day})
        return [*self._always, *(one for week in weeks for one in self._of_week(week))]

    def beside(self, submission: Submission) -> list[KnownImage]:
        """The images of other teams that were submitted earlier in the same week."""
        first, week = submission.manifest.submitted, submission.week
        others = [
            f"{each}/"
            for each in self._submissions
            if each.week == week and each.team != submission.team and each.manifest.submitted <= first
        ]
        return [one for one in self._of_week(week) if one.name.startswith(tuple(others))] if others else []

    def _of_week(self, week: datetime.date) -> list[KnownImage]:
        if week not in self._by_week:
            self._by_week[week] = known_images(
                {
                    f"{each}/{image.file}": self._contest / str(each) / IMAGES / image.file
                    for each in self._submissions
                    if each.week == week
                    for image in each.manifest.images
                }
            )
        return self._by_week[week]


def _reported(contest: Path, submissions: Sequence[Submission], known: _Known) -> list[str]:
    """A line for the board on each image that looks like a known one."""
    if not can_hash():
        return [f"images that look alike are not looked for without PDQ: {install_command('review')}"]
    found = []
    for each in submissions:
        for image in each.manifest.images:
            others = [*known.before(each.day), *known.beside(each)]
            near = lookalikes(contest / str(each) / IMAGES / image.file, others)[:1]
            found += [f"for the board: {each}/{image.file} looks like {one}, PDQ distance {bits}" for bits, one in near]
    return found


def _check_one(
    contest: Path,
    submission: Submission,
    files: ContestFiles,
    clean: frozenset[str],
    known: _Known,
    on: datetime.date | None,
) -> None:
    folder = contest / str(submission)
    check_submission(folder, submission, files.rules, clean, known.before(submission.day))
    if files.rules.history == "git":
        require_whole_history(contest)
        check_submission_unchanged(folder, submission, on or last_day(files))


def _check_date(submission: Submission, on: datetime.date | None) -> None:
    if on is not None and submission.day > on:
        raise CleansetError(f"{submission}: submitted on {submission.day}; expected no day after {on}")


def _check_other_dates(files: ContestFiles, on: datetime.date | None) -> None:
    if on is None:
        return
    board = files.board
    dated = [(f"defences/{name}", each.submitted) for name, each in files.defences.items()]
    dated += [(f"results/runs/{each.defence}/{each.date}.json", each.date) for each in files.runs]
    dated += [(f"{each}: {sha256[:12]}…", one.date) for each in files.answers for sha256, one in each.answers.items()]
    dated += [(f"board/{name}.yaml", each.date) for name in Board.model_fields for each in getattr(board, name)]
    for where, date in sorted(dated):
        if date > on:
            raise CleansetError(f"{where}: dated {date}; expected no day after {on}")


def _check_judges(files: ContestFiles) -> None:
    """Raise CleansetError for an image with some answers, but fewer judges than the rules ask for."""
    count: dict[str, int] = {}
    records = JudgeRecords(files)
    for each in files.answers:
        for sha256 in each.answers:
            count.setdefault(sha256, 0)
        for sha256, _ in records.counted(each.judge, each.answers):
            count[sha256] += 1
    for sha256, judges in sorted(count.items()):
        # control images are shown to some judges only, by the share that the rules ask for
        if judges < files.rules.judges.minimum and sha256 not in files.controls:
            raise CleansetError(
                f"answers: {sha256[:12]}…: {judges} judges; expected at least {files.rules.judges.minimum}: ask another"
            )
