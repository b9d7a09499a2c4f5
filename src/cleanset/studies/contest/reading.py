"""Reading the folder of a contest: `studies/contest` of an edition."""

import datetime
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.files import read_bytes, read_text, sha256, sha256_of
from cleanset.images.codec import decode
from cleanset.parsing import parse_json, read_yaml
from cleanset.progress import without_garbage_collection
from cleanset.studies.contest.files import (
    AnswerFile,
    Board,
    ContestFiles,
    ControlsFile,
    Defence,
    DefenceRun,
    ExamplesFile,
    JudgeEntry,
    JudgeExample,
    Roster,
    Submission,
    SubmissionManifest,
    SubmittedImage,
    WeekOfAnswers,
    submitted_images,
)
from cleanset.studies.contest.images import decode_submitted
from cleanset.studies.contest.rules import ContestRules, parse_day
from cleanset.validation import Section, shown, validate

CONTEST_YAML, DEFENCE_YAML, MANIFEST_YAML = "contest.yaml", "defence.yaml", "manifest.yaml"
IMAGES, MASKS = "images", "masks"
LOG = "log"
"""The log of digests in the folder of the board (`history.check_log`)."""
NOTES = "README.md"
"""Allowed in any of the folders, and ignored."""
MAX_CHARACTERS = 2**26
"""Size limit of a YAML file: one has a judge's answers of a week, another the board's decisions of all weeks."""
REMEDY = "save it as UTF-8, or git checkout it"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
SUBMISSION = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})-([1-9][0-9]{0,3})")
_Kind = TypeVar("_Kind", bound=Section)


@without_garbage_collection()
def read_contest(folder: Path) -> ContestFiles:
    """All files of a contest, each checked by itself. Raises CleansetError naming the file, and for a link."""
    roster = _optional(Roster(judges={}), folder / "judges" / "roster.yaml").judges
    answers = list(_answers(folder / "answers", roster))
    folders = {f"{team}/{path.name}": path for team, path in _of_teams(folder / "defences")}
    defences = {name: read_defence(path) for name, path in folders.items()}
    controls = _optional(ControlsFile(controls={}), folder / "judges" / "controls.yaml").controls
    found = ContestFiles(
        read_rules(folder),
        defences,
        [read_submission(path) for _, path in _of_teams(folder / "submissions")],
        frozenset(roster),
        controls,
        answers,
        _board(folder / "board"),
        list(_runs(folder / "results" / "runs")),
        {name: defence_digest(path, defences[name]) for name, path in folders.items()},
    )
    return replace(found, masks=read_masks(folder, found))


def read_rules(folder: Path) -> ContestRules:
    """The content of contest.yaml."""
    return read_section(ContestRules, folder / CONTEST_YAML, "expected the folder of a contest, with contest.yaml")


def read_defence(folder: Path) -> Defence:
    """The defence in defences/<team>/<name>."""
    return read_section(Defence, folder / DEFENCE_YAML)


def defence_digest(folder: Path, defence: Defence) -> str:
    """The SHA-256 of a defence: of a line `<SHA-256>  <path>` for defence.yaml and each file that it names, by path."""
    digests = {each.path: each.sha256 for each in defence.files}
    digests[DEFENCE_YAML] = sha256(read_bytes(folder / DEFENCE_YAML))
    return sha256("".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items())).encode())


def mask_path(folder: Path, digest: str) -> Path:
    """The path of the mask of a control image's largest object: a PNG, white where the object is. It may be missing."""
    return folder / "judges" / MASKS / f"{digest}.png"


def read_mask(path: Path) -> NDArray[np.bool_]:
    """The pixels of a control's largest object, shape (height, width).

    Raises CleansetError unless the file is a PNG with some white in it.
    """
    refuse_link(path)
    try:
        # half of the range, since an edge may be soft
        mask = np.asarray(decode(read_bytes(path), ("PNG",)).convert("L")) > 127
    except ValueError as error:
        raise CleansetError(f"{path}: {error}; expected a PNG, white where the object is") from None
    if not mask.any():
        raise CleansetError(f"{path}: nothing in it is white; expected white where the object is")
    return mask


def read_masks(contest: Path, files: ContestFiles) -> dict[str, NDArray[np.bool_]]:
    """The masks of the control images that have one. Raises CleansetError for one that does not fit its image."""
    found = {each: read_mask(path) for each in sorted(files.controls) if (path := mask_path(contest, each)).exists()}
    paths = image_paths(contest, files, found)
    for digest, mask in found.items():
        width, height = decode_submitted(paths[digest], read_image(paths, digest)).size
        # outlines are filled at the size of the mask: one of another size would lower every IoU without an error
        if mask.shape != (height, width):
            raise CleansetError(
                f"{mask_path(contest, digest)}: {mask.shape[1]} x {mask.shape[0]} pixels; expected those of its image, "
                f"{width} x {height}"
            )
    return found


