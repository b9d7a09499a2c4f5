"""Enter mail and runs of defences into the log, after all checks; or only check what has come or has been entered."""

import datetime
import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import check_known, validate
from cleanset.studies.contest.entries import PUBLISH
from cleanset.studies.contest.lists import edition_of, list_digest, unpublished_list
from cleanset.studies.contest.log import LOG, DraftLine, Log, append, read
from cleanset.studies.contest.mail import CONTEST_YAML, draft_of
from cleanset.studies.contest.object_checks import check_objects
from cleanset.studies.contest.objects import Objects, read_content
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.runs import number_of, recomputed, run_defence
from cleanset.studies.contest.standing import check_voids, replay


def enter(
    folder: Path,
    paths: Sequence[Path],
    *,
    publish: bool = False,
    at: datetime.datetime | None = None,
    write: bool = True,
) -> list[str]:
    """Enter the files in some paths, and end the week; a line for each entry, and notes for the organizers.

    `write`: False checks everything, and writes nothing.
    """
    edition = edition_of(folder)
    drafts = [draft_of(path, edition) for path in paths] + ([DraftLine(PUBLISH, {})] if publish else [])
    if not drafts:
        raise CleansetError("nothing to enter; expected files or folders, or --publish")
    return append_checked(folder, drafts, at=at, write=write)


def append_checked(
    folder: Path, drafts: Sequence[DraftLine], *, at: datetime.datetime | None = None, write: bool = True
) -> list[str]:
    """Add entries to the log after all checks; a line for each, and notes for the organizers."""
    return append(folder, drafts, partial(_check_lines, edition_of(folder)), at=at, write=write)


def _check_lines(edition: Edition, log: Log, new: int, objects: Objects) -> list[str]:
    """The lines from a number on, as they are shown, and notes; raises CleansetError for the first problem in them."""
    replay(log)
    check_voids(log)
    return [*(f"{each}, {each.digest}" for each in log.lines[new:]), *check_objects(edition, log, new, objects)]


def enter_runs(
    folder: Path,
    names: Sequence[str] | None = None,
    *,
    unpublished: Path | None = None,
    at: datetime.datetime | None = None,
    write: bool = False,
) -> Iterator[str]:
    """Run defences, by default all, and enter each run; without `write` the runs are printed as JSON.

    Raises CleansetError for an unknown defence, and if a defence fails: only at the end, since no team may keep the
    defences of others from being run.
    """
    contest = replay(read(folder))
    for name in names or ():
        check_known("defence", name, sorted(contest.defences))
    failed = []
    for name in names or sorted(contest.defences):
        try:
            run = run_defence(folder, contest, name, unpublished)
            data = run.model_dump(mode="json", exclude_none=True)
            yield from append_checked(folder, [DraftLine("run", data)], at=at) if write else [json.dumps(data)]
        except CleansetError as error:
            print_notice(str(error))
            failed.append(name)
    if failed:
        raise CleansetError(f"no run of {', '.join(failed)}; expected one of each: see above")


def check(
    folder: Path, path: Path | None = None, at: datetime.datetime | None = None, *, runs: bool = False
) -> list[str]:
    """Check an entry before it is entered, an unpublished list, or all that has been entered.

    Of an unpublished list, a folder with one of images for each group, the line of contest.yaml that names it. `runs`:
    compute the answers and figures of models in all runs again.
    """
    if path is not None:
        rules = _rules(folder) if path.is_dir() else None
        if rules is not None and all((path / group).is_dir() for group in rules.classes):
            found = unpublished_list(path, rules.groups())
            return [f'unpublished: "{list_digest(found)}"   # {len(found)} images']
        return enter(folder, [path], at=at, write=False)
    log = read(folder)
    contest = replay(log)
    check_voids(log)
    return [
        f"{number_of(len(contest.defences), 'defence')}, {number_of(len(contest.images), 'published image')}",
        f"{number_of(len(log.lines), 'line')}, the last with digest {log.head}",
        *check_objects(edition_of(folder), log, 1, Objects(folder)),
        *(recomputed(folder, contest) if runs else ()),
    ]


def _rules(folder: Path) -> ContestRules:
    """The rules of a contest; before its first line, those that are to be entered."""
    planned = folder / CONTEST_YAML
    if planned.is_file() and not (folder / LOG).exists():
        return validate(ContestRules, read_content(planned), planned)
    return read(folder).rules
