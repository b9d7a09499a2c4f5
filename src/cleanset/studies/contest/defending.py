"""Running a defence over every submitted image and the eligibility list. torch is imported only for a model."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.exports.folder import read_entries
from cleanset.exports.manifest import MANIFEST
from cleanset.files import read_bytes, sha256, write_text
from cleanset.scoring.groups import Groups
from cleanset.statistics.coverage import Flags, Floats, eligibility
from cleanset.studies.contest.command_defence import CommandDefence
from cleanset.studies.contest.entries import Defence
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.folder_checks import check_defence
from cleanset.studies.contest.model_defence import ModelDefence
from cleanset.studies.contest.reading import IMAGES, defence_digest, visible
from cleanset.studies.contest.rules import ABSTAIN, ContestRules
from cleanset.studies.contest.runs import DefenceRun, coverage_steps

UNPUBLISHED = "unpublished"
"""The folder, beside contest.yaml, of the list that is not published; git ignores it."""


@dataclass(frozen=True, slots=True)
class EligibilityImage:
    """An image whose group is known."""

    path: Path
    group: str


def eligibility_list(edition: Edition, groups: Groups) -> dict[str, EligibilityImage]:
    """By SHA-256, the images of the edition's finished sets whose class is in one of the groups."""
    found: dict[str, EligibilityImage] = {}
    for manifest in sorted((edition.folder / "data" / "export").glob(f"*/{MANIFEST}")):
        for entry in read_entries(manifest.parent):
            group = groups.group_of(entry.class_index)
            if group is not None:
                # an image in the sets of several models counts once
                found.setdefault(entry.file_sha256, EligibilityImage(manifest.parent / entry.file, groups.names[group]))
    if not found:
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: no image of a class of the contest; expected some in the finished "
            "sets: run dvc pull, or name other classes in contest.yaml"
        )
    return dict(sorted(found.items()))


def unpublished_list(folder: Path, groups: Groups) -> dict[str, EligibilityImage]:
    """By SHA-256, the images of a list that is not published: a folder with one folder for each group, by its name.

    Raises CleansetError for a group without an image, a link, and an image in both groups.
    """
    found: dict[str, EligibilityImage] = {}
    for group in groups.names:
        paths = visible(folder / group)
        if not paths:
            raise CleansetError(f"{folder / group}: no image; expected a folder of images for each of the two groups")
        for path in paths:
            other = found.setdefault(sha256(read_bytes(path)), EligibilityImage(path, group))
            if other.group != group:
                raise CleansetError(f"{path}: the same image as {other.path}; expected each image in one group")
    return dict(sorted(found.items()))


def list_digest(images: Mapping[str, EligibilityImage]) -> str:
    """The digest by which contest.yaml names a list: of a line `<group> <SHA-256>` for each image, sorted."""
    return sha256("".join(sorted(f"{each.group} {digest}\n" for digest, each in images.items())).encode())


def checked_list(contest: Path, rules: ContestRules, unpublished: Path | None) -> dict[str, EligibilityImage]:
    """The unpublished list that contest.yaml names, in a folder or in `unpublished/` beside it; empty without one.

    Raises CleansetError for another list than the one that it names, and as `unpublished_list` does.
    """
    folder = contest / UNPUBLISHED if unpublished is None else unpublished
    if rules.unpublished is None and unpublished is None:
        return {}
    if not folder.is_dir():
        raise CleansetError(
            f"{folder}: no folder; expected the unpublished list that contest.yaml names: add it, or give its folder "
            "with --unpublished"
        )
    found = unpublished_list(folder, rules.groups())
    if rules.unpublished is None:
        raise CleansetError(
            f"{folder}: an unpublished list, but contest.yaml names none; expected its line there before the contest "
            "begins: cleanset contest unpublished prints it"
        )
    if list_digest(found) != rules.unpublished:
        raise CleansetError(
            f"{folder}: a list with the digest {list_digest(found)}; expected the one that contest.yaml names as "
            f"unpublished, {rules.unpublished}: give that one"
        )
    return found


def submitted_images(contest: Path, files: ContestFiles, on: datetime.date) -> dict[str, Path]:
    """By SHA-256, every image that was submitted up to a day."""
    found = {
        image.sha256: contest / str(each) / IMAGES / image.file
        for each in files.submissions
        if each.day <= on
        for image in each.manifest.images
    }
    return dict(sorted(found.items()))


