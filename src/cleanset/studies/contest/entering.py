"""Enter mail and runs of defences into the log, after all checks; or only check what has come or has been entered."""

import datetime
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import read_bytes, replace_file, sha256_of
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import check_known, validate
from cleanset.studies.contest import runs as of_runs
from cleanset.studies.contest.entries import ENTRIES, PUBLISH, RULES
from cleanset.studies.contest.images import check_objects, image_entry
from cleanset.studies.contest.log import LOG, OBJECTS, DraftLine, Log, Objects, files_in, read, read_content
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.standing import check_voids, replay

CONTEST_YAML = "contest.yaml"
DEFENCE_YAML = "defence.yaml"
MANIFEST_YAML = "manifest.yaml"
MAX_IMAGE_BYTES = 100_000_000
Instant = datetime.datetime | None
"""When something is entered, for a made-up contest; None for this machine's clock."""


def draft_of(path: Path, contest: Path) -> DraftLine:
    """The entry in a file or in the folder of a defence or submission, by mail to the contest in a folder.

    Raises CleansetError for a link, an unknown entry, and a file that is missing or belongs to no entry.
    """
    if (path / MANIFEST_YAML).is_file():
        return _submission(path)
    if (path / DEFENCE_YAML).is_file():
        return _defence(path)
    content = read_content(path)
    if path.name == CONTEST_YAML:
        return DraftLine(RULES, _whole(validate(ContestRules, content, path), contest), where=path)
    kind, data = _kind_of(path, content)
    images = data.get(kind)
    files = {}
    if kind in ("controls", "examples") and isinstance(images, dict):
        there = {sha256_of(each): each for each in files_in(path.parent / "images").values()}
        files = {digest: each for digest, each in there.items() if digest in images}
    return DraftLine(kind, data, files, path)


def _whole(rules: ContestRules, contest: Path) -> dict[str, object]:
    """The rules with every default, and the digests of the lists that are there."""
    found: dict[str, object] = rules.model_dump(mode="json", exclude_none=True)
    edition = of_runs.edition_of(contest)
    if of_runs.clean_images(edition):
        found["clean_set"] = of_runs.clean_digest(edition)
    unpublished = of_runs.unpublished_list(contest, rules.groups())
    return found | ({"unpublished": of_runs.list_digest(unpublished)} if unpublished else {})


def _kind_of(path: Path, content: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The kind of the entry in a file, and its data. Raises CleansetError for an unknown entry."""
    kinds = [key for key in content if key in ENTRIES]
    # a judge's file and lists by image have the name of their kind as one of their own keys
    is_whole = bool(kinds) and kinds[0] in ENTRIES[kinds[0]].model_fields
    data = content if is_whole else content[kinds[0]] if len(content) == len(kinds) == 1 else None
    if not isinstance(data, dict):
        raise CleansetError(
            f"{path}: not an entry of a contest; expected {MANIFEST_YAML} or {DEFENCE_YAML} in a folder, "
            f"{CONTEST_YAML}, or a file with one of {', '.join(ENTRIES)} at its top"
        )
    return kinds[0], data


def _submission(folder: Path) -> DraftLine:
    """All images next to a manifest.yaml."""
    paths = files_in(folder)
    data = read_content(paths.pop(MANIFEST_YAML))
    images = [image_entry(name, read_bytes(path, MAX_IMAGE_BYTES), path) for name, path in paths.items()]
    files = {str(image["sha256"]): paths[str(image["file"])] for image in images}
    return DraftLine("submission", data | {"images": images}, files, folder)


def _defence(folder: Path) -> DraftLine:
    """A defence, with all files of its program: those next to the defence.yaml."""
    paths = files_in(folder)
    data = read_content(paths.pop(DEFENCE_YAML))
    digests = {name: sha256_of(path) for name, path in paths.items()}
    program = data.get("program")
    if isinstance(program, dict):
        program["files"] = digests
    elif paths:
        raise CleansetError(f"{min(paths)}: next to the {DEFENCE_YAML} of a model; expected that alone: take it out")
    return DraftLine("defence", data, {digest: paths[name] for name, digest in digests.items()}, folder)


def enter(
    folder: Path, paths: Sequence[Path], *, publish: bool = False, at: Instant = None, write: bool = True
) -> list[str]:
    """Enter the files in some paths, and end the week; a line for each entry, and notes for the organizers.

    `write`: False checks everything, and writes nothing.
    """
    drafts = [draft_of(path, folder) for path in paths] + ([DraftLine(PUBLISH, {})] if publish else [])
    if not drafts:
        raise CleansetError("nothing to enter; expected files or folders, or --publish")
    return append(folder, drafts, at=at, write=write)


def append(folder: Path, drafts: Sequence[DraftLine], *, at: Instant = None, write: bool = True) -> list[str]:
    """Add entries to the log after all checks; a line for each, and notes for the organizers.

    `write`: False writes nothing.
    """
    with locked(folder):
        begins = drafts[0].kind == RULES and not (folder / LOG).exists()
        log = Log() if begins else read(folder)
        new = len(log.lines)
        instant = f"{at or datetime.datetime.now(datetime.UTC):%FT%TZ}"
        for draft in drafts:
            content = {"n": len(log.lines), "at": instant, "kind": draft.kind, "prev": log.head, "data": draft.data}
            log.add(json.dumps(content, ensure_ascii=False, separators=(",", ":")), draft.where)
        if at is not None and not log.rules.made_up:
            raise CleansetError("--at: only for a test contest; expected the time of the clock: leave it out")
        objects = Objects(folder, {digest: path for each in drafts for digest, path in each.files.items()})
        replay(log)
        check_voids(log)
        notes = [*check_objects(of_runs.edition_of(folder), log, new, objects)]
        if write:
            (folder / OBJECTS).mkdir(exist_ok=True)
            for digest in objects.new:
                replace_file(folder / OBJECTS / digest, objects.read(digest))
            # the objects first, and the log as one file: a kill or a full disk leaves the old log or the new one
            replace_file(folder / LOG, "".join(f"{line.text}\n" for line in log.lines).encode())
        return [*(f"{each}, {each.digest}" for each in log.lines[new:]), *notes]


def enter_runs(
    folder: Path, names: Sequence[str] | None = None, *, at: Instant = None, write: bool = False
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
            run = of_runs.run_defence(folder, contest, name, of_runs.checked_list(folder, contest.rules))
            data = run.model_dump(mode="json", exclude_none=True)
            yield from append(folder, [DraftLine("run", data)], at=at) if write else [json.dumps(data)]
        except CleansetError as error:
            print_notice(str(error))
            failed.append(name)
    if failed:
        raise CleansetError(f"no run of {', '.join(failed)}; expected one of each: see above")


def check(folder: Path, *, runs: bool = False) -> list[str]:
    """Check all that has been entered. `runs`: compute the answers and figures of models in all runs again."""
    log = read(folder)
    contest = replay(log)
    check_voids(log)
    return [
        f"defences: {len(contest.defences)}; published images: {len(contest.images)}",
        f"lines: {len(log.lines)}; digest of the last: {log.head}",
        *check_objects(of_runs.edition_of(folder), log, 1, Objects(folder)),
        *(of_runs.recomputed(folder, contest) if runs else ()),
    ]
