"""Enter mail into the log: check it against the log, the clean set and earlier images.

`cleanset contest check` does the same and writes nothing, or checks all that has been entered.
"""

import base64
import datetime
import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, read_text, sha256, sha256_of, write_text
from cleanset.json_files import parse_json
from cleanset.studies.contest import log
from cleanset.studies.contest.checkpoints import check_kept
from cleanset.studies.contest.eligibility_lists import (
    clean_digest,
    clean_images,
    eligibility_list,
    list_digest,
    unpublished_yaml,
)
from cleanset.studies.contest.files import Defence, SubmissionManifest, repeats
from cleanset.studies.contest.images import Measures
from cleanset.studies.contest.images_before import ImagesBefore
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer, points_outside
from cleanset.studies.contest.log import read
from cleanset.studies.contest.log_lines import ENTRIES, LOG, PUBLISH, RULES, WHOLE, DraftLine, Line, Signature, entry_of
from cleanset.studies.contest.log_state import mask_of, state
from cleanset.studies.contest.model_defences import seen_by_model
from cleanset.studies.contest.objects import Objects, read_content, refuse_link, visible
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.runs import over_on, recomputed, run_defence
from cleanset.studies.contest.signers import voided
from cleanset.studies.contest.standing import cosigned_by_few, standing
from cleanset.validation import check_known, shown, validate

CONTEST_YAML = "contest.yaml"
DEFENCE_YAML = "defence.yaml"
MANIFEST_YAML = "manifest.yaml"
MAX_IMAGE_BYTES = 100_000_000
MAX_DEPTH = 100
"""Folders in one another of a defence: a path in an entry has 200 characters."""


def draft_of(path: Path, edition: Edition) -> DraftLine:
    """The entry in a file or in the folder of a defence or submission, with the signatures beside it.

    Raises CleansetError for a link, an unknown entry, and a file that is missing or belongs to no entry.
    """
    return replace(_unsigned(path, edition), signatures=_signatures_beside(path))


def _signatures_beside(path: Path) -> dict[str, Signature]:
    """The signatures of an entry, in files named after it, by the names of those who have signed it."""
    path = path.absolute()
    found = {}
    for each in sorted(path.parent.glob("*.sig")):
        name = each.name.removeprefix(f"{path.name}.").removesuffix(".sig")
        if each.name == f"{path.name}.{name}.sig" and "." not in name:
            refuse_link(each)
            content = parse_json(read_text(each, "sign again"), str(each), "a signature of cleanset contest sign")
            found[name] = validate(Signature, content, each)
    return found


def _unsigned(path: Path, edition: Edition) -> DraftLine:
    refuse_link(path)
    for name, kind in ((MANIFEST_YAML, "submission"), (DEFENCE_YAML, "defence")):
        if (path / name).is_file():
            return _draft_of_folder(path, path / name, kind, edition)
    content = read_content(path)
    files: dict[str, Path] = {}
    kind, data = (RULES, _whole(content, edition, path)) if path.name == CONTEST_YAML else kind_of(path, content)
    shown_images = data.get(kind)
    if kind in ("controls", "examples") and isinstance(shown_images, dict):
        there = {sha256_of(each): each for each in visible(path.parent / "images") if each.is_file()}
        files = {digest: each for digest, each in there.items() if digest in shown_images}
        data = {kind: {digest: _with_mask(path, digest, one) for digest, one in shown_images.items()}}
    return DraftLine(kind, data, files=files)


def _whole(content: dict[str, object], edition: Edition, where: Path) -> dict[str, object]:
    """The rules with every default, and the digests of the clean set and of the eligibility list, if there is one."""
    rules = validate(ContestRules, content, where)
    found: dict[str, object] = rules.model_dump(mode="json", exclude_none=True)
    if clean_images(edition):
        published = list_digest(eligibility_list(edition, rules.groups()))
        found |= {"clean_set": clean_digest(edition), "published": published}
    return found


