"""Runs of defences over the eligibility lists and every published image, and a check of runs made before.

The lists are the edition's finished sets, and an unpublished one. Of that a run says only whether the defence is
eligible. Its rate is that of published images alone, and rounded, so that no time tells anything of the others.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_known, sha256, sha256_of
from cleanset.scoring.logits import Groups
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.statistics.coverage import Eligibility, eligibility
from cleanset.studies.contest.entries import Defence, DefenceRun, UnpublishedResult, short
from cleanset.studies.contest.log import Objects, files_in
from cleanset.studies.contest.models import ModelDefence
from cleanset.studies.contest.programs import ProgramDefence
from cleanset.studies.contest.rules import ABSTAIN, ContestRules
from cleanset.studies.contest.state import Contest

UNPUBLISHED_LIST = "unpublished"
"""The folder, beside the log, of the list that is not published; git ignores it."""


def edition_of(folder: Path) -> Edition:
    """The edition two folders above a contest."""
    return Edition(folder / ".." / "..")


EligibilityList = Mapping[str, tuple[Path, str]]
"""The path of each image and its group, by SHA-256, sorted."""


def clean_images(edition: Edition) -> list[tuple[Path, Entry]]:
    """The images of the edition's finished sets, set by set, with their entries."""
    folders = sorted(path.parent for path in (edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
    return [(folder / entry.file, entry) for folder in folders for entry in read_entries(folder)]


def eligibility_list(edition: Edition, groups: Groups) -> EligibilityList:
    """The images of the edition's finished sets whose class is in one of the groups."""
    found: dict[str, tuple[Path, str]] = {}
    for path, entry in clean_images(edition):
        group = groups.group_of(entry.class_index)
        if group is not None:
            # an image in the sets of several models counts once
            found.setdefault(entry.file_sha256, (path, groups.names[group]))
    if not found:
        raise CleansetError(f"{edition.folder}: no image of a class of the contest; expected some: run dvc pull")
    return dict(sorted(found.items()))


def unpublished_list(contest: Path, groups: Groups) -> EligibilityList:
    """The images in `unpublished/` beside the log, which has one folder for each group, by its name; empty without it.

    Raises CleansetError for a group without an image.
    """
    folder = contest / UNPUBLISHED_LIST
    found: dict[str, tuple[Path, str]] = {}
    for group in groups.names if folder.exists() else ():
        paths = files_in(folder / group).values()
        if not paths:
            raise CleansetError(f"{folder / group}: no image; expected a folder of images for each of the two groups")
        found |= {sha256_of(path): (path, group) for path in paths}
    return dict(sorted(found.items()))


def list_digest(images: EligibilityList) -> str:
    """The digest of a list in contest.yaml: of a line `<group> <SHA-256>` for each image, sorted."""
    return sha256("".join(sorted(f"{group} {digest}\n" for digest, (_, group) in images.items())).encode())


def clean_digest(edition: Edition) -> str:
    """The digest of the finished sets in contest.yaml: of the SHA-256 of each image's pixels, on a line, sorted."""
    pixels = {entry.pixels_sha256 for _, entry in clean_images(edition)}
    return sha256("".join(f"{each}\n" for each in sorted(pixels)).encode())


def published_list(edition: Edition, rules: ContestRules) -> EligibilityList:
    """The eligibility list of the finished sets.

    Raises CleansetError for other sets, or another list, than the first line of a log names.
    """
    found = eligibility_list(edition, rules.groups())
    there = (clean_digest(edition), list_digest(found))
    if rules.clean_set is not None and there != (rules.clean_set, rules.published):
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: sets and a list with the digests {', '.join(there)}; expected "
            f"{rules.clean_set} and {rules.published}, as the contest's first line names: dvc checkout"
        )
    return found


def checked_list(contest: Path, rules: ContestRules) -> EligibilityList:
    """The unpublished list that the first line of a log names; empty without one.

    Raises CleansetError for another list, and as `unpublished_list` does.
    """
    if rules.unpublished is None:
        return {}
    found = unpublished_list(contest, rules.groups())
    if list_digest(found) != rules.unpublished:
        raise CleansetError(
            f"{contest / UNPUBLISHED_LIST}: a list with the digest {list_digest(found)}; expected {rules.unpublished}, "
            "as the contest's first line names"
        )
    return found


def run_defence(folder: Path, contest: Contest, name: str) -> DefenceRun:
    """One run of a defence of the contest in a folder.

    Raises CleansetError for a defence that fails, and for an image or a file of it that is missing or has changed.
    """
    edition = edition_of(folder)
    defence = contest.course(name).defence
    known = published_list(edition, contest.rules)
    hidden = checked_list(folder, contest.rules)
    paths = _paths(known, Objects(folder), contest.images)
    for sha in hidden.keys() & paths.keys():
        raise CleansetError(f"{hidden[sha][0]}: a published image; expected only unpublished ones: remove it")
    answer = _answering(edition, Objects(folder), defence, contest)
    answers, seconds = answer(paths)
    found = None
    if hidden:
        figures = _figures(hidden, answer({sha: path for sha, (path, _) in hidden.items()})[0])
        found = UnpublishedResult(list_sha256=list_digest(hidden), eligible=figures.is_eligible)
    return DefenceRun(
        defence=name,
        model=answer.digest,
        images_per_minute=rounded_down(len(paths) / seconds * 60),
        eligibility=_figures(known, answers),
        unpublished=found,
        answers={sha: answers[sha] for sha in contest.images},
    )


def _answering(edition: Edition, objects: Objects, defence: Defence, contest: Contest) -> ModelDefence | ProgramDefence:
    groups = contest.rules.groups()
    if defence.model is not None:
        return ModelDefence(edition, defence.model, groups)
    return ProgramDefence(objects, defence, groups.names)


def _paths(known: EligibilityList, objects: Objects, published: Mapping[str, object]) -> dict[str, Path]:
    """The clean images and the published ones, by SHA-256. Raises CleansetError for one that is missing or changed."""
    paths = {sha: path for sha, (path, _) in known.items()} | {sha: objects.path(sha) for sha in published}
    # before the defence runs, which may take long
    for sha, path in paths.items():
        read_known(path, sha, "run cleanset contest check")
    return paths


def _figures(known: EligibilityList, answers: Mapping[str, str]) -> Eligibility:
    """The counts of a defence on a list."""
    correct = np.array([answers[sha] == group for sha, (_, group) in known.items()])
    return eligibility(correct, np.array([answers[sha] == ABSTAIN for sha in known]))


def rounded_down(rate: float) -> float:
    """A rate with two digits, so that none meets a limit by rounding."""
    unit = 10.0 ** (math.floor(math.log10(rate)) - 1) if rate > 0 else 1.0
    return round(math.floor(rate / unit) * unit, 6)


def number_of(count: int, what: str) -> str:
    """A number of things, such as "1 run"."""
    return f"{count} {what if count == 1 else f'{what}s'}"


def recomputed(folder: Path, contest: Contest) -> list[str]:
    """A line on each defence: the answers and figures of a model's runs are computed again, all but the rates.

    Raises CleansetError for a run of a model with another answer or figure than is computed.
    """
    edition = edition_of(folder)
    known = published_list(edition, contest.rules)
    paths = _paths(known, Objects(folder), contest.images)
    lines = []
    for name, course in sorted(contest.defences.items()):
        runs = number_of(len(course.runs), "run")
        if course.defence.model is None:
            lines.append(f"{name}: {runs} of a program, not computed again")
            continue
        model = ModelDefence(edition, course.defence.model, contest.rules.groups())
        answers, _ = model(paths)
        expected = {"model": model.digest, "eligibility": _figures(known, answers), **answers}
        for line in course.runs:
            given = {"model": line.entry.model, "eligibility": line.entry.eligibility, **line.entry.answers}
            for what in (each for each in given if given[each] != expected[each]):
                wanted = f"expected {expected[what]}, as computed: void the run"
                raise CleansetError(f"run of {name}: {short(what)} is {given[what]}; {wanted}")
        lines.append(f"{name}: {runs} with the answers and figures that were computed again")
    return lines
