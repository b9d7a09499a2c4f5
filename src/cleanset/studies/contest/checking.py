"""`cleanset contest check`: a submission, a defence, or everything, on the disk and against the other files."""

import datetime
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.studies.contest.consistency import check_submissions
from cleanset.studies.contest.entries import Board
from cleanset.studies.contest.files import ContestFiles, Submission, last_day
from cleanset.studies.contest.folder_checks import (
    check_defence,
    check_none_removed,
    check_submission,
    check_unchanged,
    clean_pixels,
)
from cleanset.studies.contest.judges_folder import check_judges_folder
from cleanset.studies.contest.reading import DEFENCE_YAML, MANIFEST_YAML, read_contest
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
            _check_one(contest, submission, files, clean_pixels(_edition(contest)), on or last_day(files))
            return f"{submission}: {len(submission.manifest.images)} images"
    raise CleansetError(
        f"{path}: neither a submission nor a defence of this contest; expected a folder with {MANIFEST_YAML} or "
        f"{DEFENCE_YAML}"
    )


def _edition(contest: Path) -> Edition:
    return Edition(contest / ".." / "..")


def _check_all(contest: Path, files: ContestFiles, on: datetime.date | None) -> str:
    for submission in sorted(files.submissions, key=str):
        _check_date(submission, on)
    _check_other_dates(files, on)
    if files.defences or files.submissions:
        # computing the standing checks the files against each other
        standing(files, last_day(files))
        check_none_removed(contest, on or last_day(files))
    _check_judges(files)
    check_judges_folder(contest, files)
    for name in sorted(files.defences):
        check_defence(contest / "defences" / name, files.defences[name])
    if files.submissions:
        clean, day = clean_pixels(_edition(contest)), on or last_day(files)
        for submission in sorted(files.submissions, key=str):
            _check_one(contest, submission, files, clean, day)
    images = sum(len(each.manifest.images) for each in files.submissions)
    return f"{len(files.defences)} defences, {len(files.submissions)} submissions with {images} images"


def _check_one(
    contest: Path, submission: Submission, files: ContestFiles, clean: frozenset[str], on: datetime.date
) -> None:
    folder = contest / str(submission)
    check_submission(folder, submission, files.rules, clean)
    check_unchanged(folder, submission, on)


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
    for each in files.answers:
        for sha256 in each.answers:
            count[sha256] = count.get(sha256, 0) + 1
    for sha256, judges in sorted(count.items()):
        # control images are shown to some judges only, by the share that the rules ask for
        if judges < files.rules.judges.minimum and sha256 not in files.controls:
            raise CleansetError(
                f"answers: {sha256[:12]}…: {judges} judges; expected at least {files.rules.judges.minimum}: ask another"
            )