def read_submission(folder: Path) -> Submission:
    """The submission in submissions/<team>/<date>-<n>, whose manifest must be of that day."""
    match = SUBMISSION.fullmatch(folder.name)
    if match is None:
        raise CleansetError(f"{folder}: not a submission; expected a name <date>-<n>, such as 2026-11-27-1: rename it")
    found = Submission(folder.parent.name, int(match[2]), read_section(SubmissionManifest, folder / MANIFEST_YAML))
    if str(found.day) != match[1]:
        raise CleansetError(f"{folder / MANIFEST_YAML}: submitted on {found.day}; expected {match[1]}, as its folder")
    return found


def read_section(kind: type[_Kind], path: Path, remedy: str = REMEDY) -> _Kind:
    """A YAML file as a section. Raises CleansetError naming the file and the first wrong key."""
    refuse_link(path)
    return validate(kind, read_yaml(path, remedy, MAX_CHARACTERS), path)


def refuse_link(path: Path) -> None:
    """Raise CleansetError for a link: its target may lie anywhere, and change."""
    if path.is_symlink():
        raise CleansetError(f"{path}: a link; expected a file or folder: put a copy of what it leads to in its place")


def visible(folder: Path) -> list[Path]:
    """The paths in a folder, sorted, without hidden files and notes; empty without a folder."""
    refuse_link(folder)
    if not folder.is_dir():
        return []
    found = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.name != NOTES)
    for path in found:
        refuse_link(path)
    return found


def _optional(empty: _Kind, path: Path) -> _Kind:
    # exists() is False for a link that leads nowhere, which has to be refused
    return read_section(type(empty), path) if path.exists() or path.is_symlink() else empty


def _of_teams(folder: Path) -> Iterator[tuple[str, Path]]:
    """The folders in the folders of teams, with the name of the team."""
    for team in visible(folder):
        for path in visible(_folder(team)):
            yield team.name, _folder(path)


def _folder(path: Path) -> Path:
    if not path.is_dir() or not _NAME.fullmatch(path.name):
        raise CleansetError(
            f"{path}: unexpected; expected a folder with a name of small letters, digits, - and _: rename or remove it"
        )
    return path


def _dated(path: Path, suffix: str) -> datetime.date:
    try:
        if path.suffix == suffix and path.is_file():
            return parse_day(path.stem)
    except ValueError:
        pass
    raise CleansetError(f"{path}: unexpected; expected a file <date>{suffix}, such as 2026-11-27{suffix}: rename it")


def _answers(folder: Path, roster: Mapping[str, JudgeEntry]) -> Iterator[WeekOfAnswers]:
    for judge in visible(folder):
        for path in visible(_folder(judge)):
            found = WeekOfAnswers(judge.name, _dated(path, ".yaml"), read_section(AnswerFile, path).answers)
            first = min((each.date for each in found.answers.values()), default=datetime.date.max)
            joined = roster[judge.name].joined if judge.name in roster else datetime.date.min
            if first < joined:
                raise CleansetError(
                    f"{found}: an answer of {first}; expected none before {joined}, when the judge joined"
                )
            yield found


def _board(folder: Path) -> Board:
    """The lists of the board: the name of a file is that of its list."""
    lists: dict[str, object] = {}
    for path in visible(folder):
        if path.name == LOG:
            continue
        if path.suffix != ".yaml" or path.stem not in Board.model_fields:
            expected = ", ".join(f"{name}.yaml" for name in Board.model_fields)
            raise CleansetError(f"{path}: unexpected; expected {expected}: rename or remove it")
        content = read_yaml(path, REMEDY, MAX_CHARACTERS)
        if not isinstance(content, list):
            raise CleansetError(f"{path}: {shown(content)}; expected a list of entries")
        # each list by itself, so that a message names its file
        validate(Board, {path.stem: content}, path)
        lists[path.stem] = content
    return Board.model_validate(lists)


def _runs(folder: Path) -> Iterator[DefenceRun]:
    for team, defence in _of_teams(folder):
        for path in visible(defence):
            date = _dated(path, ".json")
            found = validate(DefenceRun, parse_json(read_text(path, REMEDY), str(path), "a run of a defence"), path)
            if (found.defence, found.date) != (f"{team}/{defence.name}", date):
                raise CleansetError(
                    f"{path}: {found.defence} on {found.date}; expected {team}/{defence.name} on {date}, as its name"
                )
            yield found