def kind_of(path: Path, content: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The kind of the entry in a file, and its data. Raises CleansetError for an unknown entry."""
    kinds = [key for key in content if key in ENTRIES]
    data = content[kinds[0]] if len(kinds) == 1 else None
    if not isinstance(data, dict):
        raise CleansetError(
            f"{path}: not an entry of a contest; expected {MANIFEST_YAML} or {DEFENCE_YAML} in a folder, "
            f"{CONTEST_YAML}, or a file with one of {', '.join(ENTRIES)} at its top"
        )
    # a list by judge or image has the name of its kind itself
    return kinds[0], content if kinds[0] in WHOLE else data


def _with_mask(path: Path, digest: str, one: object) -> object:
    mask = path.parent / "masks" / f"{digest}.png"
    if not isinstance(one, dict) or not mask.is_file():
        return one
    refuse_link(mask)
    return one | {"mask": base64.b64encode(read_bytes(mask)).decode()}


def _draft_of_folder(folder: Path, file: Path, kind: str, edition: Edition) -> DraftLine:
    data = read_content(file)
    there = {each.relative_to(folder).as_posix(): each for each in _below(folder, flat=kind == "submission")}
    del there[file.name]
    if kind == "submission":
        data = data | {"images": [image_entry(path) for path in there.values()]}
    entry = entry_of(kind, data, datetime.date.min, signers=(), where=file)
    if isinstance(entry, SubmissionManifest):
        return DraftLine(kind, data, files={each.sha256: there[each.file] for each in entry.images})
    assert isinstance(entry, Defence)
    named = {each.path: each.sha256 for each in entry.files}
    for name in sorted(there.keys() ^ named.keys()):
        raise CleansetError(f"{folder / name}: expected the files that {file.name} names, and no others")
    model = data.get("model")
    if entry.model is not None and isinstance(model, dict):
        data = data | {"model": model | seen_by_model(edition, entry.model.role)}
    return DraftLine(kind, data, files={digest: there[name] for name, digest in named.items()})


def image_entry(path: Path) -> dict[str, str | int]:
    """An image of a submission, as the log has it. Raises CleansetError for an image that cannot be submitted."""
    data = read_bytes(path)
    if len(data) > MAX_IMAGE_BYTES:
        raise CleansetError(f"{path}: {len(data):,} bytes; expected at most {MAX_IMAGE_BYTES:,}")
    digest = sha256(data)
    found = Measures().of(path, digest, data)
    if found.problem is not None:
        raise CleansetError(f"{path}: {found.problem}")
    size = {"width": found.width, "height": found.height}
    return {"file": path.name, "sha256": digest, "pixels_sha256": found.pixels_sha256, **size}


def _below(folder: Path, *, flat: bool) -> list[Path]:
    """The files in a folder and in those below it; `flat`: raise CleansetError for a folder in it."""
    found: list[Path] = []
    folders = [folder]
    while folders:
        for path in visible(folders.pop()):
            if not path.is_dir():
                found.append(path)
            elif flat:
                raise CleansetError(f"{path}: a folder; expected all images beside {MANIFEST_YAML}: put them there")
            elif len(path.relative_to(folder).parts) > MAX_DEPTH:
                raise CleansetError(f"{path}: more than {MAX_DEPTH} folders in one another; expected fewer")
            else:
                folders.append(path)
    return sorted(found)


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
    return log.append(contest, drafts, partial(check_lines, edition), key=key, at=at)


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
    defences of others from being run.
    """
    edition = edition_of(contest)
    files = log.read_state(contest)
    on = (at or datetime.datetime.now(datetime.UTC)).date()
    for name in names or ():
        check_known("defence", name, sorted(files.defences))
    problems: dict[str, CleansetError] = {}
    for name in names or sorted(files.defences):
        try:
            run = run_defence(contest, files, name, on, unpublished=unpublished, unconfined=unconfined, counts=counts)
            data = run.model_dump(mode="json", exclude_none=True)
            if key is None:
                yield json.dumps(data)
            else:
                drafts = [DraftLine("run", data)]
                yield from log.append(contest, drafts, partial(check_lines, edition), key=key, at=at)
        except CleansetError as error:
            problems[name] = error
    if problems:
        first, *others = problems
        without = f"; {', '.join(others)} did not run either" if others else ""
        raise CleansetError(f"{problems[first]}{without}")


def edition_of(contest: Path) -> Edition:
    """The edition two folders above a contest."""
    return Edition(contest / ".." / "..")


def check_lines(edition: Edition, lines: Sequence[Line], new: int, objects: Objects) -> list[str]:
    """The lines from a number on, as they are shown, and for each image that looks like a known one a line more.

    Raises CleansetError for the first problem: against other lines, in an object, or of a copied image.
    """
    files = state(lines)
    standing(files, lines[-1].day)
    left = [f"left out: {each}" for each in repeats(files.submissions) if each.submission.number >= new]
    return [
        *(f"{each}, {each.digest}" for each in lines[new:]),
        *left,
        *_problems_and_notes(edition, lines, new, objects),
    ]


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
        (check_kept if Path(since).is_file() else log.check_since)(lines, since)
    files = state(lines)
    notes = check_lines(edition_of(contest), lines, 1, Objects(contest))[len(lines) - 1 :]
    images = sum(len(each.manifest.images) for each in files.submissions)
    found = [
        f"{len(files.defences)} defences, {len(files.submissions)} submissions with {images} images",
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


def _problems_and_notes(edition: Edition, lines: Sequence[Line], new: int, objects: Objects) -> Iterator[str]:
    """See `check_lines`; each object is compared with what was there before its line."""
    void = voided(lines)
    _check_counts([each for each in lines if each.n not in void])
    last = max((each.n for each in lines if each.kind == PUBLISH), default=0)
    before = ImagesBefore(edition, lines[0].entry, objects)
    controls = {sha for each in lines if each.kind == "controls" for sha in each.entry.controls}
    for line in (each for each in lines if each.n not in void):
        # before its week is published nobody but the organizers has the images
        is_there = line.n < last or line.kind != "submission" or all(map(objects.has, _digests(line)))
        if line.n >= (new or 1) and is_there:
            yield from _problems_of(edition, line, before, controls, objects)
        before.add(line)


def _check_counts(lines: Sequence[Line]) -> None:
    over = over_on(lines[0].entry, (each.entry for each in lines if each.kind == "stake"))
    for line in (each for each in lines if each.kind == "run" and each.day < over):
        if line.entry.unpublished is not None and line.entry.unpublished.figures is not None:
            raise CleansetError(
                f"{line}: counts on the unpublished list, though a defence is staked until {over}; expected a run "
                "without counts, and no stake after one with counts"
            )


def _digests(line: Line) -> list[str]:
    return [each.sha256 for each in line.entry.images]


def _problems_of(
    edition: Edition, line: Line, before: ImagesBefore, controls: Set[str], objects: Objects
) -> Iterator[str]:
    match line.kind:
        case "submission":
            yield from before.copies_and_lookalikes(line)
        case "controls" | "examples":
            for digest, one in getattr(line.entry, line.kind).items():
                _check_own_image(f"{line}: {digest[:12]}…", one, before.rules, before.size(digest))
        case "answers":
            for digest in sorted(controls & line.entry.answers.keys()):
                _check_outline(f"{line}: {digest[:12]}…", line.entry.answers[digest], before.size(digest))
        case "defence":
            for each in line.entry.files:
                objects.read(each.sha256)
            _check_public(edition, line.entry)


def _check_own_image(where: str, one: ControlImage | JudgeAnswer, rules: ContestRules, size: tuple[int, int]) -> None:
    if one.contains.keys() != rules.classes.keys():
        given, expected = (", ".join(map(shown, sorted(each))) for each in (one.contains, rules.classes))
        raise CleansetError(f"{where}: contains {given or 'nothing'}; expected {expected}")
    if isinstance(one, JudgeAnswer):
        _check_outline(where, one, size)
    elif size[0] != size[1]:
        raise CleansetError(f"{where}: {size[0]} x {size[1]} pixels; expected a square image, as submitted ones are")
    # outlines are filled at the size of the mask: one of another size would lower every IoU without an error
    elif one.mask is not None and (shape := mask_of(one.mask).shape)[::-1] != size:
        raise CleansetError(
            f"{where}: a mask of {shape[1]} x {shape[0]} pixels; expected its image's {size[0]} x {size[1]}"
        )


def _check_outline(where: str, answer: JudgeAnswer, size: tuple[int, int]) -> None:
    for problem in points_outside(answer.outline or (), *size):
        raise CleansetError(f"{where}: {problem}")


def _check_public(edition: Edition, defence: Defence) -> None:
    expected = None if defence.model is None else read_params(edition.folder).network(defence.model.role).sha256
    given = {each.sha256 for each in defence.files if each.role == "weights"}
    given |= set() if defence.public is None else {defence.public.sha256}
    if defence.open and expected is not None and expected not in given:
        raise CleansetError(
            f"{defence.name}: open, with weights of SHA-256 {', '.join(sorted(given))}; expected {expected}, "
            "as for its model in the edition's params.yaml"
        )


def sign_entries(contest: Path, paths: Sequence[Path], name: str, key: Path) -> list[Path]:
    """Sign entries as a team, a judge or a member of the board, each in a file beside it, whose paths are returned.

    They have to be entered in this order.
    """
    edition = edition_of(contest)
    signatures = log.sign_drafts(contest, [_unsigned(path, edition) for path in paths], name, key)
    written = []
    for path, signature in zip((each.absolute() for each in paths), signatures, strict=True):
        written.append(path.with_name(f"{path.name}.{name}.sig"))
        write_text(written[-1], f"{signature.model_dump_json(indent=1)}\n")
    return written
