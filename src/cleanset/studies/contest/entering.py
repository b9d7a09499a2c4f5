"""Enter mail and runs of defences into the log, after all checks; or only check; sign entries for others to enter.

The checks of lines are in `line_checks`. `cleanset contest check` does the same and writes nothing, or checks all that
has been entered.
"""

import datetime
import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import write_text
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import check_known, validate
from cleanset.studies.contest.checkpoints import check_kept
from cleanset.studies.contest.drafts import CONTEST_YAML, draft_of, unsigned_draft
from cleanset.studies.contest.eligibility_lists import unpublished_yaml
from cleanset.studies.contest.line_checks import check_lines
from cleanset.studies.contest.log import check_since, read, read_state
from cleanset.studies.contest.log_lines import LOG, PUBLISH, DraftLine
from cleanset.studies.contest.log_state import state
from cleanset.studies.contest.log_writing import append, sign_drafts
from cleanset.studies.contest.objects import Objects, read_content
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.runs import number_of, recomputed, run_defence
from cleanset.studies.contest.standing import cosigned_by_few


def enter(
    contest: Path,
    paths: Sequence[Path],
    *,
    publish: bool = False,
    key: Path | None = None,
    at: datetime.datetime | None = None,
) -> list[str]:
    """Enter the files in some paths, and end the week; a line for each entry, and notes for the organizers.

    Without a key everything is checked, and nothing is written.
    """
    edition = edition_of(contest)
    # a signature is found beside its entry, so that a whole folder of mail may be given
    drafts = [draft_of(path, edition) for path in paths if path.suffix != ".sig"] + (
        [DraftLine(PUBLISH, {})] if publish else []
    )
    if not drafts:
        raise CleansetError("nothing to enter; expected files or folders, or --publish")
    return append(contest, drafts, partial(check_lines, edition), key=key, at=at)


def enter_runs(
    contest: Path,
    names: Sequence[str] | None = None,
    *,
    unpublished: Path | None = None,
    unconfined: bool = False,
    counts: bool = False,
    key: Path | None = None,
    at: datetime.datetime | None = None,
) -> Iterator[str]:
    """Run defences, by default all, and enter each run; without a key the runs are printed as JSON.

    Raises CleansetError for an unknown defence, and as `run_defence`: only at the end, since no team may keep the
    defences of others from being run. Of several problems all but the last are printed as notices.
    """
    edition = edition_of(contest)
    files = read_state(contest)
    on = (at or datetime.datetime.now(datetime.UTC)).date()
    for name in names or ():
        check_known("defence", name, sorted(files.defences))
    problems: list[CleansetError] = []
    for name in names or sorted(files.defences):
        try:
            run = run_defence(contest, files, name, on, unpublished=unpublished, unconfined=unconfined, counts=counts)
            data = run.model_dump(mode="json", exclude_none=True)
            if key is None:
                yield json.dumps(data)
            else:
                drafts = [DraftLine("run", data)]
                yield from append(contest, drafts, partial(check_lines, edition), key=key, at=at)
        except CleansetError as error:
            problems.append(error)
    for each in problems[:-1]:
        print_notice(str(each))
    for last in problems[-1:]:
        raise last


def edition_of(contest: Path) -> Edition:
    """The edition two folders above a contest."""
    return Edition(contest / ".." / "..")


def check(
    contest: Path,
    path: Path | None = None,
    at: datetime.datetime | None = None,
    *,
    runs: bool = False,
    since: str | None = None,
) -> list[str]:
    """Check an entry before it is entered, an unpublished list, or all that has been entered.

    `runs`: compute the answers and figures of models in all runs again. `since`: the digest of a line that
    has to be there.
    """
    if path is not None:
        rules = _rules(contest) if path.is_dir() else None
        if rules is not None and all((path / group).is_dir() for group in rules.classes):
            return [unpublished_yaml(rules, path)]
        return enter(contest, [path], at=at)
    lines = read(contest)
    if since is not None:
        (check_kept if Path(since).is_file() else check_since)(lines, since)
    files = state(lines)
    notes = check_lines(edition_of(contest), lines, 1, Objects(contest))[len(lines) - 1 :]
    images = sum(len(each.manifest.images) for each in files.submissions)
    found = [
        f"{number_of(len(files.defences), 'defence')}, {number_of(len(files.submissions), 'submission')} with "
        f"{number_of(images, 'image')}",
        f"{len(lines)} lines, the last with digest {lines[-1].digest}",
    ]
    return [*found, *notes, *cosigned_by_few(files.checkpoints), *(recomputed(contest, files) if runs else ())]


def _rules(contest: Path) -> ContestRules:
    """The rules of a contest; before its first line, those that are to be entered."""
    planned = contest / CONTEST_YAML
    if planned.is_file() and not (contest / LOG).exists():
        return validate(ContestRules, read_content(planned), planned)
    rules: ContestRules = read(contest)[0].entry
    return rules


def sign_entries(contest: Path, paths: Sequence[Path], name: str, key: Path) -> list[Path]:
    """Sign entries as a team, a judge or a member of the board, each in a file beside it, whose paths are returned.

    They have to be entered in this order.
    """
    edition = edition_of(contest)
    signatures = sign_drafts(contest, [unsigned_draft(path, edition) for path in paths], name, key)
    written = []
    for path, signature in zip((each.absolute() for each in paths), signatures, strict=True):
        written.append(path.with_name(f"{path.name}.{name}.sig"))
        write_text(written[-1], f"{signature.model_dump_json(indent=1)}\n")
    return written