def own_digests(contest: Path) -> dict[Path, str]:
    """The SHA-256 of each file in judges/images/, sorted by path."""
    return {path: sha256_of(path) for path in visible(contest / "judges" / IMAGES) if path.is_file()}


def image_path(contest: Path, submission: Submission, image: SubmittedImage) -> Path:
    """The file of a submitted image."""
    return contest / str(submission) / IMAGES / image.file


def submitted_paths(contest: Path, submissions: Iterable[Submission]) -> dict[str, Path]:
    """By SHA-256, the file of each image of some submissions, whether it is there or not; sorted."""
    found = {image.sha256: image_path(contest, each, image) for each, image in submitted_images(submissions)}
    return dict(sorted(found.items()))


def image_paths(
    contest: Path, files: ContestFiles, wanted: Iterable[str], digests: Mapping[Path, str] | None = None
) -> dict[str, Path]:
    """The files by SHA-256: submitted images where their manifests have them, others in judges/images/.

    `digests`: the result of `own_digests`, if it is known. Raises CleansetError for an image without a file.
    """
    found = submitted_paths(contest, files.submissions)
    own = {digest: path for path, digest in (own_digests(contest) if digests is None else digests).items()}
    for digest in sorted(wanted):
        if not found.setdefault(digest, own.get(digest, Path())).is_file():
            raise CleansetError(
                f"{contest / 'judges' / IMAGES}: no file with SHA-256 {digest[:12]}…; expected every control, example "
                "and submitted image: add it, or dvc pull"
            )
    return found


def read_image(paths: Mapping[str, Path], digest: str) -> bytes:
    """The bytes of an image. Raises CleansetError if the file has changed."""
    data = read_bytes(paths[digest])
    if sha256(data) != digest:
        raise CleansetError(f"{paths[digest]}: SHA-256 {sha256(data)}; expected {digest}: the file has changed")
    return data


def check_defence(folder: Path, defence: Defence) -> None:
    """Check that a defence's files are there with their SHA-256, and no others. Raises CleansetError."""
    expected = {each.path: each.sha256 for each in defence.files}
    for path in _files_below(folder):
        name = path.relative_to(folder).as_posix()
        if name not in expected and name != DEFENCE_YAML:
            raise CleansetError(f"{path}: not among the files of {DEFENCE_YAML}; expected it there with its SHA-256")
    for name, digest in sorted(expected.items()):
        path = folder / name
        if not path.is_file():
            raise CleansetError(f"{path}: missing; expected every file that {DEFENCE_YAML} names: add it, or dvc pull")
        found = sha256_of(path)
        if found != digest:
            raise CleansetError(f"{path}: SHA-256 {found}; expected {digest} of {DEFENCE_YAML}: the file has changed")


def copy_defence(folder: Path, to: Path, defence: Defence) -> None:
    """Copy what the digest of a defence is of, and nothing else: what lies beside it is not there when it runs.

    Raises CleansetError as `check_defence` does, of the copy.
    """
    for name in (DEFENCE_YAML, *(each.path for each in defence.files)):
        copy = to / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, copy)
        # neither permissions nor dates are in the digest
        copy.chmod(0o555)
        os.utime(copy, (0, 0))
    check_defence(to, defence)


def _files_below(folder: Path) -> Iterator[Path]:
    for path in visible(folder):
        if path.is_dir():
            yield from _files_below(path)
        elif path.suffix != ".dvc" and path.name != NOTES:
            yield path


def read_checked_examples(contest: Path, files: ContestFiles) -> Mapping[str, JudgeExample]:
    """The examples for judges by their SHA-256. Raises CleansetError for one that does not answer for both groups."""
    examples = _optional(ExamplesFile(examples={}), contest / "judges" / "examples.yaml").examples
    for digest, example in sorted(examples.items()):
        where = f"{contest / 'judges' / 'examples.yaml'}: {digest[:12]}…"
        check_groups(where, example.contains, files.rules.classes)
    return examples


def check_groups(where: str, given: Mapping[str, object], groups: Collection[str]) -> None:
    """Raise CleansetError unless an answer is for both groups."""
    if set(given) != set(groups):
        raise CleansetError(
            f"{where}: contains {', '.join(map(shown, sorted(given))) or 'nothing'}; "
            f"expected {', '.join(sorted(groups))}"
        )
