"""Runs of defences over the eligibility lists and every published image, and a check of runs made before.

Of the unpublished list a run says only whether the defence is eligible. Its rate is that of published images alone, and
rounded, so that no time tells anything of the others.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_known
from cleanset.statistics.coverage import Eligibility, eligibility
from cleanset.studies.contest.entries import Defence, DefenceRun, UnpublishedResult, short
from cleanset.studies.contest.lists import (
    EligibilityList,
    check_published,
    checked_list,
    edition_of,
    eligibility_list,
    list_digest,
)
from cleanset.studies.contest.models import ModelDefence
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.programs import ProgramDefence
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.state import Contest


def run_defence(folder: Path, contest: Contest, name: str) -> DefenceRun:
    """One run of a defence of the contest in a folder.

    Raises CleansetError for a defence that fails, and for an image or a file of it that is missing or has changed.
    """
    edition = edition_of(folder)
    defence = contest.course(name).defence
    known = _published_list(edition, contest)
    hidden = checked_list(folder, contest.rules)
    paths = _paths(known, Objects(folder), contest.images)
    for sha in hidden.keys() & paths.keys():
        raise CleansetError(
            f"{hidden[sha][0]}: a published image; expected only unpublished ones in the unpublished list: remove it"
        )
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


def _published_list(edition: Edition, contest: Contest) -> EligibilityList:
    check_published(edition, contest.rules)
    return eligibility_list(edition, contest.rules.groups())


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
    known = _published_list(edition, contest)
    paths = _paths(known, Objects(folder), contest.images)
    lines = []
    for name, course in sorted(contest.defences.items()):
        runs = number_of(len(course.runs), "run")
        if course.defence.model is None:
            lines.append(f"{name}: {runs} of a program, not computed again")
            continue
        model = ModelDefence(edition, course.defence.model, contest.rules.groups())
        answers, _ = model(paths)
        for line in course.runs:
            _check_run(line.entry, model.digest, _figures(known, answers), answers)
        lines.append(f"{name}: {runs} with the answers and figures that were computed again")
    return lines


def _check_run(run: DefenceRun, digest: str, figures: Eligibility, answers: Mapping[str, str]) -> None:
    given: dict[str, object] = {"model": run.model, "eligibility": run.eligibility, **run.answers}
    expected: dict[str, object] = {"model": digest, "eligibility": figures, **answers}
    for what, there in given.items():
        if there != expected[what]:
            raise CleansetError(
                f"run of {run.defence}: {short(what)} is {there}; expected {expected[what]}, as computed: void the run"
            )
