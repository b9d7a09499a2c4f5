"""Runs of defences over the eligibility lists and every published image, and a check of runs made before.

The lists are the edition's finished sets, and an unpublished one. For that one, a run reports only whether the defence
is eligible. Its rate is that of the published images, rounded, so that timing reveals nothing about the others.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_known, sha256, sha256_of
from cleanset.scoring.logits import Groups
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.statistics.coverage import Eligibility, eligibility
from cleanset.statistics.formats import rounded
from cleanset.studies.contest.entries import DefenceRun, short
from cleanset.studies.contest.log import Objects, files_in
from cleanset.studies.contest.models import ModelDefence
from cleanset.studies.contest.programs import ProgramDefence
from cleanset.studies.contest.rules import ABSTAIN, ContestRules
from cleanset.studies.contest.state import Contest

UNPUBLISHED_LIST = "unpublished"
"""The folder, next to the log, of the list that is not published; git ignores it."""


def edition_of(folder: Path) -> Edition:
    """The edition two folders above a contest."""
    return Edition(folder / ".." / "..")


EligibilityList = Mapping[str, tuple[Path, str]]
"""The path of each image and its group, by SHA-256, sorted."""


def clean_images(edition: Edition) -> list[tuple[Path, Entry]]:
    """The images of the edition's finished sets, set by set, with their entries."""
    folders = sorted(path.parent for path in (edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
    return [(folder / entry.file, entry) for folder in folders for entry in read_entries(folder)]


def unpublished_list(contest: Path, groups: Groups) -> EligibilityList:
    """The images in `unpublished/` next to the log, which has one folder for each group, by its name; empty without it.

    Raises CleansetError for a group without an image.
    """
    folder = contest / UNPUBLISHED_LIST
    found: dict[str, tuple[Path, str]] = {}
    for group in groups.names if folder.exists() else ():
        paths = files_in(folder / group).values()
        if not paths:
            raise CleansetError(f"{folder / group}: no image; expected some for each of the two groups: put them there")
        found |= {sha256_of(path): (path, group) for path in paths}
    return dict(sorted(found.items()))


def list_digest(images: EligibilityList) -> str:
    """The digest of a list in contest.yaml, of sorted lines `<group> <SHA-256>`, one for each image."""
    return sha256("".join(sorted(f"{group} {digest}\n" for digest, (_, group) in images.items())).encode())


def clean_digest(edition: Edition) -> str:
    """The digest of the finished sets, of sorted lines `<wnid> <SHA-256> <SHA-256 of the pixels>`, one for each
    image."""
    images = {f"{entry.wnid} {entry.file_sha256} {entry.pixels_sha256}\n" for _, entry in clean_images(edition)}
    return sha256("".join(sorted(images)).encode())


def checked_clean_images(edition: Edition, rules: ContestRules) -> list[tuple[Path, Entry]]:
    """The images of the edition's finished sets. Raises CleansetError for other sets than a log's first line names."""
    if rules.clean_set not in (None, clean_digest(edition)):
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: sets with the digest {clean_digest(edition)}; expected "
            f"{rules.clean_set}, as the contest's first line names: dvc checkout"
        )
    return clean_images(edition)


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
            "as the contest's first line names: put that list there"
        )
    return found


def eligibility_list(edition: Edition, rules: ContestRules) -> EligibilityList:
    """The images of the edition's finished sets whose class is in one of the groups, as the first line names them."""
    groups = rules.groups()
    found: dict[str, tuple[Path, str]] = {}
    for path, entry in checked_clean_images(edition, rules):
        group = groups.group_of(entry.class_index)
        if group is not None:
            # an image in the sets of several models counts once
            found.setdefault(entry.file_sha256, (path, groups.names[group]))
    if not found:
        raise CleansetError(f"{edition.folder}: no image of a class of the contest; expected some: run dvc pull")
    return dict(sorted(found.items()))


def run_defence(folder: Path, contest: Contest, name: str, hidden: EligibilityList) -> DefenceRun:
    """One run of a defence of the contest in a folder, over an unpublished list, too.

    Raises CleansetError for a defence that fails, and for an image or a file of it that is missing or has changed.
    """
    edition = edition_of(folder)
    objects = Objects(folder)
    groups = contest.rules.groups()
    defence = contest.course(name).defence
    known = eligibility_list(edition, contest.rules)
    paths = {sha: path for sha, (path, _) in known.items()} | {sha: objects.path(sha) for sha in contest.images}
    # before the defence runs, which may take long
    for sha, path in paths.items():
        read_known(path, sha, "run cleanset contest check")
    for sha in hidden.keys() & paths.keys():
        raise CleansetError(f"{hidden[sha][0]}: a published image; expected only unpublished ones: remove it")
    answer: ModelDefence | ProgramDefence
    if defence.model is not None:
        answer = ModelDefence(edition, defence.model, groups)
    else:
        answer = ProgramDefence(objects, defence, groups.names, contest.rules.limits.images_per_minute)
    answers, seconds = answer(paths)
    of_hidden = answer({sha: path for sha, (path, _) in hidden.items()})[0] if hidden else {}
    return DefenceRun(
        defence=name,
        model=answer.digest,
        images_per_minute=rounded_down(len(paths) / seconds * 60),
        eligibility=_figures(known, answers),
        unpublished=_figures(hidden, of_hidden).is_eligible if hidden else None,
        answers={sha: answers[sha] for sha in contest.images},
    )


def _figures(known: EligibilityList, answers: Mapping[str, str]) -> Eligibility:
    """The counts of a defence on a list."""
    correct = np.array([answers[sha] == group for sha, (_, group) in known.items()])
    return eligibility(correct, np.array([answers[sha] == ABSTAIN for sha in known]))


def rounded_down(rate: float) -> float:
    """A rate with two digits, so that none meets a limit by rounding."""
    unit = 10.0 ** (math.floor(math.log10(rate)) - 1) if rate > 0 else 1.0
    return rounded(math.floor(rate / unit) * unit, 6)


def recomputed(folder: Path, contest: Contest) -> Iterator[str]:
    """A line on each defence: the answers and figures of a model's runs are computed again, all but the rates.

    Raises CleansetError for a run of a model with another answer or figure than is computed.
    """
    for name, course in sorted(contest.defences.items()):
        if course.defence.model is None:
            yield f"{name}: a program, whose runs are not computed again"
            continue
        expected = _figures_and_answers(run_defence(folder, contest, name, {}))
        for line in course.runs:
            given = _figures_and_answers(line.entry)
            for what in (each for each in given if given[each] != expected[each]):
                wanted = f"expected {expected[what]}, as computed: void the run"
                raise CleansetError(f"{line}, {name}: {short(what)} is {given[what]}; {wanted}")
        yield f"{name}: all runs have the answers and figures that were computed again"


def _figures_and_answers(run: DefenceRun) -> dict[str, object]:
    return {"model": run.model, "eligibility": run.eligibility, **run.answers}