def run_defence(
    contest: Path, files: ContestFiles, name: str, on: datetime.date, unpublished: Path | None = None
) -> DefenceRun:
    """One run of a defence, dated `on`: its files checked, all images answered, its rate measured.

    Raises CleansetError for a defence whose files are not as named, that was staked with other ones, or that fails, and
    for an image that is missing or has changed.
    """
    defence = files.defences[name]
    check_defence(contest / "defences" / name, defence)
    digest = defence_digest(contest / "defences" / name, defence)
    _check_staked(files, name, digest)
    accepted = any(each.defence == name and each.date <= on for each in files.board.accepted)
    if defence.command is not None and not accepted:
        raise CleansetError(f"{name}: a command that the board has not accepted by {on}; expected board/accepted.yaml")
    groups, edition = files.rules.groups(), Edition(contest / ".." / "..")
    known, submitted = eligibility_list(edition, groups), submitted_images(contest, files, on)
    hidden = checked_list(contest, files.rules, unpublished)
    for sha in sorted(hidden.keys() & (known.keys() | submitted.keys())):
        raise CleansetError(f"{hidden[sha].path}: a published image; expected none in the unpublished list: remove it")
    paths = {sha: each.path for sha, each in (hidden | known).items()} | submitted
    for sha, path in paths.items():
        # before the defence runs, which may take long
        if not path.is_file() or sha256(path.read_bytes()) != sha:
            raise CleansetError(f"{path}: missing or changed; expected SHA-256 {sha}: run cleanset contest check")
    answer = _answering(contest, edition, name, defence, groups)
    before = perf_counter()
    answers, confidences = answer(paths)
    # making the images that a command is given takes time that is not the command's
    minutes = (perf_counter() - before - answer.preparation_seconds) / 60
    if isinstance(answer, ModelDefence) and all(answers[sha] == ABSTAIN for sha in known):
        raise CleansetError(
            f"{name}: threshold {answer.wanted.threshold:g} abstains on everything, all {len(known)} images of the "
            "eligibility list; expected a lower one: cleanset contest threshold finds one"
        )
    groups_of = {sha: each.group for sha, each in known.items()}
    content = {
        "defence": name,
        "date": str(on),
        "digest": digest,
        "model": answer.digest if isinstance(answer, ModelDefence) else None,
        "confined": answer.is_confined if isinstance(answer, CommandDefence) else None,
        "images_per_minute": round(len(paths) / minutes, 1),
        "eligibility": _figures(known, answers, confidences),
        "unpublished": _figures(hidden, answers, confidences) | {"list_sha256": list_digest(hidden)}
        if hidden
        else None,
        "coverage": [list(step) for step in coverage_steps(*_flags(known, answers, confidences))],
        "signs": answer.signs(groups_of, paths) if isinstance(answer, ModelDefence) else None,
        # of the lists only counts are kept: one of them is not published
        "answers": {sha: answers[sha] for sha in submitted},
    }
    return DefenceRun.model_validate(content)


def _check_staked(files: ContestFiles, name: str, digest: str) -> None:
    for stake in files.board.stakes:
        if stake.digests.get(name, digest) != digest:
            raise CleansetError(
                f"defences/{name}: digest {digest} of defence.yaml and its files; expected {stake.digests[name]}, "
                f"staked on {stake.date}: git checkout it, and submit what has changed under another name"
            )


def _answering(
    contest: Path, edition: Edition, name: str, defence: Defence, groups: Groups
) -> ModelDefence | CommandDefence:
    if defence.model is not None:
        return ModelDefence(edition, defence.model, groups)
    return CommandDefence(contest / "defences" / name, defence, groups.names, name)


def _flags(
    known: Mapping[str, EligibilityImage], answers: Mapping[str, str], confidences: Mapping[str, float] | None
) -> tuple[Flags, Flags, Floats | None]:
    """For each image: is the answer correct, does the defence abstain, and with which confidence (if known)."""
    correct = np.array([answers[sha] == each.group for sha, each in known.items()])
    abstains = np.array([answers[sha] == ABSTAIN for sha in known])
    return correct, abstains, None if confidences is None else np.array([confidences[sha] for sha in known])


def _figures(
    known: Mapping[str, EligibilityImage], answers: Mapping[str, str], confidences: Mapping[str, float] | None
) -> dict[str, int]:
    return asdict(eligibility(*_flags(known, answers, confidences)))


def run_json(run: DefenceRun) -> str:
    """The content of a run's file."""
    return json.dumps(run.model_dump(mode="json", exclude_none=True), indent=1) + "\n"


def write_run(contest: Path, run: DefenceRun) -> Path:
    """Write a run to results/runs/<team>/<name>/<date>.json; the path."""
    path = contest / "results" / "runs" / run.defence / f"{run.date}.json"
    write_text(path, run_json(run))
    return path


def defend(
    contest: Path, files: ContestFiles, names: Sequence[str], on: datetime.date, unpublished: Path | None = None
) -> Iterator[Path]:
    """Run defences and write their runs, the paths as they are written.

    Raises CleansetError for an unknown defence, and as `run_defence`: only at the end, since no team may keep the
    defences of others from being run.
    """
    for name in names:
        if name not in files.defences:
            raise CleansetError(f"{name}: unknown defence; expected one of {', '.join(sorted(files.defences))}")
    problems: dict[str, CleansetError] = {}
    for name in names:
        try:
            yield write_run(contest, run_defence(contest, files, name, on, unpublished))
        except CleansetError as error:
            problems[name] = error
    if problems:
        first, *others = problems
        without = f"; {', '.join(others)} did not run either" if others else ""
        raise CleansetError(f"{problems[first]}{without}")
